"""The loop of a chat model with tools: its calls are answered until it makes no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from assay.model.message import Message, ToolCall
from assay.model.observation import Observation
from assay.model.stubs import DEFAULT_MAX_TURNS
from assay.observations.measures import total
from assay.observations.pairing import NO_RESULT, last_said
from assay.ports import Request
from assay.targets.functions import ToolFunctions
from assay.targets.toolbox import Toolbox, not_provided
from assay.targets.tools import Answer, ToolDefinition, offered
from assay.text import count

Body = dict[str, Any]


class Model(Protocol):
    """What the loop needs of a provider."""

    def opening(self, request: Request) -> Body:
        """The body of the first request, with the question."""
        ...

    async def reply(self, body: Body, request: Request) -> Observation:
        """The observation of one reply; its `raw` has the provider's JSON."""
        ...

    def continued(self, body: Body, turn: Turn) -> Body:
        """The body of the next request, with the reply and the results of its calls."""
        ...


class Turn(msgspec.Struct, frozen=True):
    """One reply of the model, and the results of calls to send back.

    The calls of `message` have ids and results.
    """

    seen: Observation
    message: Message
    answers: tuple[Answer, ...]


async def converse(
    model: Model, request: Request, tools: Sequence[ToolDefinition], functions: ToolFunctions
) -> Observation:
    """The answer to a question, after the calls of the model were answered.

    The observation is an error if the model calls a tool that nothing provides.
    """
    case, body = request.case, model.opening(request)
    stubs = case.stubs if case else {}
    box, turns = Toolbox(stubs, functions), list[Turn]()
    most = (case and case.max_turns) or DEFAULT_MAX_TURNS
    while True:
        seen = await model.reply(body, request)
        if request.reply_schema is not None:
            return seen
        if missing := [call.tool for call in _open_calls(seen) if not box.provides(call.tool)]:
            whole = _join([*turns, Turn(seen, seen.messages[-1], ())]) if turns else seen
            names = [tool.name for tool in offered(tools, stubs)]
            return whole.replace(error=seen.error or not_provided(missing[0], names))
        if not box:
            return seen
        turns.append(await _turn(seen, box, len(turns) + 1))
        if not turns[-1].answers or len(turns) == most:
            return _join(turns)
        body = model.continued(body, turns[-1])


def _open_calls(seen: Observation) -> list[ToolCall]:
    """The calls that the provider did not answer itself."""
    return [call for call in seen.tool_calls or () if NO_RESULT in call.notes]


async def _turn(seen: Observation, box: Toolbox, number: int) -> Turn:
    """A turn of the model; calls that the provider answered itself keep their results."""
    calls = [_with_id(call, number, n) for n, call in enumerate(seen.tool_calls or ())]
    # One after the other, as tools may depend on what earlier calls did.
    answers = {n: await box.answer(c) for n, c in enumerate(calls) if NO_RESULT in c.notes}
    complete = (answers[n].call if n in answers else call for n, call in enumerate(calls))
    message = seen.messages[-1].replace(tool_calls=tuple(complete))
    return Turn(seen, message, tuple(answers.values()))


def _with_id(call: ToolCall, turn: int, number: int) -> ToolCall:
    """The call with an id, which a result needs and some servers leave out."""
    return call if call.id else call.replace(id=f"call_{turn}_{number}")


def _join(turns: Sequence[Turn]) -> Observation:
    seen = [turn.seen for turn in turns]
    messages = tuple(turn.message for turn in turns)
    answer = last_said(messages)
    costs = [each.cost_usd for each in seen if each.cost_usd is not None]
    notes = [note for each in seen for note in each.notes]
    if turns[-1].answers:
        notes.append(f"stopped after {count(len(turns), 'turn')}: the model still called tools")
    return Observation(
        response=answer.text,
        tool_calls=tuple(call for message in messages for call in message.tool_calls),
        messages=messages,
        usage=total(each.usage for each in seen),
        cost_usd=sum(costs) if len(costs) == len(seen) else None,
        duration_ms=sum(each.duration_ms or 0.0 for each in seen) + _time_of_tools(turns),
        llm_calls=len(turns),
        error=answer.error,
        notes=tuple(dict.fromkeys(notes)),
        raw=[each.raw for each in seen],
    )


def _time_of_tools(turns: Sequence[Turn]) -> float:
    calls = (answer.call for turn in turns for answer in turn.answers)
    return sum(call.duration_ms or 0.0 for call in calls)
