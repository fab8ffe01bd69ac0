"""JudgeUse and Calibration: the judges of a run, and how well people agree with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from assay.stats.calibration import Confusion

#: Whether there are labels for a judge in its current version, only for an older one, or none.
CalibrationState = Literal["current", "stale", "none"]


class JudgeUse(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """An evaluator that asks a judge. `id` is a hash of the judge and its instructions.

    `judge` is the name of the target. If not `counts`, it can neither pass nor fail a case.
    """

    id: str
    evaluator: str
    type: str
    judge: str
    counts: bool = True

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def recorded_uses(uses: Iterable[JudgeUse]) -> list[dict[str, Any]]:
    """The judges as a run records them: each once; it counts if it counts for any case."""
    found: dict[tuple[str, str], JudgeUse] = {}
    for use in uses:
        key = (use.evaluator, use.id)
        if key not in found or use.counts:
            found[key] = use
    return [found[key].to_dict() for key in sorted(found)]


class Calibration(msgspec.Struct, frozen=True, rename="camel"):
    """How people labelled answers that a judge had judged.

    `labels` is the file with the labels, `run_id` the run with the answers.
    """

    judge_id: str
    evaluator: str
    type: str
    judge: str
    labels: str
    run_id: str
    calibrated_at: str
    right_passes: int
    wrong_passes: int
    wrong_failures: int
    right_failures: int

    @property
    def table(self) -> Confusion:
        return Confusion(
            self.right_passes, self.wrong_passes, self.wrong_failures, self.right_failures
        )
