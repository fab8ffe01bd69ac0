"""`assay schema`: print JSON Schemas, for editors and other tools."""

from __future__ import annotations

import click

from assay.cli.json import echo_json
from assay.service.schema import NAMES, schema


@click.command("schema")
@click.argument("name", type=click.Choice(NAMES))
def command(name: str) -> None:
    """Print the JSON Schema (2020-12) of a kind of file.

    It is made from the definitions that are in use, evaluators and targets of plugins
    included. `config` is assay.yaml, `result` a result file; the others are eval files.

    \b
    Examples:
      assay schema eval > eval.schema.json
      assay schema golden
      assay schema config > assay.schema.json
    """
    echo_json(schema(name))
