"""The events of a run in progress."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import force_setattr

from assay.model.result import Outcome
from assay.model.run import RunStatus
from assay.redaction import redacted


class RunStarted(msgspec.Struct, frozen=True):
    """`planned` trials in total, None for a stream; `done` of them before the run was resumed."""

    run_id: str
    target: str
    planned: int | None = None
    done: int = 0


class TrialFinished(msgspec.Struct, frozen=True):
    """One case was asked and graded once; a `cached` answer costs nothing.

    One that `confirms` asked a lost case again; it is not one of the planned trials. `e_value` is
    the evidence so far that the run differs from its baseline, if it stops once that is decided.
    """

    position: int
    repeat: int
    suite: str
    case_id: str
    outcome: Outcome
    duration_ms: float
    cost_usd: float | None = None
    cached: bool = False
    confirms: bool = False
    e_value: float | None = None


class PieceFinished(msgspec.Struct, frozen=True):
    """A worker process has graded and saved a piece of a suite: its trials by outcome.

    `machine` is the name of the worker's machine. Trials that it has asked are events of their own,
    so there are no outcomes of them.
    """

    outcomes: dict[Outcome, int]
    cost_usd: float
    machine: str


class Notice(msgspec.Struct, frozen=True):
    """A message for the user, redacted; it may be about all runs of a group."""

    text: str
    of_group: bool = False

    def __post_init__(self) -> None:
        force_setattr(self, "text", redacted(self.text))


class RunFinished(msgspec.Struct, frozen=True):
    """The last event."""

    status: RunStatus


Event = RunStarted | TrialFinished | PieceFinished | Notice | RunFinished
#: Called with every event, by one thread at a time; it must be fast and must not raise.
Listener = Callable[[Event], None]
