"""The `assay` command group; a command's module is imported only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from assay.errors import (
    AssayError,
    ConfigError,
    EvalFileErrors,
    FilterError,
    nearest,
    reading_results,
)
from assay.text import printable
from assay.version import __version__

if TYPE_CHECKING:
    from assay.redaction import Redactor

#: Command -> its line in `assay --help`. The command itself is in the module of the same name.
COMMANDS = {
    "baseline": "Give runs names to compare others with.",
    "calibrate": "Compare a judge with human labels.",
    "compare": "Show what changed between two runs, or which of several targets are best.",
    "doctor": "Check that everything a run needs is there.",
    "export": "Write the results or observations of a recorded run.",
    "import": "Import test cases from files into the store.",
    "init": "Write a small project to start from.",
    "labels": "Move human labels between the store and label files.",
    "lint": "Find weak cases in files that load.",
    "plan": "Show what a run could prove, and what it would cost.",
    "plugins": "List what is registered, and what failed to load.",
    "regrade": "Grade the observations of a run again, with today's evaluators.",
    "regression": "Add, lock, archive and list regression cases.",
    "report": "Write reports of a recorded run or group.",
    "run": "Ask one target or several every case, grade, record and compare.",
    "runs": "List, show, merge and remove recorded runs.",
    "schema": "Print the JSON Schema of a kind of file.",
    "show": "Show one case of a run, or list the cases that match a filter.",
    "serve": "Serve test cases and runs over REST.",
    "trend": "Show the pass rate over runs.",
    "view": "Look at runs in a browser.",
    "validate": "Check eval files and report every problem.",
}

#: Modules that cannot have the name of their command, as it is a keyword.
MODULES = {"import": "import_cases"}
#: The exit code after Ctrl-C.
INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports only the one that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = MODULES.get(name, name)
        command: click.Command = import_module(f"assay.cli.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = nearest(args[0], COMMANDS)
            ctx.fail(f"no command is called {args[0]!r}" + (f"; {hint}" if hint else ""))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Turn our own errors into a message and an exit code, without a traceback."""
        from assay.redaction import redacting

        with redacting(_project_redactor()):
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            with reading_results():
                return super().invoke(ctx)
        except (ConfigError, EvalFileErrors) as error:
            _print_error("\n".join(map(str, error.problems)))
            ctx.exit(error.exit_code)
        except FilterError as error:
            _print_error("\n".join(_mistakes(error)))
            ctx.exit(error.exit_code)
        except AssayError as error:
            # The message may quote user input.
            lines = (printable(line) for line in f"assay: {error}".split("\n"))
            _print_error("\n".join(lines))
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("assay: interrupted", err=True)
            ctx.exit(INTERRUPTED)


def _project_redactor() -> Callable[[], Redactor]:
    """Reads the secrets of the project when they are first needed, which most commands never do."""

    @cache
    def redactor() -> Redactor:
        from assay.service.secrets import project_redactor

        return project_redactor()

    return redactor


def _mistakes(error: FilterError) -> Iterator[str]:
    """The mistakes in a filter; on a terminal each is pointed at."""
    from assay.reporters.terminal import Terminal, pointed

    terminal = Terminal.of(sys.stderr)
    for mistake in error.mistakes:
        yield printable(f"assay: filter, {mistake}")
        if terminal.live:
            yield from pointed(error.text, mistake.column, terminal.width)


def _print_error(message: str) -> None:
    """Print to stderr, secrets redacted: a message may quote a wrong setting that contains one."""
    from assay.redaction import redacted

    click.echo(redacted(message), err=True)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", "-V", message="assay %(version)s")
def app() -> None:
    """Show whether your AI agent got better or worse.

    \b
    Examples:
      assay init                  write a small project to start from
      assay validate evals/       check every eval file
      assay lint evals/           find cases that are weak
      assay run evals/            ask the target, grade, record
      assay compare main latest   show what changed since the baseline
    """
