"""A run of one target: run, resume, rerun failed cases, and regrade.

It is put together here: eval files, options, the store, target and judge, and the baseline.
"""

from __future__ import annotations

import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, date, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, Unpack, cast

import msgspec
from msgspec.structs import replace

from assay import registry
from assay.blocking import wait_for
from assay.comparison.accepted import AcceptedLosses
from assay.comparison.outcomes import Outcomes, find_run, newest_first, outcomes_of, stored
from assay.engine import session
from assay.engine.cancellation import Cancellation
from assay.engine.plan import DefaultEvaluators
from assay.engine.recorded import StoredAnswers
from assay.engine.resuming import resumable
from assay.engine.run_spec import Compare, RunSpec, project_path
from assay.errors import PluginError, StoreError, UsageError, error_for
from assay.model.case import EvalCase, EvalSuite
from assay.model.comparison import CaseRef, Comparison
from assay.model.events import Listener, Notice
from assay.model.group_result import GroupResult
from assay.model.keywords import OptionKeys
from assay.model.options import DerivedRun, RunOptions
from assay.model.run import SELECTED, RunRecord
from assay.model.run_result import RunResult
from assay.model.signatures import shows_keys
from assay.ports import Store, Target
from assay.problems import Problem
from assay.results.builder import RunResultBuilder
from assay.seed_manifest import Seeds
from assay.service import python_suites, selection
from assay.service.eval_files import Paths, as_paths, load_all
from assay.service.history import compare_with_base, restored, rules_of
from assay.service.options import default_evaluators, options_of
from assay.service.project import project, working_directory
from assay.service.result import Run
from assay.service.secrets import secrets_of
from assay.service.store import open_store
from assay.service.work import with_work
from assay.settings import Settings
from assay.stats.sequential import Sequential
from assay.suites import snapshot
from assay.suites.test_cases import is_reference, suite_of
from assay.targets.pool.target_pool import TargetPool

T = TypeVar("T")
AnyTarget = str | Target | Callable[[Any], Any]
Cases = Paths | EvalSuite | Iterable[EvalSuite] | EvalCase | Iterable[EvalCase]
Baseline = str | os.PathLike[str] | RunResult
#: The keys in a run's plan that name the earlier run it is based on.
_ORIGINS = ("rerunFailed", "regraded")


class RunHooks(msgspec.Struct, frozen=True):
    """How a caller observes and stops a run."""

    listen: Listener = lambda event: None
    cancellation: Cancellation | None = None
    #: Recorded with the run, so that a server resumes only its own.
    name: str = ""
    #: Does it write reports after the run, and then call `confirm_reports`?
    reports: bool = False
    #: The formats of its reports; with several targets, each must be able to show a group.
    formats: tuple[str, ...] = ()
    #: The hooks of each run of a group, by its target; None to report all of them as one.
    of_target: Callable[[str], RunHooks] | None = None


class RunRequest(msgspec.Struct, frozen=True):
    """What a caller requests. At most one of `resume`, `rerun_failed` and `regrade` names a run.

    A `resume` of "" means the newest unfinished run with the same paths, target and options.
    """

    cases: Cases = ()
    target: AnyTarget | None = None
    judge: AnyTarget | None = None
    store: str | None = None
    resume: str | None = None
    rerun_failed: str | None = None
    regrade: str | None = None
    hooks: RunHooks = RunHooks()
    #: May large files of recorded answers be graded by separate processes?
    stream: bool = True
    #: The targets and judges that may be used; None allows all.
    targets: Collection[str] | None = None
    #: The run to compare with, as an object; otherwise the options name it.
    baseline: RunResult | GroupResult | None = None
    #: The cases to run; None for all. Such a run cannot be resumed.
    only: frozenset[CaseRef] | None = None
    #: The targets of a group, if a list of them is given; then there is no `target`.
    several: tuple[AnyTarget, ...] | None = None
    #: May it become a group because the configuration has several targets?
    expands: bool = True

    @property
    def earlier(self) -> str | None:
        """The run that this one takes its paths and options from."""
        return self.resume or self.rerun_failed or self.regrade


@shows_keys
def regrade(
    reference: str,
    cases: Cases = (),
    *,
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | None = None,
    **options: Unpack[OptionKeys],
) -> Run:
    """Grade the observations of a recorded run again, with today's evaluators: a new run."""
    request = RunRequest(cases, judge=judge, store=store, regrade=reference)
    return wait_for(lambda: _run(*with_baseline(baseline, request, options)))


def with_baseline(
    baseline: Baseline | GroupResult | None, request: RunRequest, options: Mapping[str, Any]
) -> tuple[RunRequest, Mapping[str, Any]]:
    """The request and the options with the baseline, which is a run or group, or names one."""
    if baseline is None:
        return request, options
    if isinstance(baseline, RunResult | GroupResult):
        return replace(request, baseline=baseline), {**options, "baseline": baseline.id}
    return request, {**options, "baseline": os.fspath(baseline)}


async def _run(request: RunRequest, options: Mapping[str, Any]) -> Run:
    async with separate(request.judge) as judging:
        request = replace(request, judge=judging)
        return await shown(request, lambda watched: execute(watched, options))


async def shown(request: RunRequest, work: Callable[[RunRequest], Awaitable[T]]) -> T:
    """Do the work of a request; a notebook shows its progress."""
    progress = registry.imported("assay.reporters.notebook:progress_line", PluginError)()
    if progress is None:
        return await work(request)
    with closing(progress):
        request = replace(request, hooks=replace(request.hooks, listen=progress))
        result: T = await progress.shown_while(work(request))
    return result


async def execute(request: RunRequest, given: Mapping[str, Any]) -> Run:
    """Execute the run of one target that a caller requested."""
    settings = project()
    settings.prepend_to_sys_path()
    store = open_store(settings, request.store)
    try:
        return Run.of(await execute_in(settings, store, request, given), store)
    except BaseException:
        store.close()
        raise


async def execute_in(
    settings: Settings, store: Store, request: RunRequest, given: Mapping[str, Any]
) -> RunResult:
    """Execute the run of one target with a store that stays open."""
    spec = _run_spec(request, given, settings, store)
    record = spec.resumed
    if record is None:
        return await session.run(spec)
    if record.status == "finished":
        spec.listen(Notice(f"the run {record.id} is finished: only its reports were missing"))
        return restored(record, store, settings)
    others = () if record.group is None else store.group(record.group)
    return await session.run(spec, spent_by([r for r in others if r.id != record.id], spec))


def spent_by(records: Iterable[RunRecord], spec: RunSpec) -> float:
    """What other runs have spent of the budget of a run."""
    if spec.options.budget_usd is None:
        return 0.0
    facts = (trial for record in records for trial in spec.store.facts(record.id))
    return sum((trial.cost_usd or 0.0) + (trial.judge_cost_usd or 0.0) for trial in facts)


def confirm_reports(run: Run) -> None:
    """Record that the reports of a run are written; until then `--resume` writes them again."""
    record = run.record
    if record.summary is None or not record.verdict.unreported:
        return
    verdict = replace(record.verdict, unreported=None)
    with suppress(StoreError):  # the reports are written: to write them again does no harm
        summary = record.summary | {"verdict": verdict.to_dict()}
        run.store.finish(record.id, record.status, record.finished_at or "", summary)


def check_request(request: RunRequest) -> None:
    """Only one earlier run may be named. A bare `--resume` continues a begun `--rerun-failed`."""
    if request.resume and request.rerun_failed is not None:
        both = f"--resume {request.resume} and --rerun-failed {request.rerun_failed}"
        raise UsageError(f"{both} name two earlier runs: give only one of them")


def _run_spec(
    request: RunRequest, given: Mapping[str, Any], settings: Settings, store: Store
) -> RunSpec:
    check_request(request)
    earlier = find_run(request.earlier, store) if request.earlier else None
    options = run_options(request, given, settings, store, earlier)
    base = find_base(request.baseline, options, store)
    spec = with_suites(request, options, settings, store, earlier)
    spec = with_work(with_base(spec, base), request.store or settings.config.store)
    if request.resume is None:
        return spec
    named = earlier if request.resume else None
    return replace(spec, resumed=resumable(spec, named, newest_first(store)))


def run_options(
    request: RunRequest,
    given: Mapping[str, Any],
    settings: Settings,
    store: Store,
    earlier: RunRecord | None,
) -> RunOptions:
    """The options of the run of one target."""
    return selection.with_run(
        _options(request, given, settings, earlier),
        store,
        earlier=request.rerun_failed or request.regrade,
        resumes=request.resume == "",
    )


def with_suites(
    request: RunRequest,
    options: RunOptions,
    settings: Settings,
    store: Store,
    earlier: RunRecord | None,
) -> RunSpec:
    """The spec with the suites, and the cases that are selected by results; without a baseline."""
    origin = _origin(request, earlier)
    if request.only is not None:
        origin |= {SELECTED: _digest(request.only)}
    # A run based on another one looks its cases up, which a stream cannot do.
    request = replace(request, stream=request.stream and not origin and not options.of)
    suites, paths = _suites(request, options, settings, store, earlier)
    defaults = default_evaluators(options, settings)
    seeds = Seeds(settings)
    warnings = python_suites.unchecked(suites, DefaultEvaluators(defaults), seeds)
    _report(list(warnings), request, options)
    spec = RunSpec(
        settings=settings,
        suites=suites,
        options=options,
        store=store,
        results=RunResultBuilder(settings),
        paths=paths,
        target=as_target(request.target),
        judge=as_target(request.judge),
        targets=request.targets,
        defaults=defaults,
        sources={"seed": seeds.data, "snapshot": snapshot.capture(settings) or {}},
        secrets=frozenset(secrets_of(settings)),
        listen=request.hooks.listen,
        cancellation=request.hooks.cancellation or Cancellation(),
        started_by=request.hooks.name,
        reports=request.hooks.reports,
        origin=origin,
    )
    spec = selection.only_selected(_with_origin(spec))
    return spec if request.only is None else selection.only_these(spec, request.only)


def with_base(spec: RunSpec, base: Outcomes | None) -> RunSpec:
    """The spec with a baseline, by the rules of its options."""
    accepted = AcceptedLosses(spec.settings.config.accepted, datetime.now(UTC).date())
    return replace(
        spec,
        compare=_comparer(spec.options, spec.settings, spec.store, base),
        base=base or (),
        accepts=lambda ref: accepted.entry_for(ref) is not None,
    )


def _options(
    request: RunRequest, given: Mapping[str, Any], settings: Settings, earlier: RunRecord | None
) -> RunOptions:
    named = {"target": request.target, "judge": request.judge}
    given = {**given, **{name: who for name, who in named.items() if isinstance(who, str)}}
    derived: DerivedRun | None = "rerun" if request.regrade is None else "regrade"
    return options_of(given, settings, earlier, None if request.resume else derived)


def _origin(request: RunRequest, earlier: RunRecord | None) -> dict[str, str]:
    """The run that this one is based on, under its key; a resumed run keeps its own."""
    if earlier is None:
        return {}
    if request.resume:
        return {how: earlier.plan[how] for how in _ORIGINS if how in earlier.plan}
    return {"rerunFailed" if request.rerun_failed is not None else "regraded": earlier.id}


def _digest(refs: Iterable[CaseRef]) -> str:
    """A short text that is the same for the same cases."""
    return blake2b(msgspec.json.encode(sorted(refs)), digest_size=8).hexdigest()


def _with_origin(spec: RunSpec) -> RunSpec:
    """With the cases, and for a regrade the answers, of the run that it is based on."""
    if run_id := spec.origin.get("rerunFailed"):
        return selection.only_failed(spec, spec.store.run(run_id))
    if run_id := spec.origin.get("regraded"):
        answers = StoredAnswers(spec.store.run(run_id), spec.store)
        files = [project_path(suite.file, spec.settings) for suite in spec.suites]
        return replace(
            spec, target=answers, wanted=lambda suite, case: answers.has(files[suite], case)
        )
    return spec


def find_base(
    run: RunResult | GroupResult | None, options: RunOptions, store: Store
) -> Outcomes | None:
    """The baseline: the given run, or that of the options, which must exist already."""
    if isinstance(run, Run):  # it may be in another store
        return stored(run.record, run.store).not_empty()
    if options.baseline is not None:
        return outcomes_of(options.baseline, store, working_directory()).not_empty()
    if options.stop_when is not None:
        message = "a run can only stop when it is decided against a baseline"
        raise UsageError(f"{message}: give --baseline, or baseline= in Python")
    return None


def _comparer(
    options: RunOptions, settings: Settings, store: Store, base: Outcomes | None
) -> Compare | None:
    """A function that compares the run with the baseline."""
    if base is None:
        return None
    rules, today = partial(rules_of, options, settings.config.accepted), date.today()

    def compare(run_id: str, sequential: Sequential | None) -> Comparison:
        # It still runs, but there is nothing left to ask when its own process compares it.
        run = replace(store.run(run_id), status="finished")
        return compare_with_base(base, run, store, rules(today, sequential))

    return compare


def may_stream(request: RunRequest, options: RunOptions, settings: Settings) -> bool:
    """May large files be streamed? Only if answers are recorded and no option counts cases."""
    counted = (options.limit, options.shard, options.max_failures, options.budget_usd)
    if not request.stream or any(counted) or options.stop_when:
        return False
    if isinstance(request.target, str) or request.target is None:
        return options.target is not None and TargetPool(settings).spec(options.target).recorded
    return False


def _suites(
    request: RunRequest,
    options: RunOptions,
    settings: Settings,
    store: Store,
    earlier: RunRecord | None,
) -> tuple[Sequence[EvalSuite], list[str]]:
    """The suites, and the paths that a resumed run loads them from."""
    cases = python_suites.listed(request.cases)
    if cases and isinstance(cases[0], EvalSuite):
        suites = python_suites.checked(cases, defaults=bool(options.evaluators))
        return suites, python_suites.paths_of(suites, settings)
    paths = as_paths(cases)
    if not paths and earlier is not None:
        python_suites.check_loadable(earlier, regraded=request.regrade is not None)
        known = earlier.plan["paths"]
        paths = [Path(p) if is_reference(p) else settings.root / p for p in known]
    if not paths:
        raise UsageError("no path is given: name eval files or folders, such as 'evals/'")
    kept = [suite_of(str(path), store) for path in paths if is_reference(str(path))]
    files = [path for path in paths if not is_reference(str(path))]
    loaded = _load(files, request, options, settings) if files else ()
    written = [project_path(str(path), settings) for path in files]
    suites = [*loaded, *(suite for suite, _ in kept)]
    return suites, [*written, *(reference for _, reference in kept)]


def _load(
    files: list[Path], request: RunRequest, options: RunOptions, settings: Settings
) -> Sequence[EvalSuite]:
    """Load eval files; warnings are reported, or raised if the run is strict."""
    loaded = load_all(files, stream=may_stream(request, options, settings), settings=settings)
    if error := error_for(loaded.problems):
        raise error
    unselected = [s for s in loaded.suites if options.tier and s.tier not in options.tier]
    ignored = {problem for suite in unselected for problem in suite.warnings}
    warnings = [problem for problem in loaded.problems if problem not in ignored]
    _report(warnings, request, options)
    for file, reason in loaded.skipped_files:
        request.hooks.listen(Notice(f"skipped {file} ({reason})"))
    return loaded.suites


def _report(warnings: Sequence[Problem], request: RunRequest, options: RunOptions) -> None:
    """Send the warnings to the caller; raises them if the run is strict."""
    if error := error_for(warnings, strict=options.strict):
        raise error
    for problem in warnings:
        request.hooks.listen(Notice(str(problem)))


@asynccontextmanager
async def separate(target: AnyTarget | None) -> AsyncIterator[str | Target | None]:
    """A target for our own event loop: what a function uses cannot belong to that loop."""
    made = as_target(target, isolated=True)
    if made is None or made is target:
        yield cast("str | Target | None", target)
        return
    try:
        yield made
    finally:
        await made.close()


def as_target(target: AnyTarget | None, *, isolated: bool = False) -> Target | None:
    """The Target, unless it is only named. A function is called in this event loop, or apart."""
    if target is None or isinstance(target, str):
        return None
    if hasattr(target, "ask"):
        return cast("Target", target)
    if not callable(target):
        what = f"{type(target).__name__} is not a target"
        raise UsageError(f"{what}: give a name, a function or an object with an 'ask' method")
    made: Target = cast("Any", registry.targets.get("python")).of(target, isolated=isolated)
    return made
