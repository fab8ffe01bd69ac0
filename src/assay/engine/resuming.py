"""Which run is gone on with, and whether it may be."""

from __future__ import annotations

from msgspec.structs import replace

from assay.engine.job import Job, headers_of, plan_of
from assay.errors import UsageError
from assay.model.run import CANCELLED, RunRecord, SuiteHeader
from assay.outcomes import newest_first
from assay.ports import Store


def resumable(job: Job, named: RunRecord | None) -> RunRecord:
    """The run to go on with: the one that is named, else the newest unfinished one that fits."""
    record = named or _newest(job)
    check_unfinished(record)
    if record.plan != plan_of(job):
        raise UsageError(f"the run {record.id} has other paths or options: give them as they were")
    now = {header.file: header for header in headers_of(job, job.plan())}
    for header in record.suites:
        if header.file not in now or not _same(now[header.file], header):
            changed = f"{header.file} changed since the run {record.id} began"
            raise UsageError(f"{changed}: start a new run")
    return record


def reopened(store: Store, run_id: str) -> RunRecord:
    """The run, called running again, by whoever has its lease; others may have finished it."""
    record = store.run(run_id)
    check_unfinished(record)
    if record.cancelled:  # not any more
        kept = {name: value for name, value in record.environment.items() if name != CANCELLED}
        record = replace(record, environment=kept)
        store.describe(run_id, record.suites, kept)
    store.reopen(run_id)
    return replace(record, status="running", finished_at=None, summary=None)


def check_unfinished(record: RunRecord) -> None:
    if record.status == "finished":
        raise UsageError(f"the run {record.id} is finished: there is nothing to resume")


def _newest(job: Job) -> RunRecord:
    plan = plan_of(job)
    for record in newest_first(job.store):
        fits = record.status != "finished" and record.plan == plan
        if fits and not job.store.held(record.id):
            return record
    raise UsageError("there is no unfinished run with these paths, target and options to resume")


def _same(one: SuiteHeader, other: SuiteHeader) -> bool:
    """Are they of the same cases? How many a stream has is known only when it has been read."""
    hashes = {header.metadata.get("evalFileHash") for header in (one, other)}
    counts = {one.selected, other.selected} - {None}
    return len(hashes) == 1 and len(counts) < 2
