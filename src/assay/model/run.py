"""RunRecord and TrialRecord: what the store keeps of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal
from uuid import UUID

import msgspec

from assay.model.case import Tier
from assay.model.result import Outcome

RunStatus = Literal["running", "finished", "interrupted"]


class SuiteHeader(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a run says of one of its suites, beside its cases.

    `file` is relative to the project root. `first` is the position of its first case. `selected`
    is how many of its cases the run asks; None while a stream is read for the first time.
    `notes` are for people.
    """

    name: str
    file: str
    tier: Tier = "suite"
    tool_name: str = ""
    target: str = ""
    first: int = 0
    metadata: dict[str, Any] = {}
    staleness_warnings: list[str] = []
    selected: int | None = None
    notes: list[str] = []


class RunRecord(msgspec.Struct, frozen=True):
    """A run: what was asked of whom, and what came of it once it has ended.

    A run whose process was killed stays `running`; like an `interrupted` one it can be resumed.
    Times are ISO 8601 texts. `plan` is what a resumed run must share: paths and options.
    """

    id: str
    started_at: str
    status: RunStatus
    target: str
    plan: dict[str, Any] = {}
    options: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    suites: list[SuiteHeader] = []
    finished_at: str | None = None
    summary: dict[str, Any] | None = None


class TrialRecord(msgspec.Struct, frozen=True):
    """One case asked and graded once. `position` is the case's place in the plan of the run.

    `result` and `observation` are JSON, kept byte for byte. A trial that `confirms` asked again
    whether a regression is one; it is no repeat. One that is not `final` was not asked, because
    the run had given up; a resumed run replaces it.
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
    judge_cost_usd: float | None
    comparability: str
    critical: bool
    cluster: str | None
    min_pass_rate: float
    skipped_assertions: int
    confirms: bool
    final: bool
    result: bytes
    observation: bytes


class TrialFacts(msgspec.Struct, frozen=True):
    """As much of a trial as counting and comparing need."""

    position: int
    repeat: int
    suite: str
    case_id: str
    outcome: Outcome
    score: float | None
    duration_ms: float
    cost_usd: float | None
    judge_cost_usd: float | None
    comparability: str
    critical: bool
    cluster: str | None
    min_pass_rate: float
    skipped_assertions: int
    confirms: bool
    final: bool


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
