"""CaseView: one case of a run, as people look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from assay.model.case_content import CaseContent
from assay.model.case_rows import CaseRow
from assay.model.result import TrialDetails, decode_trial
from assay.model.run import TrialRecord


class TrialView(msgspec.Struct, frozen=True, rename="camel"):
    """One attempt at a case: its outcome, how it was graded, and what the target did."""

    repeat: int
    outcome: str
    score: float | None
    duration_ms: float
    cost_usd: float | None
    judge_cost_usd: float | None
    confirms: bool
    final: bool
    error: str | None
    details: TrialDetails
    observation: dict[str, Any]


class CaseView(msgspec.Struct, frozen=True, rename="camel"):
    """One case of a run. `content` is empty for a run of an older version."""

    run_id: str
    row: CaseRow
    content: CaseContent
    source: str
    trials: list[TrialView]


def view_of(row: CaseRow, content: CaseContent, trials: Sequence[TrialRecord]) -> CaseView:
    """The case with this row and these trials, of which there is at least one."""
    views = [_view(trial) for trial in trials]
    source = content.source or views[0].details.source
    return CaseView(trials[0].run_id, row, content, source, views)


def _view(trial: TrialRecord) -> TrialView:
    result = decode_trial(trial.result)
    return TrialView(
        trial.repeat,
        trial.outcome,
        trial.score,
        trial.duration_ms,
        trial.cost_usd,
        trial.judge_cost_usd,
        trial.confirms,
        trial.final,
        result.error,
        result.details,
        msgspec.json.decode(trial.observation),
    )
