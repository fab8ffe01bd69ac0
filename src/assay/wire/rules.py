"""Rules between the keys of a shape: declared once, checked by loaders, and in the JSON Schema.

A key is given when it is present and not null; where null is an ordinary value (`equals: null`),
being present is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import msgspec
from pydantic import ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from assay.wire.shape import Rule as Rule
from assay.wire.shape import Shape
from assay.wire.validation_errors import AnyValidationError, problem


class Ruled(Shape):
    """A shape with rules between its keys."""

    @classmethod
    def broken_despite(
        cls, error: ValidationError, raw: dict[str, Any]
    ) -> Iterator[AnyValidationError]:
        invalid = {
            str(fault["loc"][0]) for fault in error.errors(include_url=False) if fault["loc"]
        }
        draft = cls.draft(raw)
        for rule in cls.rules:
            if rule.checkable_despite(invalid):
                yield from rule.broken(draft)

    @classmethod
    def draft(cls, raw: dict[str, Any]) -> Ruled:
        """The shape with raw values, to check which keys are given."""
        keys = cls.key_names.canonical(raw, None)
        # The values of switches may be in kebab-case.
        values: dict[str, Any] = {
            key: value.replace("-", "_") if isinstance(value, str) else value
            for key, value in keys.items()
            if key in cls.model_fields
        }
        return cls.model_construct(set(values), **values)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core, handler)
        if rules := [part for rule in cls.rules if (part := rule.schema(cls))]:
            body = handler.resolve_ref_schema(schema)
            body["allOf"] = [*body.get("allOf", ()), *rules]
        return schema


class _KeyRule:
    """A rule about which keys are given, whatever their values."""

    __slots__ = ()

    def checkable_despite(self, invalid: Container[str]) -> bool:
        return True


class NeedsOne(_KeyRule, msgspec.Struct, frozen=True):
    """At least one of the keys is given."""

    keys: tuple[str, ...]
    message: str

    def broken(self, shape: Shape) -> Sequence[AnyValidationError]:
        written, values = shape.__pydantic_fields_set__, shape.__dict__
        for key in self.keys:
            # `is_given` inlined, for speed
            if key in written and (values[key] is not None or key in shape.null_counts):
                return ()
        return (problem("missing-key", self.message),)

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        return {"anyOf": [shape.given(key) for key in self.keys]}


class Needs(_KeyRule, msgspec.Struct, frozen=True):
    """The key requires the other one."""

    key: str
    other: str

    def broken(self, shape: Shape) -> Sequence[AnyValidationError]:
        if not shape.is_given(self.key) or shape.is_given(self.other):
            return ()
        return (
            problem("missing-key", f"is only allowed together with {self.other!r}", at=self.key),
        )

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        return {"if": shape.given(self.key), "then": shape.given(self.other)}


class Excludes(_KeyRule, msgspec.Struct, frozen=True):
    """When the first key is given, none of the others is."""

    key: str
    others: tuple[str, ...]
    hint: str = ""

    def broken(self, shape: Shape) -> Sequence[AnyValidationError]:
        written = shape.__pydantic_fields_set__
        if self.key in written:
            for other in self.others:
                if other in written:
                    return self._excluded(shape)
        return ()

    def _excluded(self, shape: Shape) -> Sequence[AnyValidationError]:
        if not shape.is_given(self.key):
            return ()
        message = f"{self.key!r} and {{!r}} exclude each other"
        return [
            problem("conflicting-keys", message.format(other), self.hint, other)
            for other in filter(shape.is_given, self.others)
        ]

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        return {
            "if": shape.given(self.key),
            "then": {"not": {"anyOf": [shape.given(key) for key in self.others]}},
        }


class BelongsTo(msgspec.Struct, frozen=True):
    """The key is only for some values of another key, which require it if `needed`."""

    key: str
    switch: str
    values: tuple[str, ...]
    needed: bool = False

    def checkable_despite(self, invalid: Container[str]) -> bool:
        return self.switch not in invalid

    def broken(self, shape: Shape) -> Sequence[AnyValidationError]:
        chosen, given = getattr(shape, self.switch), shape.is_given(self.key)
        if given and chosen not in self.values:
            message = f"is for {self.switch} {', '.join(self.values)}, not for {chosen!r}"
            return (problem("conflicting-keys", message, at=self.key),)
        if self.needed and not given and chosen in self.values:
            return (problem("missing-key", f"the {self.switch} {chosen!r} needs {self.key!r}"),)
        return ()

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        spelled = [*self.values, *(v.replace("_", "-") for v in self.values if "_" in v)]
        chosen: dict[str, Any] = {"properties": {self.switch: {"enum": spelled}}}
        if shape.model_fields[self.switch].default not in self.values:
            chosen["required"] = [self.switch]
        given = shape.given(self.key)
        rule = {"if": chosen, "else": {"not": given}}
        return rule | {"then": given} if self.needed else rule


class Asserts(_KeyRule, msgspec.Struct, frozen=True):
    """At least one of the keys asserts something: it is given, not false and not empty."""

    keys: tuple[str, ...]
    message: str
    even_empty: tuple[str, ...] = ()

    def asserting(self, shape: Shape) -> list[str]:
        """The keys that assert something."""
        return [key for key in self.keys if self._asserts(shape, key)]

    def _asserts(self, shape: Shape, key: str) -> bool:
        if not shape.is_given(key):
            return False
        value = getattr(shape, key)
        return value is not False and (key in self.even_empty or value not in ([], {}))

    def broken(self, shape: Shape) -> Sequence[AnyValidationError]:
        for key in self.keys:
            if self._asserts(shape, key):
                return ()
        return (problem("asserts-nothing", self.message),)

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        assertions = [
            shape.given(key, nothing=(None, False, *(() if key in self.even_empty else ([], {}))))
            for key in self.keys
        ]
        return {"anyOf": assertions}


class CustomRule(msgspec.Struct, frozen=True):
    """A rule of a single shape: its check, and its JSON Schema as far as that is possible."""

    broken: Callable[[Any], Sequence[AnyValidationError]]
    json_schema: dict[str, Any] = {}

    def checkable_despite(self, invalid: Container[str]) -> bool:
        return False

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        return self.json_schema
