"""EvaluationScore: the score that an evaluator gives to one observation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NoReturn, get_args

import msgspec
from msgspec.structs import force_setattr

from assay.model.json_encoding import as_dict
from assay.record import Record

Verdict = Literal["pass", "borderline", "fail"]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]

_VERDICTS: tuple[str, ...] = get_args(Verdict)  # the most lenient first

PASS_FROM = 0.8
BORDERLINE_FROM = 0.6
#: Sums of floats are off by less than this.
TOLERANCE = 1e-9


def reaches(score: float, least: float) -> bool:
    return score >= least - TOLERANCE


def verdict_of(score: float) -> Verdict:
    if reaches(score, PASS_FROM):
        return "pass"
    return "borderline" if reaches(score, BORDERLINE_FROM) else "fail"


def _check_verdict(verdict: str, score: float) -> None:
    """A verdict may be stricter than the score, but not more lenient."""
    if verdict not in _VERDICTS:
        known = ", ".join(_VERDICTS)
        raise ValueError(f"the verdict is {verdict!r}, expected one of {known}")
    usual = verdict_of(score)
    if _VERDICTS.index(verdict) < _VERDICTS.index(usual):
        raise ValueError(f"the verdict is {verdict!r}, but the score {score:.3g} is a {usual!r}")


def weighted(pairs: Iterable[tuple[float, float]]) -> float:
    """The weighted mean of (weight, score) pairs; 0 when all weights are 0."""
    pairs = list(pairs)
    largest = max([weight for weight, _ in pairs], default=0.0)
    if not largest:
        return 0.0
    total = points = 0.0
    for weight, score in pairs:
        share = weight / largest  # keeps the sum finite for huge weights
        total += share
        points += share * score
    return points / total


def _as_texts(given: Any) -> tuple[str, ...]:
    """Accept any iterable, or a single text; other items are converted to text."""
    return (given,) if isinstance(given, str) else tuple(map(str, given))


class EvaluatorEntry(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The score that one evaluator gave to a case, in a result file."""

    name: str
    type: str
    weight: Amount
    score: Share | None
    verdict: Verdict | None
    hits: Sequence[str]
    misses: Sequence[str]
    reasoning: str = ""
    details: dict[str, Any] = {}
    failed_gate: str = ""
    error: str = ""
    skipped: str = ""


class EvaluationScore(Record, frozen=True):
    """A score from 0 to 1, or the reason why there is none.

    Exactly one of `score`, `error` and `skipped` is given: an evaluator that raised is not a zero,
    nor is one that had nothing to check. The verdict follows from the score unless a stricter one
    is given. `failed_gate` is a requirement of the evaluator that was not met; it fails the case
    regardless of the score. `skipped_assertions` could not be checked for lack of seed or snapshot
    data.
    """

    score: float | None = None
    verdict: Verdict | None = None
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str = ""
    details: dict[str, Any] = msgspec.field(default_factory=dict)
    failed_gate: str = ""
    error: str = ""
    skipped: str = ""
    skipped_assertions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        score = self.score
        for name in ("hits", "misses"):
            given = getattr(self, name)
            if type(given) is not tuple or not all(isinstance(text, str) for text in given):
                force_setattr(self, name, _as_texts(given))
        for name in ("reasoning", "failed_gate", "error", "skipped"):
            if not isinstance(given := getattr(self, name), str):
                force_setattr(self, name, "" if given is None else str(given))
        if not isinstance(self.details, dict):
            raise ValueError(f"the details are {self.details!r}, not a dict")
        if type(score) is not float or not 0.0 <= score <= 1.0 or self.error or self.skipped:
            self._check()
        if score is not None:
            if self.verdict is None:
                # The record is frozen, but not complete yet.
                force_setattr(self, "verdict", verdict_of(score))
            elif self.verdict != "pass" or score < PASS_FROM:
                _check_verdict(self.verdict, score)

    def _check(self) -> None:
        """Reject invalid values; convert an int, and clip rounding errors."""
        score = self.score
        if (score is not None) + bool(self.error) + bool(self.skipped) != 1:
            raise ValueError("expected exactly one of 'score', 'error' and 'skipped'")
        if score is None:
            if self.verdict is not None or self.failed_gate:
                raise ValueError("a verdict needs a score")
            return
        if type(score) is bool or not isinstance(score, (int, float)):
            raise ValueError(f"the score is {score!r}, not a number")
        if not -TOLERANCE <= score <= 1 + TOLERANCE:
            raise ValueError(f"the score is {score!r}, not between 0 and 1")
        force_setattr(self, "score", min(1.0, max(0.0, float(score))))

    @classmethod
    def errored(cls, reason: str, **details: Any) -> EvaluationScore:
        """The score of an evaluator that could not judge; the reason is shown to the user."""
        return cls(error=reason or "unknown error", details=details)

    def to_dict(self) -> dict[str, Any]:
        """The score as in a result file, without the evaluator that gave it."""
        evaluator = ("name", "type", "weight")
        written = as_dict(self.written("", "", 0.0))
        return {key: value for key, value in written.items() if key not in evaluator}

    def written(self, name: str, type: str, weight: float) -> EvaluatorEntry:  # noqa: A002
        """The entry in a result file, with the evaluator that gave the score."""
        return EvaluatorEntry(
            name,
            type,
            weight,
            self.score,
            self.verdict,
            self.hits,
            self.misses,
            self.reasoning,
            self.details or _NO_DETAILS,
            self.failed_gate,
            self.error,
            self.skipped,
        )


class _SharedDetails(dict[str, Any]):
    """The empty details of a score that many results share, and so must not be changed."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        hint = "msgspec.structs.replace(score, details={...}) is a copy with others"
        raise TypeError(f"the details of full marks are shared and cannot be changed: {hint}")

    # The other methods that change a dict have no effect on an empty one.
    __setitem__ = setdefault = update = __ior__ = _refuse


#: Empty details in JSON: msgspec omits nothing but a plain dict.
_NO_DETAILS: dict[str, Any] = {}
_FULL_MARKS = EvaluationScore(1.0, "pass", details=_SharedDetails())


def full_marks(hits: tuple[str, ...]) -> EvaluationScore:
    """The score of an answer without misses; a copy, as that skips the checks.

    Any number of results may share it; so its details cannot be changed.
    """
    score: EvaluationScore = _FULL_MARKS.__copy__()  # type: ignore[attr-defined]
    force_setattr(score, "hits", hits)
    return score


def checks(hits: Iterable[str], misses: Iterable[str], **rest: Any) -> EvaluationScore:
    """A score that is the share of checks that passed; hits and misses name them."""
    hits, misses = tuple(hits), tuple(misses)
    total = len(hits) + len(misses)
    return EvaluationScore(len(hits) / total if total else 1.0, hits=hits, misses=misses, **rest)
