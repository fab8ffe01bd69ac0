"""The parts of a Store: test cases, lists of cases, labels, log-in sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import Future
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from assay.model.case_filter import CaseFilter
from assay.model.case_rows import CaseQuery, CaseRow, Facets, IndexedCase
from assay.model.label import AnswerLabel, LabelKey
from assay.model.login import LoginSession
from assay.model.run import RunRecord
from assay.model.test_case import NewTestCase, Pin, TestCase, TestCaseChanges, TestCasePage


class TestCaseStore(Protocol):
    """The test cases that people keep and edit; every write adds a version, and none is lost.

    All methods are thread-safe. A write is durable when its future is done; a refused one raises
    at once or through its future. A test case that does not exist, or was removed, is a
    NotInStore. `now` is the time of a write; a clock that stands still or jumps back must do no
    harm. `assay.testing.test_cases.TestCaseConformance` tests a store for all of this.
    """

    if not TYPE_CHECKING:  # not part of the contract
        __test__ = False  # or pytest would collect the class for its name

    def add(self, new: NewTestCase, now: datetime) -> Future[TestCase]:
        """Add a test case; raises DuplicateId for an id that is or ever was in use, InvalidText."""
        ...

    def get(self, case_id: str) -> TestCase: ...

    def find(self, ids: Collection[str]) -> dict[str, TestCase | None]:
        """The test cases with these ids; None for one that was removed, no key for an unused id."""
        ...

    def page(self, limit: int, skip: int = 0, tag: str | None = None) -> TestCasePage:
        """A page of the test cases in the order in which they were added, all or those with a tag.

        `tag` matches any part of a tag, ignoring case.
        """
        ...

    def tags(self) -> dict[str, int]:
        """How many test cases have each tag, in lower case (`str.casefold`)."""
        ...

    def change(
        self, case_id: str, changes: TestCaseChanges, now: datetime, known: str | None = None
    ) -> Future[TestCase]:
        """Add a version with a later `modified_at` than the last one; may raise InvalidText.

        `known` is the `modified_at` that the test case must still have; raises Outdated. The
        comparison and the change are one atomic step: of concurrent changes with the same `known`
        only one succeeds.
        """
        ...

    def remove(self, case_id: str, now: datetime) -> Future[None]:
        """Remove a test case for good; its versions are kept."""
        ...

    def versions(self, case_id: str, limit: int, skip: int = 0) -> TestCasePage:
        """A page of the versions of a test case, oldest first; also of one that was removed."""
        ...

    def find_versions(self, pins: Collection[Pin]) -> dict[Pin, TestCase]:
        """The pinned versions that exist; also those of test cases that were removed."""
        ...


class CaseIndex(Protocol):
    """What was computed of ended runs: a row for each case, and comparisons.

    A run that is reopened or deleted loses it. Positions are those of trials.
    """

    def has(self, run_id: str) -> bool:
        """Are the rows of the run there?"""
        ...

    def add(self, run: RunRecord, cases: Iterable[IndexedCase]) -> bool:
        """Add the rows of a run, in order; returns whether they are there now.

        They are not if the run has not ended, or was changed since `run` was read. Two processes
        may add the same rows at the same time.
        """
        ...

    def page(self, run_id: str, query: CaseQuery) -> list[CaseRow]:
        """The rows of a page; the same as `assay.model.case_rows.select` finds."""
        ...

    def row(self, run_id: str, position: int) -> CaseRow | None:
        """The row of one case."""
        ...

    def facets(self, run_id: str, where: CaseFilter) -> Facets:
        """The same as `assay.model.case_rows.count` finds."""
        ...

    def comparison(self, base: str, candidate: str, rules: str) -> bytes | None:
        """The comparison of two runs by these rules, if it was kept."""
        ...

    def keep_comparison(self, base: str, candidate: str, rules: str, value: bytes) -> None:
        """Keep a comparison, unless a run of it is not finished.

        Values of other kinds that were computed of the two may be kept too; of one run alone, both
        names are its.
        """
        ...


class LabelStore(Protocol):
    """People's labels of answers; every write is durable when it returns.

    They outlive their runs, as they cannot be computed again.
    """

    def put(self, *labels: AnswerLabel) -> None:
        """Add labels; those with the same key are replaced."""
        ...

    def remove(self, key: LabelKey) -> bool:
        """Remove a label; returns whether there was one."""
        ...

    def of_run(self, run_id: str) -> list[AnswerLabel]:
        """The labels of a run, sorted by their keys."""
        ...


class LoginSessionStore(Protocol):
    """The log-in sessions of the pages; every write is durable when it returns."""

    def add(self, session: LoginSession) -> None:
        """Add a session, and remove those that expired before its `created_at`."""
        ...

    def get(self, id_hash: str, now: datetime) -> LoginSession | None:
        """The session with this hash, unless it has expired by `now`."""
        ...

    def remove(self, id_hash: str) -> None:
        """Remove a session, if there is one with this hash."""
        ...


class Permits(Protocol):
    """Slots in time for the requests to a target, and budgets: all processes share them."""

    def take(self, target: str, number: int, per_second: float) -> float:
        """Take the next slots, which are 1 / `per_second` apart: the seconds until the first."""
        ...

    def hold(self, target: str, seconds: float) -> None:
        """Let no slot begin within the next seconds."""
        ...

    def spend(self, budget: str, usd: float, at_least: float = 0.0) -> float:
        """Add to what is spent of a budget, `at_least` so much before: the sum."""
        ...
