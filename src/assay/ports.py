"""The extension contract: what a stranger implements to join in.

A port is registered under an entry-point group of its name, by strangers and by us:

    [project.entry-points."assay.loaders"]       file suffix -> Loader
    [project.entry-points."assay.evaluators"]    type name -> subclass of EvaluatorSpec
    [project.entry-points."assay.targets"]       provider name -> subclass of TargetSpec
    [project.entry-points."assay.stores"]        scheme of the URL -> open_store(url, root)
    [project.entry-points."assay.reporters"]     suffix of the file -> Reporter
    [project.entry-points."assay.executors"]     name -> Executor
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TextIO, TypeVar

import msgspec

from assay.errors import Problem, UsageError
from assay.model.case import EvalCase, Suite
from assay.model.context import Context
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.plain import TextLine
from assay.model.reading import Reading
from assay.model.result import Outcome
from assay.model.run import RunRecord, RunStatus, SuiteHeader, TrialFacts, TrialRecord
from assay.model.run_result import RunResult
from assay.model.score import EvaluationScore
from assay.model.suite import SuiteExecution
from assay.model.test_case import NewTestCase, Pin, TestCase, TestCaseChanges, TestCasePage
from assay.settings import Settings

T = TypeVar("T")
R = TypeVar("R")


class Loader(Protocol):
    """Reads eval files of one format. A module with these two functions will do.

    It is chosen by the longest registered suffix that the file's name ends with.
    """

    def load(self, file: Path, settings: Settings) -> Suite:
        """The file's suite; raises EvalFileErrors with all of its problems."""
        ...

    def recognises(self, file: Path) -> str:
        """Why a file met in a directory is no eval file; empty when it is one.

        A file with `.eval.` before its suffix is one, whatever it holds.
        """
        ...


class Chunk(NamedTuple):
    """A piece of a file: the number of its first line, from 1, and where in the file it is."""

    number: int
    offset: int
    size: int


class CaseStream(Protocol):
    """The cases of a suite that is `streamed`: checked while they are read, in any process.

    A loader that can make one has `stream(file, settings) -> Suite` beside `load`.
    """

    #: What messages call the file.
    name: str

    def chunks(self) -> Iterator[Chunk]:
        """The file in pieces of whole lines."""
        ...

    def parts(self, chunk: Chunk) -> Iterator[tuple[int, bytes]]:
        """The lines of a chunk, some at a time, with the number of the first of them."""
        ...

    #: What its lines are read with, and what its cases inherit.
    reading: Reading
    inherited: SuiteExecution

    def read(
        self, number: int, part: bytes, taken: Callable[[int, TextLine], bool] | None = None
    ) -> Iterator[tuple[int, EvalCase | None]]:
        """The case of every line of a part, with the line's number; None where it is wrong.

        Lines that check texts are offered first; of one that is `taken` no case is made.
        """
        ...

    def problems(self) -> list[Problem]:
        """What is wrong with the lines that were read since it was last asked."""
        ...

    def faults(self) -> list[Problem]:
        """All that is wrong with the cases, or warned of: the file is read from its start."""
        ...


class Request(msgspec.Struct, frozen=True):
    """What a target is asked: messages, and the case they came from when there is one.

    `reply_schema` asks for a JSON reply; a target that cannot promise one ignores it. `suite` is
    the file of the case's suite, as the run calls it.
    """

    messages: tuple[Message, ...]
    case: EvalCase | None = None
    repeat: int = 0
    reply_schema: Mapping[str, Any] | None = None
    suite: str = ""


class Target(Protocol):
    """The agent under test, or a judge. One instance serves many requests at once.

    It may also have `identity`, a text that tells its answers from those of others better than
    its name does; `requests(observation)`, when an answer takes another number of requests than
    one; `recorded = True`, when nobody is called and no time is to be measured, and then
    `problems()`, what of its records cannot be read; `unused(case_ids)`, how many records belong
    to none of these cases; `remarks()`, what there is to say once all answers are given; and
    `faults(answers)`, what those, in the interchange form, show to be wrong with its settings.
    """

    #: What results call it, and what tells two judges apart: `openai:gpt-4`.
    name: str

    async def ask(self, request: Request) -> Observation:
        """One attempt at one answer; raises TargetError when there is none."""
        ...

    async def close(self) -> None:
        """Give back connections and processes."""
        ...


class Cache(Protocol):
    """Remembers replies by the content of their question."""

    def get(self, key: str) -> dict[str, Any] | None: ...

    def put(self, key: str, value: dict[str, Any]) -> None: ...


class TestCaseStore(Protocol):
    """The test cases that people keep and edit; every write makes a version that stays.

    Every method may be called from any thread. What is written is on disk when the future is
    done; what was refused is raised by it, or at once. A test case that is not there, or was
    removed, is a NotInStore. `now` is given, and a clock that stands still or jumps back does
    no harm. `assay.testing.test_cases.TestCaseConformance` holds a store to all of this.
    """

    if not TYPE_CHECKING:  # it is no part of the contract
        __test__ = False  # pytest takes everything called Test for a test

    def add(self, new: NewTestCase, now: datetime) -> Future[TestCase]:
        """Add a test case; raises DuplicateId when the id is or ever was taken, InvalidText."""
        ...

    def get(self, case_id: str) -> TestCase: ...

    def find(self, ids: Collection[str]) -> dict[str, TestCase | None]:
        """Those of the ids that are taken, each with its test case; None when it was removed."""
        ...

    def page(self, limit: int, skip: int = 0, tag: str | None = None) -> TestCasePage:
        """Test cases in the order in which they were added, all or those with a tag.

        `tag` is any part of a tag, in upper or lower case.
        """
        ...

    def change(
        self, case_id: str, changes: TestCaseChanges, now: datetime, known: str | None = None
    ) -> Future[TestCase]:
        """Make a new version, later than the one before; may raise InvalidText.

        `known` is the `modified_at` that the test case must still have; raises Outdated. It is
        compared in the same step as the change is made: of many that know the same, one wins.
        """
        ...

    def remove(self, case_id: str, now: datetime) -> Future[None]:
        """Hide a test case for good; its versions stay."""
        ...

    def versions(self, case_id: str, limit: int, skip: int = 0) -> TestCasePage:
        """Versions of a test case, the first one first; also of one that was removed."""
        ...

    def find_versions(self, pins: Collection[Pin]) -> dict[Pin, TestCase]:
        """Those of the pinned versions that there are; also of test cases that were removed."""
        ...


class Store(Cache, Protocol):
    """The journal of runs, named baselines, test cases, and a cache of replies.

    Every method may be called from any thread. Whatever goes wrong is a StoreError, and then
    nothing of that call was written; a run or baseline that is not there is a NotInStore.
    `put` is the exception: it returns at once, and a reply that could not be written is only
    asked for again; `keep` is for what nobody could ask again.
    `assay.testing.stores.StoreConformance` holds a store to all of this. A store may have
    `remote = True`, when reading means to wait for another machine.
    """

    @property
    def test_cases(self) -> TestCaseStore: ...

    def keep(self, key: str, value: dict[str, Any]) -> None:
        """As `put`, but it is on disk when this returns."""
        ...

    def begin(self, run: RunRecord) -> None:
        """Add a run; its id must be new."""
        ...

    def save(self, *trials: TrialRecord) -> Future[None]:
        """Add trials to their runs; done when all are on disk, and cannot be cancelled.

        Of two trials with the same run, position and repeat the first final one is kept, as an
        engine may run a task twice. Nothing but waiting for the futures limits what is under way.
        """
        ...

    def finish(
        self, run_id: str, status: RunStatus, finished_at: str, summary: dict[str, Any]
    ) -> None:
        """Say how a run ended, after all that was saved before; a resumed run ends again."""
        ...

    def reopen(self, run_id: str) -> None:
        """Call a run `running` again, as it is resumed; when and how it had ended is forgotten."""
        ...

    def describe(self, run_id: str, suites: list[SuiteHeader], environment: dict[str, Any]) -> None:
        """Say anew what is known of the suites of a run, and of its environment."""
        ...

    def run(self, run_id: str) -> RunRecord: ...

    def runs(self, limit: int, before: str | None = None) -> list[RunRecord]:
        """The newest runs first; `before` is the last id of the page before."""
        ...

    def trials(
        self,
        run_id: str,
        outcomes: Collection[Outcome] | None = None,
        positions: range | None = None,
    ) -> Iterator[TrialRecord]:
        """The trials of a run by position and repeat, all or those that are asked for.

        They are those there were at the call or the first step. Memory does not grow with them.
        """
        ...

    def facts(self, run_id: str, positions: range | None = None) -> Iterator[TrialFacts]:
        """As `trials`, but only what counting and comparing need."""
        ...

    def finished(self, run_id: str) -> Iterator[tuple[int, int]]:
        """Position and repeat of every final trial of a run, in their order."""
        ...

    def delete(self, run_id: str) -> None:
        """Remove a run and its trials; refused while it is a baseline."""
        ...

    def lease(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a run while it is worked on; entering raises RunHeld when it is held elsewhere.

        Whatever ends the process ends the lease. The run need not be there.
        """
        ...

    def held(self, run_id: str) -> bool:
        """Is the run held right now? Asking does not get in the way of a lease."""
        ...

    def set_baseline(self, name: str, run_id: str) -> None:
        """Give a run a name, taking it from the run that had it."""
        ...

    def baseline(self, name: str) -> str:
        """The id of the run with this name."""
        ...

    def baselines(self) -> dict[str, str]:
        """All names in their order, each with the id of its run."""
        ...

    def remove_baseline(self, name: str) -> None:
        """Forget the name; the run stays."""
        ...

    def close(self) -> None:
        """Wait for what is under way, then take nothing more. May be called again."""
        ...


class StoreOpener(Protocol):
    """Opens the store of a URL; `root` is the folder that relative paths in it hang on."""

    def __call__(self, url: str, root: Path) -> Store: ...


class Reporter(Protocol):
    """Writes a document about a run. A module with this function will do.

    Cases may be a million: it asks for them one by one and writes as it goes. What models and
    users wrote is escaped as the format demands.
    """

    def write(self, run: RunResult, out: TextIO) -> None: ...


class Executor(Protocol):
    """Carries out pieces of work, here or elsewhere. It is made without arguments.

    Results come in any order, and a piece may be carried out twice. No more pieces are taken
    than can be worked on soon, so that an endless stream of them does not fill the memory.
    """

    def run(self, work: Callable[[T], R], pieces: Iterable[T]) -> Iterator[R]:
        """What `work` returns for each piece; what it raises is raised here and ends it all.

        The iterator may have two methods. `waits_for` gives the numbers of files of which one can
        be read when the next result is there: till then the event loop is left to others.
        `close` is called when no more results are wanted.
        """
        ...


def no_judge(target: str | None, model: str | None) -> Target:
    """The judge where none is set."""
    raise UsageError("no judge is set: name one under 'judge' in assay.yaml")


class Resources(msgspec.Struct, frozen=True):
    """What evaluators may use beside the case: given once, when they are prepared.

    `judge` finds the target that judges, by the evaluator's `target` and `model`; it raises
    UsageError when there is none. `sources` hold the data of `{{seed:...}}` and
    `{{snapshot:...}}` tokens.
    """

    judge: Callable[[str | None, str | None], Target] = no_judge
    sources: Mapping[str, Any] = {}
    cache: Cache | None = None


#: An evaluator made ready: what it says about one observation, now or soon.
Check = Callable[[Context], EvaluationScore | Awaitable[EvaluationScore]]


class Evaluator(Protocol):
    """An EvaluatorSpec that can judge. Its fields are its keys in eval files.

    It keeps no state: one instance judges many observations at the same time.
    """

    def evaluate(self, context: Context) -> EvaluationScore | Awaitable[EvaluationScore]:
        """Judge one observation. What it raises makes the evaluator errored, not failed."""
        ...


class Preparable(Protocol):
    """An EvaluatorSpec with work that is done once for all observations."""

    def prepare(self, resources: Resources) -> Check:
        """The check with everything compiled and every judge found.

        An AssayError, such as the UsageError of a judge that is not set, ends the run before it
        has begun. Whatever else it raises makes the evaluator errored.
        """
        ...
