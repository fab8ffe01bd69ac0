"""The result of a group, from the results of its runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from assay.model.group import GroupComparison
from assay.model.group_result import GroupResult
from assay.model.run_result import RunResult
from assay.service.groups import group_result
from assay.stores.memory import MemoryStore
from unit.sample_runs import run, suite


def group_of(*codes: int) -> GroupResult:
    runs = tuple(run(suite(name=str(code)), exit_code=code) for code in codes)
    return GroupResult("g", runs, GroupComparison("g", 0, 0, (), ()))


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ((0, 0), 0),
        ((0, 1, 3, 4), 1),
        ((4, 3), 3),
        ((4, 0), 4),
        ((1, 5), 5),
        ((5, 2, 1), 2),
        ((2, 130, 5), 130),
    ],
)
def test_exit_code_is_the_worst_of_the_runs(codes: tuple[int, ...], worst: int) -> None:
    group = group_of(*codes)
    assert (group.exit_code, group.passed) == (worst, worst == 0)


def test_document_has_those_of_the_runs() -> None:
    group = group_of(0, 1)
    document = group.to_dict()
    assert document["runs"] == [each.to_dict() for each in group.runs]
    del document["runs"]
    assert document == {
        "groupId": "g",
        "comparison": group.comparison.to_dict(),
        "exitCode": 1,
    }


def test_runs_are_compared_in_the_order_of_their_targets() -> None:
    store = MemoryStore()
    runs: list[RunResult] = []
    for number, target in enumerate(("b", "a")):
        one = run(suite())
        record = replace(one.record, id=f"run-{number}", target=target, status="interrupted")
        store.begin(record)
        runs.append(replace(one, record=record))
    found = group_result("g", runs, store)
    assert [target.target for target in found.comparison.targets] == ["b", "a"]
    assert [target.run_id for target in found.comparison.targets] == ["run-0", "run-1"]
    assert found.comparison.notes[0] == "the run of b is partial: it is interrupted"
