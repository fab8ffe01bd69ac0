"""The JSON Schema 2020-12 of a result file, generated from structs.

The structs are only for the schema: results are written piece by piece, as a suite may have a
million cases. Tests check that the schema and the files of real runs agree.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from assay.model.case import Tier
from assay.model.result import Outcome
from assay.model.score import Verdict

Share = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Place = Annotated[str, Meta(description="file:line where the case was written")]


class Metadata(Struct, rename="camel", forbid_unknown_fields=True):
    """The tool and the eval file at the time of the run; what was not known is empty, or 0."""

    tool_version: str
    description_hash: str
    registry_size: Count
    eval_file_hash: str


class EvaluatorEntry(Struct, rename="camel"):
    """What one evaluator says of a case."""

    name: str
    type: str
    weight: Amount
    score: Share | UnsetType | None = UNSET
    verdict: Verdict | UnsetType | None = UNSET
    hits: list[str] | UnsetType = UNSET
    misses: list[str] | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class Trial(Struct, rename="camel"):
    """One repeat of a case."""

    repeat: Count
    outcome: Outcome
    score: Share | None
    duration_ms: Amount
    error: str | UnsetType = UNSET
    cached: bool | UnsetType = UNSET
    answered_at: str | UnsetType = UNSET
    retries: int | UnsetType = UNSET
    confirms: bool | UnsetType = UNSET


class Usage(Struct, rename="camel"):
    """Tokens that the target reported."""

    input_tokens: Count | UnsetType = UNSET
    output_tokens: Count | UnsetType = UNSET


class Details(Struct, rename="camel"):
    """What became of a case, and why."""

    outcome: Outcome
    evaluators: list[EvaluatorEntry]
    response: str
    failures: list[str]
    trials: list[Trial]
    score: Share | None
    verdict: Verdict | None
    tools_called: list[str] | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    cost_usd: Amount | UnsetType = UNSET
    source: Place | UnsetType = UNSET
    skipped_assertions: Count | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    critical: bool | UnsetType = UNSET
    cluster: str | UnsetType = UNSET
    pass_rate: Share | UnsetType = UNSET


class Case(Struct, rename="camel", forbid_unknown_fields=True):
    """The result of one case, all repeats together. An errored case has not passed."""

    id: str
    description: str
    passed: bool
    duration_ms: Amount
    details: Details
    error: str | UnsetType = UNSET


class Summary(Struct, rename="camel", forbid_unknown_fields=True):
    """Counts of cases: totalCases = passed + failed + errored + skipped."""

    total_cases: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    skipped_assertions: Count
    total_duration_ms: Amount
    coverage: Share | None
    estimated_cost_usd: Amount | UnsetType = UNSET
    judge_cost_usd: Amount | UnsetType = UNSET


class Result(Struct, rename="camel", forbid_unknown_fields=True):
    """What became of a suite in one run."""

    run_id: Annotated[str, Meta(description="a UUID, the same for all suites of a run")]
    timestamp: Annotated[str, Meta(description="ISO 8601")]
    tier: Tier
    tool_name: str
    metadata: Metadata
    staleness_warnings: list[str]
    cases: list[Case]
    summary: Summary
    regressions: Annotated[list[str], Meta(description="passed in the baseline, fail now")]
    new_passes: Annotated[list[str], Meta(description="failed in the baseline, pass now")]
    added: list[str]
    removed: list[str]
    not_comparable: list[str]
    unjudged: list[str]
    suite: str
    file: str
    target: str
    options: dict[str, Any]
    environment: dict[str, Any]
    statistics: dict[str, Any]
    comparability: Annotated[
        dict[str, str], Meta(description="by case: results compare when it is the same")
    ]
    baseline_run_id: str | UnsetType = UNSET


def result_schema(dialect: str) -> dict[str, Any]:
    """The schema of a result file."""
    (root,), definitions = msgspec.json.schema_components([Result], ref_template="#/$defs/{name}")
    return {"$schema": dialect, "title": "Assay result file", **root, "$defs": definitions}


def case_shapes(ref_template: str) -> dict[str, Any]:
    """The schemas of a case's result, `Case`, and of its parts, by name."""
    _, definitions = msgspec.json.schema_components([Case], ref_template=ref_template)
    return definitions
