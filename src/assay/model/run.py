"""RunRecord and TrialRecord: a run as it is stored."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from assay.model.calibration import JudgeUse
from assay.model.case import Tier
from assay.model.case_content import input_and_tags
from assay.model.comparison import CaseRef, GateVerdict
from assay.model.options import narrowing
from assay.model.result import Count, Outcome
from assay.quick_search import quick_search
from assay.stats.sequential import Sequential

#: The low bits of a position are the index of the case in its suite.
_PLACE_BITS = 28
PLACE_MASK = (1 << _PLACE_BITS) - 1


def position_of(suite: int, place: int) -> int:
    """The position of a case in a run, from the index of its suite and its index there.

    It does not depend on filters, nor on the length of other suites.
    """
    return suite << _PLACE_BITS | place


def place_of(position: int) -> tuple[int, int]:
    """The index of the suite, and the index in it; the inverse of `position_of`."""
    return position >> _PLACE_BITS, position & PLACE_MASK


def positions_of(suite: int) -> range:
    """All possible positions of the cases of a suite."""
    return range(position_of(suite, 0), position_of(suite + 1, 0))


def only(position: int) -> range:
    """The range with a single position."""
    return range(position, position + 1)


def timestamp(moment: datetime) -> str:
    """The format of times in a run."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


#: In place of a file: the test cases of the store.
TEST_CASES = "store:"
#: In place of a file: the prefix of the name of a suite that was created in Python.
PYTHON_SUITE = "suite:"
#: The key in the environment for how often the run was cancelled; missing if never.
CANCELLED = "cancelled"
#: The key in the environment that lets workers of other processes begin no further trial.
STOPPING = "stopping"
#: The key in the environment for what started or resumed the run, if that matters.
STARTED_BY = "startedBy"
#: The key in the environment for the ids of the shards of a merged run; missing in others.
MERGED_FROM = "mergedFrom"
#: The key in the plan for the hash of the cases that pytest selected; missing if it took all.
SELECTED = "only"
RunStatus = Literal["running", "finished", "interrupted"]


class SuiteMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """The tool and the eval file at the time of the run; what is not known is empty, or 0."""

    tool_version: str
    description_hash: str
    registry_size: Count
    eval_file_hash: str


class SuiteHeader(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a run records about a suite in addition to its cases.

    `file` is relative to the project root. `selected` is how many of its cases the run asks; None
    for a stream, as long as it has not been read. `cases` is how many the suite has; None for a
    stream. `notes` are for people.
    """

    name: str
    file: str
    tier: Tier = "suite"
    tool_name: str = ""
    target: str = ""
    metadata: SuiteMetadata = SuiteMetadata("", "", 0, "")
    staleness_warnings: list[str] = []
    selected: int | None = None
    notes: list[str] = []
    cases: int | None = None


class RunVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """How a run ended, and why; without an exit code it has not ended.

    `verdict` is None for a run of an earlier version. `unreported` is true until the command has
    written its reports. The rest is for a run with a `baseline`, so that the comparison can be
    repeated. `removed` are the cases that no longer exist, if the run was filtered. `sequential` is
    the test of a run that was to stop once it is decided. `regressed` and `fixed` count cases.
    """

    exit_code: int | None = None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    verdict: GateVerdict | None = None
    baseline: str | None = None
    removed: tuple[CaseRef, ...] | None = None
    sequential: Sequential | None = None
    unreported: bool | None = None
    regressed: int | None = None
    fixed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON in the store, without nulls."""
        written: dict[str, Any] = msgspec.to_builtins(self)
        return {key: value for key, value in written.items() if value is not None}


class RunRecord(msgspec.Struct, frozen=True):
    """A run: what was asked of which target, and its summary once it has ended.

    A run whose process was killed stays `running`; like an `interrupted` one it can be resumed.
    Times are ISO 8601 texts. `plan` is what must be equal on resume: paths and options. `group` is
    the id that the runs of one matrix share; None for other runs.
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
    group: str | None = None

    @property
    def counts(self) -> dict[str, Any] | None:
        """The summary without the verdict: what was counted and measured; None before the end."""
        counts = {name: value for name, value in (self.summary or {}).items() if name != "verdict"}
        return counts or None

    @property
    def started_by(self) -> str:
        """What started or resumed it; empty unless it matters which one resumes it."""
        return str(self.environment.get(STARTED_BY, ""))

    @property
    def is_resumable(self) -> bool:
        """Can its cases be found again? Not if they were made in Python or selected by pytest."""
        paths = self.plan.get("paths", ())
        made = any(not path or path.startswith(PYTHON_SUITE) for path in paths)
        return not made and SELECTED not in self.plan

    @property
    def shard(self) -> str | None:
        """The part of its plan that it asked, such as 1/4; None if it asked all of it."""
        return self.plan.get("shard")

    @property
    def judges(self) -> list[JudgeUse]:
        """The judges of the run, as it recorded them."""
        return msgspec.convert(self.environment.get("judges", []), list[JudgeUse])

    @property
    def merged_from(self) -> list[str]:
        """The ids of the shards that it was merged from; empty for other runs."""
        return list(self.environment.get(MERGED_FROM, ()))

    @property
    def cancelled(self) -> bool:
        """Was it cancelled? It may still take a while to stop."""
        return CANCELLED in self.environment

    @property
    def is_stopping(self) -> bool:
        """Must no further trial begin?"""
        return self.cancelled or STOPPING in self.environment

    @property
    def narrowed(self) -> str:
        """Which cases it was restricted to; empty if it was not."""
        if chosen := narrowing(self.plan):
            return f"it asked only the cases of {chosen}"
        return "it asked only the cases that had failed" if "rerunFailed" in self.plan else ""

    @property
    def partial(self) -> str:
        """Why it does not have all cases of its paths; empty if it has."""
        if self.status != "finished":
            return f"it is {self.status}"
        if self.narrowed:
            return self.narrowed
        test = self.verdict.sequential
        if test is not None and test.verdict is not None:
            return "it stopped as soon as it was decided against its baseline"
        return ""

    @property
    def verdict(self) -> RunVerdict:
        """The part of the summary about how it ended, and why."""
        return msgspec.convert((self.summary or {}).get("verdict", {}), RunVerdict)


class TrialRecord(msgspec.Struct, frozen=True, array_like=True):
    """One case asked and graded once. `position` is the position of the case in the run.

    `result`, `observation` and `content` are JSON, stored unchanged. The answer is only in the
    observation, and the question only in the content, which is stored once however many trials
    have it, and is empty in trials of older versions. In an `entry` of a result file both come
    last, so that they can be inserted without parsing.

    A trial that `confirms` asked a lost case again; it is not a repeat. One that is not `final` was
    not asked because the run had given up, or the target was unreachable; a resumed run replaces
    it.
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
    content: bytes = b""

    @property
    def entry(self) -> bytes:
        """The case's entry in a result file."""
        answer = _ANSWER.decode(self.observation).response
        if _has_answer(self.result):  # of an evaluator, or of a trial in the old format
            entry: dict[str, Any] = msgspec.json.decode(self.result)
            entry["details"].pop("response", None)
            return entry_with(msgspec.json.encode(entry), self.content, bytes(answer))
        return entry_with(self.result, self.content, bytes(answer))


def entry_with(result: bytes, content: bytes, answer: bytes) -> bytes:
    """Insert the JSON of the tags, the input and the answer into a result without them."""
    if not content:
        return b'%b,"response":%b}}' % (result[:-2], answer)
    asked, tags = input_and_tags(content)
    return b'%b,"tags":%b,"input":%b,"response":%b}}' % (result[:-2], tags, asked, answer)


class _Answer(msgspec.Struct):
    response: msgspec.Raw = msgspec.Raw(b'""')


_ANSWER = msgspec.json.Decoder(_Answer)
_has_answer = quick_search('"response":')


class TrialFacts(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a trial that counting and comparing need."""

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


#: The random bits of a UUIDv7; the other 48 free bits are milliseconds.
_RANDOM_BITS = 74
_lock = threading.Lock()
_last = 0


def id_time_ms(run_id: str) -> int | None:
    """The milliseconds in the id of a run; None if it is not a UUIDv7 that `new_run_id` made."""
    try:
        found = UUID(run_id)
    except ValueError:
        return None
    return found.int >> 80 if found.version == 7 else None


#: Runs that begin in different milliseconds differ in this part of their ids.
_SHORT = 13


def short_id(run_id: str) -> str:
    """The beginning of an id, by which people and commands find the run; other names unchanged."""
    return run_id if id_time_ms(run_id) is None else run_id[:_SHORT]


def new_run_id(now_ms: int, random: Callable[[int], int]) -> str:
    """A UUIDv7; in one process each is greater than the one before.

    `random` returns a number with that many random bits, as `secrets.randbits` does.
    """
    global _last
    with _lock:
        # A clock that stops or jumps back must not sort a run before an older one.
        _last = max(now_ms << _RANDOM_BITS | random(_RANDOM_BITS), _last + 1)
        number = _last
    head, random_62 = number >> 62, number & (1 << 62) - 1
    milliseconds, random_12 = head >> 12, head & 0xFFF
    return str(UUID(int=milliseconds << 80 | 7 << 76 | random_12 << 64 | 2 << 62 | random_62))
