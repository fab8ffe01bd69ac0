"""The extension contract: the protocols that plugins implement.

Implementations register through entry points, ours as well as those of plugins:

    [project.entry-points."assay.loaders"]       file suffix -> Loader
    [project.entry-points."assay.evaluators"]    type name -> subclass of EvaluatorSpec
    [project.entry-points."assay.targets"]       provider name -> subclass of TargetSpec
    [project.entry-points."assay.stores"]        URL scheme -> StoreOpener
    [project.entry-points."assay.reporters"]     file suffix -> Reporter
    [project.entry-points."assay.executors"]     name -> class that implements Executor
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO

import msgspec

from assay.errors import UsageError
from assay.model.case import EvalCase, EvalSuite
from assay.model.context import Context
from assay.model.group_result import GroupResult
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.result import Outcome
from assay.model.run import RunRecord, RunStatus, SuiteHeader, TrialFacts, TrialRecord
from assay.model.run_result import RunResult
from assay.model.score import EvaluationScore
from assay.problems import Problem
from assay.settings import Settings
from assay.store_parts import CaseIndex, LabelStore, LoginSessionStore, TestCaseStore
from assay.version import __version__


class Loader(Protocol):
    """Loads eval files of one format; a module with these two functions qualifies.

    A file goes to the loader with the longest registered suffix that its name ends with.
    """

    def load(self, file: Path, settings: Settings) -> EvalSuite:
        """Load the suite of a file; raises EvalFileErrors with all problems of the file."""
        ...

    def recognises(self, file: Path) -> str:
        """Why a file found in a directory is not an eval file; empty when it is one.

        A file with `.eval.` before its suffix always is one, whatever its content.
        """
        ...


class Chunk(NamedTuple):
    """A byte range of a file with whole `lines`; `number` is that of the first, counted from 1."""

    number: int
    offset: int
    size: int
    lines: int


class CaseStream(Protocol):
    """The cases of a `streamed` suite: validated while they are read, in any process.

    A loader that supports it has `stream(file, settings) -> EvalSuite` in addition to `load`.
    """

    #: The name of the file in messages.
    name: str

    def chunks(self) -> Iterator[Chunk]:
        """Split the file into chunks of whole lines."""
        ...

    def parts(self, chunk: Chunk) -> Iterator[tuple[int, bytes]]:
        """Split a chunk into parts of whole lines, each with the number of its first line."""
        ...

    def read(self, number: int, part: bytes) -> Iterator[tuple[int, EvalCase | None]]:
        """The line number and the case of every line of a part; None for an invalid case."""
        ...

    def problems(self) -> list[Problem]:
        """The problems in the lines that were read since the last call."""
        ...

    def faults(self) -> list[Problem]:
        """All errors and warnings about the cases; reads the whole file again."""
        ...


class Request(msgspec.Struct, frozen=True):
    """A request to a target: messages, and the case that they belong to, if any.

    `reply_schema` is the JSON Schema of the wanted reply; a target that cannot enforce it ignores
    it. `suite` is the file of the case's suite, named as in the run.
    """

    messages: tuple[Message, ...]
    case: EvalCase | None = None
    repeat: int = 0
    reply_schema: Mapping[str, Any] | None = None
    suite: str = ""


class Target(Protocol):
    """The agent under test, or a judge. One instance serves many requests concurrently.

    These members are optional:

    - `identity`: a text that distinguishes its answers from those of other targets more reliably
      than its name does, for caches and calibrations.
    - `requests(observation)`: how many requests an answer took, if not one; for rate limits.
    - `recorded = True`: its answers were recorded earlier, so that no time is measured.
    - `problems()`: the records that could not be read; only asked of a recorded target.
    - `unused(case_ids)`: how many records belong to none of these cases.
    - `remarks()`: notes for the report, once all answers are in.
    - `faults(answers)`: what the answers, in the interchange form, show to be wrong with its
      settings.
    """

    #: Its name in results, which also distinguishes two judges: `openai:gpt-6-sol`.
    name: str

    async def ask(self, request: Request) -> Observation:
        """Make one attempt to get an answer; raises TargetError when there is none.

        The caller retries, and enforces rate limits and the timeout.
        """
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


class RecordedAnswers(Target, Protocol):
    """A target with recorded answers, each of which has a number; streamed suites need one.

    The answers are read in several processes at once.
    """

    #: How many answers there are.
    records: int

    def answer(self, case_id: str, repeat: int) -> tuple[int, Observation, bytes | None]:
        """The number of an answer, its observation, and the JSON of that if it can be stored."""
        ...

    def count_unmatched(self, used: bytearray) -> int:
        """How many answers have an id of which no answer was used."""
        ...


class Cache(Protocol):
    """Caches replies of targets and judges; the key is a hash of what was asked."""

    def get(self, key: str) -> dict[str, Any] | None: ...

    def put(self, key: str, value: dict[str, Any]) -> None: ...


class Store(Cache, Protocol):
    """The journal of runs, named baselines, test cases, and a cache of replies.

    All methods are thread-safe. Every failure is a StoreError, and then nothing of that call was
    written; a run or baseline that does not exist is a NotInStore. `put` is the exception: it
    returns at once and may lose the reply, which is then only asked for again; `keep` is for what
    cannot be asked for again. `assay.testing.stores.StoreConformance` tests a store for all of
    this. A store may have `remote = True`: its reads wait for another machine, and other machines
    may open it too. It then has `permits`, a Permits.
    """

    @property
    def test_cases(self) -> TestCaseStore: ...

    @property
    def case_index(self) -> CaseIndex: ...

    @property
    def labels(self) -> LabelStore: ...

    @property
    def login_sessions(self) -> LoginSessionStore: ...

    def keep(self, key: str, value: dict[str, Any]) -> None:
        """As `put`, but durable when it returns."""
        ...

    def begin(self, *runs: RunRecord) -> None:
        """Add runs with new ids: all of them, or none."""
        ...

    def save(self, *trials: TrialRecord) -> Future[None]:
        """Add trials to their runs; the future is done when all are durable, and not cancellable.

        Of trials with the same run, position and repeat the first final one is kept, as an engine
        may run a task twice. There is no backpressure: callers wait for the futures.
        """
        ...

    def finish(
        self, run_id: str, status: RunStatus, finished_at: str, summary: dict[str, Any]
    ) -> None:
        """Record how a run ended, after all earlier saves; a resumed run is finished again."""
        ...

    def reopen(self, run_id: str) -> None:
        """Set a run that is resumed to `running`, and clear `finished_at` and `summary`."""
        ...

    def describe(self, run_id: str, suites: list[SuiteHeader], environment: dict[str, Any]) -> None:
        """Replace the suites and the environment of a run."""
        ...

    def run(self, run_id: str) -> RunRecord: ...

    def runs(self, limit: int, before: str | None = None) -> list[RunRecord]:
        """A page of runs, newest first; `before` is the last id of the previous page."""
        ...

    def group(self, group_id: str) -> list[RunRecord]:
        """The runs of a group, in the order of their ids, which is that of its targets."""
        ...

    def trials(
        self,
        run_id: str,
        outcomes: Collection[Outcome] | None = None,
        positions: range | None = None,
    ) -> Iterator[TrialRecord]:
        """The trials of a run in order of position and repeat, filtered if asked.

        It is a snapshot, taken at the call or the first step, and read in constant memory.
        """
        ...

    def facts(self, run_id: str, positions: range | None = None) -> Iterator[TrialFacts]:
        """As `trials`, but only the fields that counting and comparing need."""
        ...

    def finished(self, run_id: str) -> Iterator[tuple[int, int]]:
        """Position and repeat of every final trial of a run, in order."""
        ...

    def delete(self, run_id: str) -> None:
        """Delete a run and its trials; refused for the first and the current run of a baseline."""
        ...

    def lease(self, run_id: str) -> AbstractContextManager[None]:
        """Lock a run while it is worked on; entering raises RunHeld when it is locked elsewhere.

        The lock ends with the process, however that ends. The run need not exist yet.
        """
        ...

    def held(self, run_id: str) -> bool:
        """Whether the run is locked right now; checking never blocks or breaks a lease."""
        ...

    def set_baseline(self, name: str, run_id: str, *, reset_history: bool = False) -> None:
        """Point a name to a run, whichever run it pointed to before.

        The name keeps a history of its runs; with `reset_history` it starts with this one.
        """
        ...

    def move_baseline(self, name: str, run_id: str, before: str | None) -> bool:
        """Point a name to a run if it still points to `before`, or does not exist if that is None.

        Returns whether the name points to the run now.
        """
        ...

    def baseline_history(self, name: str) -> list[str]:
        """The ids of the runs that the name has pointed to, the oldest first."""
        ...

    def baseline(self, name: str) -> str:
        """The id of the run with this name."""
        ...

    def baselines(self) -> dict[str, str]:
        """All baselines sorted by name, each with the id of its run."""
        ...

    def remove_baseline(self, name: str) -> None:
        """Remove the name; the run stays."""
        ...

    def close(self) -> None:
        """Complete pending writes, then refuse new ones; may be called more than once."""
        ...


class StoreOpener(Protocol):
    """Opens the store at a URL; relative paths in it are relative to `root`."""

    def __call__(self, url: str, root: Path) -> Store: ...


class Reporter(Protocol):
    """Writes a report about a run; a module with this function qualifies.

    There may be a million cases: iterate over them and write as you go. Escape all text of models
    and users as the format requires. Its name is the suffix of its files, unless it has
    `writes_files = False`.

    `write_group(group, out)` is optional: it writes about a GroupResult, the runs of several
    targets. Without it a report of several targets is refused before anything is asked.
    """

    def write(self, run: RunResult, out: TextIO) -> None: ...


class GroupReporter(Reporter, Protocol):
    """A Reporter that also writes about several targets."""

    def write_group(self, group: GroupResult, out: TextIO) -> None: ...


class WorkOrder(msgspec.Struct, frozen=True):
    """Work as plain data, from which any process can build what does it; it is never pickled.

    `maker` is the `module:function` that makes its Worker from `details`, in a process with the
    same `version` of Assay.
    """

    maker: str
    details: bytes
    version: str = __version__


class Worker(Protocol):
    """Does the pieces of one order, one at a time; `assay.work_orders.worker_of` makes it.

    It may save to the store itself, so a piece that is done twice must do no harm.
    """

    def __call__(self, piece: bytes) -> bytes: ...

    def close(self) -> None: ...


class Executor(Protocol):
    """Does work in this process or elsewhere; its class is called without arguments.

    Every process that takes part makes the worker of an order once, and keeps it.
    `assay.testing.executors.ExecutorConformance` tests an executor for all of this. These members
    of the class are optional:

    - `at(address, workers)`: a class method that makes one for `--executor NAME://ADDRESS` and
      `--workers-per-machine`; without it, neither can be given. The address may be empty, and
      `workers` None.
    - `remote = True`: its processes may be on other machines, so they share nothing with this one
      but the store.
    - `processes`: how many there are; known when the first piece is taken.
    """

    def run(self, order: WorkOrder, pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
        """The result of each piece, in any order; an exception of the worker is raised here.

        Pieces are taken only as workers need them: there may be more than fit in memory. A piece
        whose process died is done again. If that dies too, an ExecutorError is raised. Closing the
        generator, or cancelling a step of it, ends all processes.
        """
        ...


def no_judge(target: str | None, model: str | None) -> Target:
    """The default of `Resources.judge`: there is none."""
    raise UsageError("no judge is set: name one under 'judge' in assay.yaml")


class Resources(msgspec.Struct, frozen=True):
    """What an evaluator may use besides the case; passed once, to `prepare`.

    `judge` returns the judge for the evaluator's `target` and `model`, or raises UsageError.
    `sources` has the data of `{{seed:...}}` and `{{snapshot:...}}` tokens.
    """

    judge: Callable[[str | None, str | None], Target] = no_judge
    sources: Mapping[str, Any] = {}
    cache: Cache | None = None


#: A prepared evaluator: scores one observation, synchronously or not.
Check = Callable[[Context], EvaluationScore | Awaitable[EvaluationScore]]


class Evaluator(Protocol):
    """An EvaluatorSpec that scores observations; its fields are its keys in eval files.

    It is stateless: one instance scores many observations concurrently.
    """

    def evaluate(self, context: Context) -> EvaluationScore | Awaitable[EvaluationScore]:
        """Score one observation; an exception makes the evaluator errored, not failed."""
        ...


class Judging(Protocol):
    """An EvaluatorSpec that asks a judge, and can show a person what the judge is shown."""

    def judge_sees(self, context: Context) -> Sequence[tuple[str, str]]:
        """Pairs of a short label and a text: criteria, question, reference, calls, answer."""
        ...


class Preparable(Protocol):
    """An EvaluatorSpec that prepares once for all observations, such as compiling a pattern."""

    def prepare(self, resources: Resources) -> Check:
        """Do what is needed once, and return the check.

        An AssayError, such as the UsageError of a missing judge, ends the run before it starts.
        Any other exception makes the evaluator errored.
        """
        ...
