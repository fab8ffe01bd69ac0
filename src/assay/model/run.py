"""RunRecord and TrialRecord: what the store keeps of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal
from uuid import UUID

import msgspec

from assay.model.result import Outcome

RunStatus = Literal["running", "finished", "interrupted"]


class RunRecord(msgspec.Struct, frozen=True):
    """A run: what was asked of whom, and what came of it once it has ended.

    A run whose process was killed stays `running`; like an `interrupted` one it can be resumed.
    Times are ISO 8601 texts.
    """

    id: str
    started_at: str
    status: RunStatus
    target: str
    options: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    suites: list[str] = []
    finished_at: str | None = None
    summary: dict[str, Any] | None = None


class TrialRecord(msgspec.Struct, frozen=True):
    """One case asked and graded once. `position` is the case's place in the plan of the run.

    `result` and `observation` are JSON, kept byte for byte.
    """

    run_id: str
    position: int
    repeat: int
    suite: str
    case_id: str
    outcome: Outcome
    score: float | None
    duration_ms: float
    cost_usd: float | None
    comparability: str
    result: bytes
    observation: bytes


#: The random bits of a UUID of version 7; its other 48 free bits are milliseconds.
_RANDOM_BITS = 74
_lock = threading.Lock()
_last = 0


def new_run_id(now_ms: int, random: Callable[[int], int]) -> str:
    """A UUID of version 7; in one process each is greater than the one before.

    `random` gives a number of so many random bits, as `secrets.randbits` does.
    """
    global _last
    with _lock:
        # A clock that stands still or jumps back must not put a run before an older one.
        _last = max(now_ms << _RANDOM_BITS | random(_RANDOM_BITS), _last + 1)
        number = _last
    head, tail = number >> 62, number & (1 << 62) - 1
    milliseconds, twelve = head >> 12, head & 0xFFF
    return str(UUID(int=milliseconds << 80 | 7 << 76 | twelve << 64 | 2 << 62 | tail))
