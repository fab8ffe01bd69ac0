"""Checks the types of observations that users' code has made.

Observations do not check their fields when created: recorded runs create one for every case.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from msgspec.structs import asdict

from assay.errors import ObservationError
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.wire.validation_errors import kind_of

_LISTS: dict[str, tuple[type, str]] = {
    "tool_calls": (ToolCall, "ToolCall('search', {'query': ...})"),
    "messages": (Message, "Message('assistant', ...)"),
    "notes": (str, "text"),
}
_SINGLE: dict[str, tuple[type, str]] = {
    "response": (str, "text"),
    "usage": (Usage, "Usage(input_tokens=..., output_tokens=...)"),
    "error": (str, "text"),
}
_OPTIONAL = ("tool_calls", "usage", "error")
_AMOUNTS = ("cost_usd", "duration_ms", "llm_calls")


def checked(observation: Any) -> Observation:
    """The observation, with lists converted to tuples; raises ObservationError."""
    if not isinstance(observation, Observation):
        raise ObservationError(f"it is {kind_of(observation)}, not an Observation")
    for name, (kind, expected) in _SINGLE.items():
        value = getattr(observation, name)
        if not (isinstance(value, kind) or (value is None and name in _OPTIONAL)):
            raise ObservationError(f"'{name}' is {kind_of(value)}, not {expected}")
    amounts = {name: getattr(observation, name) for name in _AMOUNTS}
    if observation.usage is not None:
        amounts |= {f"usage.{name}": n for name, n in asdict(observation.usage).items()}
    for name, value in amounts.items():
        if value is not None and not _is_amount(value):
            raise ObservationError(f"'{name}' is {value!r}, not a number >= 0")
    changes: dict[str, Any] = {}
    for name, (kind, expected) in _LISTS.items():
        value = getattr(observation, name)
        if value is None and name in _OPTIONAL:
            continue
        if not isinstance(value, (tuple, list)):
            raise ObservationError(f"'{name}' is {kind_of(value)}, not a tuple: ({expected},)")
        for index, item in enumerate(value):
            if not isinstance(item, kind):
                raise ObservationError(f"'{name}[{index}]' is {kind_of(item)}, not {expected}")
        if type(value) is list:
            changes[name] = tuple(value)
    return observation.replace(**changes) if changes else observation


def _is_amount(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and isfinite(value) and value >= 0
