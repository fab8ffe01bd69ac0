"""Each case of a run as a flat record, for JSONL and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.model.run_result import RunResult
from assay.model.suite_result import CaseResult, EvalSuiteResult

#: Named as in result files.
COLUMNS = (
    *("runId", "target", "suite", "tier", "file", "line", "id", "description"),
    *("outcome", "score", "verdict", "repeats", "judged", "passes", "reasks"),
    *("critical", "cluster", "comparability", "durationMs", "costUsd"),
    *("failures", "toolsCalled", "response"),
)


def rows(run: RunResult) -> Iterator[dict[str, Any]]:
    """A record per case, in file order."""
    for suite in run.suites:
        head = {
            "runId": run.id,
            "target": _encodable(suite.target or run.target),
            "suite": _encodable(suite.name),
            "tier": suite.tier,
        }
        # The keys are in the order of the cases; suites of other origins have none.
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
        "reasks": again,
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
    """Escape lone surrogates: names from paths may have them, unlike cases, which are JSON."""
    return text.encode("utf-8", "backslashreplace").decode()
