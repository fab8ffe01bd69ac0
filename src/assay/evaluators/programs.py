"""Finds programs and scripts of evaluators that do not exist, judging by their arguments."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence

from assay.errors import nearest
from assay.model.evaluator import MissingDependency
from assay.model.script import shell_argv
from assay.settings import HARMLESS, environment

#: The endings of files that an interpreter is given: `python3 checks/units.py`.
_SCRIPT = re.compile(r".+\.(py|[cm]?[jt]s|tsx|jsx|sh|bash|rb|pl|php|lua|jl|[rR])")
#: These are followed by code or the name of a module, and then its arguments.
_CODE_OPTIONS = ("-c", "-m", "-e", "--eval", "-p", "--print")
#: A shell text with any of these is more than a program and its arguments.
_SHELL = re.compile(r"[|&;<>()$`*?\[\]{}~#=!\\\n]")


def missing_program(script: Sequence[str], folder: str) -> Iterator[MissingDependency]:
    """The program, or the script that it is given, if it does not exist."""
    words = _words(script)
    if not words or not os.path.isdir(folder):
        return
    program = words[0]
    if os.path.dirname(program):
        yield from _missing_file("program", program, folder, executable=True)
    elif shutil.which(program, path=environment(HARMLESS).get("PATH", os.defpath)) is None:
        yield MissingDependency(f"the program {program!r} was not found on PATH", "install it")
    if file := _script_in(words[1:]):
        yield from _missing_file("file", file, folder)


def _words(script: Sequence[str]) -> list[str]:
    """The program and its arguments; empty for a shell text that is more than that."""
    if list(script) != shell_argv(script[-1]):
        return list(script)
    try:
        return [] if _SHELL.search(script[-1]) else shlex.split(script[-1])
    except ValueError:  # the shell will report what is wrong
        return []


def _script_in(arguments: Sequence[str]) -> str:
    """The script that an interpreter is given; empty if the arguments contain none."""
    for argument in arguments:
        if argument in _CODE_OPTIONS:
            return ""
        if not argument.startswith("-") and _SCRIPT.fullmatch(argument):
            return argument
    return ""


def _missing_file(
    kind: str, name: str, folder: str, *, executable: bool = False
) -> Iterator[MissingDependency]:
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        parent = os.path.dirname(path)
        others = os.listdir(parent) if os.path.isdir(parent) else ()
        hint = nearest(os.path.basename(path), others) or f"the path is relative to {folder!r}"
        yield MissingDependency(f"the {kind} {name!r} does not exist", hint)
    elif executable and not os.access(path, os.X_OK):
        yield MissingDependency(f"the program {name!r} is not executable", f"chmod +x {name}")
