"""`/trend`: the pass rate over the runs of each target, with what they cost and took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from assay.charts.intervals import rate_words
from assay.charts.markup import Chart
from assay.charts.trend import Amount, TrendPoint, amount_trend, rate_trend
from assay.comparison.outcomes import newest_first
from assay.errors import UsageError
from assay.model.run import short_id
from assay.ports import Store
from assay.server.pages.places import compare_page, run_page
from assay.server.pages.rendering import page, render
from assay.server.requests import quoted
from assay.server.state import state_of
from assay.service.trends import LAST, DescribedPoint, by_target, described, points_of
from assay.text import duration, money

#: The most runs that are drawn, and how many of the latest are searched for names to pick.
MAX_RUNS, SEARCHED = 60, 200
_REVISION = 7


class Series(msgspec.Struct, frozen=True):
    """The runs of one target. `newest` is the last of them in words."""

    target: str
    runs: int
    newest: str
    compare: str
    baseline: str
    rates: Chart
    costs: Chart | None
    times: Chart


async def get(request: Request) -> Response:
    """The trend of all targets, or of one; of whole runs, or of a suite."""
    state, query = state_of(request), request.query_params
    target, suite = query.get("target") or None, query.get("suite") or None
    last = _last(query.get("last", ""))
    reading = partial(_values, state.store, target, suite, last)
    return render("trend.html", request, **await state.scan(reading, request))


def _last(text: str) -> int:
    if not text:
        return LAST
    if text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= MAX_RUNS:
        return int(text)
    raise UsageError(f"last is {quoted(text)}; it must be a number from 1 to {MAX_RUNS}")


def _values(store: Store, target: str | None, suite: str | None, last: int) -> dict[str, Any]:
    points = points_of(store, suite, last, target)
    found = {point.point.run_id: point for point in described(store, points, suite)}
    targets, suites = _names(store)
    return {
        "series": [
            _series(name, [found[point.run_id] for point in listed])
            for name, listed in by_target(points).items()
        ],
        "picks": (
            ("Target", "target", targets, target),
            ("Suite", "suite", suites, suite),
        ),
        "last": last,
        "max_runs": MAX_RUNS,
    }


def _names(store: Store) -> tuple[list[str], list[str]]:
    """The targets and the suites of the latest runs."""
    targets, suites = set[str](), set[str]()
    for record in islice(newest_first(store), SEARCHED):
        targets.add(record.target)
        suites.update(header.file for header in record.suites)
    return sorted(filter(None, targets)), sorted(filter(None, suites))


def _series(target: str, points: Sequence[DescribedPoint]) -> Series:
    baseline = _baseline(points)
    costs = [_amount(point, point.cost_usd) for point in points]
    times = [_amount(point, point.latency_ms) for point in points]
    is_known = any(amount.value is not None for amount in costs)
    newest = points[-1].point
    base = baseline or (points[-2].point.run_id if len(points) > 1 else "")
    return Series(
        target or "no target",
        len(points),
        f"{rate_words(newest.pass_rate)}, {newest.passed:,} of {newest.judged:,}",
        compare_page(base, newest.run_id) if base else "",
        baseline,
        rate_trend([_point(point, baseline) for point in points], "Pass rate"),
        amount_trend(costs, "Cost", money, 0.0001) if is_known else None,
        amount_trend(times, "Mean time of a case", duration, 1.0),
    )


def _baseline(points: Sequence[DescribedPoint]) -> str:
    """The name of the baseline that most of these runs were; empty if none was."""
    names = Counter(name for point in points for name in point.baselines)
    return min(names, key=lambda name: (-names[name], name), default="")


def _point(found: DescribedPoint, baseline: str) -> TrendPoint:
    point = found.point
    parts = [
        short_id(point.run_id),
        point.started_at[:16].replace("T", " ") + " UTC",
        found.partial,
    ]
    return TrendPoint(
        _name(found),
        point.passed,
        point.judged,
        point.pass_rate,
        point.comparability,
        not found.partial,
        bool(baseline) and baseline in found.baselines,
        ", ".join(filter(None, parts)),
        run_page(point.run_id),
    )


def _amount(found: DescribedPoint, value: float | None) -> Amount:
    return Amount(_name(found), value, run_page(found.point.run_id))


def _name(found: DescribedPoint) -> str:
    """The commit of a run, or else its day."""
    return found.revision[:_REVISION] or found.point.started_at[:10]


ROUTES = [page("/trend", get, "target", "suite", "last")]
