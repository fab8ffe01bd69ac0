"""`assay schema`: for editors and for other tools."""

from __future__ import annotations

import json

import click

from assay import service


@click.command("schema")
@click.argument("name", type=click.Choice(service.schema_names()))
def command(name: str) -> None:
    """Print the JSON Schema (2020-12) of a kind of eval file.

    It is made from the definitions that the loaders use, evaluators of plugins included.

    \b
    Examples:
      assay schema eval > eval.schema.json
      assay schema golden
    """
    click.echo(json.dumps(service.describe(name), indent=2, ensure_ascii=False))
