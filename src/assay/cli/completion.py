"""Shell completion of arguments, called by click."""

from __future__ import annotations

from typing import get_args

import click
from click.shell_completion import CompletionItem


def files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete file names."""
    return [CompletionItem(incomplete, type="file")]


def filters(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the last term of a filter: a field, or one of its values."""
    from assay.model.case_filter import CHOICES, FLAGS, NUMBERS, Field

    term = incomplete.rpartition(" ")[2].removeprefix("-")
    field, colon, values = term.partition(":")
    if colon:
        start, known = values.rpartition(",")[2], [*CHOICES.get(field, ())]
    else:
        start = term
        known = [n if n in FLAGS or n in NUMBERS else f"{n}:" for n in get_args(Field)]
    written = incomplete.removesuffix(start)
    return [CompletionItem(written + name) for name in known if name.startswith(start)]
