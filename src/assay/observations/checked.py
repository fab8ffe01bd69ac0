"""Checks the types of observations that users' code has made.

Observations do not check their fields when created: recorded runs create one for every case.
"""

from __future__ import annotations

from typing import Any

from assay.errors import ObservationError
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.model.refusal import kind_of

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


def checked(observation: Any) -> Observation:
    """The observation, with lists converted to tuples; raises ObservationError."""
    if not isinstance(observation, Observation):
        raise ObservationError(f"it is {kind_of(observation)}, not an Observation")
    for name, (kind, expected) in _SINGLE.items():
        value = getattr(observation, name)
        if not (isinstance(value, kind) or (value is None and name in _OPTIONAL)):
            raise ObservationError(f"'{name}' is {kind_of(value)}, not {expected}")
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
