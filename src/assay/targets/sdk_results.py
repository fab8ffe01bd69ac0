"""What a function of the project returned, as JSON: also objects of other packages.

They are recognised by their public methods and shapes, so that none of the packages is imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from assay.errors import cause_of
from assay.wire.validation_errors import kind_of

#: What a function may return, for messages.
ACCEPTED = (
    "text, a mapping, an Observation, a dataclass, a pydantic model, "
    "or a response of the OpenAI or Anthropic SDK, LangChain or the OpenAI Agents SDK"
)
#: Methods that turn an object into a mapping, the preferred first.
_METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("model_dump", {"mode": "json"}),
    ("to_dict", {}),
    ("dict", {}),
)


def record_of(value: Any) -> Any:
    """A copy of the value as JSON; raises TypeError or ValueError if it cannot be converted."""
    return json_of(_unfolded(value))


def json_of(value: Any) -> Any:
    """A copy as JSON, of its own shape; raises TypeError, ValueError or RecursionError."""
    return json.loads(json.dumps(value, allow_nan=False, default=_dumped))


def _unfolded(value: Any) -> Any:
    """The result of a LangChain agent as messages; anything else is unchanged."""
    if isinstance(value, dict) and isinstance(value.get("output"), str):
        steps = value.get("intermediate_steps")
        if isinstance(steps, list):
            return {"response": value["output"], "toolCalls": [_call(step) for step in steps]}
    if _is_langchain_message(value):
        return {"messages": [value]}
    return value


def _call(step: Any) -> Any:
    """A call of `intermediate_steps`: the action, and what the tool returned."""
    action, result = step
    params = action.tool_input
    params = params if isinstance(params, dict) else {"input": params}
    return {"name": action.tool, "params": params, "result": result, "success": True}


def _is_langchain_message(value: Any) -> bool:
    return hasattr(type(value), "model_dump") and hasattr(value, "response_metadata")


def _dumped(value: Any) -> Any:
    """An object as a mapping; raises TypeError for one that is not understood."""
    kind = type(value)
    try:
        if hasattr(kind, "to_input_list") and hasattr(value, "final_output"):
            return _agents_run(value)
        if hasattr(kind, "__dataclass_fields__") or isinstance(value, msgspec.Struct):
            return msgspec.to_builtins(value, enc_hook=_dumped)
        for name, arguments in _METHODS:
            method: Callable[..., Any] | None = getattr(kind, name, None)
            if callable(method):
                return method(value, **arguments)
    except Exception as error:  # the class is the project's own
        raise TypeError(f"{kind_of(value)} ({cause_of(error)})") from error
    raise TypeError(kind_of(value))


def _agents_run(value: Any) -> dict[str, Any]:
    """A run of the OpenAI Agents SDK: its items, and the tokens that it used."""
    usage = getattr(getattr(value, "context_wrapper", None), "usage", None)
    tokens = {
        name: count
        for name in ("input_tokens", "output_tokens")
        if isinstance(count := getattr(usage, name, None), int)
    }
    return {"messages": value.to_input_list(), **({"usage": tokens} if tokens else {})}
