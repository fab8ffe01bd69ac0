"""EvalCaseResult: what became of one case."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from assay.model.case import EvalCase
from assay.model.observation import Observation
from assay.model.score import EvaluationScore, Verdict

Outcome = Literal["passed", "failed", "errored", "skipped"]


class EvaluatorResult(msgspec.Struct, frozen=True):
    """The score that one evaluator of a case gave."""

    name: str
    type: str
    weight: float
    score: EvaluationScore

    def to_dict(self) -> dict[str, Any]:
        head = {"name": self.name, "type": self.type, "weight": self.weight}
        return head | self.score.to_dict()


class EvalCaseResult(msgspec.Struct, frozen=True):
    """What became of one case. `score` is None when it could not be judged.

    `scores` are those of the case's evaluators, in their order; there are none when it was
    not graded. `failures` are all reasons why it did not pass; `error` is them in one text.
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
        """Every evaluator with its score; made when asked for, as most cases just pass."""
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
        """How many assertions could not be checked for want of seed or snapshot data."""
        return sum(len(score.skipped_assertions) for score in self.scores)

    @property
    def details(self) -> dict[str, Any]:
        seen = self.observation
        details: dict[str, Any] = {
            "outcome": self.outcome,
            "score": self.score,
            "verdict": self.verdict,
            "evaluators": [result.to_dict() for result in self.evaluators],
            "response": seen.response,
            "failures": list(self.failures),
        }
        if seen.tool_calls is not None:
            details["toolsCalled"] = [call.tool for call in seen.tool_calls]
        if seen.usage is not None:
            details["usage"] = seen.usage.to_dict()
        if seen.cost_usd is not None:
            details["costUsd"] = seen.cost_usd
        if self.skipped_assertions:
            details["skippedAssertions"] = self.skipped_assertions
        if self.case.locate is not None:
            origin = self.case.origin
            details["source"] = f"{origin.file}:{origin.line}"
        return details

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a result file."""
        result: dict[str, Any] = {
            "id": self.id,
            "description": self.description,
            "passed": self.passed,
            "durationMs": self.duration_ms,
        }
        if self.error:
            result["error"] = self.error
        return result | {"details": self.details}
