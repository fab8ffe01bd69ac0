"""One observation of one case, from its evaluators' scores to an outcome."""

from __future__ import annotations

from collections.abc import Awaitable

from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.observation import Observation
from assay.model.result import EvalCaseResult, EvaluatorResult, Outcome
from assay.model.score import PASS_FROM, EvaluationScore, reaches, verdict_of
from assay.ports import Check, Resources
from assay.scoring import failed_gate, ready, scores_of

#: How many prepared evaluators are kept; a suite's own ones are shared by all of its cases.
_KEPT = 1024


class Preparation:
    """Makes evaluators ready, each of them once for all cases that share it."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._ready: dict[int, tuple[EvaluatorSpec, Check]] = {}

    def grader(self, case: EvalCase) -> Grader:
        """The case with its evaluators ready; raises what a missing judge raises."""
        return Grader(case, [self._check(spec) for spec in case.evaluators])

    def _check(self, spec: EvaluatorSpec) -> Check:
        found = self._ready.get(id(spec))
        if found is None:
            if len(self._ready) >= _KEPT:
                self._ready.clear()
            # Keeping the spec keeps its id from being given to another one.
            found = self._ready[id(spec)] = spec, ready(spec, self.resources)
        return found[1]


class Grader:
    """A case made ready, to grade any number of observations."""

    __slots__ = ("_checks", "case")

    def __init__(self, case: EvalCase, checks: list[Check]) -> None:
        self.case, self._checks = case, checks

    def grade(
        self, observation: Observation, repeat: int = 0
    ) -> EvalCaseResult | Awaitable[EvalCaseResult]:
        """The result, at once when no evaluator has to wait for anything."""
        if self.case.skip is not None:
            return _unjudged(self.case, observation, "skipped", self.case.skip)
        if observation.error is not None:
            return _unjudged(self.case, observation, "errored", observation.error)
        context = Context(self.case, observation, repeat)
        scores = scores_of(self._checks, context)
        if isinstance(scores, list):
            return aggregate(self.case, observation, scores)
        return self._later(observation, scores)

    async def graded(self, observation: Observation, repeat: int = 0) -> EvalCaseResult:
        """The result, waited for."""
        result = self.grade(observation, repeat)
        return result if isinstance(result, EvalCaseResult) else await result

    async def _later(
        self, observation: Observation, scores: Awaitable[list[EvaluationScore]]
    ) -> EvalCaseResult:
        return aggregate(self.case, observation, await scores)


def aggregate(
    case: EvalCase, observation: Observation, scores: list[EvaluationScore]
) -> EvalCaseResult:
    """Weights, gates and the threshold: what the scores of a case come to."""
    results: list[EvaluatorResult] = []
    gates: list[str] = []
    errors: list[str] = []
    judged = False
    total = points = 0.0
    for spec, score in zip(case.evaluators, scores, strict=True):
        weight, value, required = spec.weight, score.score, spec.required
        results.append(EvaluatorResult(spec.name, spec.type, weight, score))
        if value is None:
            if score.error and (weight or required is not False):
                errors.append(f"{spec.name}: {score.error}")
            continue
        judged = True
        total += weight
        points += weight * value
        if (required is not False or score.failed_gate) and (gate := failed_gate(spec, score)):
            gates.append(gate)
    if not judged and not errors:
        reasons = [score.skipped for score in scores if score.skipped]
        reason = "; ".join(reasons) or "nothing verified"
        return _unjudged(case, observation, "skipped", reason, tuple(results))
    mean = points / total if total else 0.0
    threshold = PASS_FROM if case.threshold is None else case.threshold
    if errors and not gates:
        return _unjudged(case, observation, "errored", "", tuple(results), tuple(errors))
    if gates or not reaches(mean, threshold):
        failures = (*gates, *_misses(results, gates), *errors)
        if not gates:
            failures += (f"the score {mean:.3g} is below the threshold {threshold:g}",)
        verdict = "fail" if gates else verdict_of(mean)
        return EvalCaseResult(case, "failed", mean, verdict, tuple(results), observation, failures)
    return EvalCaseResult(case, "passed", mean, verdict_of(mean), tuple(results), observation)


def _unjudged(
    case: EvalCase,
    observation: Observation,
    outcome: Outcome,
    reason: str,
    results: tuple[EvaluatorResult, ...] = (),
    failures: tuple[str, ...] = (),
) -> EvalCaseResult:
    return EvalCaseResult(case, outcome, None, None, results, observation, failures or (reason,))


def _misses(results: list[EvaluatorResult], gates: list[str]) -> list[str]:
    """What the evaluators that did not pass missed. An `expect` says which key it was itself."""
    reasons = []
    for result in results:
        score = result.score
        if score.score is None or (score.verdict == "pass" and not score.misses):
            continue
        prefix = "" if result.type == "expect" else f"{result.name}: "
        reasons += [prefix + miss for miss in score.misses]
        if not score.misses and not any(gate.startswith(f"{result.name}: ") for gate in gates):
            said = f" ({score.reasoning})" if score.reasoning else ""
            reasons.append(f"{prefix}scored {score.score:.3g}{said}")
    return reasons
