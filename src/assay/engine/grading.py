"""One observation of one case, from its evaluators' scores to an outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from assay.memory import Remembered
from assay.model.calibration import JudgeUse
from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
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
from assay.scoring import failed_gate, ready, scores_of

#: How many prepared evaluators are kept for further repeats of their case.
_KEPT = 1024
#: The same for the cases of a stream, which come once.
_KEPT_OF_STREAM = 64
_JUDGE_ID = 16


class Ready(msgspec.Struct, eq=False):
    """An evaluator made ready, with what tells its judges from others.

    Keeping the spec keeps its id from being given to another one. `use` tells who judges, and
    under which id a calibration is kept; it is None without a judge.
    """

    spec: EvaluatorSpec
    check: Check
    judges: tuple[str, ...] = ()
    use: JudgeUse | None = None
    _fingerprint: bytes = b""

    @property
    def fingerprint(self) -> bytes:
        """All that the judgement depends on."""
        if not self._fingerprint:
            self._fingerprint = self.spec.fingerprint() + "".join(self.judges).encode()
        return self._fingerprint


def _use(spec: EvaluatorSpec, judges: tuple[str, ...], names: tuple[str, ...]) -> JudgeUse:
    told = spec.instructions() + "\0".join(judges).encode()
    counts = bool(spec.weight) or spec.required is not False
    identity = sha256(told).hexdigest()[:_JUDGE_ID]
    return JudgeUse(identity, spec.name, spec.type, ", ".join(dict.fromkeys(names)), counts)


class Preparation:
    """Makes evaluators ready, each of them once for all cases that share it."""

    def __init__(self, resources: Resources, kept: int = _KEPT) -> None:
        self.resources = replace(resources, judge=self._judge)
        self._find_judge = resources.judge
        self._found: list[tuple[str, str]] = []
        self._ready = Remembered[int, Ready](kept)
        #: Every judge that was made ready, by its id and the evaluator's name.
        self.uses: dict[tuple[str, str], JudgeUse] = {}

    def for_stream(self) -> Preparation:
        """The same for cases that come once: little is kept of them."""
        other = Preparation(replace(self.resources, judge=self._find_judge), _KEPT_OF_STREAM)
        other.uses = self.uses
        return other

    def grader(self, case: EvalCase) -> Grader:
        """The case with its evaluators ready; raises when a judge is missing.

        A skipped case is not judged, so it needs no judge.
        """
        specs = case.evaluators if case.skip is None else ()
        return Grader(case, [self.ready(spec) for spec in specs])

    def ready(self, spec: EvaluatorSpec) -> Ready:
        found = self._ready.get(id(spec)) or self._ready.again(id(spec))
        if found is None:
            self._found.clear()
            check = ready(spec, self.resources)
            found = self._judged(spec, check) if self._found else Ready(spec, check)
            self._ready.meet(id(spec), found)
        return found

    def _judged(self, spec: EvaluatorSpec, check: Check) -> Ready:
        judges, names = zip(*self._found, strict=True)
        use = _use(spec, judges, names)
        known = self.uses.get((use.id, use.evaluator))
        if known is None or not known.counts:
            self.uses[use.id, use.evaluator] = use
        return Ready(spec, check, judges, use)

    def _judge(self, target: str | None, model: str | None) -> Target:
        """The judge of the evaluator that is being made ready."""
        judge = self._find_judge(target, model)
        self._found.append((str(getattr(judge, "identity", judge.name)), judge.name))
        return judge


class Grader:
    """A case made ready, to grade any number of observations."""

    __slots__ = ("_checks", "_plain", "case", "ready")

    def __init__(self, case: EvalCase, ready: list[Ready]) -> None:
        self.case, self.ready = case, ready
        self._checks = [one.check for one in ready]
        #: Whether full marks of every evaluator are all that it takes to pass, as in most cases.
        self._plain = _is_plain(case)

    def grade(
        self, observation: Observation, repeat: int = 0
    ) -> EvalCaseResult | Awaitable[EvalCaseResult]:
        """The result, at once when no evaluator has to wait for anything."""
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
        if not self._plain:
            return aggregate(self.case, observation, scores)
        for score in scores:
            if score.score != 1.0 or score.failed_gate:
                return aggregate(self.case, observation, scores)
        return EvalCaseResult(self.case, "passed", 1.0, "pass", tuple(scores), observation)

    async def graded(self, observation: Observation, repeat: int = 0) -> EvalCaseResult:
        """The result, waited for."""
        result = self.grade(observation, repeat)
        return result if isinstance(result, EvalCaseResult) else await result

    async def _later(
        self, observation: Observation, scores: Awaitable[list[EvaluationScore]]
    ) -> EvalCaseResult:
        return self._result(observation, await scores)


def _is_plain(case: EvalCase) -> bool:
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
    """Weights, gates and the threshold: what the scores of a case come to."""
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
        low = f"the score {mean:.3g} is below the threshold {threshold:g}"
        told = [gate for gate in gates if gate not in _told_by_misses(pairs)]
        failures = (*told, *_misses(pairs, gates), *errors, *([] if gates else [low]))
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


def _told_by_misses(pairs: list[tuple[EvaluatorSpec, EvaluationScore]]) -> set[str]:
    """The gates of `expect` blocks that name the keys they failed on: that tells enough."""
    return {
        failed_gate(spec, score) for spec, score in pairs if spec.type == "expect" and score.misses
    }


def _misses(pairs: list[tuple[EvaluatorSpec, EvaluationScore]], gates: list[str]) -> list[str]:
    """What the evaluators that did not pass missed. An `expect` says which key it was itself."""
    reasons = []
    for spec, score in pairs:
        if score.score is None or (score.verdict == "pass" and not score.misses):
            continue
        prefix = "" if spec.type == "expect" else f"{spec.name}: "
        reasons += [f"{prefix}{miss}" for miss in score.misses]
        if not score.misses and not any(gate.startswith(f"{spec.name}: ") for gate in gates):
            said = f" ({score.reasoning})" if score.reasoning else ""
            reasons.append(f"{prefix}scored {score.score:.3g}{said}")
    return reasons
