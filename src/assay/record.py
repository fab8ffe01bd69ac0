"""Record: the base of the records that users hold, which may be fields of their own models."""

from __future__ import annotations

from typing import Any

import msgspec


class Record(msgspec.Struct, frozen=True):
    """A field of a pydantic model takes an instance as it is, and writes it as JSON."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # only who has such a model needs it

        writer = core_schema.plain_serializer_function_ser_schema(_written)
        return core_schema.is_instance_schema(cls, serialization=writer)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        return {"type": "object", "title": cls.__name__}


def _written(record: Record) -> Any:
    """What the record says of itself, else its fields."""
    to_dict = getattr(record, "to_dict", None)
    return msgspec.to_builtins(record, enc_hook=_plain) if to_dict is None else to_dict()


def _plain(value: Any) -> Any:
    """A field that msgspec does not know: a shape of ours, or a function, of which nothing is."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return None if callable(value) else str(value)
