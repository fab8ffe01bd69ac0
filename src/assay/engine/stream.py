"""Suites far larger than memory, over recorded answers: read, checked and graded in one pass.

The file is cut into chunks of lines. An executor has each of them read, graded and recorded,
on all cores; here the records are saved, and counted. A line that is wrong ends the run, and
nothing of it is kept: then the file is read from its start, to tell all that is wrong with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import msgspec

from assay.engine.express import Express, PlainAnswers
from assay.engine.grading import Grader
from assay.engine.plan import Done, Plan, Planned
from assay.engine.spool import Noted, Spool, noted
from assay.engine.trial import Trials
from assay.errors import (
    AssayError,
    ExecutorError,
    Problem,
    Problems,
    StoreError,
    TargetError,
    refusal_of,
)
from assay.memory import Hashes
from assay.model.calibration import JudgeUse
from assay.model.observation import Observation
from assay.model.result import EvalCaseResult
from assay.model.run import TrialRecord, position_of
from assay.ports import CaseStream, Chunk, Executor, Store

#: So many trials are saved together, and so many saves wait for the disk at once.
TOGETHER = 512
_UNDER_WAY = 3
#: Failures that say nothing about the cases: a run that has one can be gone on with.
UNRELATED = (ExecutorError, StoreError)


class Answers(PlainAnswers, Protocol):
    """A target whose answers are recorded, each under a number of its own."""

    #: How many there are.
    records: int

    def answer(self, case_id: str, repeat: int) -> tuple[int, Observation, bytes | None]:
        """Its number, what was seen, and the JSON of that when it can be kept as it is."""
        ...

    def strangers(self, used: bytearray) -> int:
        """How many have an id of which none was used."""
        ...


class Graded(msgspec.Struct, array_like=True):
    """What came of a chunk. `used` are the numbers of the answers.

    `ids` are hashes of the ids of cases that have none, and of all when not all are selected.
    `noted` is what a spool takes, when there is one. `judges` are those that the process has met
    since the chunk before.
    """

    chunk: int
    cases: int
    trials: list[TrialRecord]
    problems: list[Any]
    used: list[int]
    ids: list[int]
    noted: Noted | None = None
    judges: list[JudgeUse] = []


_GRADED = msgspec.msgpack.Decoder(Graded)


class _Open(NamedTuple):
    """A trial to be graded: what was seen, and the JSON of that when it is there already."""

    planned: Planned
    repeat: int
    observation: Observation
    plain: bytes | None


class ChunkGrader:
    """Reads, grades and records the cases of a chunk; what executors carry out.

    What is `done` is read too, as its answer may be taken no second time. All cases of a part
    take one step together before they take the next: that is faster, as the processor then has
    at hand what the step needs.
    """

    def __init__(
        self,
        suite: int,
        stream: CaseStream,
        plan: Plan,
        trials: Trials,
        answers: Answers,
        done: Done,
        *,
        spooled: bool = False,
        express: Express | None = None,
    ) -> None:
        self._suite, self._stream, self._plan = suite, stream, plan
        self._trials, self._answers, self._done = trials, answers, done
        self._preparation = trials.preparation.for_stream()
        self._spooled, self._express = spooled, express
        #: Else an answer that is used twice shows that an id is there twice.
        self._notes_ids = not plan.takes_all
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, chunk: Chunk) -> bytes:
        graded = Graded(chunk.number, 0, [], [], [], [])
        entries: dict[int, bytes] = {}
        for part in self._stream.parts(chunk):
            trials = self._graded(self._planned(*part, self._express, graded.ids), graded)
            if self._express is not None:
                trials = self._joined(trials, self._express, graded, entries)
            graded.trials += trials
        if self._spooled:
            graded.noted = noted(graded.trials, entries)
        graded.problems = [problem.to_dict() for problem in self._stream.problems()]
        uses = self._preparation.uses
        graded.judges = list(uses.values())
        while len(uses) > 1:  # one stays, as others look whether there is any
            uses.popitem()
        return msgspec.msgpack.encode(graded)

    def warm_up(self) -> None:
        """Do once what every process would do first: find evaluators, build what checks them."""
        for chunk in self._stream.chunks():
            for part in self._stream.parts(chunk):
                for planned in self._planned(*part, None, []):
                    self._preparation.grader(planned.case)
            self._stream.problems()
            return

    def _planned(
        self, number: int, part: bytes, express: Express | None, ids: list[int]
    ) -> list[Planned]:
        """The selected cases of a part, but for those that take the express lane."""
        plan, suite = self._plan, self._suite
        taken = None if express is None else express.take
        planned = []
        for at, case in self._stream.read(number, part, taken):
            if case is None:
                continue
            if self._notes_ids:
                ids.append(_hash(case.id))
            if plan.matches(suite, case):
                planned.append(plan.planned_case(position_of(suite, at - 1), suite, case))
        return planned

    def _graded(self, planned: list[Planned], graded: Graded) -> list[TrialRecord]:
        graded.cases += len(planned)
        graders = [self._preparation.grader(one.case) for one in planned]
        opened = [
            (trial, grader)
            for one, grader in zip(planned, graders, strict=True)
            for trial in self._open(one, graded)
        ]
        results = [self._result(grader, trial) for trial, grader in opened]
        return [
            self._trials.record(trial.planned, trial.repeat, grader, result, plain=trial.plain)
            for (trial, grader), result in zip(opened, results, strict=True)
        ]

    @staticmethod
    def _joined(
        trials: list[TrialRecord], express: Express, graded: Graded, entries: dict[int, bytes]
    ) -> list[TrialRecord]:
        """The trials with those that took the express lane, in their order."""
        taken, used, known = express.trials()
        graded.cases += len(taken)
        graded.used += used
        entries |= known
        return sorted(trials + taken, key=lambda trial: trial.position) if trials else taken

    def _open(self, planned: Planned, graded: Graded) -> list[_Open]:
        """The trials of a case that are not done, with what was recorded of them.

        Of a skipped case that is found too, as it belongs to nobody else.
        """
        case, found = planned.case, []
        for repeat in range(planned.repeats):
            try:
                line, observation, plain = self._answers.answer(case.id, repeat)
                graded.used.append(line)
            except TargetError as error:
                observation, plain = Observation(error=str(error)), None
                if repeat == 0 and not self._notes_ids:
                    graded.ids.append(_hash(case.id))
            if case.skip is not None:
                observation, plain = Observation(), None
            if not self._done.has(planned.position, repeat):
                found.append(_Open(planned, repeat, observation, plain))
        return found

    def _result(self, grader: Grader, trial: _Open) -> EvalCaseResult:
        result = grader.grade(trial.observation, trial.repeat)
        return result if isinstance(result, EvalCaseResult) else self._waited_for(result)

    def _waited_for(self, result: Awaitable[EvalCaseResult]) -> EvalCaseResult:
        """The result of evaluators that take their time, in an event loop of this process."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(_waited_for(result))


def _hash(identity: str) -> int:
    """The same in all processes, as they are forked from this one."""
    return hash(identity) & 0xFFFFFFFFFFFFFFFF


async def _waited_for(result: Awaitable[EvalCaseResult]) -> EvalCaseResult:
    return await result


class Surroundings(msgspec.Struct, frozen=True):
    """What a stream is run with. `stop` is asked between chunks.

    `faults` are all that is wrong with this stream and those beside it; they are looked for when
    one is there. When it is `strict`, warnings are such too.
    """

    store: Store
    executor: Executor
    tell: Callable[[TrialRecord], None]
    stop: Callable[[], bool]
    faults: Callable[[], list[Problem]]
    strict: bool = False


class StreamRun:
    """Has a stream graded and saves what comes of it; `spool` notes it when there is one."""

    def __init__(
        self,
        grader: ChunkGrader,
        stream: CaseStream,
        answers: Answers,
        around: Surroundings,
        spool: Spool | None = None,
    ) -> None:
        self._grader, self._stream, self._around, self._spool = grader, stream, around, spool
        #: Which of the recorded answers belong to a case of the stream.
        self.used = bytearray(answers.records)
        self._ids = Hashes()
        #: Was an answer used for two cases?
        self._twice = False
        self._problems = Problems(stream.name)
        self._unsaved: list[TrialRecord] = []
        self._under_way: deque[tuple[Future[None], list[TrialRecord]]] = deque()
        #: Everybody that judged.
        self.judges: set[JudgeUse] = set()
        self.cases = 0

    async def run(self) -> None:
        """All chunks; raises EvalFileErrors when a line is wrong."""
        try:
            await self._grade()
        except UNRELATED:
            raise
        except AssayError:  # all that is wrong is told before whoever cannot judge it
            self._settle(0)
            await self._refuse()
            raise
        if self._is_wrong or self._is_empty or self._twice or self._ids.twice():
            await self._refuse()

    async def _grade(self) -> None:
        self._grader.warm_up()
        # Here and not in a thread: whoever forks beside other threads may take their locks along.
        results = self._around.executor.run(self._grader, self._chunks())
        try:
            while (data := await _next(results)) is not None:
                self._take(_GRADED.decode(data))
        finally:
            if close := getattr(results, "close", None):
                close()
        self._save()
        self._settle(0)

    def _take(self, graded: Graded) -> None:
        self._check(graded)
        if self._is_wrong:
            return
        if self._spool is not None and graded.noted is not None:
            self._spool.add(graded.chunk, graded.trials, graded.noted)
        self._unsaved += graded.trials
        if len(self._unsaved) >= TOGETHER:
            self._save()
            self._settle(_UNDER_WAY - 1)

    @property
    def warnings(self) -> list[Problem]:
        """What a run that is not strict goes on with."""
        return self._problems.told()

    @property
    def _is_wrong(self) -> bool:
        return bool(self._problems.errors or (self._around.strict and self._problems))

    @property
    def _is_empty(self) -> bool:
        """Was there no case, selected or not?"""
        return not (self.cases or self._ids or self._around.stop())

    async def _refuse(self) -> None:
        """Raise all that is wrong; a suspicion may turn out to be none."""
        around = self._around
        faults = await asyncio.to_thread(around.faults)
        for problems in (faults, self._problems.told()):
            if refusal := refusal_of(problems, strict=around.strict):
                raise refusal from None

    def _chunks(self) -> Iterator[Chunk]:
        for chunk in self._stream.chunks():
            if self._around.stop() or self._is_wrong:
                return
            if self._spool is not None:
                self._spool.promise(chunk.number)
            yield chunk

    def _save(self) -> None:
        if self._unsaved:
            self._under_way.append((self._around.store.save(*self._unsaved), self._unsaved))
            self._unsaved = []

    def _settle(self, most: int) -> None:
        """Wait until at most so many saves are under way, and tell of the others."""
        while len(self._under_way) > most:
            saving, trials = self._under_way.popleft()
            saving.result()
            for trial in trials:
                self._around.tell(trial)

    def _check(self, graded: Graded) -> None:
        """Every id once: two cases of one id would be given the same answer."""
        self._problems += [Problem(**problem) for problem in graded.problems]
        self.cases += graded.cases
        self.judges.update(graded.judges)
        for line in graded.used:
            self._twice = self._twice or self.used[line] == 1
            self.used[line] = 1
        for hashed in graded.ids:
            self._ids.add(hashed)


async def _next(results: Iterator[bytes]) -> bytes | None:
    """The next result, until which others in the event loop have their turn; None at the end."""
    waits_for: Callable[[], Sequence[int]] = getattr(results, "waits_for", tuple)
    if files := waits_for():
        await _readable(files)
    else:
        await asyncio.sleep(0)
    return next(results, None)


async def _readable(files: Sequence[int]) -> None:
    """Wait until one of the files can be read."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    for file in files:
        loop.add_reader(file, ready.set)
    try:
        await ready.wait()
    finally:
        for file in files:
            loop.remove_reader(file)
