"""What all wire shapes share: aliases, unknown keys, plain field types.

A wire shape is a pydantic model of something an author writes. It is the only
description of that thing: validation, JSON Schema and the tables in docs/ come from it.
Aliases are declared beside the field, in `Key(...)`.

pydantic reports faults by path; a few things it cannot say (unknown keys with the
nearest known one, an alias that was ignored) are left as notes in a `Reading`, which a
loader passes in as the validation context. Without a `Reading`, unknown keys are plain
validation errors.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, Self, TypeVar

import msgspec
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StrictBool,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from assay.errors import Severity, nearest
from assay.memory import Remembered

T = TypeVar("T")

# The first validator that is built makes pydantic look for its own plugins in the metadata of all
# packages, and no later one does. Metadata that cannot be read breaks this one, which nobody needs.
with suppress(Exception):
    TypeAdapter(bool)


class Note(msgspec.Struct, frozen=True):
    """Something to tell about one key of one raw container; the loader finds its position."""

    container: object
    key: str
    severity: Severity
    code: str
    message: str
    hint: str = ""


def _unnamed(name: str) -> Any:
    raise LookupError(name)  # pragma: no cover - the shape names no file or evaluator


class Reading(msgspec.Struct):
    """What validating one file needs beyond the data, and what it notes on the way.

    Shapes that name no files or evaluators need nothing to find them.
    """

    find_file: Callable[[str], Path] = _unnamed
    find_folder: Callable[[str], Path] = _unnamed
    find_evaluator: Callable[[str], type[Any]] = _unnamed
    evaluators: Container[str] = ()
    notes: list[Note] = []
    #: how the types of evaluators that were met are validated, so that none is looked for twice
    validators: dict[str, Callable[..., Any]] = {}
    #: whether lists of evaluators are looked at entry by entry, as something in them is wrong
    careful: bool = False
    #: entries that were met before, by their content; equal ones are one object, prepared once
    known: Remembered[bytes, Any] = msgspec.field(default_factory=Remembered)


#: What a validator may raise: one problem with the value itself, or several at their places.
Refusal = PydanticCustomError | ValidationError
Steps = tuple[str | int, ...]


def problem(slug: str, message: str, hint: str = "", at: str | Steps = ()) -> Refusal:
    """A validation error that keeps its slug and hint on the way through pydantic.

    `at` is the key or the path below the validated value that the problem is about.
    """
    # The message is an argument, not the template: braces in it must stay as they are.
    error = PydanticCustomError("assay", "{text}", {"text": message, "slug": slug, "hint": hint})
    if not at:
        return error
    return together([error], (at,) if isinstance(at, str) else at)


def together(refusals: Iterable[Refusal], below: Steps = ()) -> ValidationError:
    """All of these in one error, with their places `below` a path."""
    details: list[InitErrorDetails] = []
    for refusal in refusals:
        if isinstance(refusal, PydanticCustomError):
            details.append(InitErrorDetails(type=refusal, loc=below, input=None))
            continue
        for fault in refusal.errors(include_url=False):
            kind: Any = fault["type"]
            context = fault.get("ctx", {})
            if kind == "assay":
                kind = PydanticCustomError("assay", "{text}", context)
            place = (*below, *fault["loc"])
            details.append(
                InitErrorDetails(type=kind, loc=place, input=fault["input"], ctx=context)
            )
    return ValidationError.from_exception_data("together", details)


def raise_all(refusals: Iterable[Refusal]) -> None:
    """Raise what there is as one error."""
    if found := list(refusals):
        raise together(found)


def Besides(check: Callable[[Any], Iterable[Refusal]]) -> WrapValidator:  # noqa: N802 - as below
    """What `check` finds in a raw value is told together with what is wrong in its parts."""
    return WrapValidator(lambda raw, handler: beside(check, raw, handler))


def beside(
    check: Callable[[Any], Iterable[Refusal]], raw: Any, handler: Callable[[Any], Any]
) -> Any:
    """The value that pydantic makes of the raw one, unless it or `check` finds something wrong."""
    try:
        value = handler(raw)
    except ValidationError as error:
        raise together([error, *check(raw)]) from None
    raise_all(check(raw))
    return value


def repeated(items: Any, message: str, *keys: str, default: str = "") -> Iterator[Refusal]:
    """Items of a list that have the name of an earlier one, under one of the keys.

    Items may be raw and wrong; one without a name has the `default` one, numbered by its place.
    """
    seen: set[str] = set()
    for index, item in enumerate(items if isinstance(items, (list, tuple)) else ()):
        # What was read before has more keys than its author wrote: a name may be given to it.
        written = getattr(item, "model_fields_set", ())
        names = item if isinstance(item, dict) else {key: getattr(item, key) for key in written}
        key = next((key for key in keys if names.get(key)), keys[0])
        name = names.get(key) or default.format(index + 1)
        if isinstance(name, str) and name:
            if name in seen:
                yield problem("wrong-value", message.format(repr(name)), at=(index, key))
            seen.add(name)


def Key(  # noqa: N802 - reads as part of the field's type
    default: Any = ...,
    *,
    aliases: tuple[str, ...] = (),
    deprecated: tuple[str, ...] = (),
    legacy: bool = False,
    **rules: Any,
) -> Any:
    """A field of a shape, with its other accepted spellings; a legacy one has no effect."""
    if "default_factory" not in rules:
        rules["default"] = default
    spelled: Any = {"aliases": aliases, "deprecated": deprecated, "legacy": legacy}
    return Field(json_schema_extra=spelled, **rules)


#: canonical key -> every alias that some shape declares for it; to find what the author wrote
ALIASES: dict[str, list[str]] = {}


#: How many lists of keys a shape remembers with the aliases in them.
MANY_SPELLINGS = 100


class Spelling:
    """The keys a shape accepts: canonical names, aliases, old spellings."""

    __slots__ = ("_names", "_renamed", "aliases", "any_key", "deprecated", "known", "legacy")

    def __init__(self, known: frozenset[str], *, any_key: bool = False) -> None:
        self.known, self.any_key = known, any_key
        self.aliases: dict[str, str] = {}
        self._names: dict[str, list[str]] = {}
        self._renamed: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        self.deprecated: set[str] = set()
        self.legacy: set[str] = set()

    @classmethod
    def of(cls, fields: Mapping[str, FieldInfo], *, any_key: bool) -> Spelling:
        spelling = cls(frozenset(fields), any_key=any_key)
        for name, info in fields.items():
            extra = info.json_schema_extra
            if isinstance(extra, dict):
                old: Any = extra.get("deprecated", ())
                new: Any = extra.get("aliases", ())
                for alias in (*new, *old):
                    spelling.add(alias, name)
                spelling.deprecated.update(old)
                if extra.get("legacy"):
                    spelling.legacy.add(name)
        return spelling

    def add(self, alias: str, canonical: str) -> None:
        """Accept another spelling of a key."""
        self._renamed.clear()
        self.aliases[alias] = canonical
        self._names.setdefault(canonical, []).append(alias)
        ALIASES.setdefault(canonical, []).append(alias)

    def canonical(self, raw: Any, reading: Reading | None) -> Any:
        """Aliases become canonical keys; `x-` keys and `$schema` go; the rest is noted."""
        if type(raw) is not dict or self.known.issuperset(raw):
            return raw
        aliases = self._renamed.get(keys := tuple(raw))
        if aliases is None:
            return self._rename(raw, keys, reading)
        result = raw.copy()
        for alias, canonical in aliases:
            result[canonical] = result.pop(alias)
        return result

    def _rename(self, raw: dict[str, Any], keys: tuple[str, ...], reading: Reading | None) -> Any:
        known, aliases = self.known, self.aliases
        result: dict[str, Any] = {}
        unknown = 0
        for key, value in raw.items():
            if key in known:
                result[key] = value
            elif (canonical := aliases.get(key)) is not None:
                winner = self.in_force(raw, canonical)
                if winner == key:
                    result[canonical] = value
                if reading is not None and (winner != key or key in self.deprecated):
                    self._note_alias(raw, key, canonical, winner, reading)
            elif key.startswith("x-") or key == "$schema":
                continue
            elif self.any_key or reading is None:
                result[key] = value
            else:
                unknown += 1
                reading.notes.append(self.unknown(raw, key, hinted=unknown < 100))
        # Cases of a file mostly have the same keys: what becomes of them is found once, when
        # all that is to be done is to rename them.
        simple = all(key in known or (key in aliases and key not in self.deprecated) for key in raw)
        if simple and len(result) == len(raw) and len(self._renamed) < MANY_SPELLINGS:
            self._renamed[keys] = [(key, aliases[key]) for key in keys if key not in known]
        return result

    def _note_alias(
        self, raw: dict[str, Any], key: str, canonical: str, winner: str, reading: Reading
    ) -> None:
        if winner != key:
            message = f"{key!r} is ignored because {winner!r} is given too"
            note = Note(raw, key, "warning", "ignored-alias", message, "keep one of the two")
        else:
            message, hint = f"{key!r} is an old spelling", f"write {canonical!r}"
            note = Note(raw, key, "warning", "deprecated-key", message, hint)
        reading.notes.append(note)

    def in_force(self, raw: Mapping[str, Any], canonical: str) -> str:
        """The spelling of a key that counts in a mapping: the first in the order declared."""
        if canonical not in raw:
            for alias in self.names(canonical):
                if alias in raw:
                    return alias
        return canonical

    def names(self, canonical: str) -> list[str]:
        """The other spellings of a key."""
        return self._names.get(canonical, [])

    def has_slip_of(self, raw: Mapping[str, Any], canonical: str) -> bool:
        """Whether a mapping has an unknown key whose nearest known one is this, in any spelling."""
        known = [*self.known, *self.aliases]
        hints = [nearest(name, (name,)) for name in (canonical, *self.names(canonical))]
        unknown = (key for key in raw if key not in self.known and key not in self.aliases)
        return any(nearest(key, known) in hints for key in unknown)

    def unknown(self, raw: object, key: str, *, hinted: bool = True) -> Note:
        """A note about a key; hints are found for the first of many only, as they take time."""
        hint = ""
        if hinted:
            hint = nearest(key, [*self.known, *self.aliases])
            hint = hint or "known here: " + ", ".join(self.in_use())
        return Note(
            raw, key, "error", "unknown-key", f"the key {shown(key)} is not known here", hint
        )

    def in_use(self) -> list[str]:
        """The names that authors write: no dead or old ones, and no mere snake_case of another."""
        other = {a for a, name in self.aliases.items() if a.replace("_", "") != name.lower()}
        return sorted((self.known | other) - self.legacy - self.deprecated)

    def describe(self, body: dict[str, Any]) -> None:
        """Make a JSON Schema accept what `canonical` accepts."""
        body.pop("title", None)
        properties = body.setdefault("properties", {})
        for name in set(properties) - self.known:
            del properties[name]
        for shape in properties.values():
            for word in ("title", "aliases", "deprecated", "legacy"):
                shape.pop(word, None)
        body["patternProperties"] = {r"^(x-|\$schema$)": {}}
        required = set(body.pop("required", ()))
        for canonical in dict.fromkeys(self.aliases.values()):
            described = self.value_of(canonical, properties[canonical])
            if others := self._described(canonical):
                body["allOf"] = [*body.get("allOf", ()), *described["allOf"]]
                properties.update((alias, {"deprecated": True}) for alias in others)
        for name in sorted(required):
            if self._described(name):
                body["allOf"].append(self.written(name))
            else:
                body.setdefault("required", []).append(name)

    def _described(self, canonical: str) -> list[str]:
        """The other spellings of a key that a JSON Schema tells of."""
        return [] if _PLAIN.get() else self.names(canonical)

    def written(self, canonical: str) -> dict[str, Any]:
        """The JSON Schema of a mapping that has the key in one of its spellings."""
        return _one_of((canonical, *self._described(canonical)))

    def value_of(self, canonical: str, schema: dict[str, Any]) -> dict[str, Any]:
        """The JSON Schema of a mapping in which the value of the key, if any, fits a schema."""
        result: dict[str, Any] = {"properties": {canonical: schema}}
        earlier = [canonical]
        for alias in self._described(canonical):
            fits = {"properties": {alias: schema}}
            # A spelling that is ignored may hold anything.
            result.setdefault("allOf", []).append({"if": _one_of(earlier), "else": fits})
            earlier.append(alias)
        return result


#: Do the schemas that are being made tell of canonical keys only?
_PLAIN: ContextVar[bool] = ContextVar("plain", default=False)


@contextmanager
def plainly() -> Iterator[None]:
    """JSON Schemas that are made meanwhile leave out all other spellings of keys."""
    before = _PLAIN.set(True)
    try:
        yield
    finally:
        _PLAIN.reset(before)


def _one_of(keys: Sequence[str]) -> dict[str, Any]:
    choices = [{"required": [key]} for key in keys]
    return {"anyOf": choices} if len(choices) > 1 else {"required": [keys[0]]}


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


def shown(value: Any, limit: int = 60) -> str:
    """How a found value is quoted in a message: as JSON would write it, cut to size."""
    if value is None:
        return "null"
    if value is True or value is False:
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    if isinstance(value, str) and len(value) > limit:
        value = value[: limit - 3] + "..."
    return repr(value)


def kind_of(value: Any) -> str:
    """How a found Python object is called in a message: by its class."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def _whole(value: Any) -> Any:
    """3.0 is the whole number 3, as in JSON Schema; true is not 1."""
    if type(value) is int or (type(value) is float and value.is_integer()):
        if -(2**63) <= value < 2**64:  # as far as the documents reader goes
            return int(value)
        raise problem("wrong-value", f"is {shown(value)}; it must fit 64 bits")
    raise problem("wrong-type", f"is {shown(value)}; it must be a whole number")


def _reason(value: Any) -> Any:
    """A flag is what authors try first; quotes around it would make a poor reason."""
    if value is True:
        hint = "for example skip: waits for the new API"
        raise problem("wrong-type", "is true; it must be the reason, as text", hint)
    if value is False:
        message, hint = "is false; it must be the reason, as text", "leave it out to run the case"
        raise problem("wrong-type", message, hint)
    return value


def _single_line(value: str) -> str:
    if not value or value != value.strip() or "\n" in value or "\r" in value:
        raise problem("wrong-value", f"{value!r} is empty, has space around it or spans lines")
    return value


Json = Any  # the documents reader lets only JSON values through
Flag = StrictBool
# A limit that is infinite would be none; files have no such number either.
Number = Annotated[float, Strict(), AllowInfNan(False)]
Text = Annotated[str, Field(min_length=1)]
Words = Annotated[str, Field(pattern=r"\S")]
SkipReason = Annotated[Words, BeforeValidator(_reason)]
CaseId = Annotated[
    str,
    AfterValidator(_single_line),
    Field(json_schema_extra={"pattern": r"^\S([^\r\n]*\S)?$"}),
]
Rate = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Number, Field(gt=0)]
# Limits stand before the validator: behind it, JSON Schema would not show them.
Count = Annotated[int, Field(ge=0), BeforeValidator(_whole)]
AtLeastOne = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
#: Workers and repeats: more than that nobody means, and no machine has room for.
Several = Annotated[int, Field(ge=1, le=10_000), BeforeValidator(_whole)]


def Empty(factory: type) -> Any:  # noqa: N802 - reads as part of the field's type
    """An empty default; made anew, because pydantic would deep-copy a shared one."""
    return Field(default_factory=factory)
