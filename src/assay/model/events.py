"""What a run tells while it goes on; whoever listens draws it, logs it or sends it on."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from assay.model.result import Outcome
from assay.model.run import RunStatus


class RunStarted(msgspec.Struct, frozen=True):
    """`planned` trials in all, None when nobody knows; `done` of them were done before."""

    run_id: str
    target: str
    planned: int | None
    done: int = 0


class TrialFinished(msgspec.Struct, frozen=True):
    """A trial is on disk."""

    position: int
    repeat: int
    suite: str
    case_id: str
    outcome: Outcome
    duration_ms: float
    cost_usd: float | None
    cached: bool = False


class Notice(msgspec.Struct, frozen=True):
    """Something that a person should know."""

    text: str


class RunFinished(msgspec.Struct, frozen=True):
    """The run is over."""

    status: RunStatus


Event = RunStarted | TrialFinished | Notice | RunFinished
Listener = Callable[[Event], None]
