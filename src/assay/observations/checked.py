"""Observations that a stranger's code made: their fields hold what they should.

A record does not check its fields when it is made, as recorded runs make one of every case.
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
_MAYBE = ("tool_calls", "usage", "error")


def checked(seen: Any) -> Observation:
    """The observation, with tuples where lists were given; raises ObservationError."""
    if not isinstance(seen, Observation):
        raise ObservationError(f"it is {kind_of(seen)}, not an Observation")
    for name, (kind, wanted) in _SINGLE.items():
        value = getattr(seen, name)
        if not (isinstance(value, kind) or (value is None and name in _MAYBE)):
            raise ObservationError(f"'{name}' is {kind_of(value)}, not {wanted}")
    changes: dict[str, Any] = {}
    for name, (kind, wanted) in _LISTS.items():
        value = getattr(seen, name)
        if value is None and name in _MAYBE:
            continue
        if not isinstance(value, (tuple, list)):
            raise ObservationError(f"'{name}' is {kind_of(value)}, not a tuple: ({wanted},)")
        for index, each in enumerate(value):
            if not isinstance(each, kind):
                raise ObservationError(f"'{name}[{index}]' is {kind_of(each)}, not {wanted}")
        if type(value) is list:
            changes[name] = tuple(value)
    return seen.replace(**changes) if changes else seen
