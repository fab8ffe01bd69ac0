"""Record: the base class of public records, which can be fields of users' pydantic models."""

from __future__ import annotations

from typing import Any

import msgspec


class Record(msgspec.Struct, frozen=True):
    """As a field of a pydantic model, an instance is accepted as it is and serialised to JSON."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # needed only by users with such models

        serializer = core_schema.plain_serializer_function_ser_schema(_serialize)
        return core_schema.is_instance_schema(cls, serialization=serializer)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        return {"type": "object", "title": cls.__name__}


def _serialize(record: Record) -> Any:
    """The record's `to_dict` if it has one, else its fields."""
    to_dict = getattr(record, "to_dict", None)
    return msgspec.to_builtins(record, enc_hook=_encode) if to_dict is None else to_dict()


def _encode(value: Any) -> Any:
    """Encode what msgspec does not know: a pydantic model, or a function, which becomes null."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return None if callable(value) else str(value)
