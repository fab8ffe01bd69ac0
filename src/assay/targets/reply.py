"""Reading what a provider sent: JSON without surprises, and values of the right type."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from assay.errors import TargetError
from assay.model.message import ToolCall
from assay.model.observation import Usage
from assay.model.shape import shown

T = TypeVar("T")
_NAMES: dict[type, str] = {dict: "a mapping", list: "a list", str: "text"}


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def parse_json(text: str) -> Any:
    """The value of a JSON text; raises ValueError or RecursionError."""
    return json.loads(text, parse_constant=_no_number)


def require(value: Any, kind: type[T], what: str) -> T:
    """The value, which must be of this kind."""
    if not isinstance(value, kind):
        raise TargetError(f"{what} is {shown(value)}, not {_NAMES[kind]}")
    return value


def usage(raw: Any, input_key: str, output_key: str) -> Usage | None:
    """The tokens of a reply; None when it does not tell."""
    if not isinstance(raw, dict):
        return None
    counts = [raw.get(key) for key in (input_key, output_key)]
    return Usage(*(count if type(count) is int and count >= 0 else None for count in counts))


def tool_call(tool: str, arguments: Any, call_id: Any) -> ToolCall:
    """A call whose arguments may be JSON text; what is no JSON stays text, with a note."""
    notes: tuple[str, ...] = ()
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            notes = (f"the arguments are not JSON: {error}",)
    identity = call_id if isinstance(call_id, str) else None
    return ToolCall(tool, input=arguments, id=identity, notes=notes)
