"""Databases find the same cases for a filter as its evaluation in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.model.case_filter import CaseFilter, Term, folded
from assay.model.case_rows import CaseQuery, IndexedCase, count, parse_sort, select
from assay.ports import Store
from assay.stores.postgres_store import PostgresStore
from assay.stores.sqlite import SqliteStore
from assay.testing.case_index import ORDERS, make_case, make_ended_run
from contract.postgres import Server

_NAMES = st.sampled_from(["a", "b", "ab", "a*b", "A", "é", "e\u0301", "[a]", "a%", "a_b", "?", ""])
_TEXTS = st.text(st.sampled_from("aAb*?[]%_\\ \nßé\u0301İ"), max_size=6)
_NUMBERS = st.sampled_from([0.0, 0.25, 0.5, 1.0])
_CHANGES = ["regressed", "fixed", "still-failing", "added", "not-comparable", "not-judged"]
_OUTCOMES = ["passed", "failed", "errored", "skipped"]

_NUMERIC = ("score", "cost", "latency")
_CHOSEN = {"outcome": st.sampled_from(_OUTCOMES), "changed": st.sampled_from(_CHANGES)}


@st.composite
def runs(draw: st.DrawFn) -> list[IndexedCase]:
    """The cases of a run."""
    return [
        make_case(
            position,
            draw(_TEXTS),
            id=draw(_NAMES) + draw(_TEXTS),
            tags=tuple(draw(st.lists(_NAMES, max_size=2))),
            evaluators=tuple(draw(st.lists(_NAMES, max_size=2))),
            suite=draw(_NAMES),
            outcome=draw(st.sampled_from(_OUTCOMES)),
            score=draw(st.none() | _NUMBERS),
            cost_usd=draw(st.none() | _NUMBERS),
            latency_ms=draw(_NUMBERS),
            flaky=draw(st.booleans()),
            changed=draw(st.none() | st.sampled_from(_CHANGES)),
        )
        for position in range(draw(st.integers(0, 8)))
    ]


@st.composite
def terms(draw: st.DrawFn) -> Term:
    field = draw(
        st.sampled_from([*_NUMERIC, *_CHOSEN, "text", "flaky", "id", "tag", "suite", "evaluator"])
    )
    negated = draw(st.booleans())
    if field == "text":
        return Term("text", values=(folded(draw(_TEXTS)) or "a",), negated=negated)
    if field == "flaky":
        return Term("flaky", negated=negated)
    if field in _NUMERIC:
        op = draw(st.sampled_from(["<", "<=", "=", ">=", ">"]))
        return Term(field, op, (draw(_NUMBERS),), negated)
    values = _CHOSEN.get(field, _NAMES | st.builds("{}*{}".format, _TEXTS, _TEXTS))
    return Term(field, ":", tuple(draw(st.lists(values, min_size=1, max_size=2))), negated)


_FILTERS = st.builds(CaseFilter, st.lists(terms(), max_size=3).map(tuple))


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    opened: Store
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("filters")
        opened = SqliteStore(folder / "store.db")
        yield opened
        opened.close()
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.new_database()
    opened = PostgresStore(url)
    yield opened
    opened.close()
    server.give_back(url)


@settings(max_examples=60, deadline=None)
@given(
    cases=runs(), filters=st.lists(_FILTERS, min_size=4, max_size=4), order=st.sampled_from(ORDERS)
)
def test_a_database_finds_the_same_cases(
    store: Store, cases: list[IndexedCase], filters: list[CaseFilter], order: str
) -> None:
    run = make_ended_run(store, str(uuid4()))  # as in use, no run has the id of another
    try:
        assert store.case_index.add(run, cases)
        for where in filters:
            query = CaseQuery(where, parse_sort(order))
            assert store.case_index.page(run.id, query) == select(cases, query)
            assert store.case_index.facets(run.id, where) == count(cases, where)
    finally:
        store.delete(run.id)
