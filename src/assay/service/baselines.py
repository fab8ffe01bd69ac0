"""The verbs of baselines: set, update, show and remove. A baseline only moves forward."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date
from functools import partial

import msgspec

from assay.comparison.gate import named
from assay.comparison.outcomes import baseline_name, check_name, find_run, stored
from assay.errors import BaselineRefused
from assay.model.comparison import CaseRef, Comparison
from assay.model.run import PYTHON_SUITE, TEST_CASES, RunRecord
from assay.ports import Store
from assay.service.eval_files import load_all
from assay.service.groups import find_group
from assay.service.history import compare_with_base, options_of_run, rules_of
from assay.service.project import project
from assay.service.store import project_store
from assay.settings import Settings


class Baseline(msgspec.Struct, frozen=True):
    """A name, its run, and the runs that it has pointed to, the oldest first."""

    name: str
    run: RunRecord
    history: tuple[str, ...]


class Update(msgspec.Struct, frozen=True):
    """What `update_baseline` did: the run that the name has now, and why it did not move."""

    run: RunRecord | None
    moved: bool
    reasons: tuple[str, ...] = ()


def set_baseline(
    name: str, run: str = "latest", *, accept: bool = False, store: str | None = None
) -> RunRecord:
    """Point a name to a run, so that others are compared with it.

    Raises BaselineRefused for a run that is partial or has lost cases, unless `accept` is set; then
    the history of the name starts anew.
    """
    with project_store(store) as opened:
        return set_in_store(name, run, opened, project(), accept=accept)


def set_in_store(
    name: str, run: str, store: Store, settings: Settings, *, accept: bool = False
) -> RunRecord:
    """`set_baseline` with a store that stays open."""
    check_name(name)
    name = baseline_name(name, store)
    found, *others = _runs_of(run, store)
    if not accept:
        reasons = _each_of((found, *others), partial(_refusals, name, store, settings))
        if reasons:
            raise BaselineRefused(name, found.id, reasons)
    store.set_baseline(name, found.id, reset_history=accept)
    return found


def update_baseline(name: str, run: str = "latest", *, store: str | None = None) -> Update:
    """Move the name to a run if that is not a step back; the result says why it did not move.

    The run must be complete, newer, have every case of the baseline that still exists, and the
    verdict of its comparison with the baseline must be `passed`.
    """
    check_name(name)
    settings = project()
    with project_store(store) as opened:
        name = baseline_name(name, opened)
        found, *others = _runs_of(run, opened)
        while True:
            before = opened.baselines().get(name)
            if before == found.id:
                return Update(found, False, (f"{found.id} is this baseline already",))
            check = partial(_objections, name, opened, settings)
            if reasons := _each_of((found, *others), check):
                kept = None if before is None else opened.run(before)
                return Update(kept, False, reasons)
            # Another process may have moved it since: then the run is compared with its run.
            if opened.move_baseline(name, found.id, before):
                return Update(found, True)


def baselines(*, store: str | None = None) -> list[Baseline]:
    """The baselines, in the order of their names."""
    with project_store(store) as opened:
        return [_baseline(name, opened) for name in opened.baselines()]


def baseline(name: str, *, store: str | None = None) -> Baseline:
    """The baseline with this name."""
    with project_store(store) as opened:
        return _baseline(baseline_name(name, opened), opened)


def remove_baseline(name: str, *, store: str | None = None) -> None:
    """Remove the name and its history; the runs stay."""
    with project_store(store) as opened:
        opened.remove_baseline(baseline_name(name, opened))


def _baseline(name: str, store: Store) -> Baseline:
    return Baseline(name, store.run(store.baseline(name)), tuple(store.baseline_history(name)))


def _runs_of(reference: str, store: Store) -> tuple[RunRecord, ...]:
    """The run that is meant, or all of a group; a name then points to the first of them."""
    group = find_group(reference, store)
    return (find_run(reference, store),) if group is None else group.runs


def _each_of(
    runs: Sequence[RunRecord], reasons_of: Callable[[RunRecord], Iterator[str]]
) -> tuple[str, ...]:
    """The reasons of all runs; with several, each has the name of its target."""
    if len(runs) == 1:
        return tuple(reasons_of(runs[0]))
    return tuple(f"{run.target}: {reason}" for run in runs for reason in reasons_of(run))


def _refusals(name: str, store: Store, settings: Settings, run: RunRecord) -> Iterator[str]:
    """Why a baseline is not set to a run."""
    compared = _compare(name, run, store, settings)
    yield from _incomplete(run, compared, store, settings)
    yield from _lost(compared)


def _objections(name: str, store: Store, settings: Settings, run: RunRecord) -> Iterator[str]:
    """Why a baseline does not move to a run."""
    compared = _compare(name, run, store, settings)
    yield from _incomplete(run, compared, store, settings)
    if errored := (run.summary or {}).get("errored"):
        yield f"{errored:,} of its cases could not be judged"
    if compared is not None:
        if run.id < compared.base:
            yield f"it is older than {compared.base}, which is the baseline now"
        if compared.verdict != "passed":
            yield f"its verdict against the baseline is {compared.verdict}"
            yield from (*compared.gate_failures, *compared.undecided)
            yield from (f"{loss.ref}: {loss.reason}" for loss in compared.losses)


def _compare(name: str, run: RunRecord, store: Store, settings: Settings) -> Comparison | None:
    """The run against the baseline, by its own options; None if there is no such baseline."""
    before = _before(name, run, store)
    if before is None or before == run.id:
        return None
    test = run.verdict.sequential if run.verdict.baseline == before else None
    rules = rules_of(options_of_run(run), settings.config.accepted, date.today(), test)
    return compare_with_base(stored(store.run(before), store), run, store, rules)


def _before(name: str, run: RunRecord, store: Store) -> str | None:
    """The run that the name points to, or that of the same target in its group."""
    before = store.baselines().get(name)
    group = None if before is None else store.run(before).group
    if group is None:
        return before
    same = (each.id for each in store.group(group) if each.target == run.target)
    return next(same, before)


def _incomplete(
    run: RunRecord, compared: Comparison | None, store: Store, settings: Settings
) -> Iterator[str]:
    if run.partial:
        yield f"it is partial: {run.partial}"
    if compared is None:
        return
    if missing := _still_existing(compared.removed, store, settings):
        yield f"it lacks cases of the baseline: {named(missing)}"
    if compared.unjudged:
        yield f"errored in one of the runs: {named(compared.unjudged)}"


def _lost(compared: Comparison | None) -> Iterator[str]:
    for loss in compared.losses if compared is not None else ():
        if loss.status != "excused":
            yield f"{loss.ref}: {loss.reason}"


def _still_existing(refs: Collection[CaseRef], store: Store, settings: Settings) -> list[CaseRef]:
    """Those of the cases that are still in their eval files, or may be."""
    gone: set[CaseRef] = set()
    for file in {ref.suite for ref in refs}:
        wanted = [ref for ref in refs if ref.suite == file]
        if file == TEST_CASES:
            known = store.test_cases.find([ref.id for ref in wanted])
            gone.update(ref for ref in wanted if known.get(ref.id) is None)
        elif not file.startswith(PYTHON_SUITE):
            ids = _ids_in(file, settings)
            gone.update(ref for ref in wanted if ids is not None and ref.id not in ids)
    return [ref for ref in refs if ref not in gone]


def _ids_in(file: str, settings: Settings) -> set[str] | None:
    """The ids in an eval file; none if it is gone, and None if it cannot be read."""
    path = settings.root / file
    if not file or not path.exists():
        return set()
    loaded = load_all([path], settings=settings)
    if loaded.errors:
        return None
    return {case.id for suite in loaded.suites for case in suite}
