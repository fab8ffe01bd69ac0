"""What a case and a composite both do with their evaluators: prepare, score, apply gates.

A check that may be slow does not run on the event loop: the trials in flight would wait for it, and
the wait would count as their target's time. `EvaluatorSpec.runs_in` says where it runs instead.
"""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from assay import redaction
from assay.deadlines import DeadlineExceeded, within
from assay.errors import AssayError, cause_of
from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.numbers import rounded
from assay.model.score import PASS_FROM, EvaluationScore, reaches
from assay.ports import Check, Resources
from assay.process.workers import LIMIT_SECONDS, compute
from assay.redaction import Redactor, redacting
from assay.threads import in_thread

#: How long a check may keep the event loop before a worker process takes over.
LOOP_SECONDS = 0.002
#: Answers with more characters go to a worker process at once.
LARGE_ANSWER = 100_000
_TOO_LONG = "it needed more than {:g} s of processor time and was stopped"
#: How long a check in a thread may take. It goes on, but is not waited for.
THREAD_SECONDS = 300.0


def prepare(spec: Any, resources: Resources) -> Check:
    """The check of an evaluator: what its `prepare` returns, or else its `evaluate`.

    It is awaited where it cannot run on the event loop.

    If `prepare` crashes, the check gives an errored score for every case. An AssayError is raised:
    its message says what to configure.
    """
    try:
        check, place = _prepared(spec, resources), spec.runs_in()
    except AssayError:
        raise
    # a plugin's evaluator may raise anything
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        broken = EvaluationScore.errored(f"it could not be prepared: {cause_of(error)}")
        return lambda context: broken
    if place == "loop" or inspect.iscoroutinefunction(check):
        return check
    return _in_worker(spec, resources, check) if place == "worker" else _in_thread(check)


def _prepared(spec: Any, resources: Resources) -> Check:
    prepare = getattr(spec, "prepare", None)
    check: Check = spec.evaluate if prepare is None else prepare(resources)
    return check


def _in_worker(spec: EvaluatorSpec, resources: Resources, check: Check) -> Check:
    """The check, but in a worker process as soon as it turns out to take long."""
    pickled = b""

    def limited(context: Context) -> EvaluationScore | Awaitable[EvaluationScore]:
        nonlocal pickled
        if len(context.observation.response) <= LARGE_ANSWER:
            try:
                return within(LOOP_SECONDS, check, context)
            except DeadlineExceeded:
                pass
        pickled = pickled or pickle.dumps((spec, dict(resources.sources)))
        return _computed(pickled, context)

    return limited


async def _computed(pickled: bytes, context: Context) -> EvaluationScore:
    """The score by a worker process, which gets what `EvaluatorSpec.runs_in` promises."""
    case = EvalCase(context.case.id, (), (), expected_messages=context.case.expected_messages)
    try:
        seen = Context(case, context.observation, context.repeat)
        return await compute(_score, pickled, seen, redaction.current(), limit=LIMIT_SECONDS)
    except TimeoutError:
        return EvaluationScore.errored(_TOO_LONG.format(LIMIT_SECONDS))


def _score(pickled: bytes, context: Context, redactor: Redactor) -> Any:
    """The score of a check, in a worker process."""
    with redacting(lambda: redactor):
        return _unpickled(pickled)(context)


@lru_cache(maxsize=64)
def _unpickled(pickled: bytes) -> Check:
    spec, sources = pickle.loads(pickled)
    return _prepared(spec, Resources(sources=sources))


#: Lets one check of a run be in a thread at a time: functions of a project need not be thread-safe.
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def _in_thread(check: Check) -> Check:
    async def later(context: Context) -> Any:
        turn = _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with turn:
            try:
                async with asyncio.timeout(THREAD_SECONDS):
                    score, error, _ = await in_thread(check, context)
            except TimeoutError:
                late = f"it took longer than {THREAD_SECONDS:g} s and was abandoned"
                return EvaluationScore.errored(late)
        if isinstance(error, (Exception, SystemExit, asyncio.CancelledError)):
            return _crashed(error)
        if error is not None:
            raise error
        return await score if inspect.isawaitable(score) else score

    return later


def scores_of(
    checks: Iterable[Check], context: Context
) -> list[EvaluationScore] | Awaitable[list[EvaluationScore]]:
    """The scores of the checks; an awaitable only if some check is async."""
    scores: list[Any] = []
    waiting = False
    for check in checks:
        try:
            score: Any = check(context)
        # a plugin's evaluator may raise anything
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            score = _crashed(error)
        if type(score) is not EvaluationScore:
            waiting = True
        scores.append(score)
    return _gather(scores) if waiting else scores


async def _gather(scores: list[Any]) -> list[EvaluationScore]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_settled(score)) for score in scores]
    return [task.result() for task in tasks]


async def _settled(score: Any) -> EvaluationScore:
    """The score, awaited if need be; an exception or a wrong type becomes an errored score."""
    if inspect.isawaitable(score):
        try:
            score = await score
        except (Exception, SystemExit) as error:  # a plugin's evaluator may raise anything
            return _crashed(error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # we were cancelled, not the evaluator
            return _crashed(error)
    if isinstance(score, EvaluationScore):
        return score
    return EvaluationScore.errored(f"it returned {type(score).__name__}, not an EvaluationScore")


def _crashed(error: BaseException) -> EvaluationScore:
    """An errored score with the reason; our own errors are already worded for users."""
    if isinstance(error, AssayError):
        return EvaluationScore.errored(str(error))
    return EvaluationScore.errored(f"it raised {cause_of(error)}")


def failed_gate(spec: EvaluatorSpec, score: EvaluationScore) -> str:
    """The gate that a score fails: one inside the evaluator, or its `required`; else empty."""
    if score.failed_gate:
        return f"{spec.name}: {score.failed_gate}"
    required = spec.required
    if required is False or score.score is None or _meets(required, score):
        return ""
    least = "a pass" if required is True else f"at least {required:g}"
    found = rounded(score.score, PASS_FROM if required is True else required, 3)
    return f"{spec.name}: the score is {found}, but {least} is required"


def _meets(required: bool | float, score: EvaluationScore) -> bool:
    """`true` requires the verdict pass, a number at least that score."""
    if required is True:
        return score.verdict == "pass"
    return score.score is not None and reaches(score.score, required)
