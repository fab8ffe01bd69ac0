"""Records as JSON: valid and complete, whatever a target or a stranger's evaluator put in."""

from __future__ import annotations

from typing import Any

import msgspec

#: What is no JSON is written as text.
_ENCODER = msgspec.json.Encoder(enc_hook=str)


def as_json(record: msgspec.Struct | dict[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(record)
    except UnicodeEncodeError:  # half of a surrogate pair, which is no character
        return _ENCODER.encode(_whole(msgspec.to_builtins(record, enc_hook=str)))


def as_dict(record: msgspec.Struct) -> dict[str, Any]:
    """The same, read again: plain data that belongs to the caller alone."""
    plain: dict[str, Any] = msgspec.json.decode(as_json(record))
    return plain


def _whole(value: Any) -> Any:
    """The value with a question mark for each half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, (list, tuple)) else value
