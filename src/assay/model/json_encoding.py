"""Encodes records as JSON, which is valid even if plugins put in values that are not JSON."""

from __future__ import annotations

from typing import Any

import msgspec

#: Values that are not JSON are encoded as text.
_ENCODER = msgspec.json.Encoder(enc_hook=str)


def as_json(record: msgspec.Struct | dict[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(record)
    except UnicodeEncodeError:  # half of a surrogate pair
        return _ENCODER.encode(_replace_surrogates(msgspec.to_builtins(record, enc_hook=str)))


def as_dict(record: msgspec.Struct) -> dict[str, Any]:
    """The record as plain data, which shares nothing with it."""
    plain: dict[str, Any] = msgspec.json.decode(as_json(record))
    return plain


def _replace_surrogates(value: Any) -> Any:
    """Replace each half of a surrogate pair by a question mark."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    return (
        [_replace_surrogates(item) for item in value] if isinstance(value, (list, tuple)) else value
    )
