"""Resuming: which run to resume, and whether it still fits its files and options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from assay.engine.comparability import key
from assay.engine.grading import Grader
from assay.engine.plan import Plan
from assay.engine.run_spec import RunSpec, headers_of, plan_of
from assay.errors import UsageError
from assay.model.case import EvalCase
from assay.model.comparison import CaseRef
from assay.model.run import (
    CANCELLED,
    SELECTED,
    STARTED_BY,
    STOPPING,
    RunRecord,
    SuiteHeader,
    place_of,
)
from assay.ports import Store


def resumable(
    spec: RunSpec, named: RunRecord | None, newest_first: Iterable[RunRecord]
) -> RunRecord:
    """The run to resume: the named one, else the first unfinished run of the others that fits.

    It may be finished, if only its reports are missing.
    """
    record = named or _find_newest(spec, newest_first)
    if not record.verdict.unreported:
        check_unfinished(record)
    if SELECTED in record.plan:
        again = "run them again in the same way"
        raise UsageError(f"the run {record.id} is of cases that pytest selected: {again}")
    if record.plan != plan_of(spec):
        raise UsageError(
            f"the run {record.id} was started with different paths or options: use the same ones"
        )
    _check_files(record, headers_of(spec, spec.plan().select()))
    return record


def _check_files(record: RunRecord, headers: Sequence[SuiteHeader]) -> None:
    """Eval files must not have changed: trials are identified by their positions in them."""
    now = {header.file: header for header in headers}
    for header in record.suites:
        if header.file not in now or not _has_same_cases(now[header.file], header):
            raise _outdated(f"{header.file} changed", record)
    known = {header.file for header in record.suites}
    for file in now:
        if file not in known:
            raise _outdated(f"{file} was added", record)


def check_cases(
    record: RunRecord, plan: Plan, grader: Callable[[EvalCase], Grader], store: Store
) -> None:
    """Cases that were asked must be the same; they depend on more than their own eval file.

    Streams are not part of the plan; for those, only the eval file is checked.
    """
    streams = set(plan.streams)
    last = -1
    for trial in store.facts(record.id):
        if trial.position == last or not trial.final or place_of(trial.position)[0] in streams:
            continue
        last = trial.position
        if key(grader(plan.at(last).case)) != trial.comparability:
            ref = CaseRef(trial.suite, trial.case_id)
            raise _outdated(f"{ref}: its question, expectations or evaluators changed", record)


def _outdated(what: str, record: RunRecord) -> UsageError:
    return UsageError(f"{what} since the run {record.id} began: start a new run")


def reopen(store: Store, run_id: str, started_by: str) -> RunRecord:
    """Mark a run as running again, by the holder of its lease; raises if it is finished."""
    record = store.run(run_id)
    check_unfinished(record)
    # The command line revokes a cancellation. A server only resumes runs that were not cancelled:
    # if this one is now, that has just happened, and it must stop.
    forgotten = {STARTED_BY, STOPPING} | (set() if started_by else {CANCELLED})
    kept = {name: value for name, value in record.environment.items() if name not in forgotten}
    environment = kept | ({STARTED_BY: started_by} if started_by else {})
    if environment != record.environment:
        record = replace(record, environment=environment)
        store.describe(run_id, record.suites, environment)
    store.reopen(run_id)
    return replace(record, status="running", finished_at=None, summary=None)


def check_unfinished(record: RunRecord) -> None:
    if record.status == "finished":
        raise UsageError(f"the run {record.id} is finished: there is nothing to resume")


def _find_newest(spec: RunSpec, newest_first: Iterable[RunRecord]) -> RunRecord:
    plan = plan_of(spec)
    fitting = (record for record in newest_first if record.plan == plan)
    for number, record in enumerate(fitting):
        # Reports of an older run are outdated by those of a newer one.
        unreported = record.verdict.unreported and number == 0
        if (unreported or record.status != "finished") and not spec.store.held(record.id):
            return record
    raise UsageError("there is no unfinished run with these paths, target and options to resume")


def _has_same_cases(one: SuiteHeader, other: SuiteHeader) -> bool:
    """Compares hashes and counts; the count of a stream is unknown until it has been read."""
    hashes = {header.metadata.eval_file_hash for header in (one, other)}
    counts = {one.selected, other.selected} - {None}
    return len(hashes) == 1 and len(counts) < 2
