"""What a shell offers when it completes a command; click asks for it."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The shell's own completion of file names."""
    return [CompletionItem(incomplete, type="file")]
