"""The verbs of recorded runs: list, show, compare, name and remove."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import date, datetime
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from assay.comparison.gate import GateRules
from assay.comparison.outcomes import (
    Outcomes,
    baseline_name,
    find_run,
    in_file,
    names_file,
    newest_first,
    outcomes_of,
    stored,
)
from assay.comparison.tally import compare as compared
from assay.errors import AssayError, NotInStore, RunHeld, StoreError, UsageError
from assay.model.accepted import AcceptedLoss
from assay.model.comparison import Comparison, GateVerdict
from assay.model.options import Gate, RunOptions
from assay.model.result import Count
from assay.model.run import RunRecord, RunStatus, timestamp
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.results import calibrations
from assay.results.folder import files_of, folder_shown, results_folder
from assay.results.run import conclude, recorded_summary, result_of
from assay.service.project import project, working_directory
from assay.service.result import Run
from assay.service.store import project_store, store_to_read
from assay.settings import Settings, shown_path
from assay.stats.sequential import Sequential

AnyRun = str | os.PathLike[str] | RunResult
#: How many runs are listed by default.
LISTED = 20


class ListedRun(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A run in a list; unknown counts are null. `baselines` are its names.

    `group` is the id that it shares with the runs of other targets; null for a run of one target.
    """

    run_id: str
    started_at: str
    finished_at: str | None
    status: RunStatus
    target: str
    suites: list[str]
    total_cases: Count | None
    passed: Count | None
    failed: Count | None
    errored: Count | None
    skipped: Count | None
    verdict: GateVerdict | None
    exit_code: int | None
    baselines: list[str]
    group: str | None

    @classmethod
    def of(cls, record: RunRecord, baselines: Iterable[str] = ()) -> ListedRun:
        counts = (record.summary or {}).get
        return cls(
            run_id=record.id,
            started_at=record.started_at,
            finished_at=record.finished_at,
            status=record.status,
            target=record.target,
            suites=[suite.file or suite.name for suite in record.suites],
            total_cases=counts("totalCases"),
            passed=counts("passed"),
            failed=counts("failed"),
            errored=counts("errored"),
            skipped=counts("skipped"),
            verdict=record.verdict.verdict,
            exit_code=record.verdict.exit_code,
            baselines=list(baselines),
            group=record.group,
        )


def list_runs(limit: int = LISTED, *, store: str | None = None) -> list[ListedRun]:
    """The latest runs, the newest first."""
    with project_store(store) as opened:
        newest = islice(newest_first(opened), max(limit, 0))
        return with_baselines(newest, opened.baselines())


def with_baselines(records: Iterable[RunRecord], baselines: Mapping[str, str]) -> list[ListedRun]:
    """The runs, each with its names among the baselines of the store."""
    names: dict[str, list[str]] = {}
    for name, run_id in baselines.items():
        names.setdefault(run_id, []).append(name)
    return [ListedRun.of(record, names.get(record.id, ())) for record in records]


def show(run: str = "latest", *, store: str | None = None) -> Run:
    """A recorded run, with the verdict that it ended with.

    `run` is an id or the start of one, the name of a baseline, or `latest`.
    """
    settings = project()
    opened = store_to_read(settings, store)
    try:
        record = find_run(run, opened)
        return Run.of(restored(record, opened, settings), opened)
    except BaseException:
        opened.close()
        raise


def restored(record: RunRecord, store: Store, settings: Settings) -> RunResult:
    """The result of a recorded run, with the verdict that it ended with."""
    verdict, options = record.verdict, options_of_run(record)
    comparison, notes = _compare_again(record, options, store)
    known = calibrations.read(settings.root)
    result = result_of(store, record, comparison=comparison, notes=tuple(notes), calibrations=known)
    if verdict.exit_code is None:
        result = conclude(result, options)
    else:
        result = replace(result, exit_code=verdict.exit_code, reasons=verdict.reasons)
    files = [file for file in files_of(result, results_folder(settings)) if file.is_file()]
    return replace(result, folder=folder_shown(files))


def options_of_run(record: RunRecord) -> RunOptions:
    """The options of the run; defaults if an older version recorded unknown ones."""
    try:
        return RunOptions.model_validate(record.options)
    except ValidationError:
        return RunOptions()


def _compare_again(
    record: RunRecord, options: RunOptions, store: Store
) -> tuple[Comparison | None, list[str]]:
    """The comparison that the run ended with, if its baseline still exists, and notes."""
    verdict = record.verdict
    notes = list(verdict.notes)
    base = verdict.baseline
    if base is None:
        return None, notes
    try:
        before = _find_base(base, options, store)
        rules = rules_of(options, _accepted_then(record), _day_of(record), verdict.sequential)
        found = compare_with_base(before, record, store, rules)
    except AssayError as error:
        return None, [*notes, f"it was compared with {base}, which cannot be read now: {error}"]
    if verdict.removed is not None:
        found = replace(found, removed=verdict.removed)
    return found, notes


def _find_base(base: str, options: RunOptions, store: Store) -> Outcomes:
    """The baseline of a run. If it is not in the store, the options may name a file with it."""
    asked = options.baseline
    try:
        found = outcomes_of(base, store, working_directory())
    except NotInStore:
        if asked is not None and names_file(asked):
            found = in_file(working_directory() / asked)
            if found.name == base:
                return found
        raise
    name = baseline_name(asked, store) if asked is not None else ""
    if name in store.baselines() and base in store.baseline_history(name):
        return replace(found, baseline=name)  # it may have moved since
    return found


def _accepted_then(record: RunRecord) -> tuple[AcceptedLoss, ...]:
    """The accepted losses when the run was made."""
    settings = record.environment.get("settings") or {}
    try:
        return tuple(AcceptedLoss.model_validate(entry) for entry in settings.get("accepted", ()))
    except ValidationError:
        return ()


def _day_of(record: RunRecord) -> date:
    return datetime.fromisoformat(record.started_at).date()


def rules_of(
    options: RunOptions,
    accepted: Iterable[AcceptedLoss],
    today: date,
    sequential: Sequential | None = None,
) -> GateRules:
    """The rules of the gate for a run with these options."""
    return GateRules(
        options.gate,
        options.margin,
        options.strict,
        options.min_pass_rate,
        sequential,
        tuple(accepted),
        today,
    )


def compare_with_base(base: Outcomes, run: RunRecord, store: Store, rules: GateRules) -> Comparison:
    """Compare a run with its baseline."""
    # Notes about the run itself are in its own report.
    found = compared(
        base,
        stored(run, store),
        rules,
        names=(base.name, run.id),
        notes=base.notes,
        complete=not run.narrowed,
    )
    return _with_decline(found, base, stored(run, store), store, rules)


def compare_stored(
    base: Outcomes, candidate: Outcomes, store: Store, rules: GateRules
) -> Comparison:
    """Compare two runs of a store."""
    return _compare_outcomes(base.not_empty(), candidate.not_empty(), rules.checked(), store)


def _with_decline(
    found: Comparison, base: Outcomes, candidate: Outcomes, store: Store, rules: GateRules
) -> Comparison:
    """The comparison with a warning if the candidate is worse than the baseline once was.

    A baseline that moves with the agent hides a decline in small steps; its first run does not.
    """
    history = store.baseline_history(base.baseline) if base.baseline else []
    if not history or history[0] == base.run_id:
        return found
    first = stored(store.run(history[0]), store)
    since = compared(first, candidate, replace(rules, gate="regression", sequential=None))
    if not since.is_worse:
        return found
    moved = f"{len(since.losses):,} stopped passing and {len(since.new_passes):,} started to"
    warning = (
        f"slow decline: of {since.pairs:,} cases, {moved} since {first.run_id}, the first run of"
        f" the baseline {base.baseline!r}"
    )
    return replace(found, warnings=(*found.warnings, warning))


def interrupt(record: RunRecord, store: Store, now: datetime, reason: str) -> bool:
    """Mark a run as interrupted that no process works on; it keeps its trials and can be resumed.

    False, and nothing changes, if it is finished, held, or was changed since `record` was read.
    """
    ended = timestamp(now)
    with suppress(RunHeld), store.lease(record.id):
        if record.status == "finished" or store.run(record.id) != record:
            return False
        record = replace(record, status="interrupted", finished_at=ended)
        result = conclude(result_of(store, record, notes=(reason,)), options_of_run(record))
        store.finish(record.id, "interrupted", ended, recorded_summary(result))
        return True
    return False


def remove_runs(names: Iterable[str], *, store: str | None = None) -> list[str]:
    """Remove runs with their result files, all or none; returns their ids.

    The whole id of a group stands for all of its runs.
    """
    settings = project()
    with closing(store_to_read(settings, store)) as opened:
        records = {record.id: record for name in names for record in _runs_of(name, opened)}
        for record in records.values():
            _check_removable(record, opened)
        with _set_aside(results_folder(settings), records):
            for run_id in records:
                with opened.lease(run_id):  # no other process may resume it now
                    opened.delete(run_id)
    return list(records)


def _runs_of(name: str, store: Store) -> list[RunRecord]:
    with suppress(NotInStore):
        return store.group(name.lower())
    return [find_run(name, store)]


def _check_removable(record: RunRecord, store: Store) -> None:
    for name, run_id in store.baselines().items():
        if run_id == record.id:
            fix = f"`assay baseline rm {name}` first"
            raise UsageError(f"the run {record.id} is the baseline {name!r}: {fix}")
    if store.held(record.id):
        raise RunHeld(record.id)


@contextmanager
def _set_aside(folder: Path, runs: Iterable[str]) -> Iterator[None]:
    """Moves the result files of runs away; removes them at the end, or restores them on error."""
    moved: dict[Path, Path] = {}
    try:
        for home in (folder / run_id for run_id in runs):
            # In a plugin's store an id may be any text, even a path.
            if home.parent != folder or not home.is_dir():
                continue
            aside = home.with_name(f".removed-{home.name}")
            try:
                moved[home] = home.rename(aside)
            except OSError as error:
                reason = error.strerror or str(error)
                raise StoreError(f"{shown_path(home)} cannot be removed: {reason}") from None
        yield
    except BaseException:
        for home, aside in moved.items():
            aside.rename(home)
        raise
    for aside in moved.values():
        shutil.rmtree(aside, ignore_errors=True)


def compare(
    base: AnyRun,
    candidate: AnyRun,
    *,
    gate: Gate = "regression",
    margin: float = 0.02,
    strict: bool = False,
    store: str | None = None,
) -> Comparison:
    """Compare two runs: what changed, whether it may be chance, and whether the gate fails.

    A run is a result of `run`, an id or the start of one, the name of a baseline, `latest`, or
    a result file. `store` is the URL of the store, if it is not that of the project.
    docs/compare.md explains the terms.
    """
    accepted, today = tuple(project().config.accepted), date.today()
    rules = GateRules(gate, margin, strict, accepted=accepted, today=today).checked()
    with ExitStack() as stack:
        (one, other), opened = _outcomes((base, candidate), stack, store)
        return _compare_outcomes(one.not_empty(), other.not_empty(), rules, opened)


def _compare_outcomes(
    one: Outcomes, other: Outcomes, rules: GateRules, store: Store | None
) -> Comparison:
    found = compared(
        one,
        other,
        rules,
        names=(one.name, other.name),
        notes=(*one.notes, *other.notes),
        complete=not other.partial,
    )
    return found if store is None else _with_decline(found, one, other, store, rules)


def _outcomes(
    runs: Iterable[AnyRun], stack: ExitStack, url: str | None
) -> tuple[list[Outcomes], Store | None]:
    """The outcomes of the runs; the store is opened once, and only if one of them needs it."""
    store: Store | None = None
    found = []
    for run in runs:
        if isinstance(run, Run):
            found.append(stored(run.record, run.store))
        elif isinstance(run, os.PathLike) or (isinstance(run, str) and names_file(run)):
            found.append(in_file(Path(run)))
        else:
            store = store or stack.enter_context(project_store(url))
            reference = run if isinstance(run, str) else run.id
            found.append(outcomes_of(reference, store, working_directory()))
    return found, store
