"""EvalCaseResult: what became of one case."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from assay.model.case import EvalCase
from assay.model.observation import Observation
from assay.model.score import EvaluationScore, Verdict

Outcome = Literal["passed", "failed", "errored", "skipped"]


class _Entry(msgspec.Struct, omit_defaults=True, rename="camel"):
    """How the score of an evaluator is written: what has a default, only when it says something."""

    name: str
    type: str
    weight: float
    score: float | None
    verdict: Verdict | None
    hits: tuple[str, ...]
    misses: tuple[str, ...]
    reasoning: str = ""
    details: dict[str, Any] = {}
    failed_gate: str = ""
    error: str = ""
    skipped: str = ""


class _Details(msgspec.Struct, omit_defaults=True, rename="camel"):
    outcome: Outcome
    score: float | None
    verdict: Verdict | None
    evaluators: list[_Entry]
    response: str
    failures: tuple[str, ...]
    tools_called: list[str] | None = None
    usage: dict[str, int] | None = None
    cost_usd: float | None = None
    skipped_assertions: int = 0
    source: str = ""


class _Written(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """A result as a result file has it."""

    id: str
    description: str
    passed: bool
    duration_ms: float
    error: str | None = None
    details: _Details


#: What a stranger's evaluator puts into its details may be anything; it is written as text.
_ENCODER = msgspec.json.Encoder(enc_hook=str)


def _json(written: msgspec.Struct) -> bytes:
    try:
        return _ENCODER.encode(written)
    except UnicodeEncodeError:  # half of a surrogate pair is no character, whoever wrote it
        return _ENCODER.encode(_whole(msgspec.to_builtins(written, enc_hook=str)))


def _plain(written: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(_json(written))
    return found


def _whole(value: Any) -> Any:
    """The value with a question mark for each half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, (list, tuple)) else value


def _entry(name: str, type_: str, weight: float, score: EvaluationScore) -> _Entry:
    return _Entry(
        name,
        type_,
        weight,
        score.score,
        score.verdict,
        score.hits,
        score.misses,
        score.reasoning,
        score.details,
        score.failed_gate,
        score.error,
        score.skipped,
    )


class EvaluatorResult(msgspec.Struct, frozen=True):
    """The score that one evaluator of a case gave."""

    name: str
    type: str
    weight: float
    score: EvaluationScore

    def to_dict(self) -> dict[str, Any]:
        """Score, verdict, hits and misses always; the rest when there is something to say."""
        return _plain(_entry(self.name, self.type, self.weight, self.score))


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
        return _plain(self._details())

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a result file."""
        return _plain(self._written())

    def to_json(self) -> bytes:
        """The same as bytes; made without the dictionaries."""
        return _json(self._written())

    def _written(self) -> _Written:
        return _Written(
            id=self.case.id,
            description=self.case.description,
            passed=self.passed,
            duration_ms=self.duration_ms,
            error=self.error or None,
            details=self._details(),
        )

    def _details(self) -> _Details:
        seen, case = self.observation, self.case
        return _Details(
            self.outcome,
            self.score,
            self.verdict,
            [
                _entry(spec.name, spec.type, spec.weight, score)
                for spec, score in zip(case.evaluators, self.scores, strict=False)
            ],
            seen.response,
            self.failures,
            None if seen.tool_calls is None else [call.tool for call in seen.tool_calls],
            None if seen.usage is None else seen.usage.to_dict(),
            seen.cost_usd,
            self.skipped_assertions,
            "" if case.locate is None else ":".join(map(str, case.origin[:2])),
        )
