"""What a case and a composite both do with their evaluators: prepare, score, apply gates."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable
from typing import Any

from assay.errors import AssayError, cause_of
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.numbers import rounded
from assay.model.score import PASS_FROM, EvaluationScore, reaches
from assay.ports import Check, Resources


def ready(spec: Any, resources: Resources) -> Check:
    """The check of an evaluator: what its `prepare` returns, or else its `evaluate`.

    If `prepare` crashes, the check gives an errored score for every case. An AssayError is raised:
    it tells the user what to set.
    """
    try:
        prepare = getattr(spec, "prepare", None)
        check: Check = spec.evaluate if prepare is None else prepare(resources)
    except AssayError:
        raise
    # a plugin's evaluator may raise anything
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        broken = EvaluationScore.errored(f"it could not be prepared: {cause_of(error)}")
        return lambda context: broken
    return check


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
    return f"{spec.name}: the score {found} is not {least}, which is required"


def _meets(required: bool | float, score: EvaluationScore) -> bool:
    """`true` asks for the verdict pass, a number for at least that score."""
    if required is True:
        return score.verdict == "pass"
    return score.score is not None and reaches(score.score, required)
