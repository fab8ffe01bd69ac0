"""Overviews: what the pages of ended runs show, made once, and kept in memory and in the store.

A run that has ended does not change until it is resumed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from assay.comparison.outcomes import find_run
from assay.errors import NotInStore
from assay.model.case_filter import CaseFilter
from assay.model.case_rows import Facets, IndexedCase
from assay.model.group import GroupComparison
from assay.model.run import RunRecord
from assay.ports import Store
from assay.results import calibrations
from assay.server.pages.overviews import RunOverview, overview_of
from assay.service.cases import case_facets, make_rows
from assay.service.groups import Group, kept_comparison
from assay.settings import Settings
from assay.version import __version__

T = TypeVar("T")
#: How many overviews and counts are kept in memory.
KEPT = 256


class Stopped(Exception):
    """The work was given up because the server stops."""


def _never() -> bool:
    return False


class Overviews:
    """The overviews of runs that have ended, and the counts of their cases; used by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str | None], Any] = OrderedDict()
        #: One thread makes an overview, and others wait for it.
        self._making: dict[tuple[str, str, str | None], threading.Lock] = {}

    def of(
        self,
        record: RunRecord,
        store: Store,
        settings: Settings,
        stopping: Callable[[], bool] = _never,
    ) -> RunOverview:
        """The overview of a run; call it in a thread. Raises Stopped once `stopping()` is true."""

        def make() -> RunOverview:
            place = _place("overview", record, store, calibrations.read(settings.root))
            found = _stored(store, place, RunOverview)
            if found is None:
                if record.status != "running" and not store.case_index.has(record.id):
                    store.case_index.add(record, _until(stopping, make_rows(store, record)))
                found = overview_of(record, store, settings)
                _store(store, place, found)
            return found

        return self._get("", record, make)

    def group(self, group: Group, store: Store) -> GroupComparison:
        """The comparison of a group whose runs have ended; call it in a thread."""
        ended = " ".join(f"{run.id} {run.finished_at}" for run in group.runs)
        return self._get(f"group {ended}", group.runs[-1], lambda: kept_comparison(group, store))

    def facets(self, store: Store, record: RunRecord, where: CaseFilter) -> Facets:
        """The counts of the cases that match: they take longer than a page of them."""

        def make() -> Facets:
            place = None if where.terms else _place("facets", record, store, None)
            found = _stored(store, place, Facets)
            if found is None:
                # What no page shows is not kept: a run may have a tag for each case.
                found = case_facets(store, record, where)
                found = replace(found, suite={}, tag={}, evaluator={})
                _store(store, place, found)
            return found

        return self._get(f"facets {where}", record, make)

    def _get(self, kind: str, record: RunRecord, make: Callable[[], T]) -> T:
        if record.status == "running":
            return make()
        key = (kind, record.id, record.finished_at)
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        try:
            with making:
                return self._find_or_make(key, make)
        finally:
            with self._lock:
                self._making.pop(key, None)

    def _find_or_make(self, key: tuple[str, str, str | None], make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                kept: T = self._kept[key]
                return kept
        found = make()
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found


def _until(stopping: Callable[[], bool], cases: Iterator[IndexedCase]) -> Iterator[IndexedCase]:
    for case in cases:
        if stopping():
            raise Stopped
        yield case


def _place(
    kind: str, record: RunRecord, store: Store, details: object
) -> tuple[str, str, str] | None:
    """Where the store keeps it: among the comparisons of the run and its baseline, if any.

    So it is forgotten with either of them. None if it is not kept: it may still change.
    """
    named, base = record.options.get("baseline"), record.id
    if record.verdict.baseline:
        try:
            base = find_run(record.verdict.baseline, store).id
        except NotInStore:  # it was in a file, or is deleted
            base = record.id
    history = store.baseline_history(named) if named in store.baselines() else []
    known = (history[0], base in history) if history else None
    parts = (__version__, kind, record.finished_at, base, known, record.verdict, details)
    return base, record.id, blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()


def _stored(store: Store, place: tuple[str, str, str] | None, kind: type[T]) -> T | None:
    found = None if place is None else store.case_index.comparison(*place)
    with suppress(msgspec.ValidationError):  # it was kept by other code of the same version
        return None if found is None else msgspec.json.decode(found, type=kind)
    return None


def _store(store: Store, place: tuple[str, str, str] | None, value: object) -> None:
    if place is not None:
        store.case_index.keep_comparison(*place, msgspec.json.encode(value))
