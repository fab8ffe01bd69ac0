"""Shards: finds those that a user names, and checks that together they are one whole plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from assay.comparison.outcomes import find_run, names_file
from assay.errors import NotInStore, ResultFileError, UsageError
from assay.model.options import RunOptions, parse_shard
from assay.model.run import RunRecord, TrialRecord
from assay.ports import Store
from assay.results.shards import ShardFile, read_shard
from assay.service.project import working_directory
from assay.settings import shown_path
from assay.text import count

AnyRun = str | os.PathLike[str]
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


def find_shards(runs: Iterable[AnyRun], store: Store) -> list[Shard]:
    """The shards in order; raises UsageError with all reasons why they are not one whole plan."""
    found = [_found(run, store) for run in runs]
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
        problems += _target_differences(shards)
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UsageError(f"these are not the shards of one plan; nothing was merged:\n{lines}")
    return shards


def _found(run: AnyRun, store: Store) -> Shard | str:
    """The shard, or what is wrong with it."""
    try:
        file = working_directory() / run
        if not isinstance(run, str) or names_file(run):
            return _of_file(file)
        try:
            record = find_run(run, store)
        except NotInStore:
            if os.path.isfile(file):  # false for a name that is too long for a file
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
        yield f"{count(missing, 'shard')} missing: {named}{more}"


def _differences(one: Shard, other: Shard) -> Iterator[str]:
    """How the other shard is not of the same plan and files as the first one."""
    plans = [without(shard.record.plan, "shard") for shard in (one, other)]
    for name in sorted(plans[0].keys() | plans[1].keys()):
        values = [msgspec.json.encode(plan.get(name)).decode() for plan in plans]
        if values[0] != values[1]:
            yield f"{name} is {values[0]} in {one}, and {values[1]} in {other}"
    yield from _file_differences(one, other)


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
        hashes = [suite.metadata.eval_file_hash for suite in (mine, theirs)]
        if hashes[0] != hashes[1]:
            versions = f"{hashes[0]} in {one}, and {hashes[1]} in {other}"
            yield f"{mine.file} changed: its hash is {versions}"


def _target_differences(shards: Sequence[Shard]) -> Iterator[str]:
    """Which targets were asked, if it was not the same one in all shards."""
    asked: dict[str, Shard] = {}
    for shard in shards:
        if names := _targets(shard.record):  # a shard may have asked nothing
            asked.setdefault(names, shard)
    planned = [shard.record.plan.get("target") for shard in shards]
    if len(asked) > 1 and all(target == planned[0] for target in planned):
        listed = ", ".join(f"{names!r} in {shard}" for names, shard in asked.items())
        yield f"different targets were asked: {listed}"


def _targets(record: RunRecord) -> str:
    """The targets of the suites, which do not depend on the shard; those of its cases do."""
    names = {suite.target for suite in record.suites if suite.target}
    return ", ".join(sorted(names)) or record.target


def without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    """The mapping without some of its keys."""
    return {name: value for name, value in values.items() if name not in names}
