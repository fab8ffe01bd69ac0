"""The report of a run or a group, by the name of its reporter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TextIO

from assay.errors import PluginError, UsageError, reading_results, wrap_errors
from assay.model.group_result import GroupResult
from assay.model.run_result import RunResult
from assay.registry import reporters

#: What a report is about.
Reported = RunResult | GroupResult


def report(found: Reported, name: str, out: TextIO, **options: Any) -> None:
    """Write the report. An OSError is raised unchanged: only the caller can name `out`.

    `options` are arguments of this reporter, such as the `detail` of `text`.
    """
    write: Callable[..., None] = reporters.get(name).write
    if isinstance(found, GroupResult):
        write = writing_groups(name)
    with wrap_errors(f"the reporter {name!r} failed", PluginError, OSError), reading_results():
        write(found, out, **options)


def writing_groups(name: str) -> Callable[..., None]:
    """What writes about several targets; raises UsageError if the reporter cannot."""
    write: Callable[..., None] | None = getattr(reporters.get(name), "write_group", None)
    if write is None:
        message = f"a .{name} report is about one target: its reporter has no write_group"
        raise UsageError(f"{message}; `assay report RUN -o FILE.{name}` writes one for each run")
    return write
