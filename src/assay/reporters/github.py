"""`github`: GitHub Actions annotations on the file and line of each case."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TextIO

from assay.model.comparison import CaseRef, Comparison
from assay.model.group_result import GroupResult
from assay.model.run_result import RunResult
from assay.reporters.excerpts import Excerpt, gather
from assay.reporters.group_words import headline
from assay.reporters.terminal import Terminal, safe
from assay.reporters.words import verdict
from assay.settings import environment
from assay.text import count

#: It is for the log of a job, and not chosen by the suffix of a file.
writes_files = False
_TITLE = 200


def write(run: RunResult, out: TextIO) -> None:
    """One workflow command per line, first the verdict.

    Cases are errors if the run failed, otherwise warnings; so are those that do not count.
    """
    _write(_commands(run), out)


def write_group(group: GroupResult, out: TextIO) -> None:
    """Which targets are best, then the commands of each run, with its target in their titles."""
    _write([_command("notice", "Assay", [headline(group.comparison)])], out)
    for run in group.runs:
        _write(_commands(run, f" [{run.target}]"), out)


def _write(commands: Iterable[str], out: TextIO) -> None:
    terminal = Terminal.of(out)
    for line in commands:
        out.write(terminal.fit(line) + "\n")


def _commands(run: RunResult, label: str = "") -> Iterator[str]:
    """The commands of a run; `label` ends their titles."""
    level = "warning" if run.passed else "error"
    if run.reasons or not run.passed:
        yield _command(level, f"Assay: {verdict(run)}{label}", run.reasons or [verdict(run)])
    found, summary, harmless = gather(run), run.summary, _harmless(run.comparison)
    for case in (*found.failed, *found.errored):
        ref = CaseRef(case.suite_file, case.id)
        yield _case("warning" if ref in harmless else level, case, label)
    left = summary.failed + summary.errored - len(found.failed) - len(found.errored)
    if left:
        yield _command(level, f"Assay{label}", [f"{count(left, 'more case')} did not pass"])
    for suite in run.suites:
        for text in suite.staleness_warnings:
            yield _command("warning", f"stale: {suite.name}{label}", [text], suite.file)
    for text in run.comparison.warnings if run.comparison is not None else ():
        yield _command("warning", f"Assay{label}", [text])


def _harmless(comparison: Comparison | None) -> set[CaseRef]:
    """Failed cases that do not fail the gate."""
    if comparison is None:
        return set()
    excused = (loss.ref for loss in comparison.losses if loss.status == "excused")
    accepted = (case.ref for case in comparison.accepted)
    return {*comparison.still_failing, *excused, *accepted}


def _case(level: str, case: Excerpt, label: str) -> str:
    standing = [case.standing] if case.standing else []
    lines = [*standing, *case.reasons, *(f"note: {note}" for note in case.notes)]
    return _command(level, f"{case.outcome}: {case.id}{label}", lines, case.file, case.line)


def _command(
    level: str, title: str, lines: list[str] | tuple[str, ...], file: str = "", line: int = 0
) -> str:
    """A workflow command on one line: `safe` escapes line breaks, and `%0A` separates `lines`."""
    place = {"file": safe(_relative_to_checkout(file))} if file else {}
    place |= {"line": str(line)} if line else {}
    properties = place | {"title": safe(title, _TITLE)}
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {shown}::{_data(chr(10).join(map(safe, lines)))}"


def _relative_to_checkout(file: str) -> str:
    """The path relative to the checkout, which may be above the working directory."""
    checkout = environment(["GITHUB_WORKSPACE"]).get("GITHUB_WORKSPACE")
    prefix = os.path.join(os.path.abspath(checkout), "") if checkout else ""
    absolute = os.path.abspath(file)
    return absolute.removeprefix(prefix) if prefix and absolute.startswith(prefix) else file


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
