"""EvalCaseResult: the graded result of one case."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from assay.model.case import EvalCase
from assay.model.observation import Observation, Usage
from assay.model.score import EvaluationScore, Verdict, WrittenScore
from assay.model.written import as_dict, as_json
from assay.record import Record

Outcome = Literal["passed", "failed", "errored", "skipped"]
#: The outcomes of judged cases.
JUDGED: tuple[Outcome, ...] = ("passed", "failed")


class _Trial(msgspec.Struct, omit_defaults=True, rename="camel"):
    """One attempt at a case, in the `trials` of its details."""

    repeat: int
    outcome: Outcome
    score: float | None
    duration_ms: float
    error: str = ""
    cached: bool = False
    confirms: bool = False
    #: When the target gave an answer that came from the cache.
    answered_at: str = ""
    #: How many times the request was repeated after an error.
    retries: int = 0


class Asking(msgspec.Struct, frozen=True):
    """How the answer of a trial was obtained: asked for, perhaps repeatedly, or from the cache."""

    cached: bool = False
    answered_at: str = ""
    retries: int = 0


ASKED_ONCE = Asking()


class _Details(msgspec.Struct, omit_defaults=True, rename="camel"):
    outcome: Outcome
    score: float | None
    verdict: Verdict | None
    evaluators: list[WrittenScore]
    failures: tuple[str, ...]
    tools_called: list[str] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    skipped_assertions: int = 0
    source: str = ""
    notes: tuple[str, ...] = ()
    critical: bool = False
    cluster: str | None = None
    trials: list[_Trial] = []
    response: str | msgspec.UnsetType = msgspec.UNSET  # last, see TrialRecord


class _Entry(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """A case in a result file."""

    id: str
    description: str
    passed: bool
    duration_ms: float
    error: str | None = None
    details: _Details


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
        return as_dict(self._details())

    def to_dict(self) -> dict[str, Any]:
        """The entry in a result file."""
        return as_dict(self._entry())

    def to_json(self) -> bytes:
        """The entry in a result file, as JSON."""
        return as_json(self._entry())

    def recorded(
        self, repeat: int, asking: Asking = ASKED_ONCE, *, confirms: bool = False
    ) -> bytes:
        """The JSON of one trial, without the answer, which is in the observation."""
        entry = self._entry()
        entry.details.response = msgspec.UNSET
        if asking.cached:  # the target was not asked, so no time passed
            entry.duration_ms = 0.0
        duration_ms, error = entry.duration_ms, entry.error or ""
        known = (repeat, self.outcome, self.score, duration_ms, error)
        how = (asking.cached, confirms, asking.answered_at, asking.retries)
        entry.details.trials = [_Trial(*known, *how)]
        return as_json(entry)

    def _entry(self) -> _Entry:
        return _Entry(
            id=self.case.id,
            description=self.case.description,
            passed=self.passed,
            duration_ms=self.duration_ms,
            error=self.error or None,
            details=self._details(),
        )

    def _details(self) -> _Details:
        observation, case = self.observation, self.case
        calls = observation.tool_calls
        return _Details(
            self.outcome,
            self.score,
            self.verdict,
            [
                score.written(spec.name, spec.type, spec.weight)
                for spec, score in zip(case.evaluators, self.scores, strict=False)
            ],
            self.failures,
            None if calls is None else [call.tool for call in calls],
            observation.usage,
            observation.cost_usd,
            self.skipped_assertions,
            "" if case.locate is None else case.origin.place,
            observation.notes,
            case.critical,
            case.cluster,
            response=observation.response,
        )
