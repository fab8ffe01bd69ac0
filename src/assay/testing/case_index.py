"""Conformance tests for contents of cases and the index of them; part of StoreConformance."""

from __future__ import annotations

from typing import Any

from assay.model.case_filter import CaseFilter, Term, folded, parse_filter
from assay.model.case_rows import (
    MAX_COMPARISONS,
    CaseKind,
    CaseQuery,
    CaseRow,
    IndexedCase,
    Sort,
    count,
    parse_sort,
    select,
    sort_value,
)
from assay.model.run import RunRecord
from assay.ports import Store

_END = "2026-01-31T13:00:00.000Z"


def make_case(position: int, text: str = "", **rest: Any) -> IndexedCase:
    """A case of a run in the index."""
    fields: dict[str, Any] = {
        "suite": "evals/weather.eval.yaml",
        "id": f"case-{position}",
        "tags": ("geo",),
        "evaluators": ("contains",),
        "outcome": "passed",
        "passes": 1,
        "judged": 1,
        "score": 1.0,
        "cost_usd": None,
        "latency_ms": 12.5,
        "flaky": False,
        "changed": None,
    }
    row = CaseRow(position, **fields | rest)
    names = (row.suite, "weather")
    kind = CaseKind(row.suite, names, row.tags, row.evaluators, ("contains",))
    return IndexedCase(row, kind, folded(f"{row.id}\n{text}"))


#: Cases that differ in every field.
CASES = [
    make_case(0, "The Straße is closed", cost_usd=0.02),
    make_case(
        1, "Temperature: 23.5 °C", outcome="failed", passes=0, score=0.25, tags=("geo", "slow")
    ),
    make_case(2, outcome="errored", passes=0, judged=0, score=None, changed="not-judged"),
    make_case(3, id="re[fund]?_1%", flaky=True, passes=1, judged=2, score=0.5, latency_ms=2500.0),
    make_case(4, suite="evals/a.eval.yaml", evaluators=("expect", "judge"), changed="regressed"),
    make_case(5, id="Cafe\u0301", tags=(), score=0.25, outcome="failed", changed="still-failing"),
]
FILTERS = [
    "",
    "outcome:failed",
    "outcome:failed,errored -changed:not-judged",
    "score<0.5",
    "-score<0.5",
    "-score>=0.5 cost>0.01",
    "latency>2000 flaky",
    "-flaky",
    "tag:slow",
    "-tag:s*",
    "tag:nothing,geo",
    "suite:weather",
    "suite:*a.eval.yaml -evaluator:contains",
    "evaluator:expect",
    "id:case-*",
    "id:re[fund]?_*%",
    "id:*_*",
    "id:Caf\u00e9",
    "-id:*e*",
    '"STRASSE"',
    "-closed",
    '"23.5 \u00b0c" outcome:failed',
    "changed:regressed,still-failing",
    "-changed:regressed",
]
ORDERS = [
    f"{sign}{by}"
    for by in ("position", "id", "suite", "outcome", "score", "cost", "latency", "flaky", "changed")
    for sign in ("", "-")
]


def make_ended_run(store: Store, run_id: str = "run-1") -> RunRecord:
    """A finished run without trials."""
    store.begin(RunRecord(run_id, "2026-01-31T12:00:00Z", "running", "echo"))
    store.finish(run_id, "finished", _END, {})
    return store.run(run_id)


class CaseIndexConformance:
    """What a store must do with the rows of ended runs."""

    def test_cases_are_filtered_and_counted(self, store: Store) -> None:
        run = make_ended_run(store)
        assert not store.case_index.has(run.id)
        assert store.case_index.add(run, CASES)
        assert store.case_index.has(run.id)
        for text in FILTERS:
            where = parse_filter(text)
            query = CaseQuery(where)
            assert store.case_index.page(run.id, query) == select(CASES, query), text
            assert store.case_index.facets(run.id, where) == count(CASES, where), text

    def test_a_filter_may_have_many_terms_and_alternatives(self, store: Store) -> None:
        run = make_ended_run(store)
        store.case_index.add(run, CASES)
        names = Term(
            "id", values=("case-*", *(f"{end}{n}" for end in ("x", "*y") for n in range(2000)))
        )
        where = CaseFilter((*[Term("flaky", negated=True)] * 2000, names))
        query = CaseQuery(where)
        assert store.case_index.page(run.id, query) == select(CASES, query) != []
        assert store.case_index.facets(run.id, where) == count(CASES, where)

    def test_pages_follow_each_other_in_every_order(self, store: Store) -> None:
        run = make_ended_run(store)
        store.case_index.add(run, CASES)
        for text in ORDERS:
            sort, found = parse_sort(text), list[CaseRow]()
            after = None
            while page := store.case_index.page(run.id, CaseQuery(sort=sort, limit=2, after=after)):
                found += page
                after = (sort_value(page[-1], sort.by), page[-1].position)
            assert found == select(CASES, CaseQuery(sort=sort)), text

    def test_pages_can_be_skipped(self, store: Store) -> None:
        run = make_ended_run(store)
        store.case_index.add(run, CASES)
        query = CaseQuery(sort=Sort("score"), limit=2, skip=3)
        assert store.case_index.page(run.id, query) == select(CASES, query)

    def test_one_case_is_found(self, store: Store) -> None:
        run = make_ended_run(store)
        store.case_index.add(run, CASES)
        assert store.case_index.row(run.id, 3) == CASES[3].row
        assert store.case_index.row(run.id, 6) is None

    def test_runs_do_not_see_the_cases_of_others(self, store: Store) -> None:
        one, other = make_ended_run(store), make_ended_run(store, "run-2")
        store.case_index.add(one, CASES[:3])
        store.case_index.add(other, CASES[3:])
        assert store.case_index.facets("run-1", CaseFilter()).total == 3
        assert [row.position for row in store.case_index.page("run-2", CaseQuery())] == [3, 4, 5]
        assert store.case_index.facets("run-2", parse_filter("heat")).total == 0

    def test_cases_are_added_once(self, store: Store) -> None:
        run = make_ended_run(store)
        for _ in range(2):
            assert store.case_index.add(run, CASES)
        assert store.case_index.facets(run.id, CaseFilter()).total == len(CASES)

    def test_a_run_that_is_reopened_or_deleted_loses_its_cases(self, store: Store) -> None:
        run = make_ended_run(store)
        store.case_index.add(run, CASES)
        store.reopen(run.id)
        assert not store.case_index.has(run.id)
        assert not store.case_index.add(run, CASES)
        assert not store.case_index.add(store.run(run.id), CASES)
        store.finish(run.id, "interrupted", _END, {})
        assert store.case_index.add(store.run(run.id), CASES[:1])
        assert store.case_index.facets(run.id, CaseFilter()).total == 1
        store.delete(run.id)
        assert not store.case_index.has(run.id)
        assert not store.case_index.add(run, CASES)

    def test_few_comparisons_of_two_runs_are_kept(self, store: Store) -> None:
        make_ended_run(store)
        make_ended_run(store, "run-2")
        index, rules = store.case_index, [f"margin {n}" for n in range(MAX_COMPARISONS + 1)]
        index.keep_comparison("run-2", "run-1", "rules", b"{}")
        for each in rules:
            index.keep_comparison("run-1", "run-2", each, b"{}")
            assert index.comparison("run-1", "run-2", each) == b"{}"
        assert index.comparison("run-1", "run-2", rules[0]) is None
        assert index.comparison("run-2", "run-1", "rules") == b"{}"

    def test_comparisons_of_finished_runs_are_kept(self, store: Store) -> None:
        make_ended_run(store)
        make_ended_run(store, "run-2")
        for _ in range(2):
            store.case_index.keep_comparison("run-1", "run-2", "rules", b"{}")
        assert store.case_index.comparison("run-1", "run-2", "rules") == b"{}"
        assert store.case_index.comparison("run-1", "run-2", "others") is None
        assert store.case_index.comparison("run-2", "run-1", "rules") is None
        store.reopen("run-2")
        assert store.case_index.comparison("run-1", "run-2", "rules") is None
        store.case_index.keep_comparison("run-1", "run-2", "rules", b"{}")
        assert store.case_index.comparison("run-1", "run-2", "rules") is None
        store.case_index.keep_comparison("run-1", "run-3", "rules", b"{}")
        assert store.case_index.comparison("run-1", "run-3", "rules") is None
