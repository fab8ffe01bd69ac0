"""JudgeUse and Calibration: who judges in a run, and how far people agree with it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from assay.stats.calibration import Confusion

#: Whether there are labels for a judge as it is now, or only for how it was, or none.
CalibrationState = Literal["current", "stale", "none"]


class JudgeUse(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """An evaluator that asks a judge. `id` is a hash of who judges and of what it is told.

    `judge` is the name of the target. One that does not count can neither pass nor fail a case.
    """

    id: str
    evaluator: str
    type: str
    judge: str
    counts: bool = True

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class Calibration(msgspec.Struct, frozen=True, rename="camel"):
    """What people said about answers that a judge had judged.

    `labels` is the file with their labels, and `run_id` the run that the answers are from.
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
