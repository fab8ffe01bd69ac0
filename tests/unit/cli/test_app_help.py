"""What the command offers to those who do not know it yet: help, and completion by the shell."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete

from assay.cli.app import app
from unit.conftest import invoke

#: What stands for a file or a folder in the help.
FILES = ("FILE", "PATH", "DIR", "LABELS", "FOLDER")


def commands(group: click.Group, context: click.Context) -> Iterator[click.Context]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=80)
        yield inner
        if isinstance(command, click.Group):
            yield from commands(command, inner)


COMMANDS = list(commands(app, click.Context(app, info_name="assay", **app.context_settings)))


@pytest.mark.parametrize("context", COMMANDS, ids=lambda context: context.command_path)
def test_every_command_has_examples_and_whole_sentences(context: click.Context) -> None:
    text = context.get_help()
    assert "\n  Examples:\n    " in text
    assert not [line for line in text.splitlines() if line.endswith("...") and "[" not in line]


@pytest.mark.parametrize("context", COMMANDS, ids=lambda context: context.command_path)
def test_the_shell_completes_files_wherever_one_is_wanted(context: click.Context) -> None:
    for parameter in context.command.params:
        shown = parameter.metavar or (parameter.name or "").upper()
        found = parameter.shell_complete(context, "ev")
        if shown.strip("[].") in FILES:
            assert {item.type for item in found} <= {"file", "dir"}, parameter.name
            assert found, parameter.name


def test_the_shell_completes_commands_options_and_their_values() -> None:
    shell = ShellComplete(app, {}, "assay", "_ASSAY_COMPLETE")

    def offered(*words: str) -> list[str]:
        *before, incomplete = words
        return [item.value for item in shell.get_completions(before, incomplete)]

    assert offered("ru") == ["run", "runs"]
    assert offered("run", "--tar") == ["--target"]
    assert offered("run", "--gate", "s") == ["strict"]


@pytest.mark.parametrize("command", ["run", "regrade"])
def test_help_tells_what_holds_when_an_option_is_left_out(command: str) -> None:
    told = " ".join(invoke(command, "--help").stdout.split())
    assert "What fails a run that has a baseline (regression)." in told
    assert "The difference in pass rate that does not matter (0.02)." in told
