"""Merging: joins the shards of one plan into one complete run."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from assay.comparison.outcomes import find_run, names_file
from assay.errors import AssayError, NotInStore, ResultFileError, UsageError
from assay.judges import calibrations
from assay.judges.judgements import recorded_uses, uses_of
from assay.model.options import RunOptions, parse_shard
from assay.model.run import (
    CANCELLED,
    DOOR,
    MERGED_FROM,
    RunRecord,
    SuiteHeader,
    TrialRecord,
    new_run_id,
)
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.results.folder import folder_shown, results_folder, write_files
from assay.results.run import conclude, recorded_summary, result_of
from assay.results.shards import ShardFile, read_shard
from assay.service.options import ANEW
from assay.service.project import project, working_directory
from assay.service.result import Run
from assay.service.store import open_store, store_to_read
from assay.settings import Settings, shown_path

#: How many trials are copied at a time.
_BATCH = 500
#: How many missing shards are named.
_MAX_NAMED = 20


class Shard(msgspec.Struct, frozen=True):
    """A part of a plan; `label` is its name in messages.

    `trials` reads its trials from the store, or from its file, as those of another run.
    """

    label: str
    record: RunRecord
    trials: Callable[[Store, str], Iterator[TrialRecord]]
    number: int = 0
    count: int = 0

    def __str__(self) -> str:
        return f"shard {self.number}/{self.count} ({self.label})"


def merge_runs(runs: Iterable[str | os.PathLike[str]], *, store: str | None = None) -> Run:
    """Join the shards of one plan into a new run; it is like the same run made without shards.

    Each is a run of the store (an id or the start of one, a baseline, `latest`) or a file that
    `assay run --shard i/n -o FILE.json` wrote. Raises UsageError with everything that is wrong.
    """
    settings = project()
    with closing(store_to_read(settings, store)) as opened:
        shards = _checked([_found(run, opened) for run in runs])
    opened = open_store(settings, store)
    try:
        return Run.of(_write(shards, _merged(shards), opened, settings), opened)
    except BaseException:
        opened.close()
        raise


def _found(run: str | os.PathLike[str], store: Store) -> Shard | str:
    """The shard, or what is wrong with it."""
    try:
        file = working_directory() / run
        if not isinstance(run, str) or names_file(run):
            return _of_file(file)
        try:
            record = find_run(run, store)
        except NotInStore:
            if file.is_file():
                return _of_file(file)
            raise
        return Shard(f"the run {record.id}", record, partial(_stored_trials, record.id))
    except (NotInStore, UsageError, ResultFileError) as error:
        return str(error)


def _of_file(file: Path) -> Shard:
    found = read_shard(file)
    return Shard(shown_path(file), found.record, partial(_trials_of_file, found))


def _stored_trials(source: str, store: Store, run_id: str) -> Iterator[TrialRecord]:
    return (replace(trial, run_id=run_id) for trial in store.trials(source))


def _trials_of_file(source: ShardFile, store: Store, run_id: str) -> Iterator[TrialRecord]:
    return (trial.record(run_id) for trial in source.trials())


def _checked(found: Sequence[Shard | str]) -> list[Shard]:
    """The shards in order; raises UsageError with all reasons why they are not one whole plan."""
    problems = [problem for problem in found if isinstance(problem, str)]
    shards: list[Shard] = []
    for shard in found:
        if isinstance(shard, Shard):
            parts = parse_shard(str(shard.record.shard or ""))
            if parts is None:
                problems.append(f"{shard.label}: it was not run with --shard")
                continue
            shard = replace(shard, number=parts[0], count=parts[1])
            shards.append(shard)
            problems += _own_problems(shard)
    shards.sort(key=lambda shard: shard.number)
    if shards:
        problems += _gaps(shards, all_known=len(shards) == len(found))
        for other in shards[1:]:
            problems += _differences(shards[0], other)
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UsageError(f"these are not the shards of one plan; nothing was merged:\n{lines}")
    return shards


def _own_problems(shard: Shard) -> Iterator[str]:
    record = shard.record
    if record.status != "finished":
        fix = f"`assay run --resume {record.id}` finishes it"
        yield f"{shard} is not finished: it is {record.status}; {fix}"
    if record.options.get("stop_when") is not None:
        yield f"{shard} was run with --stop-when, which leaves out cases of this shard alone"
    try:
        RunOptions.model_validate(record.options)
    except ValidationError as error:
        names = ", ".join(repr(".".join(map(str, e["loc"]))) for e in error.errors())
        yield f"{shard} has options that this version of Assay cannot read: {names}"


def _gaps(shards: Sequence[Shard], *, all_known: bool) -> Iterator[str]:
    """Which shards are missing, given twice, or of another number of shards.

    Unless `all_known`, a shard that seems missing may be one that could not be read.
    """
    counts = sorted({shard.count for shard in shards})
    if len(counts) > 1:
        listed = ", ".join(map(str, shards))
        yield f"the plan was divided differently: {listed}"
        return
    labels: dict[int, list[str]] = {}
    for shard in shards:
        labels.setdefault(shard.number, []).append(shard.label)
    for number, same in labels.items():
        if len(same) > 1:
            yield f"shard {number}/{counts[0]} is given {len(same)} times: {', '.join(same)}"
    missing = counts[0] - len(labels)
    if missing and all_known:
        absent = (n for n in range(1, counts[0] + 1) if n not in labels)
        named = ", ".join(f"{n}/{counts[0]}" for n in islice(absent, _MAX_NAMED))
        more = f" and {missing - _MAX_NAMED:,} more" if missing > _MAX_NAMED else ""
        yield f"missing: {'shard' if missing == 1 else 'shards'} {named}{more}"


def _differences(one: Shard, other: Shard) -> Iterator[str]:
    """How the other shard is not of the same plan, files and target as the first one."""
    plans = [_without(shard.record.plan, "shard") for shard in (one, other)]
    for name in sorted(plans[0].keys() | plans[1].keys()):
        values = [msgspec.json.encode(plan.get(name)).decode() for plan in plans]
        if values[0] != values[1]:
            yield f"{name} is {values[0]} in {one}, and {values[1]} in {other}"
    yield from _file_differences(one, other)
    targets = [_targets(shard.record) for shard in (one, other)]
    if plans[0].get("target") == plans[1].get("target") and targets[0] != targets[1]:
        yield f"{one} asked {targets[0]!r}, and {other} asked {targets[1]!r}"


def _file_differences(one: Shard, other: Shard) -> Iterator[str]:
    """How their suites differ: positions of trials count suites and the cases in them."""
    files, others = ([s.file for s in shard.record.suites] for shard in (one, other))
    if files != others:
        for shard, own, foreign in ((one, files, others), (other, others, files)):
            yield from (f"{file} is only in {shard}" for file in own if file not in foreign)
        if sorted(files) == sorted(others):
            yield f"the suites of {one} and {other} are in different orders"
        return
    for mine, theirs in zip(one.record.suites, other.record.suites, strict=True):
        hashes = [suite.metadata.get("evalFileHash") for suite in (mine, theirs)]
        if hashes[0] != hashes[1]:
            versions = f"{hashes[0]} in {one}, and {hashes[1]} in {other}"
            yield f"{mine.file} changed: its hash is {versions}"


def _targets(record: RunRecord) -> str:
    """The targets of the suites, which do not depend on the shard; those of its cases do."""
    names = {suite.target for suite in record.suites if suite.target}
    return ", ".join(sorted(names)) or record.target


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _merged(shards: Sequence[Shard]) -> RunRecord:
    """The record of the merged run, before its trials are copied."""
    records = [shard.record for shard in shards]
    first, now = records[0], datetime.now(UTC)
    environment = _without(first.environment, DOOR, CANCELLED)
    if uses := recorded_uses(use for record in records for use in uses_of(record)):
        environment["judges"] = uses
    names = {name for record in records for name in record.target.split(", ")}
    same_target = all(record.target == first.target for record in records)
    return replace(
        first,
        id=new_run_id(int(now.timestamp() * 1000), secrets.randbits),
        started_at=min(record.started_at for record in records),
        status="running",
        finished_at=None,
        summary=None,
        target=first.target if same_target else ", ".join(sorted(names)),
        plan=_unsharded(first.plan, len(records)),
        # It is not compared with what its shards were compared with.
        options=_without(_unsharded(first.options, len(records)), *ANEW),
        environment=environment | {MERGED_FROM: [record.id for record in records]},
        suites=[_header(same) for same in zip(*(r.suites for r in records), strict=True)],
    )


def _unsharded(options: dict[str, Any], shards: int) -> dict[str, Any]:
    """The options of all shards together. Each has the first cases of its own part."""
    whole, limit = _without(options, "shard"), options.get("limit")
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
