"""How a composite combines the scores of its members."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from assay.evaluators.code_judge import ask_program, contract
from assay.evaluators.judge import Judge
from assay.evaluators.llm_judge import prompt_text, vote
from assay.evaluators.prompt import material_of, task_of
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.numbers import rounded
from assay.model.result import EvaluatorResult
from assay.model.score import EvaluationScore, reaches, weighted
from assay.model.tokens import RESULTS
from assay.ports import Resources
from assay.scoring import failed_gate


class Member(msgspec.Struct, frozen=True):
    """One evaluator of a composite, its weight in it, and its score."""

    spec: EvaluatorSpec
    weight: float
    score: EvaluationScore

    @property
    def counts(self) -> bool:
        """Does it count towards the score? With weight 0 it runs and is reported, no more."""
        return self.weight > 0 and self.score.score is not None

    @property
    def value(self) -> float:
        return self.score.score or 0.0

    @property
    def passed(self) -> bool:
        return self.score.verdict == "pass"

    def to_dict(self) -> dict[str, Any]:
        spec = self.spec
        return EvaluatorResult(spec.name, spec.type, self.weight, self.score).to_dict()


Combine = Callable[[Context, Sequence[Member]], EvaluationScore | Awaitable[EvaluationScore]]


def by_weight(context: Context, members: Sequence[Member]) -> EvaluationScore:
    """`weighted_average`: the weighted mean of the scores."""
    counted = [member for member in members if member.counts]
    mean = weighted((member.weight, member.value) for member in counted)
    return EvaluationScore(mean, reasoning=f"the average of {len(counted)} evaluators by weight")


def lowest(context: Context, members: Sequence[Member]) -> EvaluationScore:
    """`min`: the lowest of the scores."""
    counted = [member for member in members if member.counts]
    if not counted:
        return _NOTHING
    worst = min(counted, key=lambda member: member.value)
    return EvaluationScore(worst.value, reasoning=f"{worst.spec.name!r} has the lowest score")


def share_of_passes(kind: str, threshold: float | None) -> Combine:
    """`all`, `any` and `threshold`: 1 if enough members pass, by weight, else 0."""

    def combine(context: Context, members: Sequence[Member]) -> EvaluationScore:
        counted = [member for member in members if member.counts]
        if not counted:
            return _NOTHING
        passed = [member for member in counted if member.passed]
        if kind == "any":
            enough = bool(passed)
        else:
            share = weighted((member.weight, float(member.passed)) for member in counted)
            enough = reaches(share, 1.0 if threshold is None else threshold)
        words = f"{len(passed)} of {len(counted)} evaluators passed"
        if threshold is not None:
            words += (
                f", a weighted share of {rounded(share, threshold, 3)}; {threshold:g} is required"
            )
        return EvaluationScore(float(enough), reasoning=words)

    return combine


_NOTHING = EvaluationScore(0.0, reasoning="no evaluator with a weight gave a score")


def by_program(script: Sequence[str]) -> Combine:
    """`code_judge`: a program gets the results in addition to the usual payload."""

    def combine(context: Context, members: Sequence[Member]) -> Awaitable[EvaluationScore]:
        payload = contract(context) | {"results": _by_name(members), "config": {}}
        return ask_program(script, payload, cwd=context.case.folder)

    return combine


def by_judge(owner: str, prompt: str, resources: Resources) -> Combine:
    """`llm_judge`: a judge sees the results, and whatever else of the case the prompt uses."""
    judge = Judge.find(resources, None, None)
    task = task_of(owner, prompt_text(owner, prompt), frozenset(RESULTS), RESULTS)

    def combine(context: Context, members: Sequence[Member]) -> Awaitable[EvaluationScore]:
        material = material_of(context, **dict.fromkeys(RESULTS, _by_name(members)))
        return vote(judge, task(material), material, context.repeat)

    return combine


def _by_name(members: Sequence[Member]) -> dict[str, dict[str, Any]]:
    return {member.spec.name: member.to_dict() for member in members}


def settle(
    context: Context, members: Sequence[Member], combine: Combine
) -> EvaluationScore | Awaitable[EvaluationScore]:
    """The composite's score: errored if a member errored, otherwise the aggregator's result."""
    gates = [gate for member in members if (gate := failed_gate(member.spec, member.score))]
    errors = [f"{member.spec.name}: {member.score.error}" for member in members if _breaks(member)]
    details = {"members": _results(members)}
    skipped = _skipped(members)
    if errors and not gates:
        return EvaluationScore(error="; ".join(errors), details=details, skipped_assertions=skipped)
    if all(member.score.score is None for member in members):
        reasons = [member.score.skipped for member in members if member.score.skipped]
        reason = "; ".join(reasons) or "no evaluator gave a score"
        return EvaluationScore(skipped=reason, details=details, skipped_assertions=skipped)
    combined = combine(context, members)
    if isinstance(combined, EvaluationScore):
        return _combined(context, members, gates, combined)
    return _awaited(context, members, gates, combined)


async def _awaited(
    context: Context,
    members: Sequence[Member],
    gates: list[str],
    combined: Awaitable[EvaluationScore],
) -> EvaluationScore:
    return _combined(context, members, gates, await combined)


def _combined(
    context: Context, members: Sequence[Member], gates: list[str], combined: EvaluationScore
) -> EvaluationScore:
    details = combined.details | {"members": _results(members)}
    skipped = _skipped(members)
    if skipped:
        details["skipped"] = list(skipped)
    if combined.score is None:
        if not gates:
            words = f"the aggregator failed: {combined.error}"
            return EvaluationScore(error=words, details=details, skipped_assertions=skipped)
        # A failed gate decides the verdict anyway; the score is that of the members alone.
        combined = by_weight(context, members)
    return EvaluationScore(
        combined.score,
        verdict="fail" if gates else combined.verdict,
        hits=(*_prefixed(members, "hits"), *combined.hits),
        misses=(*_prefixed(members, "misses"), *combined.misses),
        reasoning=combined.reasoning,
        details=details,
        failed_gate="; ".join(gates),
        skipped_assertions=skipped,
    )


def _breaks(member: Member) -> bool:
    return bool(member.score.error) and (member.weight > 0 or member.spec.required is not False)


def _results(members: Sequence[Member]) -> list[dict[str, Any]]:
    return [member.to_dict() for member in members]


def _skipped(members: Sequence[Member]) -> tuple[str, ...]:
    return tuple(gap for member in members for gap in member.score.skipped_assertions)


def _prefixed(members: Sequence[Member], kind: str) -> list[str]:
    """The members' hits or misses, each with the name of its member."""
    sentences = []
    for member in members:
        score, name = member.score, member.spec.name
        combined = getattr(score, kind)
        if kind == "misses" and not combined and score.score is not None and not member.passed:
            why = f" ({score.reasoning})" if score.reasoning else ""
            combined = (f"scored {score.score:.3g}{why}",)
        sentences += [f"{name}: {sentence}" for sentence in combined]
    return sentences
