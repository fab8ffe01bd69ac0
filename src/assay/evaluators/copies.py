"""Copies for a project's function, which may then change its arguments without side effects.

Only JSON data is copied. The evaluators and the document of a case are shared, and so is anything
else that a target of the project put into `raw`.
"""

from __future__ import annotations

from typing import Any

from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation


def of_context(context: Context) -> Context:
    return Context(_case(context.case), _observation(context.observation), context.repeat)


def _case(case: EvalCase) -> EvalCase:
    return case.replace(
        input_messages=tuple(map(_message, case.input_messages)),
        expected_messages=tuple(map(_message, case.expected_messages)),
        metadata=_json(case.metadata),
        reference_data=_json(case.reference_data),
        stubs=_json(case.stubs),
    )


def _observation(seen: Observation) -> Observation:
    calls = None if seen.tool_calls is None else tuple(map(_call, seen.tool_calls))
    messages = tuple(map(_message, seen.messages))
    return seen.replace(tool_calls=calls, messages=messages, raw=_json(seen.raw))


def _message(message: Message) -> Message:
    calls = tuple(map(_call, message.tool_calls))
    return message.replace(content=_json(message.content), tool_calls=calls)


def _call(call: ToolCall) -> ToolCall:
    return call.replace(input=_json(call.input), output=_json(call.output))


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(part) for key, part in value.items()}
    return [_json(part) for part in value] if isinstance(value, list) else value
