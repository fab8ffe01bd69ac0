"""The baselines of a group: for each target a run of the same target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from assay.comparison.outcomes import Outcomes, find_run, names_file, stored
from assay.errors import UsageError
from assay.model.group_result import GroupResult
from assay.model.run import RunRecord
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.service.groups import find_group
from assay.service.result import Run


class GroupBaseline(NamedTuple):
    """The baseline of one run of a group, and what its options record as its name."""

    outcomes: Outcomes | None = None
    reference: str | None = None
    note: str = ""


def group_baselines(
    given: RunResult | GroupResult | None,
    reference: str | None,
    targets: Sequence[str],
    store: Store,
) -> list[GroupBaseline]:
    """The baseline of each target; raises UsageError if there is one for none of them.

    What is `given`, or what the reference names, is a run or a group. A run of a group stands for
    all of its group.
    """
    if reference is None:
        return [GroupBaseline()] * len(targets)
    if isinstance(given, GroupResult):
        found = [_of_result(run) for run in given.runs]
    elif given is not None:
        found = [_of_result(given)]
    else:
        found = _in_store(reference, store)
    known = dict(found)
    if not known.keys() & set(targets):
        runs = " and ".join(known)
        raise UsageError(
            f"the baseline {reference!r} has no run of {' or '.join(targets)}: it is of {runs}"
        )
    missing = f"it has no baseline: {reference} has no run of this target"
    return [known.get(target) or GroupBaseline(note=missing) for target in targets]


def _of_result(run: RunResult) -> tuple[str, GroupBaseline]:
    if not isinstance(run, Run):
        raise UsageError(f"the run {run.id} is not open: give what `assay.run` returned, or its id")
    return run.target, GroupBaseline(stored(run.record, run.store).not_empty(), run.id)


def _in_store(reference: str, store: Store) -> list[tuple[str, GroupBaseline]]:
    if names_file(reference):
        message = f"{reference!r} is a result file, which has the run of one target"
        raise UsageError(f"{message}: with several targets, the baseline is a run or a group")
    if (group := find_group(reference, store)) is not None:
        return [(run.target, _stored(run, run.id, store)) for run in group.runs]
    named = find_run(reference, store)
    runs = [named] if named.group is None else store.group(named.group)
    return [
        (run.target, _stored(run, reference if run == named else run.id, store)) for run in runs
    ]


def _stored(run: RunRecord, name: str, store: Store) -> GroupBaseline:
    return GroupBaseline(stored(run, store, name).not_empty(), name)
