"""The test cases of the store in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import islice
from typing import TypeVar
from uuid import uuid4

from assay.errors import DuplicateId, NotInStore, Outdated
from assay.model.test_case import (
    NewTestCase,
    Pin,
    TestCase,
    TestCaseChanges,
    TestCasePage,
    count_tags,
    first_version,
    folded,
    next_version,
    refuse_unfit,
    search_key,
)

T = TypeVar("T")


class MemoryTestCases:
    """Behaves like test cases in a database. `open_` returns the lock, if the store is open."""

    def __init__(self, open_: Callable[[], AbstractContextManager[object]]) -> None:
        self._open = open_
        #: All versions of each test case, including removed ones.
        self._versions: dict[str, list[TestCase]] = {}
        #: The folded tags of the test cases that were not removed, in the order of adding.
        self._live: dict[str, bytes] = {}

    def add(self, new: NewTestCase, now: datetime) -> Future[TestCase]:
        refuse_unfit(new)
        case = first_version(new, str(uuid4()) if new.id is None else new.id, now)

        def write() -> TestCase:
            if case.id in self._versions:
                raise DuplicateId(case.id)
            self._versions[case.id] = [case]
            self._live[case.id] = folded(case.tags)
            return case

        return self._write(write)

    def get(self, case_id: str) -> TestCase:
        with self._open():
            if case_id not in self._live:
                raise NotInStore("test case", case_id)
            return self._versions[case_id][-1]

    def find(self, ids: Collection[str]) -> dict[str, TestCase | None]:
        with self._open():
            taken = (case_id for case_id in ids if case_id in self._versions)
            return {i: self._versions[i][-1] if i in self._live else None for i in taken}

    def page(self, limit: int, skip: int = 0, tag: str | None = None) -> TestCasePage:
        with self._open():
            ids: Collection[str] = self._live if tag is None else self._tagged(tag)
            start = min(skip, len(ids))
            shown = islice(ids, start, min(start + limit, len(ids)))
            return TestCasePage([self._versions[i][-1] for i in shown], len(ids))

    def tags(self) -> dict[str, int]:
        with self._open():
            return count_tags((tags, 1) for tags in self._live.values())

    def change(
        self, case_id: str, changes: TestCaseChanges, now: datetime, known: str | None = None
    ) -> Future[TestCase]:
        refuse_unfit(changes)

        def write() -> TestCase:
            case = next_version(self.get(case_id), changes, now, known)
            self._versions[case_id].append(case)
            self._live[case_id] = folded(case.tags)
            return case

        return self._write(write)

    def remove(self, case_id: str, now: datetime) -> Future[None]:
        def write() -> None:
            self.get(case_id)
            del self._live[case_id]

        return self._write(write)

    def versions(self, case_id: str, limit: int, skip: int = 0) -> TestCasePage:
        with self._open():
            if case_id not in self._versions:
                raise NotInStore("test case", case_id)
            known = self._versions[case_id]
            return TestCasePage(known[skip : skip + limit], len(known))

    def find_versions(self, pins: Collection[Pin]) -> dict[Pin, TestCase]:
        with self._open():
            known = {case_id: self._versions.get(case_id, ()) for case_id, _ in pins}
            return {
                (case_id, number): known[case_id][number - 1]
                for case_id, number in pins
                if 1 <= number <= len(known[case_id])
            }

    def _tagged(self, tag: str) -> list[str]:
        needle = search_key(tag)
        if needle is None:
            return []
        return [case_id for case_id, tags in self._live.items() if tags and needle in tags]

    def _write(self, write: Callable[[], T]) -> Future[T]:
        """Call `write` with the lock held; its result or error is in the future."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._open():
            try:
                future.set_result(write())
            except (DuplicateId, NotInStore, Outdated) as error:
                future.set_exception(error)
        return future
