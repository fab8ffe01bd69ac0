"""JSON as every command prints it."""

from __future__ import annotations

import json
from typing import Any

import click

from assay.terminal import harmless_json


def echo_json(value: Any) -> None:
    click.echo(harmless_json(json.dumps(value, indent=2, ensure_ascii=False)))
