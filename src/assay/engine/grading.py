"""Grading: from an observation of a case, through its evaluators' scores, to an outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from assay.caching import ReuseCache
from assay.model.calibration import JudgeUse
from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.numbers import rounded
from assay.model.observation import Observation
from assay.model.result import EvalCaseResult, Outcome
from assay.model.score import (
    PASS_FROM,
    EvaluationScore,
    reaches,
    verdict_of,
    weighted,
)
from assay.ports import Check, Resources, Target
from assay.scoring import failed_gate, prepare, scores_of

#: How many prepared evaluators are cached for further repeats of their case.
_CACHED = 1024
#: The same for the cases of a stream, which come only once.
CACHED_OF_STREAM = 64
_JUDGE_ID_LENGTH = 16


class Prepared(msgspec.Struct, eq=False):
    """A prepared evaluator, and the identities of its judges.

    The reference to `spec` keeps its `id()` from being reused while it is a key of the cache.
    `use` has the judge, and the id under which its calibration is kept; None without a judge.
    """

    spec: EvaluatorSpec
    check: Check
    judges: tuple[str, ...] = ()
    use: JudgeUse | None = None
    _fingerprint: bytes = b""

    @property
    def fingerprint(self) -> bytes:
        """Everything that the score depends on, besides the observation."""
        if not self._fingerprint:
            self._fingerprint = self.spec.fingerprint() + "".join(self.judges).encode()
        return self._fingerprint


def _judge_use(spec: EvaluatorSpec, judges: tuple[str, ...], names: tuple[str, ...]) -> JudgeUse:
    hashed = spec.instructions() + "\0".join(judges).encode()
    counts = bool(spec.weight) or spec.required is not False
    identity = sha256(hashed).hexdigest()[:_JUDGE_ID_LENGTH]
    return JudgeUse(identity, spec.name, spec.type, ", ".join(dict.fromkeys(names)), counts)


class Preparation:
    """Prepares evaluators, each of them once for all cases that share it."""

    def __init__(self, resources: Resources, cached: int = _CACHED) -> None:
        self.resources = replace(resources, judge=self._judge)
        self._find_judge = resources.judge
        #: Identity and name of each judge of the evaluator that is being prepared.
        self._judges: list[tuple[str, str]] = []
        self._prepared = ReuseCache[int, Prepared](cached)
        #: Every judge so far, by its id and the evaluator's name.
        self.uses: dict[tuple[str, str], JudgeUse] = {}

    def grader(self, case: EvalCase) -> Grader:
        """Prepare the evaluators of a case; raises when a judge is missing.

        A skipped case is not evaluated, so it needs no judge.
        """
        specs = case.evaluators if case.skip is None else ()
        return Grader(case, [self._prepare(spec) for spec in specs])

    def _prepare(self, spec: EvaluatorSpec) -> Prepared:
        found = self._prepared.get(id(spec)) or self._prepared.promote(id(spec))
        if found is None:
            self._judges.clear()
            check = prepare(spec, self.resources)
            found = self._with_judges(spec, check) if self._judges else Prepared(spec, check)
            self._prepared.add(id(spec), found)
        return found

    def _with_judges(self, spec: EvaluatorSpec, check: Check) -> Prepared:
        judges, names = zip(*self._judges, strict=True)
        use = _judge_use(spec, judges, names)
        known = self.uses.get((use.id, use.evaluator))
        if known is None or not known.counts:
            self.uses[use.id, use.evaluator] = use
        return Prepared(spec, check, judges, use)

    def _judge(self, target: str | None, model: str | None) -> Target:
        """Find a judge, and note it for the evaluator that is being prepared."""
        judge = self._find_judge(target, model)
        self._judges.append((str(getattr(judge, "identity", judge.name)), judge.name))
        return judge


class Grader:
    """A case with prepared evaluators, to grade any number of observations."""

    __slots__ = ("_checks", "_full_marks_pass", "case", "evaluators")

    def __init__(self, case: EvalCase, evaluators: list[Prepared]) -> None:
        self.case, self.evaluators = case, evaluators
        self._checks = [one.check for one in evaluators]
        self._full_marks_pass = _full_marks_pass(case)

    def grade(
        self, observation: Observation, repeat: int = 0
    ) -> EvalCaseResult | Awaitable[EvalCaseResult]:
        """The result, or an awaitable if an evaluator has to wait for something."""
        case = self.case
        if case.skip is not None:
            return _unjudged(case, observation, "skipped", case.skip)
        if observation.error is not None:
            return _unjudged(case, observation, "errored", observation.error)
        scores = scores_of(self._checks, Context(case, observation, repeat))
        if not isinstance(scores, list):
            return self._later(observation, scores)
        return self._result(observation, scores)

    def _result(self, observation: Observation, scores: list[EvaluationScore]) -> EvalCaseResult:
        if not self._full_marks_pass:
            return aggregate(self.case, observation, scores)
        for score in scores:
            if score.score != 1.0 or score.failed_gate:
                return aggregate(self.case, observation, scores)
        return EvalCaseResult(self.case, "passed", 1.0, "pass", tuple(scores), observation)

    async def graded(self, observation: Observation, repeat: int = 0) -> EvalCaseResult:
        """As `grade`, but always awaited."""
        result = self.grade(observation, repeat)
        return result if isinstance(result, EvalCaseResult) else await result

    async def _later(
        self, observation: Observation, scores: Awaitable[list[EvaluationScore]]
    ) -> EvalCaseResult:
        return self._result(observation, await scores)


def _full_marks_pass(case: EvalCase) -> bool:
    """Does a case pass if every evaluator gives full marks? Nearly all do."""
    weight = 0.0
    for spec in case.evaluators:
        if spec.required is not False:
            return False
        weight += spec.weight
    return weight > 0 and reaches(1.0, threshold_of(case))


def threshold_of(case: EvalCase) -> float:
    return PASS_FROM if case.threshold is None else case.threshold


def aggregate(
    case: EvalCase, observation: Observation, scores: list[EvaluationScore]
) -> EvalCaseResult:
    """Combine the scores of a case by weights, gates and the threshold."""
    pairs = list(zip(case.evaluators, scores, strict=True))
    judged: list[tuple[float, float]] = []
    errors, gates = [], []
    for spec, score in pairs:
        if score.score is not None:
            judged.append((spec.weight, score.score))
            if gate := failed_gate(spec, score):
                gates.append(gate)
        elif score.error and (spec.weight or spec.required is not False):
            errors.append(f"{spec.name}: {score.error}")
    if errors and not gates:
        return _unjudged(case, observation, "errored", *errors, scores=scores)
    if not judged:
        reasons = [score.skipped for score in scores if score.skipped]
        return _unjudged(
            case, observation, "skipped", *reasons or ["nothing verified"], scores=scores
        )
    mean, threshold = weighted(judged), threshold_of(case)
    if gates or not reaches(mean, threshold):
        low = f"the score {rounded(mean, threshold, 3)} is below the threshold {threshold:g}"
        explained = _gates_with_misses(pairs)
        named = [gate for gate in gates if gate not in explained]
        failures = (*named, *_misses(pairs, gates), *errors, *([] if gates else [low]))
        verdict = "fail" if gates else verdict_of(mean)
        return EvalCaseResult(case, "failed", mean, verdict, tuple(scores), observation, failures)
    return EvalCaseResult(case, "passed", mean, verdict_of(mean), tuple(scores), observation)


def _unjudged(
    case: EvalCase,
    observation: Observation,
    outcome: Outcome,
    *reasons: str,
    scores: Sequence[EvaluationScore] = (),
) -> EvalCaseResult:
    return EvalCaseResult(case, outcome, None, None, tuple(scores), observation, reasons)


def _gates_with_misses(pairs: list[tuple[EvaluatorSpec, EvaluationScore]]) -> set[str]:
    """The gates of `expect` blocks whose misses already name the failed keys."""
    return {
        failed_gate(spec, score) for spec, score in pairs if spec.type == "expect" and score.misses
    }


def _misses(pairs: list[tuple[EvaluatorSpec, EvaluationScore]], gates: list[str]) -> list[str]:
    """The misses of evaluators that did not pass; those of an `expect` name its key already."""
    reasons = []
    for spec, score in pairs:
        if score.score is None or (score.verdict == "pass" and not score.misses):
            continue
        prefix = "" if spec.type == "expect" else f"{spec.name}: "
        reasons += [f"{prefix}{miss}" for miss in score.misses]
        if not score.misses and not any(gate.startswith(f"{spec.name}: ") for gate in gates):
            reasoning = f" ({score.reasoning})" if score.reasoning else ""
            reasons.append(f"{prefix}scored {score.score:.3g}{reasoning}")
    return reasons
