"""Rules between the keys of a shape: declared once, checked by the loader, told by the schema.

A key is given when it is written and not null; where null is a value like any other
(`equals: null`), writing it is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from pydantic import model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from assay.model.shape import Shape, problem


class Rule(Protocol):
    """What must hold between the keys of one shape."""

    def check(self, shape: Shape) -> None:
        """Raises a problem when the shape breaks the rule."""

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        """The same in JSON Schema."""


class Ruled(Shape):
    """A shape with rules between its keys."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _obeys_rules(self) -> Self:
        for rule in self.rules:
            rule.check(self)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core, handler)
        body = handler.resolve_ref_schema(schema)
        body["allOf"] = [*body.get("allOf", ()), *(rule.schema(cls) for rule in cls.rules)]
        return schema


@dataclass(frozen=True, slots=True)
class NeedsOne:
    """At least one of the keys is given."""

    keys: tuple[str, ...]
    message: str

    def check(self, shape: Shape) -> None:
        for key in self.keys:
            if shape.is_given(key):
                return
        raise problem("missing-key", self.message)

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        return {"anyOf": [shape.given(key) for key in self.keys]}


@dataclass(frozen=True, slots=True)
class Excludes:
    """When the first key is given, none of the others is."""

    key: str
    others: tuple[str, ...]
    hint: str = ""

    def check(self, shape: Shape) -> None:
        if self.key in shape.__pydantic_fields_set__ and shape.is_given(self.key):
            for other in filter(shape.is_given, self.others):
                message = f"{self.key!r} and {other!r} exclude each other"
                raise problem("conflicting-keys", message, self.hint)

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        return {
            "if": shape.given(self.key),
            "then": {"not": {"anyOf": [shape.given(key) for key in self.others]}},
        }


@dataclass(frozen=True, slots=True)
class BelongsTo:
    """The key is for some values of another key; `needed`: they cannot do without it."""

    key: str
    switch: str
    values: tuple[str, ...]
    needed: bool = False

    def check(self, shape: Shape) -> None:
        chosen, given = getattr(shape, self.switch), shape.is_given(self.key)
        if given and chosen not in self.values:
            message = f"is for {self.switch} {', '.join(self.values)}, not for {chosen!r}"
            raise problem("conflicting-keys", message, at=self.key)
        if self.needed and not given and chosen in self.values:
            raise problem("missing-key", f"the {self.switch} {chosen!r} needs {self.key!r}")

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        spelled = [*self.values, *(v.replace("_", "-") for v in self.values if "_" in v)]
        chosen: dict[str, Any] = {"properties": {self.switch: {"enum": spelled}}}
        if shape.model_fields[self.switch].default not in self.values:
            chosen["required"] = [self.switch]
        given = shape.given(self.key)
        rule = {"if": chosen, "else": {"not": given}}
        return rule | {"then": given} if self.needed else rule


@dataclass(frozen=True, slots=True)
class Asserts:
    """At least one of the keys says something: it is given, not false and not empty."""

    keys: tuple[str, ...]
    message: str
    even_empty: tuple[str, ...] = ()

    def said(self, shape: Shape) -> list[str]:
        """The keys that say something."""
        return [key for key in self.keys if self._says(shape, key)]

    def _says(self, shape: Shape, key: str) -> bool:
        if not shape.is_given(key):
            return False
        value = getattr(shape, key)
        return value is not False and (key in self.even_empty or value not in ([], {}))

    def check(self, shape: Shape) -> None:
        for key in self.keys:
            if self._says(shape, key):
                return
        raise problem("asserts-nothing", self.message)

    def schema(self, shape: type[Shape]) -> dict[str, Any]:
        said = [
            shape.given(key, nothing=(None, False, *(() if key in self.even_empty else ([], {}))))
            for key in self.keys
        ]
        return {"anyOf": said}
