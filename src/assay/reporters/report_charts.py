"""The charts of an HTML report, each with its heading and a note."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from assay.charts.forest import RateRow, difference_forest, rate_forest
from assay.charts.markup import Chart
from assay.charts.squares import mcnemar_square
from assay.charts.strip import decision_strip
from assay.model.options import RunOptions
from assay.model.run_result import RunResult
from assay.reporters.report_rows import ReportRows
from assay.stats.proportions import wilson
from assay.text import count

#: Where the squares lead: filters of the list of all cases.
_CHANGED = {
    "regressed": "#filter=changed:regressed",
    "fixed": "#filter=changed:fixed",
    "both_failed": "#filter=changed:still-failing",
}


class ChartPanel(NamedTuple):
    title: str
    note: str
    chart: Chart


def charts(run: RunResult, rows: ReportRows) -> Iterator[ChartPanel]:
    """What changed, if the run was compared; otherwise the pass rates by tag and by suite."""
    compared = False
    for panel in _changes(run):
        compared = True
        yield panel
    if compared:
        return
    names = _names(run)
    suites = {names.get(file, file): found for file, found in rows.suites().items()}
    for what, found in (("tag", rows.tags()), ("suite", suites)):
        if len(found) > (what == "suite"):  # a single suite is the whole run
            title = f"Pass rate by {what}"
            yield ChartPanel(title, "dot and 95 % interval, the lowest first", _rates(found, title))


def _changes(run: RunResult) -> Iterator[ChartPanel]:
    tables = None if run.baseline is None else run.baseline.tables()
    if run.comparison is None or tables is None or not tables.total.pairs:
        return
    pairs, names = count(tables.total.pairs, "case"), _names(run)
    yield ChartPanel("What moved", f"{pairs} in both runs", mcnemar_square(tables.total, _CHANGED))
    if run.comparison.difference is not None:
        margin = run.record.options.get("margin", RunOptions.model_fields["margin"].default)
        strip = decision_strip(run.comparison.difference, margin, run.comparison.pairs)
        decision = run.comparison.decision.replace("_", " ")
        yield ChartPanel("Difference of the pass rate, in points", decision, strip)
    suites = [replace(row, name=names.get(row.name, row.name)) for row in tables.suites]
    for what, found in (("tag", tables.tags), ("suite", suites)):
        if len(found) > (what == "suite") and any(row.regressed or row.fixed for row in found):
            title = f"Difference by {what}"
            forest = difference_forest(found, f"{title}, in points")
            yield ChartPanel(title, "in points, the worst first", forest)


def _names(run: RunResult) -> dict[str, str]:
    """The names of suites by their files, as far as no two have the same."""
    counts = Counter(suite.name for suite in run.suites)
    return {suite.file: suite.name for suite in run.suites if counts[suite.name] == 1}


def _rates(found: Mapping[str, Counter[str]], caption: str) -> Chart:
    """The lowest rate first."""
    rows = []
    for name, outcomes in found.items():
        judged = outcomes["passed"] + outcomes["failed"]
        rows.append(RateRow(name, outcomes["passed"], judged, wilson(outcomes["passed"], judged)))
    rows.sort(key=lambda row: (row.rate is None, row.rate and row.rate.estimate, row.name))
    return rate_forest(rows, caption)
