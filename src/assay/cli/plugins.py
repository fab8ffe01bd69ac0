"""`assay plugins`: list what is registered for each port."""

from __future__ import annotations

import click

from assay.cli.json import echo_json
from assay.service.project import plugins
from assay.text import printable


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(as_json: bool) -> None:
    """List what is registered, and what failed to load.

    Built-in parts, those of installed packages, and the modules under `plugins` in the
    configuration. Exits 3 when one of them cannot be used.

    \b
    Examples:
      assay plugins
      assay plugins --json
    """
    entries = plugins()
    if as_json:
        echo_json([entry._asdict() for entry in entries])
    else:
        for kind, name, source, fault in entries:
            line = f"{kind:16} {name:20} {source}"
            click.echo(printable(line + (f"  FAILED: {fault}" if fault else "")))
    raise SystemExit(3 if any(entry.fault for entry in entries) else 0)
