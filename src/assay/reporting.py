"""The report of a run, by the name of its reporter."""

from __future__ import annotations

from typing import TextIO

from assay.errors import AssayError, PluginError, cause_of
from assay.model.run_result import RunResult
from assay.registry import reporters


def report(run: RunResult, name: str, out: TextIO) -> None:
    """Write the report; a reporter that breaks is a PluginError."""
    reporter = reporters.get(name)
    try:
        reporter.write(run, out)
    except (AssayError, OSError):  # what was read or written; who opened `out` says what it is
        raise
    except (Exception, SystemExit) as error:  # whatever a stranger's reporter does
        raise PluginError(f"the reporter {name!r} failed: {cause_of(error)}") from error
