"""Shape: the base of all wire shapes.

A wire shape is a pydantic model of something that authors write, and its only definition:
validation, JSON Schema and the tables in docs/ are derived from it. Aliases are declared with the
field, in `Key(...)`.

pydantic reports faults by path. What it cannot report (unknown keys with the nearest known one,
ignored aliases) becomes a note in the `ValidationContext` that a loader passes.
Without a `ValidationContext`, unknown keys are ordinary validation errors.
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

from assay.wire.key_names import KeyNames
from assay.wire.validation_errors import AnyValidationError, merge_errors

# Only the first validator that is built makes pydantic look for plugins in the metadata of all
# packages. If some metadata cannot be read, that breaks this validator, which is not used.
with suppress(Exception):
    TypeAdapter(bool)


class Rule(Protocol):
    """A rule between the keys of one shape."""

    def broken(self, shape: Shape) -> Sequence[AnyValidationError]:
        """Every violation of the rule."""

    def checkable_despite(self, invalid: Container[str]) -> bool:
        """Whether the rule can be checked although the values of these keys are invalid."""

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        """The rule in JSON Schema; empty when that cannot express it."""


class Shape(BaseModel):
    """Base of wire shapes: frozen, no unknown keys, aliases renamed before validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    key_names: ClassVar[KeyNames] = KeyNames(frozenset())
    #: the rules between its keys; only for subclasses of Ruled
    rules: ClassVar[tuple[Rule, ...]] = ()
    #: the keys that take any JSON value, including null
    null_counts: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        fields = cls.model_fields
        cls.key_names = KeyNames.of(fields, any_key=cls.model_config["extra"] == "allow")
        cls.null_counts = frozenset(key for key, info in fields.items() if info.annotation is Any)

    def is_given(self, key: str) -> bool:
        """Whether the key is present and not null, unless it takes null as a value."""
        return key in self.__pydantic_fields_set__ and (
            self.__dict__[key] is not None or key in self.null_counts
        )

    @classmethod
    def given(cls, key: str, nothing: tuple[Any, ...] = (None,)) -> dict[str, Any]:
        """The same in JSON Schema; `nothing` are the values that count as not given."""
        written = cls.key_names.written(key)
        if key in cls.null_counts:
            return written
        value = cls.key_names.value_of(key, {"not": {"enum": list(nothing)}})
        return {**written, **value}

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, raw: Any, handler: Callable[[Any], Self], info: ValidationInfo) -> Self:
        """Check the keys, the values, then the rules; in one validator, as each call takes time."""
        written = raw
        if type(raw) is not dict or not cls.key_names.known.issuperset(raw):
            written = cls.key_names.canonical(raw, info.context)
        try:
            shape = handler(written)
        except ValidationError as error:
            if cls.rules and type(raw) is dict and (broken := [*cls.broken_despite(error, raw)]):
                raise merge_errors([error, *broken]) from None
            raise
        # Collect only once something is found: most shapes break no rule.
        for rule in cls.rules:
            if rule.broken(shape):
                raise merge_errors([found for rule in cls.rules for found in rule.broken(shape)])
        return shape

    @classmethod
    def broken_despite(
        cls, error: ValidationError, raw: dict[str, Any]
    ) -> Iterable[AnyValidationError]:
        """The rules that are broken whatever the invalid values should have been."""
        return ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        schema: JsonSchemaValue = handler(core)
        body = handler.resolve_ref_schema(schema)
        cls.describe_keys(body.get("properties", {}))
        cls.key_names.describe(body)
        return schema

    @classmethod
    def describe_keys(cls, properties: dict[str, Any]) -> None:
        """Amend the JSON Schema of single keys."""
