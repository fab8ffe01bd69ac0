"""Groups: the runs of several targets over the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec

from assay.comparison.groups import GroupRun, compare_group
from assay.comparison.outcomes import SHORTEST, find_run, newest_first, with_targets
from assay.errors import NotInStore, UsageError
from assay.model.comparison import Comparison
from assay.model.group import GroupComparison
from assay.model.group_result import GroupResult
from assay.model.options import Gate
from assay.model.run import RunRecord
from assay.model.run_result import PRECEDENCE, RunResult
from assay.ports import Store
from assay.service import history
from assay.service.comparisons import compared_run
from assay.service.store import project_store
from assay.version import __version__

#: Among how many of the newest runs the start of a group's id is looked for.
MAX_SEARCHED = 2000


class Group(msgspec.Struct, frozen=True):
    """A group in the store: its runs, in the order of their targets."""

    id: str
    runs: tuple[RunRecord, ...]

    @property
    def finished(self) -> bool:
        return all(run.status == "finished" for run in self.runs)


class ComparedTarget(msgspec.Struct, frozen=True):
    """A target of two groups: how its run in the candidate compares with that in the base."""

    target: str
    comparison: Comparison


class ComparedGroups(msgspec.Struct, frozen=True):
    """Two groups, target by target; the other targets are in only one of them."""

    base: str
    candidate: str
    targets: tuple[ComparedTarget, ...]
    only_base: tuple[str, ...]
    only_candidate: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """The worst exit code of the comparisons."""
        codes = {each.comparison.exit_code for each in self.targets}
        return next((code for code in PRECEDENCE if code in codes), 0)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `assay compare GROUP GROUP --json`."""
        targets = [{"target": each.target} | each.comparison.to_dict() for each in self.targets]
        return {
            "baseGroup": self.base,
            "candidateGroup": self.candidate,
            "targets": targets,
            "onlyBase": list(self.only_base),
            "onlyCandidate": list(self.only_candidate),
            "exitCode": self.exit_code,
        }


def group_result(group_id: str, runs: Sequence[RunResult], store: Store) -> GroupResult:
    """The result of a group from those of its runs, in the order of their targets."""
    compared = [
        GroupRun(run.id, run.target, store.facts(run.id), run.record.partial) for run in runs
    ]
    return GroupResult(group_id, tuple(runs), compare_group(group_id, compared))


def find_group(reference: str, store: Store) -> Group | None:
    """The group with this id, or one that starts like this; None if it is another name.

    A run is preferred: its id may start like that of its group.
    """
    if not (reference.isprintable() and reference):
        return None
    with suppress(NotInStore):
        return group_with(reference.lower(), store)
    with suppress(NotInStore, UsageError):
        find_run(reference, store)
        return None
    return _by_prefix(reference.lower(), store)


def _by_prefix(prefix: str, store: Store) -> Group | None:
    """The only group whose id starts with the prefix, or the ids of whose runs do."""
    if len(prefix) < SHORTEST or not set(prefix) <= set("0123456789abcdef-"):
        return None
    newest = islice(newest_first(store), MAX_SEARCHED)
    found = {
        run.group
        for run in newest
        if run.group is not None and (run.group.startswith(prefix) or run.id.startswith(prefix))
    }
    if len(found) > 1:
        raise UsageError(f"more than one group starts with {prefix!r}: write more of its id")
    return group_with(found.pop(), store) if found else None


def group_with(group_id: str, store: Store) -> Group:
    """The group with exactly this id; raises NotInStore."""
    return Group(group_id, tuple(store.group(group_id)))


def group_of(reference: str, store: Store) -> Group:
    """The group that a name means, or to which the run that it means belongs."""
    if (found := find_group(reference, store)) is not None:
        return found
    run = find_run(reference, store)
    if run.group is None:
        single = f"the run {run.id} does not belong to a group of several targets"
        raise UsageError(f"{single}: name a second run to compare it with")
    return group_with(run.group, store)


def kept_comparison(group: Group, store: Store) -> GroupComparison:
    """The comparison of a group; that of finished runs is computed once, as they do not change."""
    first, last = group.runs[0].id, group.runs[-1].id
    parts = [__version__, "group", group.id, *((run.id, run.finished_at) for run in group.runs)]
    key = blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
    kept = store.case_index.comparison(first, last, key) if group.finished else None
    with suppress(msgspec.ValidationError):  # it was kept by other code of the same version
        if kept is not None:
            return msgspec.json.decode(kept, type=GroupComparison)
    compared = [
        GroupRun(run.id, run.target, store.facts(run.id), run.partial) for run in group.runs
    ]
    found = compare_group(group.id, compared)
    if group.finished:
        store.case_index.keep_comparison(first, last, key, msgspec.json.encode(found))
    return found


def runs_of(group: Group) -> str:
    """The runs of a group with their targets, for messages about what needs a run."""
    return f"its runs are {with_targets(group.runs)}"


def named_group(reference: str, *, store: str | None = None) -> Group | None:
    """The group that a name means; None if it means something else."""
    with project_store(store) as opened:
        return find_group(reference, opened)


def group_comparison(reference: str, *, store: str | None = None) -> GroupComparison:
    """The targets of a recorded group compared; `reference` is as for `show_group`."""
    with project_store(store) as opened:
        return kept_comparison(group_of(reference, opened), opened)


def show_group(reference: str, *, store: str | None = None) -> GroupResult:
    """A recorded group, with the verdicts that its runs ended with.

    `reference` is the id of the group, the start of one, or what names a run of it.
    """
    with project_store(store) as opened:
        group = group_of(reference, opened)
        comparison = kept_comparison(group, opened)
    runs = tuple(history.show(run.id, store=store) for run in group.runs)
    return GroupResult(group.id, runs, comparison)


def compare_groups(
    base: Group,
    candidate: Group,
    *,
    gate: Gate = "regression",
    margin: float = 0.02,
    strict: bool = False,
    store: str | None = None,
) -> ComparedGroups:
    """Compare each target that two groups have in common, as `compare` does with two runs."""
    before = {run.target: run.id for run in base.runs}
    now = {run.target: run.id for run in candidate.runs}
    common = [target for target in now if target in before]
    if not common:
        names = ", ".join(map(repr, before)), ", ".join(map(repr, now))
        raise UsageError(f"the groups have no target in common: {names[0]}; and {names[1]}")
    rules: dict[str, Any] = {"gate": gate, "margin": margin, "strict": strict, "store": store}
    return ComparedGroups(
        base.id,
        candidate.id,
        tuple(
            ComparedTarget(target, history.compare(before[target], now[target], **rules))
            for target in common
        ),
        tuple(target for target in before if target not in now),
        tuple(target for target in now if target not in before),
    )


def compared_group(
    found: ComparedGroups, base: Group, candidate: Group, *, margin: float, store: str | None = None
) -> GroupResult:
    """The candidate of two groups; its runs have the verdicts of the comparisons, for reports."""
    before = {run.target: run.id for run in base.runs}
    compared = {each.target: each.comparison for each in found.targets}
    runs = tuple(
        history.show(run.id, store=store)
        if run.target not in compared
        else compared_run(
            compared[run.target], before[run.target], run.id, margin=margin, store=store
        )
        for run in candidate.runs
    )
    with project_store(store) as opened:
        return GroupResult(candidate.id, runs, kept_comparison(candidate, opened))
