"""The report of a run, by the name of its reporter."""

from __future__ import annotations

from typing import Any, TextIO

from assay.errors import PluginError, reading_results, wrap_errors
from assay.model.run_result import RunResult
from assay.registry import reporters


def report(run: RunResult, name: str, out: TextIO, **options: Any) -> None:
    """Write the report. An OSError is raised unchanged: only the caller can name `out`.

    `options` are arguments of this reporter, such as the `detail` of `text`.
    """
    reporter = reporters.get(name)
    with wrap_errors(f"the reporter {name!r} failed", PluginError, OSError), reading_results():
        reporter.write(run, out, **options)
