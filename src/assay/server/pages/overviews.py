"""RunOverview: what a run page says above its list, in the words of the reports.

It takes a scan of the whole run: `kept_overviews` keeps those of runs that have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from assay.charts.forest import RateRow
from assay.comparison.outcomes import find_run
from assay.errors import NotInStore
from assay.model.case_filter import CaseFilter, Term, folded, parse_filter
from assay.model.case_rows import Facets
from assay.model.run import RunRecord
from assay.model.run_result import RunResult
from assay.ports import Store
from assay.reporters.failure_groups import FailureGroup, FailureGroups
from assay.reporters.words import facts, opening, tone_of, verdict, warnings
from assay.server.pages.case_lists import why_and_source
from assay.server.pages.places import case_list
from assay.service.cases import case_facets, case_rows, trials_at
from assay.service.history import restored
from assay.settings import Settings
from assay.stats.estimates import Estimate
from assay.stats.proportions import wilson

#: How many failures are grouped by their reasons, and how many are read at once.
MAX_GROUPED, _AT_ONCE = 5000, 500
#: How many groups, suites and tags are shown.
MAX_GROUPS, MAX_RATES = 8, 40
#: The shortest piece of a reason that a link searches for, and how many pieces.
_MIN_PIECE, _MAX_PIECES = 4, 3
_NOT_PASSED = parse_filter("outcome:failed,errored")


class Group(msgspec.Struct, frozen=True):
    """Failures with a reason in common, and the list of them."""

    cases: int
    reason: str
    address: str


class RunOverview(msgspec.Struct, frozen=True):
    """Everything above the list of cases, and no more: it is kept.

    `base` is the run that it was compared with, if any. The lowest `suites` and `tags` are there,
    of as many as `rates` says.
    """

    word: str
    tone: str
    sentence: str
    said: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[tuple[str, str], ...]
    suites: list[RateRow]
    tags: list[RateRow]
    groups: list[Group]
    #: How many failures were grouped, and how many there are.
    grouped: tuple[int, int]
    rates: tuple[int, int]
    base: str
    regressions: int


def overview_of(record: RunRecord, store: Store, settings: Settings) -> RunOverview:
    """The overview of a run as it is now."""
    run = restored(record, store, settings)
    base = _base(record, store)
    groups, grouped = _groups(record, store)
    compared, (sentence, said) = run.comparison, opening(run)
    suites, tags = _suites(run, base), _tags(record, base, store)
    return RunOverview(
        word=verdict(run),
        tone=tone_of(verdict(run)),
        sentence=sentence,
        said=tuple(said),
        facts=tuple(facts(run)),
        warnings=tuple(warnings(run)),
        suites=suites[:MAX_RATES],
        tags=tags[:MAX_RATES],
        groups=groups,
        grouped=(grouped, run.summary.failed + run.summary.errored),
        rates=(len(suites), len(tags)),
        base="" if compared is None else compared.base,
        regressions=0 if compared is None else len(compared.regressions),
    )


def _base(record: RunRecord, store: Store) -> RunRecord | None:
    """The run that it was compared with, if the store still has it."""
    try:
        return find_run(record.verdict.baseline, store) if record.verdict.baseline else None
    except NotInStore:
        return None


def _suites(run: RunResult, base: RunRecord | None) -> list[RateRow]:
    """The pass rate of each suite, the lowest first."""
    before = {
        part.get("file"): (part.get("passed", 0), part.get("failed", 0))
        for part in ((base.summary if base else None) or {}).get("suites", ())
    }
    rows = [
        RateRow(
            suite.name,
            suite.summary.passed,
            suite.summary.judged,
            _estimate(suite.statistics.get("passRate")),
            _share(*before.get(suite.file, (0, 0))),
            case_list(run.id, CaseFilter((Term("suite", values=(suite.file,)),))),
        )
        for suite in run.suites
        if suite.summary.judged
    ]
    return sorted(rows, key=_lowest_first)


def _estimate(rate: dict[str, object] | None) -> Estimate | None:
    return None if not rate else msgspec.convert(rate, Estimate)


def _tags(record: RunRecord, base: RunRecord | None, store: Store) -> list[RateRow]:
    """The pass rate of each tag, the lowest first."""
    passed, failed = _by_outcome(record, store)
    before = _by_outcome(base, store) if base is not None else ({}, {})
    rows = []
    for tag in {*passed, *failed}:
        good, bad = passed.get(tag, 0), failed.get(tag, 0)
        where = CaseFilter((Term("tag", values=(tag,)),))
        earlier = _share(before[0].get(tag, 0), before[1].get(tag, 0))
        rate, address = wilson(good, good + bad), case_list(record.id, where)
        rows.append(RateRow(tag, good, good + bad, rate, earlier, address))
    return sorted(rows, key=_lowest_first)


def _by_outcome(record: RunRecord, store: Store) -> tuple[dict[str, int], dict[str, int]]:
    """How many cases of each tag passed, and how many failed."""
    found: list[Facets] = [
        case_facets(store, record, parse_filter(f"outcome:{outcome}"))
        for outcome in ("passed", "failed")
    ]
    return found[0].tag, found[1].tag


def _share(passed: int, failed: int) -> float | None:
    return passed / (passed + failed) if passed + failed else None


def _lowest_first(row: RateRow) -> tuple[float, str]:
    return row.passed / row.judged, row.name


def _groups(record: RunRecord, store: Store) -> tuple[list[Group], int]:
    """The largest groups of failures with a reason in common, and how many were read."""
    found, grouped = FailureGroups(), 0
    firsts: dict[int, int] = {}
    positions = (row.position for row in case_rows(store, record, _NOT_PASSED))
    for position, reason in _reasons(record, store, islice(positions, MAX_GROUPED)):
        firsts.setdefault(found.add(reason), position)
        grouped += 1
    largest = found.largest()[:MAX_GROUPS]
    written = dict(_reasons(record, store, (firsts[group.number] for group in largest)))
    linked = [_linked(group, written[firsts[group.number]], record.id) for group in largest]
    return linked, grouped


def _reasons(
    record: RunRecord, store: Store, positions: Iterable[int]
) -> Iterator[tuple[int, str]]:
    """The first reason of each of these cases, with its position."""
    remaining = iter(positions)
    while batch := list(islice(remaining, _AT_ONCE)):
        for position, trials in trials_at(store, record, batch).items():
            yield position, why_and_source(trials)[0]


def _linked(group: FailureGroup, written: str, run_id: str) -> Group:
    """The group with a link to a search for what its reasons have in common.

    `written` is a reason of it as it is searched: that of the group has single spaces, and may be
    cut. Other reasons have nothing in common.
    """
    parts = group.reason.split("…") if group.number else []
    pieces = [piece for part in parts for piece in _pieces(part.strip(), written)]
    pieces = sorted((piece for piece in pieces if len(piece) >= _MIN_PIECE), key=len, reverse=True)
    pieces = pieces[:_MAX_PIECES]
    texts = tuple(Term("text", values=(folded(piece),)) for piece in pieces)
    where = CaseFilter((*_NOT_PASSED.terms, *texts))
    return Group(group.cases, group.reason, case_list(run_id, where))


def _pieces(text: str, written: str) -> Iterator[str]:
    """The longest pieces of the text, from word to word, that are written like this."""
    piece = ""
    for word in text.split(" "):
        longer = f"{piece} {word}" if piece else word
        if longer in written:
            piece = longer
        else:
            yield piece
            piece = word if word in written else ""
    yield piece
