"""Each case of a run as a flat record, for JSONL and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.model.result import CaseResult
from assay.model.run_result import RunResult
from assay.model.suite_result import EvalSuiteResult

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
    details = case.details
    outcomes = [t.outcome for t in case.trials if not t.confirms] or [case.outcome]
    again = [t.outcome for t in case.trials if t.confirms]
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
        "critical": details.critical,
        "cluster": details.cluster,
        "comparability": key,
        "durationMs": case.duration_ms,
        "costUsd": details.cost_usd,
        "failures": case.failures,
        "toolsCalled": details.tools_called,
        "response": details.response,
    }


def _encodable(text: str) -> str:
    """Escape lone surrogates: names from paths may have them, unlike cases, which are JSON."""
    return text.encode("utf-8", "backslashreplace").decode()
