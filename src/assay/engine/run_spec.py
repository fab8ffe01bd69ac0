"""RunSpec: what to run and with what, and what is known about it before the first case is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from assay.engine.cancellation import Cancellation
from assay.engine.plan import Plan
from assay.engine.rubric_gating import ungated_rubrics
from assay.model.case import EvalCase, EvalSuite
from assay.model.comparison import CaseOutcome, CaseRef, Comparison
from assay.model.evaluator import EvaluatorSpec
from assay.model.events import Listener
from assay.model.options import RunOptions
from assay.model.run import PYTHON_SUITE, TEST_CASES, RunRecord, SuiteHeader
from assay.model.run_result import RunResult
from assay.ports import Executor, Store, Target, WorkOrder
from assay.redaction import Redactor
from assay.settings import Settings
from assay.stats.sequential import Sequential
from assay.suites import staleness

#: Compares a run with its baseline. Takes the id of the run, and the sequential test of a run that
#: stops when it is decided.
Compare = Callable[[str, Sequential | None], Comparison]
#: Describes the work of a run on one of its streamed suites, which has this number.
Describe = Callable[[RunRecord, int], WorkOrder]
#: Describes the work of asking the trials of a run.
DescribeLive = Callable[[RunRecord], WorkOrder]


class ResultBuilder(Protocol):
    """Makes the result of a run. The engine cannot import `results`, so it is passed in."""

    def finish(self, ending: RunEnding) -> RunResult:
        """The result with its exit code and the summary to store; its files are written."""
        ...


class RunSpec(msgspec.Struct, frozen=True):
    """What to run, and with what.

    `resumed` is the run to resume, `origin` the run that cases or answers are taken from.
    `describe` and the `executor` are for its streamed suites; if `workers_save`, its workers save
    their trials themselves. With `describe_live`, its workers also ask live targets.
    `targets` are the only targets and judges that may be called by name; None allows all.
    With `reports` the run is recorded as unreported, for the caller to report it.
    `group` is the id that the runs of several targets share, and `notes` are added to its result.
    """

    settings: Settings
    suites: Sequence[EvalSuite]
    options: RunOptions
    store: Store
    results: ResultBuilder
    paths: Sequence[str] = ()
    target: Target | None = None
    judge: Target | None = None
    targets: Collection[str] | None = None
    defaults: tuple[EvaluatorSpec, ...] = ()
    sources: Mapping[str, Any] = {}
    secrets: frozenset[str] = frozenset()
    resumed: RunRecord | None = None
    wanted: Callable[[int, EvalCase], bool] | None = None
    #: Why `wanted` accepts no case at all; empty if it may accept some.
    nothing_wanted: str = ""
    compare: Compare | None = None
    base: Iterable[CaseOutcome] = ()
    #: May a case fail that passed before?
    accepts: Callable[[CaseRef], bool] = lambda ref: False
    listen: Listener = lambda event: None
    describe: Describe | None = None
    describe_live: DescribeLive | None = None
    executor: Executor | None = None
    workers_save: bool = False
    cancellation: Cancellation = msgspec.field(default_factory=Cancellation)
    started_by: str = ""
    reports: bool = False
    origin: Mapping[str, str] = {}
    group: str | None = None
    notes: tuple[str, ...] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def plan(self) -> Plan:
        """The plan, before its cases are selected."""
        return Plan(self.suites, self.options, self.defaults, self.wanted)


class RunEnding(msgspec.Struct, frozen=True):
    """What is known of a run when nothing more is asked; its trials are in the store.

    `gave_up` is why it stopped early, and `faults` are errors in the configuration. It is
    `narrowed` if the baseline has cases that still exist, but were not selected.
    """

    spec: RunSpec
    record: RunRecord
    comparison: Comparison | None
    notes: tuple[str, ...]
    gave_up: str
    faults: Sequence[str]
    narrowed: bool
    sequential: Sequential | None


def plan_of(spec: RunSpec) -> dict[str, Any]:
    """What must be equal to resume a run; redacted, as the URL of a target may contain a key."""
    plan = {"paths": list(spec.paths), **spec.options.plan(), **spec.origin}
    redacted: dict[str, Any] = Redactor(spec.secrets).json(plan)
    return redacted


class FileHashes:
    """The hashes of streamed eval files, computed in the background."""

    def __init__(self, suites: Iterable[EvalSuite]) -> None:
        pool = ThreadPoolExecutor(1)
        self._hashes = {
            suite.file: pool.submit(staleness.file_hash, Path(suite.file))
            for suite in suites
            if suite.streamed
        }
        pool.shutdown(wait=False)

    def of(self, suite: EvalSuite) -> str | None:
        """The hash of the suite's file; None if the suite is not streamed."""
        future = self._hashes.get(suite.file)
        return None if future is None else future.result()


def headers_of(
    spec: RunSpec,
    plan: Plan,
    target_of: Callable[[int], str] = lambda index: "",
    hash_of: Callable[[EvalSuite], str | None] = lambda suite: None,
) -> list[SuiteHeader]:
    """The header of each suite, as known before the first case is asked."""
    registry = staleness.load_registry(spec.settings)
    ungated = ungated_rubrics(plan)
    headers = []
    for index, suite in enumerate(plan.suites):
        asked = bool(plan.selected[index]) or index in plan.streams
        eval_hash = hash_of(suite)
        if eval_hash is None:
            eval_hash = staleness.eval_file_hash(Path(suite.file), spec.settings)
        notes = ["run without the deterministic cases of its tool"] if index in ungated else []
        headers.append(
            SuiteHeader(
                name=suite.name,
                file=project_path(suite.file, spec.settings),
                tier=suite.tier,
                tool_name=suite.tool_name,
                target=target_of(index),
                metadata=staleness.suite_metadata(suite, registry, eval_hash),
                # Warnings about cases that are not asked do not concern this run.
                staleness_warnings=staleness.warnings(suite, registry) if asked else [],
                selected=None if suite.streamed else plan.selected[index],
                notes=notes if asked else [],
                cases=None if suite.streamed else len(suite),
            )
        )
    return headers


def project_path(file: str, settings: Settings) -> str:
    """A path as results show it: relative to the project root if below it."""
    if file.startswith(TEST_CASES):
        return TEST_CASES
    if file.startswith(PYTHON_SUITE):
        return file
    path = Path(file).absolute() if file else Path()
    return (
        path.relative_to(settings.root).as_posix() if path.is_relative_to(settings.root) else file
    )
