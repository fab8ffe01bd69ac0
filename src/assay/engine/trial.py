"""One trial, from the question to the record that the store keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.engine import comparability
from assay.engine.grading import Grader, Preparation
from assay.engine.plan import Planned
from assay.errors import AssayError, TargetError, cause_of
from assay.model.case import EvalCase
from assay.model.observation import Observation
from assay.model.result import EvalCaseResult, Outcome
from assay.model.run import TrialRecord
from assay.model.score import EvaluationScore
from assay.observations.reading import read
from assay.ports import Cache, Request
from assay.redaction import Redactor
from assay.roster.retries import Retrying

#: How long evaluators may take together: each has a limit of its own, and this one holds for
#: those that have forgotten theirs.
GRADING_SECONDS = 1800.0

_KEY = msgspec.json.Encoder(order="sorted", enc_hook=str)


class Asked(msgspec.Struct, frozen=True):
    """What came back, and whether the target could be reached at all."""

    observation: Observation
    cached: bool = False
    unreachable: bool = False


class Finished(msgspec.Struct, frozen=True):
    """A trial that is over; `unreachable` tells the runner that asking on may be in vain."""

    record: TrialRecord
    cached: bool = False
    unreachable: bool = False


class Trials:
    """Asks, grades and records. One instance serves all trials of a run."""

    def __init__(
        self,
        run_id: str,
        files: list[str],
        target_of: Callable[[Planned], Retrying],
        preparation: Preparation,
        redact: Redactor,
        cache: Cache | None,
        timeout_seconds: float | None,
    ) -> None:
        self.run_id, self.files = run_id, files
        self.target_of, self.preparation = target_of, preparation
        #: Wins over the limits of the cases.
        self._timeout_seconds = timeout_seconds
        self.redact, self._cache = redact, cache

    async def run(self, planned: Planned, repeat: int, *, confirms: bool = False) -> Finished:
        """Ask the target once and grade what it did."""
        grader = self.preparation.grader(planned.case)
        asked = Asked(Observation())
        if planned.case.skip is None:
            asked = await self._ask(planned, repeat)
        result = await _graded(grader, asked.observation, repeat)
        record = self.record(
            planned,
            repeat,
            grader,
            result,
            cached=asked.cached,
            confirms=confirms,
            final=not asked.unreachable,  # nobody was there: a resumed run tries again
        )
        return Finished(record, asked.cached, asked.unreachable)

    def unasked(
        self, planned: Planned, repeat: int, outcome: Outcome, reason: str, *, final: bool
    ) -> TrialRecord:
        """The record of a trial that was not asked."""
        grader = self.preparation.grader(planned.case)
        result = EvalCaseResult(planned.case, outcome, None, None, (), Observation(), (reason,))
        return self.record(planned, repeat, grader, result, final=final)

    def record(
        self,
        planned: Planned,
        repeat: int,
        grader: Grader,
        result: EvalCaseResult,
        *,
        cached: bool = False,
        confirms: bool = False,
        final: bool = True,
        plain: bytes | None = None,
    ) -> TrialRecord:
        """The result as the store keeps it: as JSON, and without secrets.

        `plain` is the JSON of the observation, when that is there already.
        """
        case, seen = planned.case, result.observation
        if self.preparation.uses:
            result = _with_judges(grader, result)
        if plain is None:
            plain = seen.to_json(case.id)
        return TrialRecord(  # without the names of the first ones, which would cost time
            self.run_id,
            planned.position,
            repeat,
            self.files[planned.suite],
            case.id,
            result.outcome,
            result.score,
            0.0 if cached else float(result.duration_ms),  # as the store gives it back
            0.0 if cached else _number(seen.cost_usd),
            _number(judge_cost(result.scores)),
            comparability.key(grader),
            case.critical,
            case.cluster,
            1.0 if case.min_pass_rate is None else case.min_pass_rate,
            result.skipped_assertions,
            confirms,
            final,
            result=self.redact.encoded(result.recorded(repeat, cached=cached, confirms=confirms)),
            observation=self.redact.encoded(plain),
        )

    async def _ask(self, planned: Planned, repeat: int) -> Asked:
        case, target = planned.case, self.target_of(planned)
        # What was recorded needs no cache: nobody is called.
        cache, key = None if target.recorded else self._cache, ""
        suite = self.files[planned.suite]
        request = Request(case.input_messages, case, repeat, suite=suite)
        if cache is not None:
            key = answer_key(target, case, request)
            if (known := await asyncio.to_thread(cache.get, key)) is not None:
                return Asked(read(known), cached=True)
        timeout = self._timeout_seconds or case.timeout_seconds
        try:
            seen = await target.ask(request, timeout=timeout)
        except TargetError as error:
            return Asked(Observation(error=str(error)), unreachable=error.unreachable)
        except AssayError as error:
            return Asked(Observation(error=str(error)))
        except Exception as error:  # whatever a stranger's target does
            return Asked(Observation(error=f"{target.name} raised {cause_of(error)}"))
        if cache is not None and seen.error is None:
            cache.put(key, msgspec.json.decode(seen.to_json(case.id)))
        return Asked(seen)


def _number(measure: float | None) -> float | None:
    """A measure may be a whole number; added to others it must be written as from the store."""
    return None if measure is None else float(measure)


async def _graded(grader: Grader, observation: Observation, repeat: int) -> EvalCaseResult:
    result = grader.grade(observation, repeat)
    if isinstance(result, EvalCaseResult):
        return result
    try:
        async with asyncio.timeout(GRADING_SECONDS):
            return await result
    except TimeoutError:
        late = f"the evaluators were not done within {GRADING_SECONDS:g} s"
        return await grader.graded(observation.replace(error=late), repeat)


def _with_judges(grader: Grader, result: EvalCaseResult) -> EvalCaseResult:
    """The result with the id of every judge, which its calibration is found by."""
    if not any(ready.judges for ready in grader.ready) or not result.scores:
        return result
    scores = [
        score
        if ready.use is None
        else replace(score, details=score.details | {"judgeId": ready.use.id})
        for ready, score in zip(grader.ready, result.scores, strict=True)
    ]
    return replace(result, scores=tuple(scores))


def answer_key(target: Retrying, case: EvalCase, request: Request) -> str:
    """What an answer depends on: the target, the question, the repeat; never what is expected.

    Beside the messages a target may be told which case it is, and the metadata of that.
    """
    question = [comparability.said(request.messages), case.stubs, case.max_turns]
    whose = [request.suite, case.id, case.conversation_id, case.metadata]
    key = _KEY.encode([target.identity, question, whose, request.repeat])
    return "answer:" + sha256(key).hexdigest()


def judge_cost(scores: Iterable[EvaluationScore]) -> float | None:
    """What the judges of a case cost together; None when none was asked or one does not tell."""
    detailed = [score.details for score in scores if score.details]
    if not detailed:
        return None
    asked = [judge for details in detailed for judge in _judges(details)]
    costs = [judge.get("costUsd") for judge in asked if judge.get("calls")]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _judges(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What evaluators tell of their judges; those of a composite are among its members."""
    found = [details["judge"]] if "judge" in details else []
    for member in details.get("members", ()):
        found += _judges(member.get("details", {}))
    return found
