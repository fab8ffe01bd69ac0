"""The loop of a chat model with stubs: its calls are answered until it makes no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from assay.model.message import Message, ToolCall
from assay.model.observation import Observation
from assay.observations.measures import total
from assay.observations.pairing import NO_RESULT, last_said
from assay.ports import Request
from assay.targets.tools import Answer, answer_call
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


async def converse(model: Model, request: Request) -> Observation:
    """The answer to a question; if the case has stubs, after they answered the model's calls."""
    case, body = request.case, model.opening(request)
    seen = await model.reply(body, request)
    if case is None or not case.stubs:
        return seen
    from assay.model.tiers import DEFAULT_MAX_TURNS  # its models are slow to build

    stubs, max_turns = case.stubs, case.max_turns or DEFAULT_MAX_TURNS
    turns = [_turn(seen, stubs, 1)]
    while turns[-1].answers and len(turns) < max_turns:
        body = model.continued(body, turns[-1])
        turns.append(_turn(await model.reply(body, request), stubs, len(turns) + 1))
    return _join(turns)


def _turn(seen: Observation, stubs: Mapping[str, Any], number: int) -> Turn:
    """A turn of the model; calls that the provider answered itself keep their results."""
    calls = [_with_id(call, number, n) for n, call in enumerate(seen.tool_calls or ())]
    answers = {n: answer_call(c, stubs) for n, c in enumerate(calls) if NO_RESULT in c.notes}
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
        duration_ms=sum(each.duration_ms or 0.0 for each in seen),
        llm_calls=len(turns),
        error=answer.error,
        notes=tuple(dict.fromkeys(notes)),
        raw=[each.raw for each in seen],
    )
