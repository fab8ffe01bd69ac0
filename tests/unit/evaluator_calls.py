"""An evaluator as a file's entry, made ready and held against one observation."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec, resolve_type
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.ports import Resources
from assay.registry import evaluators
from assay.scoring import prepare


def spec_of(kind: str, **keys: Any) -> EvaluatorSpec:
    entry = resolve_type({"type": kind, **keys})
    cls: type[EvaluatorSpec] = evaluators.get(entry["type"])
    return cls.model_validate(entry)


def context_of(seen: Observation | str, expected: Any = None) -> Context:
    messages = () if expected is None else (Message("assistant", expected),)
    case = EvalCase("c", (Message("user", "?"),), (), expected_messages=messages)
    return Context(case, Observation(seen) if isinstance(seen, str) else seen)


def judged(
    kind: str,
    seen: Observation | str,
    *,
    expected: Any = None,
    sources: Mapping[str, Any] | None = None,
    **keys: Any,
) -> EvaluationScore:
    """What an evaluator with these keys says about an answer."""
    check = prepare(spec_of(kind, **keys), Resources(sources=sources or {}))
    return awaited(check(context_of(seen, expected)))


def awaited(score: Any) -> EvaluationScore:
    """The score, whether it is given at once or later."""

    async def wait() -> EvaluationScore:
        said: EvaluationScore = await score
        return said

    return asyncio.run(wait()) if inspect.isawaitable(score) else score
