"""How a notebook shows a run: an HTML table without scripts, and rows for pandas."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import Any

from assay.errors import UsageError
from assay.model.group_result import GroupResult
from assay.model.result import CaseResult
from assay.model.run_result import RunResult
from assay.redaction import cut
from assay.text import percent, printable

#: At most this many cases that did not pass are shown.
MAX_SHOWN = 20
_MAX_TEXT = 300
_HEADS = ("Suite", "Passed", "Failed", "Errored", "Skipped", "Pass rate", "95 % interval")
_TARGET_HEADS = ("Target", *_HEADS[1:], "Best")
_FAILED = ("Case", "Outcome", "Score", "Why", "Response")


def html_of(run: RunResult) -> str:
    """The run as tables: counts with intervals, then the first cases that did not pass."""
    rows = [_suite_row(suite.name, suite.summary, suite.statistics) for suite in run.suites]
    if len(rows) > 1:
        rows.append(_suite_row("All", run.summary, run.statistics))
    verdict = "passed" if run.exit_code == 0 else "failed"
    parts = [f"<p><b>{verdict}</b> {_text(run.id)}</p>", _table(_HEADS, rows)]
    parts += [f"<p>{_text(reason)}</p>" for reason in run.reasons]
    failed = list(islice(_failures(run), MAX_SHOWN + 1))
    if failed:
        parts.append(_table(_FAILED, failed[:MAX_SHOWN]))
    if len(failed) > MAX_SHOWN:
        parts.append(f"<p>Only the first {MAX_SHOWN} are shown: run.report() has all.</p>")
    return "<div>" + "".join(parts) + "</div>"


def html_of_group(group: GroupResult) -> str:
    """The group as a table with a row for each target, then what to know about it."""
    rows = [
        (
            target.target,
            *map(str, (target.passed, target.judged - target.passed)),
            *map(str, (target.errored, target.skipped)),
            "" if target.rate is None else percent(target.rate.estimate),
            "" if target.rate is None else _interval(target.rate.to_dict()),
            "best" if target.best else "",
        )
        for target in group.comparison.targets
    ]
    verdict = "passed" if group.exit_code == 0 else "failed"
    notes = "".join(f"<p>{_text(note)}</p>" for note in group.comparison.notes)
    head = f"<p><b>{verdict}</b> {_text(group.id)}</p>"
    return f"<div>{head}{_table(_TARGET_HEADS, rows)}{notes}</div>"


def rows_of(run: RunResult) -> Iterator[dict[str, Any]]:
    """A flat row for each case."""
    for suite in run.suites:
        for case in suite.cases:
            yield {
                "suite": suite.name,
                "file": suite.file,
                "id": case.id,
                "outcome": case.outcome,
                "passed": case.passed,
                "score": case.score,
                "verdict": case.verdict,
                "duration_ms": case.duration_ms,
                "cost_usd": case.details.cost_usd,
                "pass_rate": case.details.pass_rate,
                "tags": list(case.details.tags),
                "description": case.description,
                "response": case.details.response,
                "error": case.error,
            }


def data_frame_of(run: RunResult) -> Any:
    """The rows as a DataFrame; raises a UsageError if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        todo = "install it with `pip install pandas`, or use run.cases()"
        raise UsageError(f"pandas is not installed\n{todo}") from None
    return pandas.DataFrame(list(rows_of(run)))


def _suite_row(name: str, summary: Any, statistics: Any) -> tuple[str, ...]:
    counts = (summary.passed, summary.failed, summary.errored, summary.skipped)
    rate = (statistics or {}).get("passRate")
    shares = ("", "") if rate is None else (percent(rate["estimate"]), _interval(rate))
    return (name, *map(str, counts), *shares)


def _interval(rate: Any) -> str:
    low, high = rate["low"], rate["high"]
    if low is None or high is None:
        return ""
    return f"{percent(low)} to {percent(high)}"


def _failures(run: RunResult) -> Iterator[tuple[str, ...]]:
    for suite in run.suites:
        for case in suite.cases:
            if not case.passed and case.outcome != "skipped":
                yield _failure(case)


def _failure(case: CaseResult) -> tuple[str, ...]:
    score = "" if case.score is None else f"{case.score:.2f}"
    why = "; ".join(case.failures) or case.error or ""
    return case.id, str(case.outcome), score, why, str(case.details.response or "")


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(text: str) -> str:
    """A text of a model or a user, which is not to be trusted."""
    return escape(printable(cut(text, _MAX_TEXT, "both")))
