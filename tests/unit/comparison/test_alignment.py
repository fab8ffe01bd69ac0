"""The cases of several runs are aligned as dictionaries would, in whatever order they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from assay.comparison.alignment import Row, align
from assay.model.comparison import CaseOutcome
from unit.case_outcomes import case


def naive(runs: Sequence[Sequence[CaseOutcome]]) -> list[Row]:
    """What `align` does for runs that have no case twice."""
    known = [{outcome.ref: outcome for outcome in run} for run in runs]
    refs = dict.fromkeys(outcome.ref for run in runs for outcome in run)
    return [tuple(run.get(ref) for run in known) for ref in refs]


identities = st.sampled_from("abcdefgh")
outcomes = st.sampled_from(["passed", "failed", "errored", "skipped"])
cases = st.builds(case, identities, outcomes, suite=st.sampled_from(["one.yaml", "two.yaml"]))
unique_runs = st.lists(cases, max_size=16, unique_by=lambda outcome: outcome.ref)
groups = st.lists(unique_runs, max_size=5)


@given(groups)
def test_rows_are_those_of_dictionaries(runs: list[list[CaseOutcome]]) -> None:
    assert sorted(map(str, align(runs))) == sorted(map(str, naive(runs)))


@given(groups.filter(bool))
def test_the_cases_of_the_first_run_come_first_and_in_order(runs: list[list[CaseOutcome]]) -> None:
    assert [row[0] for row in align(runs)][: len(runs[0])] == runs[0]


@given(st.lists(st.lists(cases, max_size=12), max_size=4))
def test_no_case_is_lost_or_counted_twice(runs: list[list[CaseOutcome]]) -> None:
    """A run of another tool may have a case twice."""
    rows = list(align(runs))
    for index, run in enumerate(runs):
        assert sorted(map(str, run)) == sorted(str(row[index]) for row in rows if row[index])
    for row in rows:
        assert len({found.ref for found in row if found is not None}) == 1


def test_runs_of_the_same_cases_are_read_at_the_same_pace() -> None:
    read: list[str] = []

    def reading(name: str) -> Iterator[CaseOutcome]:
        for index in range(100):
            read.append(name)
            yield case(str(index))

    rows = align([reading("a"), reading("b"), reading("c")])
    for _ in range(10):
        next(rows)
    assert all(read.count(name) <= 11 for name in "abc")
