"""RunRecord and TrialRecord: what the store keeps of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from assay.model.case import Tier
from assay.model.comparison import CaseRef
from assay.model.result import Outcome
from assay.patterns import quick_search
from assay.stats.sequential import Sequential

#: The low bits of a position are the place of the case in its suite.
_PLACE_BITS = 28


def position_of(suite: int, place: int) -> int:
    """Where a case stands in a run: by the number of its suite and its place there.

    So neither filters nor the length of other suites move it.
    """
    return suite << _PLACE_BITS | place


def place_of(position: int) -> tuple[int, int]:
    """The number of the suite, and the place in it."""
    return position >> _PLACE_BITS, position & (1 << _PLACE_BITS) - 1


def positions_of(suite: int) -> range:
    """All positions that the cases of a suite can have."""
    return range(position_of(suite, 0), position_of(suite + 1, 0))


def only(position: int) -> range:
    """The positions of a single case."""
    return range(position, position + 1)


def timestamp(moment: datetime) -> str:
    """The time as a run records it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


#: What stands in place of a file for the test cases of the store.
TEST_CASES = "store:"
#: What stands in place of a file, before its name, for a suite that was made in Python.
MADE = "suite:"
#: How often somebody cancelled a run, in its environment; not there when nobody did.
CANCELLED = "cancelled"
#: The door through which a run was begun or resumed, in its environment, when that matters.
DOOR = "door"
RunStatus = Literal["running", "finished", "interrupted"]


class SuiteHeader(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a run says of one of its suites, beside its cases.

    `file` is relative to the project root. `selected` is how many of its cases the run asks;
    None for a stream, of which nobody knows before it has been read. `notes` are for people.
    """

    name: str
    file: str
    tier: Tier = "suite"
    tool_name: str = ""
    target: str = ""
    metadata: dict[str, Any] = {}
    staleness_warnings: list[str] = []
    selected: int | None = None
    notes: list[str] = []


class RunVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """How a run ended, and why; without an exit code it has not ended.

    The rest is for a run with a `baseline`, so that it can be compared again. `confirmed` are the
    critical regressions that failed in every rerun; None when all count. `removed` are the cases
    that are gone for good, where the run was narrowed to some of its cases. `sequential` is the
    test of a run that was to stop when it is decided.
    """

    exit_code: int | None = None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    confirmed: tuple[CaseRef, ...] | None = None
    removed: tuple[CaseRef, ...] | None = None
    sequential: Sequential | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON that the store keeps; of a run with a baseline `confirmed` is always there."""
        written: dict[str, Any] = msgspec.to_builtins(self)
        kept = {"confirmed"} if self.baseline is not None else set[str]()
        return {key: value for key, value in written.items() if value is not None or key in kept}


class RunRecord(msgspec.Struct, frozen=True):
    """A run: what was asked of which target, and what came of it once it has ended.

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

    @property
    def counts(self) -> dict[str, Any] | None:
        """The rest of the summary: what was counted and measured; None before the end."""
        counts = {name: value for name, value in (self.summary or {}).items() if name != "verdict"}
        return counts or None

    @property
    def door(self) -> str:
        """Who is at work on it, or was; empty unless it matters who goes on with it."""
        return str(self.environment.get(DOOR, ""))

    @property
    def cancelled(self) -> bool:
        """Was it cancelled for good? It may take a while until it stops."""
        return CANCELLED in self.environment

    @property
    def verdict(self) -> RunVerdict:
        """The part of the summary that says how it ended, and why."""
        return msgspec.convert((self.summary or {}).get("verdict", {}), RunVerdict)


class TrialRecord(msgspec.Struct, frozen=True, array_like=True):
    """One case asked and graded once. `position` is where the case stands in the run.

    `result` and `observation` are JSON, kept byte for byte. The answer stands in the observation
    alone; in an `entry` of a result file it comes last, so that it is put there in no time.

    A trial that `confirms` asked again whether a regression is one; it is no repeat. One that is
    not `final` was not asked, because the run had given up, or reached nobody; a resumed run
    replaces it.
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

    @property
    def entry(self) -> bytes:
        """The case's entry in a result file."""
        answer = _ANSWER.decode(self.observation).response
        if _has_answer(self.result):  # of an evaluator; trials used to have the answer too
            entry: dict[str, Any] = msgspec.json.decode(self.result)
            entry["details"] |= {"response": answer}
            return msgspec.json.encode(entry)
        return entry_with(self.result, bytes(answer))


def entry_with(result: bytes, answer: bytes) -> bytes:
    """The entry of a result that has no answer, with the JSON of that."""
    return b'%b,"response":%b}}' % (result[:-2], answer)


class _Answer(msgspec.Struct):
    response: msgspec.Raw = msgspec.Raw(b'""')


_ANSWER = msgspec.json.Decoder(_Answer)
_has_answer = quick_search('"response":')


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
