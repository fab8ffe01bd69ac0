"""The verb of `assay show`: a case of a recorded run, or the cases that match a filter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from assay.comparison.outcomes import LATEST, find_run
from assay.errors import NoSuchCase, NotInStore, UsageError, nearest
from assay.model.case_filter import CaseFilter, Term, parse_filter
from assay.model.case_rows import CasePage, parse_sort
from assay.model.case_view import CaseView
from assay.model.comparison import CaseRef
from assay.model.run import RunRecord, TrialRecord
from assay.model.run_result import RunResult
from assay.model.suite_result import EvalSuiteResult
from assay.ports import Store
from assay.service.cases import case_at, case_page, case_rows, find_case
from assay.service.groups import find_group, runs_of
from assay.service.project import project
from assay.service.store import store_to_read

R = TypeVar("R", bound=RunResult)
#: How many cases of a list are shown.
LISTED = 50
#: How many ids a name that no case has is compared with, and how similar a hint must be.
_MOST_COMPARED, _SIMILAR = 10_000, 0.75
_WORD = re.compile(r"[^\W_]+")


class Wanted(msgspec.Struct, frozen=True):
    """What to show: the names of a run, and of a case or a filter.

    `baseline` names the run whose answer is shown too; empty for the baseline of the run.
    """

    names: tuple[str, ...] = ()
    baseline: str | None = None
    sort: str = "position"
    limit: int = LISTED


class Shown(msgspec.Struct, frozen=True):
    """A case, or a page of a list. `before` is the same case of the run `base`."""

    run_id: str
    case: CaseView | None = None
    page: CasePage | None = None
    before: CaseView | None = None
    base: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `assay show --json`."""
        if self.page is not None:
            found: dict[str, Any] = msgspec.to_builtins(self.page)
            listed = {"runId": self.run_id, "total": self.page.total, "cases": found["rows"]}
            return listed | {"facets": found["facets"]}
        case: dict[str, Any] = msgspec.to_builtins(self.case)
        return case | ({"baseline": msgspec.to_builtins(self.before)} if self.base else {})


def show(wanted: Wanted, *, store: str | None = None) -> Shown:
    """The case or the list that was asked for."""
    with closing(store_to_read(project(), store)) as opened:
        run, rest = _split(wanted.names, opened)
        case = None if rest is None else _find(opened, run, rest)
        if case is not None:
            base, before = _before(opened, run, case, wanted.baseline)
            return Shown(run.id, case=case, before=before, base=base)
        if wanted.baseline is not None:
            raise UsageError("--baseline compares one case: name it by its id or position")
        where = _filter(opened, run, rest)
        page = case_page(opened, run, where, sort=parse_sort(wanted.sort), limit=wanted.limit)
        return Shown(run.id, page=page)


def _split(names: tuple[str, ...], store: Store) -> tuple[RunRecord, str | None]:
    """The run, and the case or filter; a single name that is not a run is one of the latest."""
    if names and (group := find_group(names[0], store)) is not None:
        how = f"`assay compare {group.id}` compares its targets"
        raise UsageError(f"{names[0]!r} is a group of runs: {how}; {runs_of(group)}")
    if len(names) == 1:
        try:
            return find_run(names[0], store), None
        except NotInStore:
            return find_run(LATEST, store), names[0]
    run = find_run(names[0] if names else LATEST, store)
    return run, names[1] if len(names) > 1 else None


def _find(store: Store, run: RunRecord, name: str) -> CaseView | None:
    """The case with this id, `FILE: ID` or position; None if there is none, or several."""
    refs = {ref for ref in _refs(store, run) if name in (ref.id, str(ref), ":".join(ref))}
    if len(refs) == 1:
        return find_case(store, run, *refs.pop())
    if not refs and name.isascii() and name.isdigit():
        with suppress(NotInStore):
            return case_at(store, run, int(name[:18]))
        raise NoSuchCase(f"the run {run.id} has no case with the id or at the position {name}")
    return None


def _refs(store: Store, run: RunRecord) -> Iterator[CaseRef]:
    return (CaseRef(t.suite, t.case_id) for t in store.facts(run.id) if not t.repeat)


def _filter(store: Store, run: RunRecord, text: str | None) -> CaseFilter:
    """The filter; an id that several suites have matches all of them."""
    if text is None:
        return CaseFilter()
    if any(ref.id == text for ref in _refs(store, run)):
        return CaseFilter((Term("id", values=(text,)),))
    where = parse_filter(text)
    searched = len(where.terms) == 1 and where.terms[0].field == "text"
    if not searched or where.terms[0].negated or case_page(store, run, where, limit=1).total:
        return where
    ids = {ref.id for ref in islice(_refs(store, run), _MOST_COMPARED)}
    hint = nearest(text, ids, _SIMILAR) or _with_similar_word(text, ids)
    raise NoSuchCase(f"no case of the run {run.id} matches {text!r}{hint and f': {hint}'}")


def _with_similar_word(text: str, ids: Set[str]) -> str:
    """A hint with up to three ids of which one word is similar, such as `oslo` in `cold-oslo`."""
    words = {word: nearest(text, (word,), _SIMILAR) for name in ids for word in _WORD.findall(name)}
    near = [name for name in sorted(ids) if any(map(words.get, _WORD.findall(name)))][:3]
    return f"similar ids: {', '.join(map(repr, near))}" if near else ""


def _before(
    store: Store, run: RunRecord, case: CaseView, baseline: str | None
) -> tuple[str, CaseView | None]:
    """The run to compare with, and the same case of it."""
    if baseline is None:
        return "", None
    name = baseline or run.verdict.baseline
    if not name:
        raise UsageError(f"the run {run.id} has no baseline: name a run, --baseline RUN")
    asked = str(run.options.get("baseline") or "")
    label = f"{asked} ({name})" if asked and not baseline and not name.startswith(asked) else name
    return label, find_case(store, find_run(name, store), case.row.suite, case.row.id)


def matching(store: Store, run: RunRecord, text: str) -> frozenset[CaseRef]:
    """The cases of a run that match a filter."""
    rows = case_rows(store, run, parse_filter(text))
    return frozenset(CaseRef(row.suite, row.id) for row in rows)


def narrowed(run: R, refs: Set[CaseRef]) -> R:
    """The run with only these cases; its counts are still those of all cases."""
    suites = tuple(
        replace(
            suite,
            entries=partial(_entries, suite, refs),
            records=partial(_records, suite, refs),
            comparability=partial(_comparability, suite, refs),
        )
        for suite in run.suites
    )
    return replace(run, suites=suites)


class _Id(msgspec.Struct):
    id: str


_decode_id = msgspec.json.Decoder(_Id).decode


def _entries(suite: EvalSuiteResult, refs: Set[CaseRef]) -> Iterator[bytes]:
    return (e for e in suite.entries() if (suite.file, _decode_id(e).id) in refs)


def _records(
    suite: EvalSuiteResult, refs: Set[CaseRef]
) -> Iterator[tuple[bytes, list[TrialRecord]]]:
    records = iter(()) if suite.records is None else suite.records()
    return (pair for pair in records if (suite.file, _decode_id(pair[0]).id) in refs)


def _comparability(suite: EvalSuiteResult, refs: Set[CaseRef]) -> Iterator[tuple[str, str]]:
    return (pair for pair in suite.comparability() if (suite.file, pair[0]) in refs)
