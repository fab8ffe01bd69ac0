"""Shell completion of arguments, called by click."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Let the shell complete file names."""
    return [CompletionItem(incomplete, type="file")]
