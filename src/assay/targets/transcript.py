"""Input messages in the form of chat APIs: each call has an id, and its result follows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from assay.errors import TargetError
from assay.model.message import Message, Role
from assay.targets.chat import text_of
from assay.targets.tools import Answer, result_text


class Step(msgspec.Struct, eq=False):
    """A message other than a tool's result; `answers` has its calls with their results."""

    role: Role
    text: str
    name: str | None = None
    answers: list[Answer] = []


def steps(messages: Sequence[Message]) -> list[Step]:
    """The messages with tool results at their calls; raises TargetError if one has no partner.

    A message of the role `tool` answers the first call before it that has no result; if it has a
    `name`, the first call of that tool.
    """
    found: list[Step] = []
    waiting: list[tuple[Step, int]] = []
    taken = {call.id for message in messages for call in message.tool_calls}
    for message in messages:
        if message.role == "tool":
            step, place = _find_call(message, waiting)
            waiting.remove((step, place))
            step.answers[place] = replace(step.answers[place], text=text_of(message))
            continue
        step = Step(message.role, text_of(message), message.name)
        found.append(step)
        for place, call in enumerate(message.tool_calls):
            identified = call.replace(id=call.id or _new_id(taken))
            step.answers.append(Answer(identified, result_text(call.output)))
            if call.output is None:
                waiting.append((step, place))
    if waiting:
        hint = "give it an 'output', or a message of the role 'tool' after it"
        step, place = waiting[0]
        tool = step.answers[place].call.tool
        raise TargetError(f"the call of {tool!r} in the input has no result: {hint}")
    return found


def _find_call(message: Message, waiting: list[tuple[Step, int]]) -> tuple[Step, int]:
    for step, place in waiting:
        if message.name is None or message.name == step.answers[place].call.tool:
            return step, place
    name = f" of {message.name!r}" if message.name else ""
    raise TargetError(f"a result{name} in the input belongs to no call before it")


def _new_id(taken: set[str | None]) -> str:
    number = len(taken)
    while f"call_{number}" in taken:
        number += 1
    taken.add(f"call_{number}")
    return f"call_{number}"
