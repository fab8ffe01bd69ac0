"""The verbs of runs, of one target or of several.

Command line, server and Python API call only these. Several targets are a matrix: a request becomes
one run for each of them. The runs share a group, and they are kept in step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from secrets import randbits
from typing import Any, NamedTuple, Unpack, cast, overload

from msgspec.structs import replace

from assay.blocking import wait_for
from assay.comparison.outcomes import baseline_name, find_run, names_file, newest_first
from assay.engine import session
from assay.engine.cancellation import Cancellation
from assay.engine.plan import Plan
from assay.engine.resuming import resumable
from assay.engine.run_spec import RunSpec, plan_of
from assay.errors import UsageError
from assay.model.events import Notice
from assay.model.group_result import GroupResult
from assay.model.keywords import OptionKeys
from assay.model.names import same_name
from assay.model.options import RunOptions
from assay.model.run import RunRecord, new_run_id
from assay.model.run_result import RunResult
from assay.model.signatures import shows_keys
from assay.ports import Store
from assay.service import runs
from assay.service.costs import announcement
from assay.service.group_baselines import GroupBaseline, group_baselines
from assay.service.group_events import GroupEvents
from assay.service.group_preferences import PreferenceStep
from assay.service.groups import Group, find_group, group_result, group_with, runs_of
from assay.service.history import restored
from assay.service.options import default_targets
from assay.service.project import project
from assay.service.report import writing_groups
from assay.service.result import Run
from assay.service.run_group import RunGroup
from assay.service.runs import (
    AnyTarget,
    Baseline,
    Cases,
    RunHooks,
    RunRequest,
    as_target,
    separate,
    shown,
    with_baseline,
)
from assay.service.store import open_store
from assay.service.work import with_work
from assay.settings import Settings
from assay.targets.pool.target_pool import TargetPool

#: A list of targets. A list of names or functions is none of `list[AnyTarget]` for type checkers.
TargetList = list[Any] | tuple[AnyTarget, ...]
Targets = AnyTarget | TargetList


@overload
def run(
    cases: Cases,
    *,
    target: AnyTarget | None = None,
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | GroupResult | None = None,
    **options: Unpack[OptionKeys],
) -> Run: ...


@overload
def run(
    cases: Cases,
    *,
    target: TargetList,
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | GroupResult | None = None,
    **options: Unpack[OptionKeys],
) -> RunGroup: ...


@shows_keys
def run(
    cases: Cases,
    *,
    target: Targets | None = None,
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | GroupResult | None = None,
    **options: Unpack[OptionKeys],
) -> Run | RunGroup:
    """Ask a target every case, grade what it did, and record it.

    `cases` are suites or cases, or paths to load them from. `target` is the name of a target, one
    written inline, a function or a Target, and so is `judge`. A list of targets makes a run for
    each, and returns a RunGroup. `store` is the URL of a store, `baseline` a Run or what the
    command accepts. All other `options` are those of RunOptions.
    """
    request, given = _python_request(cases, target, judge, store, baseline, options)
    return wait_for(lambda: _run(request, given))


@overload
async def arun(
    cases: Cases,
    *,
    target: AnyTarget | None = None,
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | GroupResult | None = None,
    **options: Unpack[OptionKeys],
) -> Run: ...


@overload
async def arun(
    cases: Cases,
    *,
    target: TargetList,
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | GroupResult | None = None,
    **options: Unpack[OptionKeys],
) -> RunGroup: ...


@shows_keys
async def arun(
    cases: Cases,
    *,
    target: Targets | None = None,
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | GroupResult | None = None,
    **options: Unpack[OptionKeys],
) -> Run | RunGroup:
    """`run` in a running event loop."""
    request, given = _python_request(cases, target, judge, store, baseline, options)
    return await shown(request, lambda watched: execute(watched, given))


def _python_request(
    cases: Cases,
    target: Targets | None,
    judge: AnyTarget | None,
    store: str | None,
    baseline: Baseline | GroupResult | None,
    options: Mapping[str, Any],
) -> tuple[RunRequest, Mapping[str, Any]]:
    """The request of a Python caller, whose types say whether it is about one target."""
    request = RunRequest(cases, judge=judge, store=store, expands=False)
    if isinstance(target, (list, tuple)):
        request = replace(request, several=tuple(target))
    else:
        request = replace(request, target=target)
    return with_baseline(baseline, request, options)


async def _run(request: RunRequest, given: Mapping[str, Any]) -> Run | RunGroup:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        if request.several is not None:
            several = [await enter(separate(target)) for target in request.several]
            request = replace(request, several=cast("tuple[AnyTarget, ...]", tuple(several)))
        asked, judging = await enter(separate(request.target)), await enter(separate(request.judge))
        request = replace(request, target=asked, judge=judging)
        return await shown(request, lambda watched: execute(watched, given))


async def execute(request: RunRequest, given: Mapping[str, Any]) -> Run | RunGroup:
    """Execute what a caller requested: a run, or a group of runs."""
    settings = project()
    settings.prepend_to_sys_path()
    store = open_store(settings, request.store)
    try:
        step = PreferenceStep.of(settings, request, given)
        result = await execute_in(settings, store, request, given, step)
        if isinstance(result, GroupResult):
            if step is not None:
                result = replace(result, preference=await step.preference(result, store))
            return RunGroup.of(result, store)
        return Run.of(result, store)
    except BaseException:
        store.close()
        raise


async def execute_in(
    settings: Settings,
    store: Store,
    request: RunRequest,
    given: Mapping[str, Any],
    step: PreferenceStep | None = None,
) -> RunResult | GroupResult:
    """Execute the run, or the runs, with a store that stays open.

    A `step` that follows several runs is announced before them.
    """
    given = dict(given)
    named = given.pop("target", None)
    _check_earlier(request, store)
    targets = _targets(request, named, settings)
    if request.resume and (group := find_group(request.resume, store)) is not None:
        return await _resume(group, targets, _Matrix(settings, store, request, given, step))
    if len(targets) > 1 or request.several is not None:
        return await _start(targets, _Matrix(settings, store, request, given, step))
    one = _Matrix(settings, store, replace(request, target=targets[0]), given) if targets else None
    if one is not None:
        request, given = _with_own_baseline(one)
    return await runs.execute_in(settings, store, request, given)


def _with_own_baseline(matrix: _Matrix) -> tuple[RunRequest, dict[str, Any]]:
    """The request for one target, whose baseline is its own run if a group is given as one."""
    request, given, store = matrix.request, dict(matrix.given), matrix.store
    reference, base = given.get("baseline"), request.baseline
    if reference is None or request.target is None or request.earlier or names_file(reference):
        return request, given
    if isinstance(base, GroupResult) or (base is None and _names_group(reference, store)):
        label = matrix.label(request.target)
        (own,) = group_baselines(base, reference, [label], store)
        own_run = base[label] if isinstance(base, RunGroup) else None
        return replace(request, baseline=own_run), given | {"baseline": own.reference}
    return request, given


def _names_group(reference: str, store: Store) -> bool:
    """Is it a group, or the name of a baseline that points to a run of one?"""
    if find_group(reference, store) is not None:
        return True
    run_id = store.baselines().get(baseline_name(reference, store))
    return run_id is not None and store.run(run_id).group is not None


class _Matrix(NamedTuple):
    """A request for several targets."""

    settings: Settings
    store: Store
    request: RunRequest
    given: Mapping[str, Any]
    step: PreferenceStep | None = None

    def options(self, target: AnyTarget | None, earlier: RunRecord | None) -> RunOptions:
        """The options of one of the runs."""
        request = replace(self.request, target=target)
        return runs.run_options(request, self.given, self.settings, self.store, earlier)

    def label(self, target: AnyTarget) -> str:
        """The name of a target in results."""
        return _label(target, self.request, self.settings)


def _label(target: AnyTarget, request: RunRequest, settings: Settings) -> str:
    if isinstance(target, str):
        return TargetPool(settings, allowed=request.targets).spec(target).label
    made = as_target(target)
    if made is None:
        raise UsageError("None is not a target: give a name, a function or an object with 'ask'")
    return made.name


def _check_earlier(request: RunRequest, store: Store) -> None:
    """A rerun and a regrade take one run, not a group."""
    for flag, reference in (("--rerun-failed", request.rerun_failed), ("regrade", request.regrade)):
        if reference and (group := find_group(reference, store)) is not None:
            raise UsageError(f"{flag} takes one run, and {reference} is a group: {runs_of(group)}")


def _check_formats(request: RunRequest) -> None:
    """Raise UsageError for a report that cannot show several targets, before they are asked."""
    for name in request.hooks.formats:
        writing_groups(name)


def _targets(request: RunRequest, named: Any, settings: Settings) -> list[AnyTarget]:
    """The targets to ask; none if cases name theirs, or the run is based on an earlier one."""
    if request.several is not None:
        asked: Sequence[AnyTarget] = request.several
        if not asked:
            raise UsageError("the list of targets is empty: name one, or several")
    elif named:
        asked = (named,) if isinstance(named, str) else named
    elif request.target is not None:
        asked = (request.target,)
    else:
        asked = () if request.earlier else default_targets(settings) or _only_entry(settings)
    found = [each for target in asked for each in _expanded(target, settings)]
    if len(found) > 1 and not request.expands and request.several is None:
        names = ", ".join(repr(name) for name in found)
        raise UsageError(f"one target is asked here, and {names} are configured: name one of them")
    return found


def labels_of(request: RunRequest, given: Mapping[str, Any], settings: Settings) -> list[str]:
    """The names of the targets that a request is about; raises UsageError if one is wrong."""
    targets = _targets(request, given.get("target"), settings)
    return [_label(target, request, settings) for target in targets]


def _only_entry(settings: Settings) -> tuple[str, ...]:
    """The name of the only configured target, if that has several models."""
    entries = settings.config.targets
    return (entries[0].name,) if len(entries) == 1 and entries[0].models else ()


def _expanded(target: AnyTarget, settings: Settings) -> Sequence[AnyTarget]:
    """A target for each model, if it is the name of one with several models."""
    if isinstance(target, str):
        for entry in settings.config.targets:
            if entry.models and same_name(entry.name, target):
                return entry.names
    return (target,)


def _labels(targets: Sequence[AnyTarget], matrix: _Matrix) -> list[str]:
    """The names of the targets, which must differ."""
    labels = [matrix.label(target) for target in targets]
    for label in labels:
        if labels.count(label) > 1:
            fix = "name each once; in Python, give functions and objects names that differ"
            raise UsageError(f"two targets are called {label!r}: {fix}")
    return labels


async def _start(targets: Sequence[AnyTarget], matrix: _Matrix) -> GroupResult:
    """Run a new group, or continue the newest unfinished one with these targets."""
    request, store = matrix.request, matrix.store
    runs.check_request(request)
    _check_formats(request)
    labels = _labels(targets, matrix)
    earlier = find_run(request.earlier, store) if request.earlier else None
    options = [matrix.options(target, earlier) for target in targets]
    baselines = group_baselines(request.baseline, options[0].baseline, labels, store)
    _check_early_stop(options[0], labels, baselines)
    specs = _specs(matrix, targets, options, baselines, earlier)
    if request.resume == "":
        return await _continue(_newest_unfinished(specs, store), specs, matrix)
    group_id = new_run_id(int(datetime.now(UTC).timestamp() * 1000), randbits)
    specs = [replace(spec, group=group_id) for spec in specs]
    return group_result(group_id, await _run_together(group_id, specs, (), matrix), store)


async def _resume(group: Group, targets: Sequence[AnyTarget], matrix: _Matrix) -> GroupResult:
    """Continue the unfinished runs of a group. Targets that hold a secret are given again."""
    _check_formats(matrix.request)
    given = dict(zip(_labels(targets, matrix), targets, strict=True))
    if given and given.keys() != {record.target for record in group.runs}:
        message = f"--resume {group.id} asks all targets of the group: leave out --target"
        raise UsageError(f"{message}, name all of them, or resume a run; {runs_of(group)}")
    unfinished = [record for record in group.runs if record.status != "finished"]
    specs: list[RunSpec] = []
    if unfinished:
        matrices = [_for_record(record, matrix) for record in unfinished]
        options = [
            each.options(given.get(record.target), record)
            for each, record in zip(matrices, unfinished, strict=True)
        ]
        asked = [
            _recorded_target(each, record) for each, record in zip(options, unfinished, strict=True)
        ]
        baselines = [
            GroupBaseline(runs.find_base(None, each, matrix.store), each.baseline)
            for each in options
        ]
        specs = _specs(matrices[0], asked, options, baselines, unfinished[0])
    return await _continue(group, specs, matrix)


def _recorded_target(options: RunOptions, record: RunRecord) -> str:
    if options.target is None:
        made = f"the target {record.target!r} of the run {record.id} was given as a Python object"
        raise UsageError(f"{made}, which is not recorded: start a new run")
    return options.target


def _for_record(record: RunRecord, matrix: _Matrix) -> _Matrix:
    return matrix._replace(request=replace(matrix.request, resume=record.id))


async def _continue(group: Group, specs: Sequence[RunSpec], matrix: _Matrix) -> GroupResult:
    """Continue the runs that are not finished; the results of all."""
    settings, store, request = matrix[:3]
    finished = [record for record in group.runs if record.status == "finished"]
    if len(finished) == len(group.runs):
        if not any(record.verdict.unreported for record in finished):
            raise UsageError(f"the group {group.id} is finished: there is nothing to resume")
        request.hooks.listen(
            Notice(f"the group {group.id} is finished: only its reports were missing")
        )
    left = [record for record in group.runs if record.status != "finished"]
    resumed = []
    for record in left:
        spec = next((spec for spec in specs if plan_of(spec) == record.plan), None)
        if spec is None:
            message = f"the run {record.id} was started with different paths or options"
            raise UsageError(f"{message}: use the same ones")
        resumed.append(replace(spec, resumed=resumable(spec, record, ())))
    results = {record.id: restored(record, store, settings) for record in finished}
    if resumed:
        ended = await _run_together(group.id, resumed, finished, matrix)
        results |= {result.id: result for result in ended}
    return group_result(group.id, [results[record.id] for record in group.runs], store)


def _newest_unfinished(specs: Sequence[RunSpec], store: Store) -> Group:
    """The newest unfinished group whose runs have the plans of these specs."""
    plans = [plan_of(spec) for spec in specs]
    seen: set[str] = set()
    for record in newest_first(store):
        if record.group is None or record.group in seen or record.plan not in plans:
            continue
        seen.add(record.group)
        group = group_with(record.group, store)
        if [run.plan for run in group.runs] != plans or any(store.held(r.id) for r in group.runs):
            continue
        # Reports of an older group are outdated by those of a newer one.
        unreported = len(seen) == 1 and any(run.verdict.unreported for run in group.runs)
        if unreported or not group.finished:
            return group
    raise UsageError("there is no unfinished group with these paths, targets and options to resume")


def _check_early_stop(
    options: RunOptions, labels: Sequence[str], baselines: Sequence[GroupBaseline]
) -> None:
    """A run that stops when it is decided needs a baseline."""
    missing = [n for n, base in zip(labels, baselines, strict=True) if base.outcomes is None]
    if options.stop_when is not None and missing:
        message = f"runs can only stop when they are decided against a baseline: {missing[0]!r}"
        raise UsageError(f"{message} has none in {options.baseline!r}")


def _specs(
    matrix: _Matrix,
    targets: Sequence[AnyTarget],
    options: Sequence[RunOptions],
    baselines: Sequence[GroupBaseline],
    earlier: RunRecord | None,
) -> list[RunSpec]:
    """The specs of the runs, which share their suites: these are loaded once."""
    settings, store, request = matrix[:3]
    requests = [replace(request, target=target, several=None) for target in targets]
    streams = all(
        runs.may_stream(each, own, settings) for each, own in zip(requests, options, strict=True)
    )
    first = replace(requests[0], stream=streams)
    shared = runs.with_suites(first, options[0], settings, store, earlier)
    specs = []
    for target, own, base in zip(targets, options, baselines, strict=True):
        spec = replace(
            shared,
            options=own.model_copy(update={"baseline": base.reference}),
            target=as_target(target),
            notes=(base.note,) if base.note else (),
        )
        spec = runs.with_base(spec, base.outcomes)
        specs.append(with_work(spec, request.store or settings.config.store))
    return specs


async def _run_together(
    group_id: str, specs: Sequence[RunSpec], finished: Sequence[RunRecord], matrix: _Matrix
) -> list[RunResult]:
    """Run the specs; the `finished` runs of their group have spent part of the budget."""
    hooks, cancellation = matrix.request.hooks, matrix.request.hooks.cancellation or Cancellation()
    labels = [matrix.label(spec.target or str(spec.options.target)) for spec in specs]
    events = GroupEvents(hooks.listen, group_id, labels)
    given = []
    for spec, label in zip(specs, labels, strict=True):
        own = RunHooks(partial(events.add, label), cancellation.child())
        if hooks.of_target is not None:
            own = hooks.of_target(label)
        stop = own.cancellation or cancellation.child()
        given.append(replace(spec, listen=own.listen, cancellation=stop))

    judge = "" if matrix.step is None else await matrix.step.judge_name()

    def announce(plans: Sequence[Plan]) -> None:
        if text := announcement(specs, plans):
            hooks.listen(Notice(text))
        if matrix.step is not None:
            hooks.listen(Notice(matrix.step.announcement(judge, plans)))

    return await session.run_together(given, announce, runs.spent_by(finished, specs[0]))
