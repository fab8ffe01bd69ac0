"""Failures are grouped by their reasons, whatever values these name."""

from __future__ import annotations

import pytest

from assay.reporters.failure_groups import MAX_GROUPS, FailureGroups


@pytest.mark.parametrize(
    ("reasons", "common"),
    [
        (("took 30 s", "took 4,210.5 s"), "took … s"),
        (("found 'a'", "found 'b\\'c'"), "found …"),
        (("found 'a \"b'", 'found "it\'s"'), "found …"),
        (("found 'a", "found 'b and so on ..."), "found …"),
        (("it didn't answer in 3 s", "it didn't answer in 4 s"), "it didn't answer in … s"),
        (("the same\n  reason", "the same reason"), "the same reason"),
        (("always '4'", "always '4'"), "always '4'"),
    ],
)
def test_values_do_not_matter(reasons: tuple[str, ...], common: str) -> None:
    groups = FailureGroups()
    assert {groups.add(reason) for reason in reasons} == {1}
    assert [(group.reason, group.cases) for group in groups.largest()] == [(common, len(reasons))]


def test_the_largest_group_is_first_and_further_reasons_are_counted_together() -> None:
    groups = FailureGroups()
    letters = "abcdefghijklmnopqrstuvwxyz"
    reasons = [a + b + c for a in letters for b in letters for c in "abcd"]
    for reason in (*reasons, "zzz", "zzz"):
        groups.add(reason)
    first, *rest = groups.largest()
    assert (first.number, first.reason) == (0, "other reasons")
    assert first.cases + sum(group.cases for group in rest) == len(reasons) + 2
    assert len(rest) == MAX_GROUPS
