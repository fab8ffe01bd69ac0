"""The options of the pytest plugin: a table in a module that may not import Assay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

import _assay_pytest
from assay.cli.run import command as run_command
from assay.model.options import traits_of
from assay.pytest_plugin.evals import OFFERED

FILE = Path(_assay_pytest.__file__)
_TABLE = re.compile(
    r"(?<=RUN_OPTIONS: tuple\[tuple\[str, str, str, str\], \.\.\.\] = \(\n).*?(?=^\))", re.S | re.M
)
_KINDS = {"integer": "whole", "float": "number", "text": "text"}


def rewritten(text: str) -> str:
    """The text of the module with its table written anew."""
    return _TABLE.sub(lambda found: "".join(_lines()), text)


def _lines() -> Iterator[str]:
    parameters = {p.name: p for p in run_command.params if isinstance(p, click.Option)}
    for name in OFFERED:
        option = parameters[name]
        row = (option.opts[0].removeprefix("--"), _kind(name, option), option.metavar or "")
        cells = (json.dumps(cell, ensure_ascii=False) for cell in (*row, option.help))
        yield "    (\n" + "".join(f"        {cell},\n" for cell in cells) + "    ),\n"


def _kind(name: str, option: click.Option) -> str:
    if option.secondary_opts:
        return "flag"
    if isinstance(option.type, click.Choice):
        return " ".join(option.type.choices)
    return "list" if option.multiple and not traits_of(name).once else _KINDS[option.type.name]
