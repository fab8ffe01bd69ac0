"""Typed access to fields of foreign records: None if absent, an error with its path if invalid."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from assay.errors import ObservationError
from assay.model.values import from_json
from assay.problems import MAX_MESSAGE
from assay.redaction import cut
from assay.text import printable
from assay.wire.validation_errors import shown

_TEXT_BLOCKS = ("text", "input_text", "output_text", "refusal")
BAD_JSON = "the input is not valid JSON and is kept as text"
PLAIN_TEXT = "the input is plain text"
KEPT_AS_TEXT = frozenset({BAD_JSON, PLAIN_TEXT})
#: The largest signed 64-bit integer.
MAX_WHOLE = 2**63 - 1


class RecordReader:
    """A mapping, and its path in the whole record.

    Accessors take several names for a field: the first one with a value is used.
    """

    __slots__ = ("at", "raw")

    def __init__(self, raw: Any, at: str = "") -> None:
        if not isinstance(raw, dict):
            raise broken(at, f"is {shown(raw)}, not a mapping")
        self.raw, self.at = raw, at

    def place(self, name: str) -> str:
        return f"{self.at}.{name}" if self.at else name

    def find(self, *names: str) -> tuple[str, Any]:
        """The first of these keys that has a value, and the value."""
        for name in names:
            value = self.raw.get(name)
            if value is not None:
                return name, value
        return names[0], None

    def get(self, *names: str) -> Any:
        return self.find(*names)[1]

    def text(self, *names: str) -> str | None:
        name, value = self.find(*names)
        if value is None or isinstance(value, str):
            return value
        raise broken(self.place(name), f"is {shown(value)}, not text")

    def needed(self, *names: str) -> str:
        """A required text, such as the name of a tool."""
        if text := self.text(*names):
            return text
        raise broken(self.at, f"has no {' or '.join(map(repr, names))}")

    def identity(self, *names: str) -> str | None:
        """An id; spaces around it are removed, as some recorders add them. A blank one is none."""
        text = self.text(*names)
        return (text.strip() or None) if text else None

    def flag(self, *names: str) -> bool | None:
        name, value = self.find(*names)
        if value is None or isinstance(value, bool):
            return value
        raise broken(self.place(name), f"is {shown(value)}, neither true nor false")

    def number(self, *names: str) -> float | None:
        name, value = self.find(*names)
        if value is None or is_measure(value):
            # Stores cannot keep larger integers.
            return float(value) if type(value) is int and value > MAX_WHOLE else value
        raise broken(self.place(name), f"is {shown(value)}, not a number from 0")

    def count(self, *names: str) -> int | None:
        value = self.number(*names)
        if value is None or value == int(value):
            return None if value is None else int(value)
        raise broken(self.place(self.find(*names)[0]), f"is {value}, not a whole number")

    def items(self, *names: str) -> list[Any]:
        name, value = self.find(*names)
        if value is None:
            return []
        if isinstance(value, (list, tuple)):
            return list(value)
        raise broken(self.place(name), f"is {shown(value)}, not a list")

    def records(self, *names: str) -> list[RecordReader]:
        return records(self.items(*names), self.place(self.find(*names)[0]))

    def record(self, *names: str) -> RecordReader | None:
        name, value = self.find(*names)
        return None if value is None else RecordReader(value, self.place(name))

    def texts(self, *names: str) -> tuple[str, ...]:
        items = self.items(*names)
        if all(isinstance(item, str) for item in items):
            return tuple(items)
        raise broken(self.place(self.find(*names)[0]), "is not a list of texts")


def is_measure(value: Any) -> TypeGuard[float]:
    """Is it a valid measurement: a number, not negative, infinite or a boolean?"""
    return isinstance(value, (int, float)) and type(value) is not bool and 0 <= value < 1e300


def records(items: list[Any], at: str = "") -> list[RecordReader]:
    return [RecordReader(item, f"{at}[{index}]") for index, item in enumerate(items)]


def broken(at: str, fault: str) -> ObservationError:
    """The error for a record of a known shape with something invalid in it."""
    message = f"the observation is broken: {repr(at) if at else 'it'} {fault}"
    return ObservationError(printable(cut(message, MAX_MESSAGE, "both")))


def as_json(value: Any, at: str = "") -> str:
    """A value that is not text, as JSON text."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise broken(at, f"cannot be written as JSON: {error}") from None


def as_text(value: Any, at: str = "") -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else as_json(value, at)


def arguments(value: Any) -> tuple[Any, tuple[str, ...]]:
    """The parsed arguments of a call, and notes on them. Blank text means no arguments."""
    if not isinstance(value, str):
        return value, ()
    if not value.strip():
        return {}, ()
    try:
        parsed = from_json(value)
    except ValueError:
        return value, (BAD_JSON,)
    return parsed, (PLAIN_TEXT,) if isinstance(parsed, str) else ()


def free_text(value: Any) -> tuple[Any, tuple[str, ...]]:
    """The input of a tool that takes text: never parsed as JSON, whatever it looks like."""
    return value, (PLAIN_TEXT,) if isinstance(value, str) else ()


def outcome(value: Any) -> Any:
    """The result of a tool in a format that has only text: objects and lists are parsed.

    Other texts are kept: it is not known whether `42` was a number.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return from_json(value)
        except ValueError:
            return value
    return value


def error_text(value: Any) -> str | None:
    """The message of an `error`, which is text or a mapping; None if there is no error."""
    if value is None or value is False or value == "":
        return None
    if isinstance(value, dict):
        message = value.get("message") or value.get("type") or value.get("code")
        return message if isinstance(message, str) else as_json(value, "error")
    return as_text(value, "error")


def joined(content: Any) -> Any:
    """Content blocks as one text; blocks without any text are returned as they are."""
    if not isinstance(content, (list, tuple)):
        return content
    texts = [text for text in map(_block_text, content) if text is not None]
    return "".join(texts) if texts else list(content) or None


def _block_text(block: Any) -> str | None:
    if not isinstance(block, dict):
        return block if isinstance(block, str) else None
    kind = block.get("type")
    text = block.get("refusal" if kind == "refusal" else "text")
    return text if kind in _TEXT_BLOCKS and isinstance(text, str) else None


def message_list(value: Any) -> list[Any] | None:
    """The messages of a list, of `{"messages": [...]}`, or of one message alone.

    tau-bench has them under `traj`, others under `output`, where OpenAI Responses have items.
    """
    if isinstance(value, dict):
        if "messages" in value:
            value = value["messages"]
        elif "role" in value:
            value = [value]
        else:
            lists = (value.get(name) for name in ("traj", "output"))
            value = next((found for found in lists if isinstance(found, list)), None)
    return value if isinstance(value, list) else None
