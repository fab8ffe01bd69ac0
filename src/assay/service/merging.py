"""Merging: joins the shards of one plan into one complete run."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from msgspec.structs import replace

from assay.errors import AssayError, UsageError
from assay.model.calibration import recorded_uses
from assay.model.options import RunOptions
from assay.model.run import (
    CANCELLED,
    MERGED_FROM,
    STARTED_BY,
    STOPPING,
    RunRecord,
    SuiteHeader,
    TrialRecord,
    new_run_id,
)
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.results import calibrations
from assay.results.folder import folder_shown, results_folder, write_files
from assay.results.run import conclude, recorded_summary, result_of
from assay.service.options import inherited
from assay.service.project import project
from assay.service.result import Run
from assay.service.shards import AnyRun, Shard, find_shards, without
from assay.service.store import open_store, store_to_read
from assay.settings import Settings

#: How many trials are copied at a time.
_BATCH = 500


def merge_runs(runs: Iterable[AnyRun], *, store: str | None = None) -> Run:
    """Join the shards of one plan into a new run; it is like the same run made without shards.

    Each is a run of the store (an id or the start of one, a baseline, `latest`) or a file that
    `assay run --shard i/n -o FILE.json` wrote. Raises UsageError with everything that is wrong.
    """
    settings = project()
    with closing(store_to_read(settings, store)) as opened:
        shards = find_shards(runs, opened)
    opened = open_store(settings, store)
    try:
        return Run.of(_write(shards, _merged(shards), opened, settings), opened)
    except BaseException:
        opened.close()
        raise


def _merged(shards: Sequence[Shard]) -> RunRecord:
    """The record of the merged run, before its trials are copied."""
    records = [shard.record for shard in shards]
    first, now = records[0], datetime.now(UTC)
    environment = without(first.environment, STARTED_BY, CANCELLED, STOPPING)
    if uses := recorded_uses(use for record in records for use in record.judges):
        environment["judges"] = uses
    targets = {record.target for record in records if record.target}
    if len(targets) > 1:  # cases that name their own
        targets = {name for several in targets for name in several.split(", ")}
    return replace(
        first,
        id=new_run_id(int(now.timestamp() * 1000), secrets.randbits),
        started_at=min(record.started_at for record in records),
        status="running",
        finished_at=None,
        summary=None,
        target=", ".join(sorted(targets)),
        plan=_unsharded(first.plan, len(records)),
        # It is not compared with what its shards were compared with.
        options=inherited(_unsharded(first.options, len(records)), "rerun"),
        environment=environment | {MERGED_FROM: [record.id for record in records]},
        suites=[_header(same) for same in zip(*(r.suites for r in records), strict=True)],
        group=None,  # that of the first shard has a run of the same target already
    )


def _unsharded(options: dict[str, Any], shards: int) -> dict[str, Any]:
    """The options of all shards together. Each has the first cases of its own part."""
    whole, limit = without(options, "shard"), options.get("limit")
    return whole | {"limit": limit * shards} if isinstance(limit, int) else whole


def _header(suites: Sequence[SuiteHeader]) -> SuiteHeader:
    """The header of a suite from those of its shards; one that asked no case has no warnings."""
    asked = [suite for suite in suites if suite.selected] or suites[:1]
    warnings = dict.fromkeys(w for suite in asked for w in suite.staleness_warnings)
    return replace(
        suites[0],
        selected=sum(suite.selected or 0 for suite in suites),
        staleness_warnings=list(warnings),
        notes=[n for n in asked[0].notes if all(n in suite.notes for suite in asked)],
    )


def _write(
    shards: Sequence[Shard], record: RunRecord, store: Store, settings: Settings
) -> RunResult:
    """Record the merged run. It is finished last: until then it does not look complete."""
    known = calibrations.read(settings.root)
    with store.lease(record.id):
        store.begin(record)
        try:
            for shard in shards:
                _copy(shard.trials(store, record.id), store)
            ended = max(shard.record.finished_at or "" for shard in shards)
            record = replace(record, status="finished", finished_at=ended)
            notes = tuple(_notes(shards))
            result = result_of(store, record, notes=notes, calibrations=known)
            _check_complete(result)
            result = conclude(result, RunOptions.model_validate(record.options))
            summary = recorded_summary(result)
            result = replace(result, record=replace(record, summary=summary))
            folder = folder_shown(write_files(result, results_folder(settings)))
            store.finish(record.id, "finished", ended, summary)
        except BaseException:
            with suppress(AssayError):
                store.delete(record.id)
            shutil.rmtree(results_folder(settings) / record.id, ignore_errors=True)
            raise
    return replace(result, folder=folder)


def _copy(trials: Iterator[TrialRecord], store: Store) -> None:
    while batch := list(islice(trials, _BATCH)):
        store.save(*batch).result()


def _notes(shards: Sequence[Shard]) -> Iterator[str]:
    git = (shard.record.environment.get("git") for shard in shards)
    revisions = {str(known.get("revision")) for known in git if isinstance(known, dict)}
    if len(revisions) > 1:
        listed = ", ".join(sorted(revisions))
        yield f"its shards were run at different git revisions: {listed}"


def _check_complete(result: RunResult) -> None:
    """Every case that a shard selected must be there, and in one shard only."""
    for suite, header in zip(result.suites, result.record.suites, strict=True):
        if suite.summary.total_cases != header.selected:
            found = f"{suite.summary.total_cases:,} of {header.selected:,} cases"
            raise UsageError(f"the shards have {found} of {header.file}; nothing was merged")
