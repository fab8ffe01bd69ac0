"""The verb of `assay trend`: the pass rate over the runs of a project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from assay.comparison.outcomes import newest_first
from assay.errors import UsageError, nearest
from assay.model.names import same_name
from assay.model.result import Count
from assay.model.run import RunRecord
from assay.ports import Store
from assay.service.store import project_store
from assay.stats.estimates import Estimate
from assay.stats.proportions import wilson

#: How many runs are shown by default.
LAST = 20


class Point(msgspec.Struct, frozen=True, rename="camel"):
    """The pass rate of one run, or of one of its suites.

    Points with the same `comparability` are about the same questions and expectations; it is None
    for runs of older versions.
    """

    run_id: str
    started_at: str
    target: str
    passed: Count
    judged: Count
    pass_rate: Estimate
    comparability: str | None = None


class DescribedPoint(msgspec.Struct, frozen=True):
    """A point with the git revision, the cost and the mean time of a case, as far as known.

    `partial` says why the run does not have all cases. `baselines` are the names of those that it
    is or was.
    """

    point: Point
    revision: str
    cost_usd: float | None
    latency_ms: float | None
    partial: str
    baselines: tuple[str, ...]


def trend(
    suite: str | None = None,
    last: int = LAST,
    *,
    target: str | None = None,
    store: str | None = None,
) -> list[Point]:
    """The latest finished runs with a pass rate, target by target, the oldest run of each first.

    `suite` is the file of a suite, relative to the project root, or its name. `target` is the name
    of a target as runs record it.
    """
    with project_store(store) as opened:
        return points_of(opened, suite, last, target)


def points_of(
    store: Store, suite: str | None = None, last: int = LAST, target: str | None = None
) -> list[Point]:
    """`trend` for an open store."""
    found: list[Point] = []
    suites: set[str] = set()
    targets: set[str] = set()
    for record in newest_first(store):
        if record.status != "finished":
            continue
        suites.update(name for header in record.suites for name in (header.file, header.name))
        targets.add(record.target)
        point = _point(record, suite) if target in (None, record.target) else None
        if point is not None:
            found.append(point)
        if len(found) == last:
            break
    _check_known("suite", suite, suites)
    _check_known("target", target, targets)
    return [point for points in by_target(found[::-1]).values() for point in points]


def described(
    store: Store, points: Iterable[Point], suite: str | None = None
) -> list[DescribedPoint]:
    """The points with what else is known of their runs."""
    names: dict[str, list[str]] = {}
    for name in sorted(store.baselines()):
        for run_id in dict.fromkeys(store.baseline_history(name)):
            names.setdefault(run_id, []).append(name)
    return [
        _described(point, store.run(point.run_id), suite, names.get(point.run_id, ()))
        for point in points
    ]


def _described(
    point: Point, record: RunRecord, suite: str | None, baselines: Iterable[str]
) -> DescribedPoint:
    counts = _counts(record, suite)
    costs = [part["estimatedCostUsd"] for part in counts if "estimatedCostUsd" in part]
    asked = sum(part["totalCases"] - part["skipped"] for part in counts)
    took = sum(part["totalDurationMs"] for part in counts)
    return DescribedPoint(
        point,
        str((record.environment.get("git") or {}).get("revision", "")),
        sum(costs) if costs else None,
        took / asked if asked else None,
        record.partial,
        tuple(baselines),
    )


def by_target(points: Iterable[Point]) -> dict[str, list[Point]]:
    """The points of each target: rates of different targets are not one trend."""
    series: dict[str, list[Point]] = {}
    for point in points:
        series.setdefault(point.target, []).append(point)
    return series


def _check_known(kind: str, name: str | None, known: set[str]) -> None:
    if name is not None and not any(same_name(name, other) for other in known):
        hint = nearest(name, known)
        raise UsageError(f"no run has a {kind} {name!r}" + (f"; {hint}" if hint else ""))


def _point(record: RunRecord, suite: str | None) -> Point | None:
    counts = _counts(record, suite)
    passed = sum(part["passed"] for part in counts)
    judged = passed + sum(part["failed"] for part in counts)
    rate = wilson(passed, judged)
    if rate is None:
        return None
    if len(counts) == 1 and (known := counts[0].get("statistics", {}).get("passRate")):
        rate = Estimate(**known)  # it accounts for clusters
    keys = [part.get("comparability") for part in counts]
    key = "-".join(filter(None, keys)) if all(keys) else None
    return Point(record.id, record.started_at, record.target, passed, judged, rate, key)


def _counts(record: RunRecord, suite: str | None) -> list[dict[str, Any]]:
    """The counts of the whole run, or of the suites that `suite` names."""
    summary = record.summary or {}
    if suite is None:
        return [summary] if "passed" in summary else []
    parts = summary.get("suites", ())
    pairs = zip(record.suites, parts, strict=False)
    return [
        part
        for header, part in pairs
        if same_name(suite, header.file) or same_name(suite, header.name)
    ]
