"""Groups: the runs of several targets over the same cases."""

from __future__ import annotations

from collections.abc import Sequence

from assay.comparison.groups import GroupRun, compare_group
from assay.model.group_result import GroupResult
from assay.model.run_result import RunResult
from assay.ports import Store


def group_result(group_id: str, runs: Sequence[RunResult], store: Store) -> GroupResult:
    """The result of a group from those of its runs, in the order of their targets."""
    compared = [
        GroupRun(run.id, run.target, store.facts(run.id), run.record.partial) for run in runs
    ]
    return GroupResult(group_id, tuple(runs), compare_group(group_id, compared))
