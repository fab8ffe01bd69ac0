"""What all holders of evaluators do: make them ready, take their scores, hold the gates.

A case is such a holder, and so is a composite.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable
from typing import Any

from assay.errors import AssayError, cause_of
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.score import EvaluationScore, reaches
from assay.ports import Check, Resources


def ready(spec: Any, resources: Resources) -> Check:
    """The check of an evaluator: what it prepares, or its `evaluate` as it stands.

    One that breaks meanwhile errs at every case. Errors of ours are raised: they say what the
    user has to set.
    """
    try:
        prepare = getattr(spec, "prepare", None)
        check: Check = spec.evaluate if prepare is None else prepare(resources)
    except AssayError:
        raise
    # whatever a stranger's evaluator does
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        broken = EvaluationScore.errored(f"it could not be prepared: {cause_of(error)}")
        return lambda context: broken
    return check


def scores_of(
    checks: Iterable[Check], context: Context
) -> list[EvaluationScore] | Awaitable[list[EvaluationScore]]:
    """What the checks say, at once when none of them has to wait for anything."""
    scores: list[Any] = []
    waiting = False
    for check in checks:
        try:
            score: Any = check(context)
        # whatever a stranger's evaluator does
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            score = _crashed(error)
        if type(score) is not EvaluationScore:
            waiting = True
        scores.append(score)
    return _together(scores) if waiting else scores


async def _together(scores: list[Any]) -> list[EvaluationScore]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_settled(score)) for score in scores]
    return [task.result() for task in tasks]


async def _settled(score: Any) -> EvaluationScore:
    """A score that was there, or that comes; what goes wrong on the way is an errored one."""
    if inspect.isawaitable(score):
        try:
            score = await score
        except (Exception, SystemExit) as error:  # whatever a stranger's evaluator does
            return _crashed(error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # whoever waits for the score does not want it any more
            return _crashed(error)
    if isinstance(score, EvaluationScore):
        return score
    return EvaluationScore.errored(f"it returned {type(score).__name__}, not an EvaluationScore")


def _crashed(error: BaseException) -> EvaluationScore:
    """The reason why an evaluator broke; our own errors are worded for users already."""
    if isinstance(error, AssayError):
        return EvaluationScore.errored(str(error))
    return EvaluationScore.errored(f"it raised {cause_of(error)}")


def failed_gate(spec: EvaluatorSpec, score: EvaluationScore) -> str:
    """Which requirement a score does not meet: one inside the evaluator, or its `required`."""
    if score.failed_gate:
        return f"{spec.name}: {score.failed_gate}"
    required = spec.required
    if required is False or score.score is None or _meets(required, score):
        return ""
    least = "a pass" if required is True else f"at least {required:g}"
    return f"{spec.name}: the score {score.score:.3g} is not {least}, which is required"


def _meets(required: bool | float, score: EvaluationScore) -> bool:
    """`true` asks for the verdict pass, a number for at least that score."""
    if required is True:
        return score.verdict == "pass"
    return score.score is not None and reaches(score.score, required)
