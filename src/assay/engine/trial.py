"""One trial, from the question to the record that the store keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.engine import comparability
from assay.engine.grading import Grader, Preparation
from assay.engine.plan import PlannedCase
from assay.errors import AssayError, TargetError, cause_of
from assay.model.case import EvalCase
from assay.model.case_content import content_of
from assay.model.observation import Observation
from assay.model.result import ASKED_ONCE, AnswerSource, EvalCaseResult, Outcome
from assay.model.run import TrialRecord, timestamp
from assay.model.score import EvaluationScore
from assay.observations.reading import read
from assay.ports import Cache, Request
from assay.redaction import Redactor
from assay.targets.pool.retries import Effort, RetryingTarget

#: How long all evaluators of a trial may take together. Each should have a timeout of its own;
#: this one is for those that have none.
GRADING_SECONDS = 1800.0

#: The key in a cached answer for the time when the target gave it.
_ANSWERED_AT = "answeredAt"

_encode_key = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


class _Answer(msgspec.Struct, frozen=True):
    """What a target answered, how that was obtained, and whether it could be reached at all."""

    observation: Observation
    answer_source: AnswerSource = ASKED_ONCE
    unreachable: bool = False


class FinishedTrial(msgspec.Struct, frozen=True, array_like=True):
    """A finished trial; the runner gives up after too many `unreachable` ones in a row."""

    record: TrialRecord
    cached: bool = False
    unreachable: bool = False


class TrialRunner:
    """Asks, grades and records. One instance serves all trials of a run."""

    def __init__(
        self,
        run_id: str,
        files: list[str],
        target_of: Callable[[PlannedCase], RetryingTarget],
        preparation: Preparation,
        redact: Redactor,
        cache: Cache | None = None,
        timeout_seconds: float | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.run_id, self.files = run_id, files
        self.target_of, self.preparation = target_of, preparation
        #: Overrides the timeouts of the cases.
        self._timeout_seconds = timeout_seconds
        self.redact, self._cache, self._now = redact, cache, now
        #: Was any answer from the cache, or any request repeated?
        self.asked_otherwise = False

    async def run(
        self, planned: PlannedCase, repeat: int, *, confirms: bool = False
    ) -> FinishedTrial:
        """Ask the target once and grade its answer."""
        grader = self.preparation.grader(planned.case)
        answer = _Answer(Observation())
        if planned.case.skip is None:
            # A re-ask must not be answered from the cache.
            answer = await self._ask(planned, repeat, None if confirms else self._cache)
        result = await _grade(grader, answer.observation, repeat)
        record = self.record(
            planned,
            repeat,
            grader,
            result,
            answer_source=answer.answer_source,
            confirms=confirms,
            final=not answer.unreachable,  # a resumed run tries again
        )
        self.asked_otherwise |= answer.answer_source != ASKED_ONCE
        return FinishedTrial(record, answer.answer_source.cached, answer.unreachable)

    def unasked_record(
        self,
        planned: PlannedCase,
        repeat: int,
        outcome: Outcome,
        reason: str,
        *,
        final: bool,
        confirms: bool = False,
    ) -> TrialRecord:
        """The record of a trial that was not asked."""
        grader = self.preparation.grader(planned.case)
        result = EvalCaseResult(planned.case, outcome, None, None, (), Observation(), (reason,))
        return self.record(planned, repeat, grader, result, final=final, confirms=confirms)

    def record(
        self,
        planned: PlannedCase,
        repeat: int,
        grader: Grader,
        result: EvalCaseResult,
        *,
        answer_source: AnswerSource = ASKED_ONCE,
        confirms: bool = False,
        final: bool = True,
        observation_json: bytes | None = None,
    ) -> TrialRecord:
        """The result as it is stored: as JSON, without secrets.

        `observation_json` may be given if it is known already.
        """
        case, observation = planned.case, result.observation
        if self.preparation.uses:
            result = _with_judge_ids(grader, result)
        if observation_json is None:
            observation_json = observation.to_json(case.id)
        return TrialRecord(  # mostly positional: keywords take measurably longer
            self.run_id,
            planned.position,
            repeat,
            self.files[planned.suite],
            case.id,
            result.outcome,
            result.score,
            0.0 if answer_source.cached else float(result.duration_ms),  # as the store returns it
            0.0 if answer_source.cached else _to_float(observation.cost_usd),
            _to_float(_judge_cost(result.scores)),
            comparability.key(grader),
            case.critical,
            case.cluster,
            1.0 if case.min_pass_rate is None else case.min_pass_rate,
            result.skipped_assertions,
            confirms,
            final,
            result=self.redact.encoded(result.recorded(repeat, answer_source, confirms=confirms)),
            observation=self.redact.encoded(observation_json),
            content=self.redact.encoded(content_of(case)),
        )

    async def _ask(self, planned: PlannedCase, repeat: int, cache: Cache | None) -> _Answer:
        case, target = planned.case, self.target_of(planned)
        # Recorded answers need no cache.
        cache, key = None if target.recorded else cache, ""
        suite = self.files[planned.suite]
        request = Request(case.input_messages, case, repeat, suite=suite)
        if cache is not None:
            key = _answer_key(target, case, request)
            if (known := await asyncio.to_thread(cache.get, key)) is not None:
                answer = {name: value for name, value in known.items() if name != _ANSWERED_AT}
                return _Answer(read(answer), AnswerSource(True, known.get(_ANSWERED_AT, "")))
        effort, unreachable = Effort(), False
        timeout = self._timeout_seconds or case.timeout_seconds
        try:
            observation = await target.ask(request, effort, timeout)
        except AssayError as error:
            observation = Observation(error=str(error))
            unreachable = isinstance(error, TargetError) and error.unreachable
        except Exception as error:  # a target of a plugin may raise anything
            observation = Observation(error=f"{target.name} raised {cause_of(error)}")
        if cache is not None and observation.error is None:
            answer = msgspec.json.decode(observation.to_json(case.id))
            cache.put(key, answer | {_ANSWERED_AT: timestamp(self._now())})
        retries = max(effort.attempts - 1, 0)
        return _Answer(observation, AnswerSource(retries=retries), unreachable)


def _to_float(measure: float | None) -> float | None:
    """An int as a float, as stores return it: sums must be written the same way."""
    return None if measure is None else float(measure)


async def _grade(grader: Grader, observation: Observation, repeat: int) -> EvalCaseResult:
    result = grader.grade(observation, repeat)
    if isinstance(result, EvalCaseResult):
        return result
    try:
        async with asyncio.timeout(GRADING_SECONDS):
            return await result
    except TimeoutError:
        late = f"the evaluators were not done within {GRADING_SECONDS:g} s"
        return await grader.graded(observation.replace(error=late), repeat)


def _with_judge_ids(grader: Grader, result: EvalCaseResult) -> EvalCaseResult:
    """The result with the id of every judge, under which its calibration is found."""
    if not any(one.judges for one in grader.evaluators) or not result.scores:
        return result
    scores = [
        score
        if one.use is None
        else replace(score, details=score.details | {"judgeId": one.use.id})
        for one, score in zip(grader.evaluators, result.scores, strict=True)
    ]
    return replace(result, scores=tuple(scores))


def _answer_key(target: RetryingTarget, case: EvalCase, request: Request) -> str:
    """The cache key: everything an answer depends on, but nothing that is expected of it.

    Besides the messages, targets are given the identity of the case and its metadata.
    """
    question = [comparability.encoded_messages(request.messages), case.stubs, case.max_turns]
    identity = [request.suite, case.id, case.conversation_id, case.metadata]
    key = _encode_key([target.identity, question, identity, request.repeat])
    return "answer:" + sha256(key).hexdigest()


def _judge_cost(scores: Iterable[EvaluationScore]) -> float | None:
    """The total cost of a case's judges; None if none was asked, or one reports no cost."""
    detailed = [score.details for score in scores if score.details]
    if not detailed:
        return None
    asked = [judge for details in detailed for judge in _judges(details)]
    costs = [judge.get("costUsd") for judge in asked if judge.get("calls")]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _judges(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The judges in the details of a score; a composite has them in those of its members."""
    found = [details["judge"]] if "judge" in details else []
    for member in details.get("members", ()):
        found += _judges(member.get("details", {}))
    return found
