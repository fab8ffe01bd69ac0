"""The data of responses: FastAPI generates their documentation.

Responses are not validated, as they are made from checked records; tests compare them with the
document.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from assay.model.comparison import Decision, GateVerdict, LossStatus
from assay.model.options import Gate
from assay.model.run import RunStatus
from assay.server.envelope import Closed
from assay.server.schemas import TIME, UUID_SCHEMA, Description, Tags, Text

Count = Annotated[int, Field(ge=0)]
Stamp = Annotated[str, Field(pattern=TIME, json_schema_extra={"format": "date-time"})]


class Data(Closed):
    """Data of a response, in the names of result files."""

    model_config = ConfigDict(alias_generator=to_camel)


class TestCase(Closed):
    __test__ = False

    id: Annotated[str, UUID_SCHEMA]
    input: Text
    expected_output: Text
    description: Description | None
    tags: Tags
    created_at: Stamp
    modified_at: Stamp


class TestCaseVersion(TestCase):
    version: Annotated[int, Field(ge=1)]


class TestCasePage(Closed):
    __test__ = False

    test_cases: list[TestCase]
    count: Count
    total: Count


class VersionPage(Closed):
    versions: list[TestCaseVersion]
    count: Count
    total: Count


class OfRun(Data):
    run_id: str
    started_at: str
    target: str


class ListedRun(OfRun):
    finished_at: str | None
    status: RunStatus
    suites: list[str]
    total_cases: Count | None
    passed: Count | None
    failed: Count | None
    errored: Count | None
    skipped: Count | None
    verdict: GateVerdict | None
    exit_code: int | None
    baselines: list[str]


class Progress(Data):
    run_id: str
    planned: Count | None
    done: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    cost_usd: float


class Run(ListedRun):
    options: dict[str, Any]
    environment: dict[str, Any]
    summary: dict[str, Any] | None
    reasons: list[str]
    notes: list[str]
    progress: Progress | None


class RunPage(Data):
    runs: list[ListedRun]
    count: Count
    next: str | None


class Result(Data):
    """A case as in a result file, with its suite and position; the document has its schema."""


class ResultPage(Data):
    results: list[Result]
    count: Count
    total: Count
    next: Count | None


class Baseline(OfRun):
    name: str
    status: RunStatus


class BaselineList(Data):
    baselines: list[Baseline]
    count: Count
    total: Count


class Estimate(Data):
    estimate: float
    low: float | None
    high: float | None
    level: float
    method: str


class Point(OfRun):
    passed: Count
    judged: Count
    pass_rate: Estimate


class Trend(Data):
    points: list[Point]
    count: Count


class SignificanceTest(Data):
    name: str
    p_value: float
    discordant: Annotated[list[Count], Field(min_length=2, max_length=2)]
    e_value: float | None = None


class WorseTest(Data):
    name: str
    p_value: float
    significant: bool


class ScoreTest(Data):
    value: float
    method: str
    adjusted: float


class ScoreDifference(Data):
    suite: str
    pairs: Count
    difference: Estimate
    test: ScoreTest


class Reasks(Data):
    passed: Count
    failed: Count
    errored: Count


class Loss(Data):
    suite: str
    id: str
    status: LossStatus
    critical: bool
    reasks: Reasks
    reason: str


class AcceptedCase(Data):
    suite: str
    id: str
    reason: str
    until: str = ""


class Comparison(Data):
    base: str
    candidate: str
    verdict: GateVerdict
    decision: Decision
    pairs: Count
    difference: Estimate | None
    test: SignificanceTest | None
    worse: WorseTest | None
    scores: list[ScoreDifference]
    losses: list[Loss]
    accepted: list[AcceptedCase]
    regressions: list[str]
    new_passes: list[str]
    still_failing: list[str]
    added: list[str]
    removed: list[str]
    not_comparable: list[str]
    unjudged: list[str]
    flaky: list[str]
    suites: dict[str, dict[str, list[str]]]
    gate: Gate
    gate_failures: list[str]
    undecided: list[str]
    explanation: str
    warnings: list[str]
    notes: list[str]
    exit_code: int


class Health(Data):
    status: Literal["ok"]
    version: str
    runs: Count
