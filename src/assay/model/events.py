"""What a run tells while it goes on."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from assay.model.result import Outcome
from assay.model.run import RunStatus


class RunStarted(msgspec.Struct, frozen=True):
    """`planned` trials in all, None when a stream is read; `done` of them in a run before."""

    run_id: str
    target: str
    planned: int | None = None
    done: int = 0


class TrialFinished(msgspec.Struct, frozen=True):
    """One case was asked and graded once. What is `cached` costs nothing again."""

    position: int
    repeat: int
    suite: str
    case_id: str
    outcome: Outcome
    duration_ms: float
    cost_usd: float | None = None
    cached: bool = False


class Notice(msgspec.Struct, frozen=True):
    """Something that people should know now."""

    text: str


class RunFinished(msgspec.Struct, frozen=True):
    """The last event."""

    status: RunStatus


Event = RunStarted | TrialFinished | Notice | RunFinished
#: Is called with every event, by one thread at a time; it must be quick and must not raise.
Listener = Callable[[Event], None]
