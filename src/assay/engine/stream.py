"""Suites larger than memory, with recorded answers: read, checked and graded in one pass.

The file is split into chunks of lines, which an executor parses and grades on all cores. Where
processes can share the store they save the trials themselves, otherwise the main process does. An
invalid line ends the run, and nothing of it is kept: then the file is read again from its start,
to report all of its problems.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import aclosing, closing
from hashlib import blake2b
from itertools import islice
from socket import gethostname
from typing import Any, NamedTuple, cast

import msgspec

from assay.caching import DuplicateHashes
from assay.engine.grading import Grader
from assay.engine.plan import FinishedTrials, Plan, PlannedCase
from assay.engine.run_spec import RunSpec
from assay.engine.trial import TrialRunner
from assay.errors import AssayError, ExecutorError, StoreError, TargetError, error_for
from assay.model.calibration import JudgeUse
from assay.model.events import PieceFinished
from assay.model.observation import Observation
from assay.model.result import EvalCaseResult
from assay.model.run import RunRecord, TrialRecord, position_of
from assay.ports import CaseStream, Chunk, RecordedAnswers, Store
from assay.problems import Problem, Problems
from assay.redaction import redacting
from assay.threads import call_in_thread

#: How many trials are saved together, and how many saves may be in progress at once.
SAVED_TOGETHER = 512
_MAX_SAVES = 3
#: Chunks are joined where a piece costs a message to another machine: few at first, so that all
#: workers soon have work, and then one more for every so many pieces.
_MOST_JOINED, _PIECES_PER_STEP = 16, 4
#: Errors that have nothing to do with the cases: such a run can be resumed.
UNRELATED = (ExecutorError, StoreError)


class Piece(msgspec.Struct, array_like=True):
    """A chunk to grade, and the position and repeat of each of its trials that is done already."""

    chunk: Chunk
    done: list[tuple[int, int]] = []


class Graded(msgspec.Struct, array_like=True):
    """The results of a chunk. `used` has the numbers of its answers.

    If the worker has `saved` its trials, there are only counts of them. `ids` has hashes of the ids
    of cases without an answer; of all cases if not all are selected. `judges` are those that the
    process has used since the previous chunk.
    """

    chunk: int
    cases: int
    trials: list[TrialRecord]
    problems: list[Any]
    used: list[int]
    ids: list[int]
    judges: list[JudgeUse] = []
    saved: PieceFinished | None = None


_PIECE = msgspec.msgpack.Decoder(Piece)
_GRADED = msgspec.msgpack.Decoder(Graded)


class _Ungraded(NamedTuple):
    """A trial to grade: its observation, and the JSON of that if it is known already."""

    planned: PlannedCase
    repeat: int
    observation: Observation
    observation_json: bytes | None


class ChunkGrader:
    """Parses and grades the cases of chunks; the Worker of a stream.

    Trials that are done are read too, to find answers that are used twice. Each step is done for
    all cases of a part before the next step, which makes better use of processor caches. `suite` is
    its number in the run, and the only one of `plan`. With a `store`, it saves the trials itself.
    `release` closes targets and judges.
    """

    def __init__(
        self,
        suite: int,
        stream: CaseStream,
        plan: Plan,
        trials: TrialRunner,
        answers: RecordedAnswers,
        release: Callable[[], Coroutine[Any, Any, None]],
        store: Store | None = None,
    ) -> None:
        self._release = release
        self._suite, self._stream, self._plan = suite, stream, plan
        self._trials, self._answers, self._store = trials, answers, store
        self._preparation = trials.preparation
        self._done: set[tuple[int, int]] = set()
        #: When all cases are selected, duplicate ids show as answers that are used twice.
        self._needs_all_ids = not plan.is_unfiltered
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, piece: bytes) -> bytes:
        with redacting(lambda: self._trials.redact):
            return msgspec.msgpack.encode(self._graded(_PIECE.decode(piece)))

    def close(self) -> None:
        """Release targets and judges; a piece that is still in work is abandoned."""
        loop = self._loop or asyncio.new_event_loop()
        if loop.is_running():
            loop.call_soon_threadsafe(loop.stop)
            return
        with closing(loop):  # in a thread, as this one may have a running loop
            call_in_thread(lambda: loop.run_until_complete(self._release())).result()

    def _graded(self, piece: Piece) -> Graded:
        graded = Graded(piece.chunk.number, 0, [], [], [], [])
        self._done = set(piece.done)
        for part in self._stream.parts(piece.chunk):
            graded.trials += self._grade(self._select(*part, graded.ids), graded)
        graded.problems = [problem.to_dict() for problem in self._stream.problems()]
        uses = self._preparation.uses
        graded.judges = list(uses.values())
        while len(uses) > 1:  # one stays: `TrialRunner.record` checks whether there is any
            uses.popitem()
        if self._store is not None:
            self._store.save(*graded.trials).result()
            graded.saved = _counts(graded.trials)
            graded.trials = []
        return graded

    def warm_up(self) -> None:
        """Import evaluators and build their validators now: forked processes share them."""
        for chunk in self._stream.chunks():
            for part in self._stream.parts(chunk):
                for planned in self._select(*part, []):
                    self._preparation.grader(planned.case)
            self._stream.problems()
            return

    def _select(self, number: int, part: bytes, ids: list[int]) -> list[PlannedCase]:
        """The selected cases of a part."""
        plan, suite = self._plan, self._suite
        planned = []
        for line, case in self._stream.read(number, part):
            if case is None:
                continue
            if self._needs_all_ids:
                ids.append(_hash(case.id))
            if plan.matches(0, case):
                planned.append(plan.planned_case(position_of(suite, line - 1), suite, case))
        return planned

    def _grade(self, planned: list[PlannedCase], graded: Graded) -> list[TrialRecord]:
        graded.cases += len(planned)
        graders = [self._preparation.grader(one.case) for one in planned]
        ungraded = [
            (trial, grader)
            for one, grader in zip(planned, graders, strict=True)
            for trial in self._find_answers(one, graded)
        ]
        results = [self._result(grader, trial) for trial, grader in ungraded]
        return [
            self._trials.record(
                trial.planned,
                trial.repeat,
                grader,
                result,
                observation_json=trial.observation_json,
            )
            for (trial, grader), result in zip(ungraded, results, strict=True)
        ]

    def _find_answers(self, planned: PlannedCase, graded: Graded) -> list[_Ungraded]:
        """The trials of a case that are not done, with their recorded answers.

        The answer of a skipped case counts as used too, as no other case can have it.
        """
        case, found = planned.case, []
        for repeat in range(planned.repeats):
            try:
                number, observation, observation_json = self._answers.answer(case.id, repeat)
                graded.used.append(number)
            except TargetError as error:
                observation, observation_json = Observation(error=str(error)), None
                if repeat == 0 and not self._needs_all_ids:
                    graded.ids.append(_hash(case.id))
            if case.skip is not None:
                observation, observation_json = Observation(), None
            if (planned.position, repeat) not in self._done:
                found.append(_Ungraded(planned, repeat, observation, observation_json))
        return found

    def _result(self, grader: Grader, trial: _Ungraded) -> EvalCaseResult:
        result = grader.grade(trial.observation, trial.repeat)
        return result if isinstance(result, EvalCaseResult) else self._wait_for(result)

    def _wait_for(self, result: Awaitable[EvalCaseResult]) -> EvalCaseResult:
        """Await the result of evaluators that are not done at once, in a loop of this worker."""
        self._loop = self._loop or asyncio.new_event_loop()
        return self._loop.run_until_complete(_await(result))


def _counts(trials: list[TrialRecord]) -> PieceFinished:
    costs = (cost for trial in trials for cost in (trial.cost_usd, trial.judge_cost_usd))
    return PieceFinished(
        Counter(trial.outcome for trial in trials), sum(filter(None, costs)), gethostname()
    )


def _hash(case_id: str) -> int:
    """A 64-bit hash, the same in every process."""
    return int.from_bytes(blake2b(case_id.encode(errors="surrogatepass"), digest_size=8).digest())


async def _await(result: Awaitable[EvalCaseResult]) -> EvalCaseResult:
    return await result


class StreamRun:
    """Grades a stream and saves the trials.

    `faults` finds all problems of this stream and the others of the run; it is called once there is
    a sign of one.
    """

    def __init__(
        self,
        spec: RunSpec,
        record: RunRecord,
        suite: int,
        answers: RecordedAnswers,
        report: Callable[[TrialRecord], None],
        faults: Callable[[], list[Problem]],
    ) -> None:
        self._spec, self._record, self._suite = spec, record, suite
        self._report, self._faults = report, faults
        self._stream = cast("CaseStream", spec.suites[suite].cases)
        self._done = FinishedTrials(() if spec.resumed is None else spec.store.finished(record.id))
        #: For each recorded answer, 1 if it belongs to a case of the stream.
        self.used = bytearray(answers.records)
        self._ids = DuplicateHashes()
        #: Was an answer used for two cases?
        self._used_twice = False
        self._problems = Problems(self._stream.name)
        self._unsaved: list[TrialRecord] = []
        self._saves: deque[tuple[Future[None], list[TrialRecord]]] = deque()
        #: All judges that were used.
        self.judges: set[JudgeUse] = set()
        self.cases = 0

    async def run(self) -> None:
        """Grade all chunks; raises EvalFileErrors if a line is invalid."""
        try:
            await self._grade()
        except UNRELATED:
            raise
        except AssayError:  # such as a missing judge: problems of the file are reported first
            self._drain_saves(0)
            await self._raise_problems()
            raise
        if self._is_invalid or self._is_empty or self._used_twice or self._ids.duplicates():
            await self._raise_problems()

    async def _grade(self) -> None:
        executor, describe = self._spec.executor, self._spec.describe
        # Suites are streamed only if they can be described.
        assert executor is not None
        assert describe is not None
        order = describe(self._record, self._suite)
        async with aclosing(executor.run(order, self._pieces())) as results:
            async for data in results:
                self._add(_GRADED.decode(data))
        self._save()
        self._drain_saves(0)

    def _add(self, graded: Graded) -> None:
        self._count(graded)
        if self._is_invalid:
            return
        if graded.saved is not None:
            self._spec.listen(graded.saved)
            return
        self._unsaved += graded.trials
        if len(self._unsaved) >= SAVED_TOGETHER:
            self._save()
            self._drain_saves(_MAX_SAVES - 1)

    @property
    def warnings(self) -> list[Problem]:
        """The problems that do not end a run, unless it is strict."""
        return self._problems.sorted()

    @property
    def _should_stop(self) -> bool:
        return self._spec.cancellation.requests > 0

    @property
    def _is_invalid(self) -> bool:
        return bool(self._problems.errors or (self._spec.options.strict and self._problems))

    @property
    def _is_empty(self) -> bool:
        """Was there no case, selected or not?"""
        return not (self.cases or self._ids or self._should_stop)

    async def _raise_problems(self) -> None:
        """Raise all problems, if there are any: equal hashes may be a mere collision."""
        faults = await asyncio.to_thread(self._faults)
        for problems in (faults, self._problems.sorted()):
            if error := error_for(problems, strict=self._spec.options.strict):
                raise error from None

    def _pieces(self) -> Iterator[bytes]:
        chunks = self._stream.chunks()
        # Where workers save, only counts come back, so that pieces may be large.
        for chunk in _joined(chunks) if self._spec.workers_save else chunks:
            if self._should_stop or self._is_invalid:
                return
            first = position_of(self._suite, chunk.number - 1)
            done = self._done.between(first, first + chunk.lines)
            yield msgspec.msgpack.encode(Piece(chunk, done))

    def _save(self) -> None:
        if self._unsaved:
            self._saves.append((self._spec.store.save(*self._unsaved), self._unsaved))
            self._unsaved = []

    def _drain_saves(self, most: int) -> None:
        """Block until at most `most` saves are in progress, and report the saved trials."""
        while len(self._saves) > most:
            save, trials = self._saves.popleft()
            save.result()
            for trial in trials:
                self._report(trial)

    def _count(self, graded: Graded) -> None:
        """Count cases, and look for duplicate ids: their cases would share an answer."""
        self._problems += [Problem(**problem) for problem in graded.problems]
        self.cases += graded.cases
        self.judges.update(graded.judges)
        for number in graded.used:
            self._used_twice = self._used_twice or self.used[number] == 1
            self.used[number] = 1
        for hashed in graded.ids:
            self._ids.add(hashed)


def _joined(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same lines in larger chunks."""
    for piece, first in enumerate(chunks):
        more = list(islice(chunks, min(piece // _PIECES_PER_STEP, _MOST_JOINED - 1)))
        yield first._replace(
            size=sum((chunk.size for chunk in more), first.size),
            lines=sum((chunk.lines for chunk in more), first.lines),
        )
