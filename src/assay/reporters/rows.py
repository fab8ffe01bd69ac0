"""Rows: every case of a run as one flat record, for JSONL and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.model.run_result import RunResult
from assay.model.suite_result import CaseResult, EvalSuiteResult

#: The names are those of result files.
COLUMNS = (
    *("runId", "target", "suite", "tier", "file", "line", "id", "description"),
    *("outcome", "score", "verdict", "repeats", "judged", "passes", "excused"),
    *("critical", "cluster", "comparability", "durationMs", "costUsd"),
    *("failures", "toolsCalled", "response"),
)


def rows(run: RunResult) -> Iterator[dict[str, Any]]:
    """A record for each case, in the order of the files."""
    for suite in run.suites:
        head = {
            "runId": run.id,
            "target": _encodable(suite.target or run.target),
            "suite": _encodable(suite.name),
            "tier": suite.tier,
        }
        # The keys come in the order of the cases; a suite of another origin has none.
        keys = suite.comparability()
        for case in suite.cases:
            yield head | _row(suite, case, next(keys, ("", ""))[1])


def _row(suite: EvalSuiteResult, case: CaseResult, key: str) -> dict[str, Any]:
    trials = [t for t in case.trials if not t.get("confirms")] or [{"outcome": case.outcome}]
    outcomes = [trial["outcome"] for trial in trials]
    again = [t["outcome"] for t in case.trials if t.get("confirms")]
    return {
        "file": _encodable(suite.file),
        "line": case.source[1] or None,
        "id": case.id,
        "description": case.description,
        "outcome": case.outcome,
        "score": case.score,
        "verdict": case.verdict,
        "repeats": len(outcomes),
        "judged": outcomes.count("passed") + outcomes.count("failed"),
        "passes": outcomes.count("passed"),
        "excused": "passed" in again,
        "critical": bool(case.details.get("critical")),
        "cluster": case.details.get("cluster"),
        "comparability": key,
        "durationMs": case.duration_ms,
        "costUsd": case.details.get("costUsd"),
        "failures": case.failures,
        "toolsCalled": case.details.get("toolsCalled"),
        "response": case.details.get("response"),
    }


def _encodable(text: str) -> str:
    """A name that came from a path may hold any byte; cases are JSON and hold none of these."""
    return text.encode("utf-8", "backslashreplace").decode()
