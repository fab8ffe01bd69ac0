"""Conformance tests for implementations of TestCaseStore, to be run with pytest.

    class TestMyTestCases(TestCaseConformance):
        def make_store(self, folder: Path) -> Store:
            return MyStore(...)

Each test gets its own empty `folder`, and closes the stores it opens.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from assay.errors import DuplicateId, InvalidText, NotInStore, Outdated, StoreError
from assay.model.test_case import MAX_TEXT, NewTestCase, TestCase, TestCaseChanges
from assay.ports import Store
from assay.store_parts import TestCaseStore

#: The timeout for writing what a test adds or changes.
SECONDS = 600
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
WRITERS = 32
#: Texts that no store accepts: with NUL, or with lone surrogates.
UNFIT = ["a\0b", "\ud800", "ok \udfff"]


def new_case(text: str = "What is 2+2?", *tags: str, **rest: Any) -> NewTestCase:
    return NewTestCase(text, "4", tags=tags, **rest)


def added(cases: TestCaseStore, *new: NewTestCase, now: datetime = NOON) -> list[TestCase]:
    """Add the test cases one after the other."""
    return [cases.add(each, now).result(SECONDS) for each in new]


def changed(cases: TestCaseStore, case_id: str, now: datetime = NOON, **fields: Any) -> TestCase:
    return cases.change(case_id, TestCaseChanges(**fields), now).result(SECONDS)


class TestCaseConformance(ABC):
    """Subclass it, implement `make_store`, and pytest finds the tests."""

    __test__ = False

    def __init_subclass__(cls) -> None:
        # Subclasses are tests; this class is not, although pytest would collect it by its name.
        cls.__test__ = cls.__name__.startswith("Test")

    @abstractmethod
    def make_store(self, folder: Path) -> Store:
        """Create an empty store; it may keep files in the folder."""

    @pytest.fixture
    def cases(self, tmp_path: Path) -> Iterator[TestCaseStore]:
        store = self.make_store(tmp_path)
        yield store.test_cases
        store.close()

    # Adding

    def test_a_test_case_is_read_as_it_was_added(self, cases: TestCaseStore) -> None:
        new = NewTestCase("Capital of France?", "Paris", "Basic geography", ("geography", "basic"))
        case = cases.add(new, NOON).result(SECONDS)
        assert cases.get(case.id) == case
        time = "2026-01-31T12:00:00.000000Z"
        texts = new.input, new.expected_output, new.description
        assert case == TestCase(case.id, *texts, new.tags, time, time, 1)

    def test_an_id_is_random_unless_it_is_given(self, cases: TestCaseStore) -> None:
        own = "550e8400-e29b-41d4-a716-446655440001"
        first, second, third = added(cases, new_case(), new_case(), new_case(id=own))
        assert UUID(first.id).version == UUID(second.id).version == 4
        assert first.id != second.id
        assert third.id == own

    def test_an_id_is_never_reused(self, cases: TestCaseStore) -> None:
        added(cases, new_case("first", id="a"), new_case("second", id="b"))
        cases.remove("b", NOON).result(SECONDS)
        for taken in ("a", "b"):
            with pytest.raises(DuplicateId, match=f"a test case '{taken}'"):
                cases.add(new_case("other", id=taken), NOON).result(SECONDS)
        assert [case.input for case in cases.page(10).test_cases] == ["first"]
        assert cases.page(10).total == 1
        assert cases.versions("b", 10).total == 1

    def test_times_are_utc_with_six_digits(self, cases: TestCaseStore) -> None:
        lisbon = timezone(timedelta(hours=1))
        early = datetime(2026, 6, 1, 0, 30, 15, 7, tzinfo=lisbon)
        (case,) = added(cases, new_case(), now=early)
        assert case.created_at == case.modified_at == "2026-05-31T23:30:15.000007Z"

    def test_texts_are_kept_exactly(self, cases: TestCaseStore) -> None:
        strange = "☂ 'quoted' \"\\ % _ \r\n\t\x01\x7f e\u0301 \ufeff\uffff 🏳️‍🌈 "
        texts = [strange, "\U0010ffff" * MAX_TEXT, " ", "null"]
        for text in texts:
            new = NewTestCase(text, text, text, (text[:50], strange[:50]))
            case = cases.add(new, NOON).result(SECONDS)
            kept = cases.get(case.id)
            assert (kept.input, kept.expected_output, kept.description) == (text, text, text)
            assert kept.tags == new.tags

    def test_an_empty_description_is_not_none(self, cases: TestCaseStore) -> None:
        none, empty = added(cases, new_case(), new_case(description=""))
        assert cases.get(none.id).description is None
        assert cases.get(empty.id).description == ""

    @pytest.mark.parametrize("text", UNFIT, ids=ascii)
    def test_what_cannot_be_stored_is_refused(self, cases: TestCaseStore, text: str) -> None:
        (known,) = added(cases, new_case())
        fields: list[dict[str, Any]] = [
            {"input": text},
            {"expected_output": text},
            {"description": text},
            {"tags": ("fine", text)},
        ]
        for field in fields:
            (name,) = field
            new = NewTestCase(**({"input": "a", "expected_output": "b"} | field))
            with pytest.raises(InvalidText, match=f"'{name}' has the character U"):
                cases.add(new, NOON).result(SECONDS)
            with pytest.raises(InvalidText, match=f"'{name}' has the character U"):
                changed(cases, known.id, **field)
        with pytest.raises(InvalidText, match="'id'"):
            cases.add(new_case(id=text), NOON).result(SECONDS)
        assert cases.page(10) == cases.versions(known.id, 10) == ([known], 1)

    # Pages

    def test_pages_are_in_the_order_of_adding(self, cases: TestCaseStore) -> None:
        earlier = NOON - timedelta(days=1)
        known = added(cases, *map(new_case, "abc")) + added(
            cases, *map(new_case, "de"), now=earlier
        )
        assert cases.page(10) == (known, 5)
        assert cases.page(2) == (known[:2], 5)
        assert cases.page(2, 3) == (known[3:], 5)
        assert cases.page(2, 4) == (known[4:], 5)
        assert cases.page(2, 5) == cases.page(2, 10**30) == ([], 5)

    def test_an_empty_store_has_an_empty_page(self, cases: TestCaseStore) -> None:
        assert cases.page(10) == cases.page(10, 0, "tag") == ([], 0)

    def test_a_change_keeps_the_order(self, cases: TestCaseStore) -> None:
        a, b = added(cases, new_case("a", "x"), new_case("b", "x"))
        a = changed(cases, a.id, input="c")
        assert cases.page(10) == cases.page(10, tag="x") == ([a, b], 2)

    def test_a_tag_is_found_by_any_part_of_it(self, cases: TestCaseStore) -> None:
        added(
            cases,
            new_case("a", "Geography", "basic"),
            new_case("b", "math"),
            new_case("c", "GEO_metry", "100%"),
            new_case("d"),
            new_case("e", "math", "geo"),
        )
        wanted = {
            "geo": "ace",
            "GEOG": "a",
            "math": "be",
            "%": "c",
            "_": "c",
            "o_m": "c",
            "o.m": "",
            "hg": "",  # the end of one tag and the beginning of another
            "basicgeography": "",
            "": "abce",
            "y\0": "",
            "\ud800": "",
            "geography and more": "",
        }
        for tag, found in wanted.items():
            page = cases.page(10, 0, tag)
            assert "".join(case.input for case in page.test_cases) == found, tag
            assert page.total == len(found)
        page = cases.page(1, 1, "geo")
        assert ([case.input for case in page.test_cases], page.total) == (["c"], 3)

    def test_tags_match_in_any_case(self, cases: TestCaseStore) -> None:
        added(cases, new_case("a", "Straße"), new_case("b", "ΣΊΣΥΦΟΣ"), new_case("c", "ÀÉ"))
        found = {"STRASSE": "a", "ß": "a", "ss": "a", "σίσυφος": "b", "φοσ": "b", "àé": "c"}
        for tag, text in found.items():
            assert [case.input for case in cases.page(10, tag=tag).test_cases] == [text], tag

    def test_a_tag_is_found_in_order_however_many_have_it(self, cases: TestCaseStore) -> None:
        shares = (1, 2, 9, 10, 11, 20, 39, 40)

        def tags_of(number: int) -> tuple[str, ...]:
            return ("Any", *(f"of-{share}." for share in shares if number * share % 40 < share))

        made = added(cases, *(new_case(str(i), f"own-{i}") for i in range(44)))
        for case in reversed(made):  # so that later test cases have earlier tags
            changed(cases, case.id, tags=tags_of(int(case.input)))
        for case in made[:4]:
            cases.remove(case.id, NOON).result(SECONDS)
        for tag in ("any", "", "nothing", *(f"OF-{share}." for share in shares)):
            every = cases.page(100).test_cases
            wanted = [c.id for c in every if any(tag.lower() in t.lower() for t in c.tags)]
            for skip in (0, 1, 7, 39):
                page = cases.page(5, skip, tag)
                assert [case.id for case in page.test_cases] == wanted[skip : skip + 5], (tag, skip)
                assert page.total == len(wanted)

    def test_a_tag_that_mostly_new_test_cases_have_is_found_in_order(
        self, cases: TestCaseStore
    ) -> None:
        early = {3, 250}  # in addition to all from 400 on
        tags = [f"new-{i}" if i >= 400 or i in early else f"old-{i}" for i in range(800)]
        made = added(cases, *(new_case(str(i), tag) for i, tag in enumerate(tags)))
        wanted = [case for case in made if case.tags[0].startswith("new")]
        for tag in ("n", "new", "NEW-"):
            for skip in (0, 1, 2, 300, 400, 402):
                assert cases.page(5, skip, tag) == (wanted[skip : skip + 5], 402), (tag, skip)

    def test_tags_are_found_as_they_are_now(self, cases: TestCaseStore) -> None:
        a, b = added(cases, new_case("a", "old"), new_case("b", "old"))
        changed(cases, a.id, tags=("new", "new"))
        assert cases.page(10, tag="old") == ([b], 1)
        assert cases.page(10, tag="new").total == 1
        changed(cases, a.id, tags=())
        changed(cases, b.id, input="c")
        assert cases.page(10, tag="new") == ([], 0)
        assert cases.page(10, tag="old").total == 1
        cases.remove(b.id, NOON).result(SECONDS)
        assert cases.page(10, tag="old") == ([], 0)

    def test_tags_are_counted_as_they_are_now(self, cases: TestCaseStore) -> None:
        assert cases.tags() == {}
        tags = [("Geo", "basic"), ("GEO", "geo"), ("ß",), ()]
        a, b, *_ = added(cases, *(new_case("x", *each) for each in tags))
        assert cases.tags() == {"geo": 2, "basic": 1, "ss": 1}
        changed(cases, a.id, tags=("ss",))
        cases.remove(b.id, NOON).result(SECONDS)
        assert cases.tags() == {"ss": 2}

    # Changing

    def test_only_what_is_given_changes(self, cases: TestCaseStore) -> None:
        (first,) = added(cases, NewTestCase("in", "out", "why", ("tag",)))
        later = NOON + timedelta(seconds=1)
        fields: list[tuple[str, Any]] = [
            ("input", "other in"),
            ("expected_output", "other out"),
            ("description", "because"),
            ("description", None),
            ("tags", ("other", "tags")),
        ]
        before = first
        for name, value in fields:
            after = changed(cases, first.id, later, **{name: value})
            assert getattr(after, name) == value
            times = {"modified_at": after.modified_at, "version": after.version}
            assert replace(before, **times, **{name: value}) == after
            assert after == cases.get(first.id)
            before = after
        assert before.version == 6

    def test_an_empty_change_makes_a_version_too(self, cases: TestCaseStore) -> None:
        (first,) = added(cases, new_case("a", "x"))
        second = changed(cases, first.id, NOON + timedelta(hours=1))
        assert second.modified_at == "2026-01-31T13:00:00.000000Z"
        assert second.version == 2
        assert replace(first, modified_at=second.modified_at, version=2) == second

    def test_modification_times_increase_even_if_the_clock_does_not(
        self, cases: TestCaseStore
    ) -> None:
        (case,) = added(cases, new_case())
        clock = [0, 0, -3600, 3600, 3600, 0, 7200]
        times = [case.modified_at]
        times += [changed(cases, case.id, NOON + timedelta(seconds=s)).modified_at for s in clock]
        assert times == sorted(set(times))
        assert times[1] == "2026-01-31T12:00:00.000001Z"
        assert times[-1] == "2026-01-31T14:00:00.000000Z"
        assert all(case.created_at == times[0] for case in cases.versions(case.id, 10).test_cases)

    def test_a_change_based_on_an_outdated_version_is_refused(self, cases: TestCaseStore) -> None:
        (first,) = added(cases, new_case("a", "x"))
        second = cases.change(first.id, TestCaseChanges(input="b"), NOON, first.modified_at)
        now = second.result(SECONDS)
        for known in (first.modified_at, "", now.modified_at.lower(), "\0"):
            refused = cases.change(first.id, TestCaseChanges(tags=("y",)), NOON, known)
            with pytest.raises(Outdated, match=f"was changed at {now.modified_at}"):
                refused.result(SECONDS)
        assert cases.versions(first.id, 10) == ([first, now], 2)
        assert cases.page(10, tag="y").total == 0

    def test_of_concurrent_changes_to_the_same_version_one_succeeds(
        self, cases: TestCaseStore
    ) -> None:
        (case,) = added(cases, new_case())
        known = case.modified_at
        changes = [TestCaseChanges(input=str(i)) for i in range(WRITERS)]
        futures = [cases.change(case.id, each, NOON, known) for each in changes]
        refusals = [future.exception(SECONDS) for future in futures]
        assert refusals.count(None) == 1
        assert sum(isinstance(refusal, Outdated) for refusal in refusals) == WRITERS - 1
        winner = futures[refusals.index(None)].result()
        assert cases.versions(case.id, 10) == ([case, winner], 2)

    def test_a_removed_test_case_is_hidden(self, cases: TestCaseStore) -> None:
        gone, kept = added(cases, new_case("a", "x"), new_case("b", "x"))
        cases.remove(gone.id, NOON).result(SECONDS)
        calls: list[Callable[[], object]] = [
            lambda: cases.get(gone.id),
            lambda: changed(cases, gone.id, input="c"),
            lambda: cases.remove(gone.id, NOON).result(SECONDS),
        ]
        for call in calls:
            with pytest.raises(NotInStore, match="no test case"):
                call()
        assert cases.page(10) == cases.page(10, tag="x") == ([kept], 1)

    @pytest.mark.parametrize("case_id", ["", "nobody", "550E8400", *UNFIT], ids=ascii)
    def test_an_unknown_test_case_is_named(self, cases: TestCaseStore, case_id: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: cases.get(case_id),
            lambda: changed(cases, case_id, input="c"),
            lambda: cases.remove(case_id, NOON).result(SECONDS),
            lambda: cases.versions(case_id, 10),
        ]
        for call in calls:
            with pytest.raises(NotInStore, match="test case"):
                call()
        assert cases.find([case_id]) == {}
        assert cases.find_versions([(case_id, 1)]) == {}

    def test_many_are_found_by_their_ids(self, cases: TestCaseStore) -> None:
        made = added(cases, *(new_case(str(i)) for i in range(1203)))
        made[1] = changed(cases, made[1].id, input="b")
        cases.remove(made[2].id, NOON).result(SECONDS)
        wanted = {case.id: case for case in made} | {made[2].id: None}
        assert cases.find([*wanted, "nobody", *UNFIT, made[0].id]) == wanted
        assert cases.find([made[1].id]) == {made[1].id: made[1]}
        assert cases.find([]) == {}

    # Versions

    def test_every_write_makes_a_version_that_stays(self, cases: TestCaseStore) -> None:
        (case,) = added(cases, new_case("1", "x"))
        wanted = [case, *(changed(cases, case.id, input=text, tags=(text,)) for text in "23")]
        for _ in range(2):
            assert cases.versions(case.id, 10) == (wanted, 3)
            assert cases.versions(case.id, 1, 1) == (wanted[1:2], 3)
            assert cases.versions(case.id, 10, 2) == (wanted[2:], 3)
            assert cases.versions(case.id, 10**30, 10**30) == ([], 3)
            pins = [(case.id, n) for n in (3, 1, 2)]
            assert cases.find_versions(pins) == {(case.id, c.version): c for c in wanted}
            assert cases.find_versions(pins[:1]) == {pins[0]: wanted[2]}
            if cases.page(1).total:
                cases.remove(case.id, NOON).result(SECONDS)

    def test_many_versions_are_found(self, cases: TestCaseStore) -> None:
        made = added(cases, *(new_case(str(i)) for i in range(1203)))
        pins = {(case.id, 1): case for case in made}
        unknown = [(made[0].id, number) for number in (-1, 0, 2, 10**30)]
        assert cases.find_versions([*unknown, *pins]) == pins
        assert cases.find_versions([]) == {}

    # Many at once

    def test_many_writers_lose_nothing(self, cases: TestCaseStore) -> None:
        (shared,) = added(cases, new_case("shared"))

        def work(writer: int) -> list[str]:
            ids = []
            for i in range(5):
                (own,) = added(cases, new_case(f"{writer}/{i}", f"w{writer}."))
                changed(cases, own.id, input=f"{writer}/{i}!")
                changed(cases, shared.id, expected_output=f"{writer}/{i}")
                ids.append(own.id)
            cases.remove(ids.pop(), NOON).result(SECONDS)
            return ids

        with ThreadPoolExecutor(WRITERS) as pool:
            ids = [case_id for own in pool.map(work, range(WRITERS)) for case_id in own]
        page = cases.page(1000)
        assert {case.id for case in page.test_cases} == {shared.id, *ids}
        assert page.total == 1 + 4 * WRITERS
        assert all(case.input.endswith("!") for case in page.test_cases[1:])
        assert [cases.page(9, tag=f"W{w}.").total for w in range(WRITERS)] == [4] * WRITERS
        versions = cases.versions(shared.id, 1000).test_cases
        assert [case.version for case in versions] == list(range(1, 5 * WRITERS + 2))
        times = [case.modified_at for case in versions]
        assert times == sorted(set(times))

    def test_of_concurrent_additions_with_the_same_id_one_succeeds(
        self, cases: TestCaseStore
    ) -> None:
        futures = [cases.add(new_case(str(i), id="the one"), NOON) for i in range(WRITERS)]
        refusals = [future.exception(SECONDS) for future in futures]
        assert refusals.count(None) == 1
        assert sum(isinstance(refusal, DuplicateId) for refusal in refusals) == WRITERS - 1
        winner = futures[refusals.index(None)].result()
        assert cases.page(10) == ([winner], 1)

    def test_a_page_and_its_total_are_consistent(self, cases: TestCaseStore) -> None:
        ended = threading.Event()

        def write() -> None:
            for i in range(200):
                added(cases, new_case(str(i), "x"))
            ended.set()

        writer = threading.Thread(target=write)
        writer.start()
        while not ended.is_set():
            for page in (cases.page(1000), cases.page(1000, tag="X")):
                assert len(page.test_cases) == page.total
        writer.join()

    def test_a_write_cannot_be_cancelled(self, cases: TestCaseStore) -> None:
        futures = [cases.add(new_case(str(i)), NOON) for i in range(20)]
        assert not any(future.cancel() for future in futures)
        assert [future.result(SECONDS).input for future in futures] == [str(i) for i in range(20)]
        assert cases.page(1).total == 20

    # Closing

    def test_closing_waits_for_pending_writes(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        futures = [store.test_cases.add(new_case(str(i)), NOON) for i in range(200)]
        store.close()
        assert all(future.done() and future.exception() is None for future in futures)

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        cases = store.test_cases
        (case,) = added(cases, new_case())
        store.close()
        calls: list[Callable[[], object]] = [
            lambda: cases.add(new_case(), NOON),
            lambda: cases.get(case.id),
            lambda: cases.page(1),
            lambda: cases.page(1, tag="x"),
            lambda: cases.change(case.id, TestCaseChanges(), NOON),
            lambda: cases.remove(case.id, NOON),
            lambda: cases.versions(case.id, 10),
            lambda: cases.find([case.id]),
            lambda: cases.find_versions([(case.id, 1)]),
        ]
        for call in calls:
            with pytest.raises(StoreError, match="closed"):
                call()
