"""The data of responses. Their structs, and those of the model, give the document its schemas."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from assay.model import comparison
from assay.model.case_rows import CaseRow, Facets
from assay.model.comparison_tables import ComparisonTables
from assay.model.group import GroupComparison
from assay.model.label import AnswerLabel
from assay.model.result import CaseResult, Count
from assay.model.run import RunStatus
from assay.model.test_case import ShownTestCase, TestCase
from assay.server.envelope import Data
from assay.server.feed import Progress
from assay.service.history import ListedRun
from assay.service.trends import Point


class TestCasePage(Data, frozen=True):
    __test__ = False  # or pytest would collect the class for its name

    test_cases: list[ShownTestCase]
    count: Count
    total: Count


class VersionPage(Data, frozen=True):
    versions: list[TestCase]
    count: Count
    total: Count


class Run(ListedRun, frozen=True, forbid_unknown_fields=True):
    """A run with all but its results."""

    options: dict[str, Any]
    environment: dict[str, Any]
    summary: dict[str, Any] | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    progress: Progress | None


class RunPage(Data, frozen=True):
    runs: list[ListedRun]
    count: Count
    next: str | None


class Group(Data, rename="camel", frozen=True):
    """A group; `comparison` and `exit_code` are null as long as a run is in progress.

    The comparison has `count` of the `total` differing cases that are kept.
    """

    group_id: str
    runs: list[ListedRun]
    comparison: GroupComparison | None
    exit_code: int | None
    count: Count
    total: Count


class Result(CaseResult, frozen=True, kw_only=True):
    """A case as in a result file, with its suite and position."""

    suite: str
    position: Count


class ResultPage(Data, frozen=True):
    results: list[Result]
    facets: Facets
    count: Count
    total: Count
    next: str | None


class CaseRows(Data, frozen=True):
    """A page of the cases of a run, without their answers."""

    cases: list[CaseRow]
    facets: Facets
    count: Count
    total: Count
    next: str | None


class LabelList(Data, frozen=True):
    labels: list[AnswerLabel]
    count: Count


class Baseline(Data, rename="camel", frozen=True):
    name: str
    run_id: str
    started_at: str
    target: str
    status: RunStatus


class BaselineList(Data, frozen=True):
    baselines: list[Baseline]
    count: Count
    total: Count


class Trend(Data, frozen=True):
    points: list[Point]
    count: Count


class Health(Data, frozen=True):
    status: Literal["ok"]
    version: str
    runs: Count


def _comparison() -> Any:
    """A comparison with its lists of cases as ids, these lists by suite, and its tables."""
    known = msgspec.structs.fields(comparison.Comparison)
    fields = {field.encode_name: field.type for field in known}
    fields |= dict.fromkeys(comparison.LISTS, list[str])
    fields["suites"] = dict[str, dict[str, list[str]]]
    fields["tables"] = ComparisonTables
    return msgspec.defstruct("Comparison", fields.items(), bases=(Data,), frozen=True)


Comparison = _comparison()
