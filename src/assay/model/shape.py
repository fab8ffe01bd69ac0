"""Shape: the base of all wire shapes.

A wire shape is a pydantic model of something an author writes. It is the only
description of that thing: validation, JSON Schema and the tables in docs/ come from it.
Aliases are declared beside the field, in `Key(...)`.

pydantic reports faults by path; a few things it cannot say (unknown keys with the
nearest known one, an alias that was ignored) are left as notes in a `Reading`, which a
loader passes in as the validation context. Without a `Reading`, unknown keys are plain
validation errors.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Protocol, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from assay.model.refusal import Refusal, together
from assay.model.spelling import Spelling

# The first validator that is built makes pydantic look for its own plugins in the metadata of all
# packages, and no later one does. Metadata that cannot be read breaks this one, which nobody needs.
with suppress(Exception):
    TypeAdapter(bool)


class Rule(Protocol):
    """What must hold between the keys of one shape."""

    def broken(self, shape: Shape) -> Sequence[Refusal]:
        """Every place where the shape breaks the rule."""

    def stands(self, wrong: Container[str]) -> bool:
        """Whether it can be told although these keys have wrong values."""

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        """The same in JSON Schema; empty when that cannot say it."""


class Shape(BaseModel):
    """Base of wire shapes: frozen, no unknown keys, aliases renamed before validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    spelling: ClassVar[Spelling] = Spelling(frozenset())
    #: what must hold between the keys; for shapes that are Ruled
    rules: ClassVar[tuple[Rule, ...]] = ()
    #: the keys that take any JSON value, so that null is one
    null_counts: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        fields = cls.model_fields
        cls.spelling = Spelling.of(fields, any_key=cls.model_config["extra"] == "allow")
        cls.null_counts = frozenset(key for key, info in fields.items() if info.annotation is Any)

    def is_given(self, key: str) -> bool:
        """Whether the key is written and not null, unless null is a value there."""
        return key in self.__pydantic_fields_set__ and (
            self.__dict__[key] is not None or key in self.null_counts
        )

    @classmethod
    def given(cls, key: str, nothing: tuple[Any, ...] = (None,)) -> dict[str, Any]:
        """The same in JSON Schema; the value is not one of `nothing`."""
        written = cls.spelling.written(key)
        if key in cls.null_counts:
            return written
        value = cls.spelling.value_of(key, {"not": {"enum": list(nothing)}})
        return {**written, **value}

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, raw: Any, handler: Callable[[Any], Self], info: ValidationInfo) -> Self:
        """Keys before the values, rules after them; one step, as every call from pydantic costs."""
        written = raw
        if type(raw) is not dict or not cls.spelling.known.issuperset(raw):
            written = cls.spelling.canonical(raw, info.context)
        try:
            shape = handler(written)
        except ValidationError as error:
            if cls.rules and type(raw) is dict and (broken := [*cls.wrong_beside(error, raw)]):
                raise together([error, *broken]) from None
            raise
        # Nothing is collected before something is found: most shapes break nothing.
        for rule in cls.rules:
            if rule.broken(shape):
                raise together([found for rule in cls.rules for found in rule.broken(shape)])
        return shape

    @classmethod
    def wrong_beside(cls, error: ValidationError, raw: dict[str, Any]) -> Iterable[Refusal]:
        """Rules that are broken whatever the values that are wrong should have been."""
        return ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        schema: JsonSchemaValue = handler(core)
        body = handler.resolve_ref_schema(schema)
        cls.describe_keys(body.get("properties", {}))
        cls.spelling.describe(body)
        return schema

    @classmethod
    def describe_keys(cls, properties: dict[str, Any]) -> None:
        """Amend what JSON Schema says about single keys."""
