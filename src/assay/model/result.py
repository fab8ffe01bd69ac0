"""The result of one case: graded in memory, and as a result file and the store have it.

The structs here and in `suite_result.py` write result files, read them and give their schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from assay.model.case import EvalCase
from assay.model.json_encoding import as_dict, as_json
from assay.model.observation import Observation, Usage
from assay.model.score import Amount, EvaluationScore, EvaluatorEntry, Share, Verdict
from assay.record import Record

Outcome = Literal["passed", "failed", "errored", "skipped"]
#: The outcomes of judged cases.
JUDGED: tuple[Outcome, ...] = ("passed", "failed")


Count = Annotated[int, msgspec.Meta(ge=0)]
Place = Annotated[str, msgspec.Meta(description="file:line where the case was written")]


class TrialEntry(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One attempt at a case, in the `trials` of its details."""

    repeat: Count
    outcome: Outcome
    score: Share | None
    duration_ms: Amount
    error: str = ""
    cached: bool = False
    confirms: bool = False
    #: When the target gave an answer that came from the cache.
    answered_at: str = ""
    #: How many times the request was repeated after an error.
    retries: Count = 0


class TrialDetails(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The details of a result, without the answer."""

    outcome: Outcome
    score: Share | None
    verdict: Verdict | None
    evaluators: Sequence[EvaluatorEntry]
    failures: Sequence[str]
    trials: Sequence[TrialEntry]
    tools_called: Sequence[str] | None = None
    usage: Usage | None = None
    cost_usd: Amount | None = None
    skipped_assertions: Count = 0
    source: Place = ""
    notes: tuple[str, ...] = ()
    critical: bool = False
    cluster: str | None = None
    pass_rate: Share | None = None


class CaseDetails(TrialDetails, frozen=True, kw_only=True):
    """The outcome of a case, and how it came about."""

    # The last three are inserted without parsing, see TrialRecord.
    tags: Sequence[str] = ()
    input: Annotated[
        Sequence[dict[str, Any]], msgspec.Meta(description="the messages that were asked")
    ] = ()
    response: str


class TrialResult(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """The result of one trial, as the store keeps it: the answer is in its observation."""

    id: str
    description: str
    passed: bool
    duration_ms: Amount
    error: str | None = None
    details: TrialDetails


class CaseResult(TrialResult, frozen=True, kw_only=True):
    """The result of one case over all repeats: an entry of a result file.

    An errored case has not passed.
    """

    details: CaseDetails

    @property
    def outcome(self) -> Outcome:
        return self.details.outcome

    @property
    def score(self) -> float | None:
        return self.details.score

    @property
    def verdict(self) -> Verdict | None:
        return self.details.verdict

    @property
    def failures(self) -> Sequence[str]:
        """Every reason why it did not pass."""
        return self.details.failures

    @property
    def source(self) -> tuple[str, int]:
        """The file and line of the case; an empty name when unknown."""
        file, _, line = self.details.source.rpartition(":")
        return (file, int(line)) if line.isdigit() else ("", 0)

    @property
    def trials(self) -> Sequence[TrialEntry]:
        """Every attempt, including those that ask a lost case again."""
        return self.details.trials


decode_case = msgspec.json.Decoder(CaseResult).decode
decode_trial = msgspec.json.Decoder(TrialResult).decode


class AnswerSource(msgspec.Struct, frozen=True):
    """How the answer of a trial was obtained: asked for, perhaps repeatedly, or from the cache."""

    cached: bool = False
    answered_at: str = ""
    retries: int = 0


ASKED_ONCE = AnswerSource()


class EvaluatorResult(msgspec.Struct, frozen=True):
    """The score that one evaluator of a case gave."""

    name: str
    type: str
    weight: float
    score: EvaluationScore

    def to_dict(self) -> dict[str, Any]:
        return as_dict(self.score.written(self.name, self.type, self.weight))


class EvalCaseResult(Record, frozen=True):
    """The result of one case. `score` is None when it could not be judged.

    `scores` are those of the case's evaluators, in order; empty when it was not graded.
    `failures` are all reasons why it did not pass, and `error` is all of them in one text.
    """

    case: EvalCase
    outcome: Outcome
    score: float | None
    verdict: Verdict | None
    scores: tuple[EvaluationScore, ...]
    observation: Observation
    failures: tuple[str, ...] = ()

    @property
    def evaluators(self) -> tuple[EvaluatorResult, ...]:
        """Every evaluator with its score; created on demand, as most cases just pass."""
        pairs = zip(self.case.evaluators, self.scores, strict=False)
        return tuple(EvaluatorResult(e.name, e.type, e.weight, score) for e, score in pairs)

    @property
    def id(self) -> str:
        return self.case.id

    @property
    def description(self) -> str:
        return self.case.description

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def duration_ms(self) -> float:
        return self.observation.duration_ms or 0.0

    @property
    def error(self) -> str | None:
        return None if self.passed else "; ".join(self.failures)

    @property
    def skipped_assertions(self) -> int:
        """How many assertions could not be checked for lack of seed or snapshot data."""
        count = 0
        for score in self.scores:
            if score.skipped_assertions:
                count += len(score.skipped_assertions)
        return count

    @property
    def details(self) -> dict[str, Any]:
        return as_dict(self._entry().details)

    def to_dict(self) -> dict[str, Any]:
        """The entry in a result file."""
        return as_dict(self._entry())

    def to_json(self) -> bytes:
        """The entry in a result file, as JSON."""
        return as_json(self._entry())

    def recorded(
        self, repeat: int, answer_source: AnswerSource = ASKED_ONCE, *, confirms: bool = False
    ) -> bytes:
        """The JSON of one trial, without the answer, which is in the observation."""
        # If the answer came from the cache, the target was not asked, so no time passed.
        duration_ms = 0.0 if answer_source.cached else self.duration_ms
        known = (repeat, self.outcome, self.score, duration_ms, self.error or "")
        how = (answer_source.cached, confirms, answer_source.answered_at, answer_source.retries)
        return as_json(
            TrialResult(
                id=self.case.id,
                description=self.case.description,
                passed=self.passed,
                duration_ms=duration_ms,
                error=self.error or None,
                details=TrialDetails(*self._details([TrialEntry(*known, *how)])),
            )
        )

    def _entry(self) -> CaseResult:
        return CaseResult(
            id=self.case.id,
            description=self.case.description,
            passed=self.passed,
            duration_ms=self.duration_ms,
            error=self.error or None,
            details=CaseDetails(*self._details(()), response=self.observation.response),
        )

    def _details(self, trials: Sequence[TrialEntry]) -> tuple[Any, ...]:
        """The fields of the details."""
        observation, case = self.observation, self.case
        calls = observation.tool_calls
        return (
            self.outcome,
            self.score,
            self.verdict,
            [
                score.written(spec.name, spec.type, spec.weight)
                for spec, score in zip(case.evaluators, self.scores, strict=False)
            ],
            self.failures,
            trials,
            None if calls is None else [call.tool for call in calls],
            observation.usage,
            observation.cost_usd,
            self.skipped_assertions,
            "" if case.locate is None else case.origin.place,
            observation.notes,
            case.critical,
            case.cluster,
        )
