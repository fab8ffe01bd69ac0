"""A plain model of test cases, and random sequences of calls that compare a store with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import structs

from assay.errors import DuplicateId, InvalidText, NotInStore, StoreError
from assay.model.test_case import NewTestCase, TestCase, TestCaseChanges
from assay.ports import Store
from assay.testing.test_cases import SECONDS

FULL = os.environ.get("ASSAY_TEST_PROFILE") == "full"
SEQUENCES = settings(max_examples=1000 if FULL else 25, stateful_step_count=30)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
TEXTS = st.text("ab%_ßÀ☂\U0001f3f3\0\ud800", max_size=4)
TAGS = st.lists(st.text("aAbB%_sSß", min_size=1, max_size=3), max_size=3).map(tuple)
SECONDS_LATER = st.integers(-5, 5)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "input": TEXTS,
    "expected_output": TEXTS,
    "description": st.none() | TEXTS,
    "tags": TAGS,
}
Row = dict[str, Any]


def unfit(fields: Row) -> bool:
    texts = [v for v in fields.values() if isinstance(v, str)]
    return any(c == "\0" or "\ud800" <= c <= "\udfff" for text in texts for c in text)


class Machine(RuleBasedStateMachine):
    """Every call is made to the store and to the model; what they say is compared."""

    fresh: Callable[[], Store]

    @initialize()
    def begin(self) -> None:
        self.store = self.fresh()
        self.cases = self.store.test_cases
        #: All versions of each by id, in the order of adding.
        self.known: dict[str, list[Row]] = {}
        self.live: list[str] = []
        self.now = NOON

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    def ids(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([*self.known, "nobody"]))

    def checked(self, call: Callable[[], Any], refusal: type[StoreError] | None) -> Any:
        if refusal is None:
            return call()
        with pytest.raises(refusal):
            call()
        return None

    @rule(seconds=SECONDS_LATER)
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(data=st.data(), fields=st.fixed_dictionaries(FIELDS), own=st.booleans())
    def add(self, data: st.DataObject, fields: Row, own: bool) -> None:
        case_id = data.draw(st.sampled_from(["x", "y", "z"])) if own else None
        refusal = InvalidText if unfit(fields) else DuplicateId if case_id in self.known else None
        new = NewTestCase(**fields, id=case_id)
        case = self.checked(lambda: self.cases.add(new, self.now).result(SECONDS), refusal)
        if case is not None:
            time = self.now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            row = fields | {"id": case.id, "created_at": time, "modified_at": time, "version": 1}
            self.known[case.id] = [row]
            self.live.append(case.id)
            self.same([case], [row])

    @precondition(lambda self: self.known)
    @rule(data=st.data(), fields=st.fixed_dictionaries({}, optional=FIELDS))
    def change(self, data: st.DataObject, fields: Row) -> None:
        case_id = self.ids(data)
        refusal = InvalidText if unfit(fields) else self.refusal(case_id)
        changes = TestCaseChanges(**fields)
        case = self.checked(
            lambda: self.cases.change(case_id, changes, self.now).result(SECONDS), refusal
        )
        if case is not None:
            before = self.known[case_id][-1]
            assert case.modified_at > before["modified_at"]
            assert case.modified_at >= self.now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            row = before | fields
            row |= {"modified_at": case.modified_at, "version": before["version"] + 1}
            self.known[case_id].append(row)
            self.same([case], [row])

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        case_id = self.ids(data)
        refusal = self.refusal(case_id)
        self.checked(lambda: self.cases.remove(case_id, self.now).result(SECONDS), refusal)
        if refusal is None:
            self.live.remove(case_id)

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        case_id = self.ids(data)
        case = self.checked(lambda: self.cases.get(case_id), self.refusal(case_id))
        if case is not None:
            self.same([case], [self.known[case_id][-1]])
        unknown = None if case_id in self.known else NotInStore
        limit, skip = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
        page = self.checked(lambda: self.cases.versions(case_id, limit, skip), unknown)
        if page is not None:
            versions, known = page.test_cases, self.known[case_id]
            self.same(versions, known[skip : skip + limit])
            assert page.total == len(known)
            pins = [(case_id, c.version) for c in versions]
            assert self.cases.find_versions(pins) == dict(zip(pins, versions, strict=True))
        taken = dict.fromkeys(self.known) | {c.id: c for c in self.cases.page(99).test_cases}
        assert self.cases.find([*self.known, "nobody"]) == taken

    @rule(
        limit=st.integers(1, 4),
        skip=st.integers(0, 4),
        tag=st.none() | st.text("aAbB%_sSß", max_size=2),
    )
    def page(self, limit: int, skip: int, tag: str | None) -> None:
        rows = [self.known[case_id][-1] for case_id in self.live]
        if tag is not None:
            rows = [r for r in rows if any(tag.casefold() in t.casefold() for t in r["tags"])]
        page = self.cases.page(limit, skip, tag)
        assert page.total == len(rows)
        self.same(page.test_cases, rows[skip : skip + limit])

    def refusal(self, case_id: str) -> type[StoreError] | None:
        return None if case_id in self.live else NotInStore

    def same(self, cases: list[TestCase], rows: list[Row]) -> None:
        assert [structs.asdict(case) for case in cases] == rows


def compare(fresh: Callable[[], Store]) -> None:
    """Random sequences of calls to new stores, each compared with the model."""
    machine = type("Sequences", (Machine,), {"fresh": staticmethod(fresh)})
    run_state_machine_as_test(machine, settings=SEQUENCES)
