"""A judge with scripted answers, and the cases and observations that evaluators are given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from assay.evaluators.llm_judge import LlmJudgeEvaluator
from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message
from assay.model.observation import Observation, Usage
from assay.model.score import EvaluationScore
from assay.ports import Request, Resources
from assay.scoring import prepare
from unit.evaluator_calls import awaited

CASE = EvalCase(
    "c1",
    (Message("system", "Be brief."), Message("user", "What is 2+2?")),
    (),
    expected_outcome="It says 4",
    expected_messages=(Message("assistant", "four"),),
)
Reply = Any  # a text, an exception, or anything that is sent as JSON


class Judge:
    """A target with replies in order of the calls, or by a function of the request."""

    name = "a-judge"

    def __init__(self, *replies: Reply, by: Callable[[Request], Reply] | None = None) -> None:
        self._replies, self._by = list(replies), by
        self.asked: list[Request] = []

    async def ask(self, request: Request) -> Observation:
        self.asked.append(request)
        reply = self._by(request) if self._by else self._replies[len(self.asked) - 1]
        await asyncio.sleep(0)  # others get their turn, as with a real target
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Observation):
            return reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return Observation(text, usage=Usage(100, 10), cost_usd=0.25)

    async def close(self) -> None: ...

    @property
    def prompt(self) -> str:
        """The task of the first question."""
        return self.task(0)

    def task(self, index: int) -> str:
        """The last message of a question."""
        return self.asked[index].messages[-1].text


class Memory(dict[str, dict[str, Any]]):
    """A cache in memory."""

    def put(self, key: str, value: dict[str, Any]) -> None:
        self[key] = json.loads(json.dumps(value))


def resources(judge: Judge, cache: Memory | None = None) -> Resources:
    return Resources(judge=lambda target, model: judge, cache=cache)


def answer(text: str = "4", **keys: Any) -> Context:
    return Context(CASE, Observation(text, **keys))


def scored(
    spec: EvaluatorSpec,
    judge: Judge | None = None,
    context: Context | None = None,
    cache: Memory | None = None,
) -> EvaluationScore:
    """What the evaluator says with this judge."""
    given = resources(judge, cache) if judge else Resources()
    return awaited(prepare(spec, given)(context or answer()))


def llm_judge(**keys: Any) -> LlmJudgeEvaluator:
    return LlmJudgeEvaluator.model_validate({"name": "judged", **keys})
