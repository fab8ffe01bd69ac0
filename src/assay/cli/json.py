"""JSON output, the same for every command."""

from __future__ import annotations

import json
from typing import Any

import click

from assay.reporters.terminal import escape_controls_in_json


def echo_json(value: Any) -> None:
    click.echo(escape_controls_in_json(json.dumps(value, indent=2, ensure_ascii=False)))
