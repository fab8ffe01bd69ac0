"""What the pages of a comparison show: charts, lists and their addresses."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple, cast
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from assay.charts.attempts import Attempts, attempt_strips
from assay.charts.forest import difference_forest
from assay.charts.markup import Chart
from assay.charts.squares import mcnemar_square
from assay.charts.strip import decision_strip
from assay.model.case_filter import CaseFilter, Term
from assay.model.case_view import CaseView
from assay.model.comparison_tables import PairCounts
from assay.model.result import Outcome
from assay.model.run import short_id
from assay.reporters.comparison_words import rate_change, what_changed
from assay.reporters.pair_words import BRIEF, FEW, Side, expected, sides
from assay.reporters.words import accepted
from assay.server.pages.places import case_list, compare_page
from assay.service.compared_runs import ComparedRuns, ListName, Pair

TITLES: dict[ListName, str] = {
    "regressed": "Regressed",
    "fixed": "Fixed",
    "not-comparable": "Not comparable",
    "not-judged": "Not judged",
    "still-failing": "Failed in both",
    "both-passed": "Passed in both",
    "flaky": "Flaky",
    "accepted": "Accepted",
    "added": "Added",
    "removed": "Removed",
}
ABOUT: dict[ListName, str] = {
    "regressed": "passed before and fail now",
    "fixed": "failed before and pass now",
    "not-comparable": "the case changed, so that its outcomes do not compare",
    "not-judged": "errored in one of the runs",
    "still-failing": "failed before and fail now",
    "both-passed": "passed before and pass now",
    "flaky": "passed and failed within one of the runs",
    "accepted": "fail now, as the configuration accepts",
    "added": "only in the candidate",
    "removed": "only in the base",
}


class Row(msgspec.Struct, frozen=True):
    """A case of a list. `note` is why it is in it, or how it stands."""

    id: str
    suite: str
    tags: tuple[str, ...]
    address: str
    note: str
    expected: tuple[str, ...]
    before: Side | None
    now: Side | None


class Panel(NamedTuple):
    """A chart with its title, and a note beside that."""

    title: str
    note: str
    chart: Chart


class Address(msgspec.Struct, frozen=True):
    """Makes the addresses of a comparison."""

    base: str
    candidate: str

    def of(self, name: ListName, at: int = 0) -> str:
        """A list from one of its cases on."""
        more: dict[str, object] = {"list": name} | ({"at": at} if at else {})
        return f"/compare?{self._query(more)}#cases"

    def case(self, name: ListName, at: int) -> str:
        return f"/compare/case?{self._query({'list': name, 'at': at})}"

    @property
    def swapped(self) -> str:
        return compare_page(self.candidate, self.base)

    def _query(self, more: dict[str, object]) -> str:
        return urlencode({"base": self.base, "candidate": self.candidate} | more)


def heads_of(found: ComparedRuns) -> tuple[str, str]:
    """What the runs are called above their answers: `main (v1)`."""
    before, now = (
        (asked if not run.id.startswith(asked) else short_id(run.id))
        + (f" ({run.target})" if run.target else "")
        for asked, run in zip(found.asked, (found.base, found.candidate), strict=True)
    )
    return before, now


def attempts_of(pairs: list[Pair], address: Address, name: ListName) -> Chart:
    """The repeats of cases in both runs."""
    cases = [
        Attempts(
            pair.ref.id, _outcomes(pair.now), _outcomes(pair.before), address.case(name, pair.at)
        )
        for pair in pairs
    ]
    return attempt_strips(cases, "Repeats in order, those of the base above")


def _outcomes(view: CaseView | None) -> tuple[Outcome, ...]:
    trials = () if view is None else view.trials
    return tuple(cast("Outcome", trial.outcome) for trial in trials if not trial.confirms)


def is_repeated(pair: Pair) -> bool:
    return len(_outcomes(pair.before)) > 1 or len(_outcomes(pair.now)) > 1


def strip_of(found: ComparedRuns) -> Chart | None:
    difference = found.comparison.difference
    if difference is None:
        return None
    return decision_strip(difference, found.rules.margin, found.comparison.pairs)


def _cells(address: Address) -> dict[str, str]:
    """The lists behind the cells of the square."""
    return {
        "both_passed": address.of("both-passed"),
        "regressed": address.of("regressed"),
        "fixed": address.of("fixed"),
        "both_failed": address.of("still-failing"),
    }


def panels_of(found: ComparedRuns, address: Address) -> tuple[list[Panel], list[Panel]]:
    """The charts of the left and of the right column."""
    square = mcnemar_square(found.tables.total, _cells(address))
    moved = Panel("What moved", rate_change(found.comparison), square)
    suites, tags = found.tables.suites, found.tables.tags
    by_suite = [_forest(found, "suite", suites)] if len(suites) > 1 else []
    by_tag = [_forest(found, "tag", tags)] if tags else []
    if len(suites) >= len(tags):
        return [moved, *by_tag], by_suite
    return [moved, *by_suite], by_tag


def _forest(found: ComparedRuns, field: str, rows: list[PairCounts]) -> Panel:
    """Where the pass rate changed. Files are named without the folder that all are in."""
    folder = _common_folder([row.name for row in rows]) if field == "suite" else ""
    links = {
        row.name.removeprefix(folder): case_list(
            found.candidate.id, CaseFilter((Term(field, values=(row.name,)),))
        )
        for row in rows
    }
    named = [replace(row, name=row.name.removeprefix(folder)) for row in rows]
    chart = difference_forest(named, f"Difference of the pass rates by {field}", links)
    return Panel(f"Where, by {field}", "difference in points and its interval", chart)


def _common_folder(files: list[str]) -> str:
    """The folder that all files are in, with a slash at its end; empty if there is none."""
    folders = (file.split("/")[:-1] for file in files)
    same = takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    return "".join(f"{parts[0]}/" for parts in same)


def row_of(pair: Pair, name: ListName, found: ComparedRuns, address: Address) -> Row:
    before, now = sides(pair.before, pair.now, BRIEF, FEW)
    view = pair.now or pair.before
    return Row(
        pair.ref.id,
        pair.ref.suite,
        () if view is None else view.row.tags,
        address.case(name, pair.at),
        _note(pair, name, found),
        () if view is None else expected(pair.before, pair.now, FEW),
        before,
        now,
    )


def _note(pair: Pair, name: ListName, found: ComparedRuns) -> str:
    """Why a case is in its list, or how it stands."""
    notes = {loss.ref: loss.reason for loss in found.comparison.losses}
    notes |= {case.ref: accepted(case) for case in found.comparison.accepted}
    if name == "not-comparable" and pair.before is not None and pair.now is not None:
        return what_changed(pair.before.content, pair.now.content)
    return notes.get(pair.ref, "") if name in ("regressed", "accepted") else ""
