"""EvaluatorSpec: what every evaluator has, and how a file's entry finds its class."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec.structs import replace
from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from assay.model.fields import Flag, Number, Text
from assay.model.reading import Reading
from assay.model.refusal import Refusal, problem, raise_all, repeated, shown, together
from assay.model.shape import Shape


def _plain(value: Any) -> Any:
    """What a shape holds; anything else that is no JSON, as text."""
    return dict(value.__dict__) if isinstance(value, Shape) else repr(value)


_ENCODER = msgspec.json.Encoder(order="sorted", enc_hook=_plain)
_CONTENT = msgspec.json.Encoder()
#: What reading an entry raises that is wrong; half a surrogate pair has no bytes.
_ODD = (
    *(KeyError, TypeError, AttributeError, UnicodeEncodeError),
    *(ValidationError, PydanticCustomError),
)
#: What an evaluator is called changes nothing about its judgement.
_NAME = {"name"}
#: What a judge is not told.
_UNTOLD = {"name", "weight", "required"}


def _required(value: Any) -> Any:
    if type(value) is bool or (type(value) in (int, float) and 0 <= value <= 1):
        return value
    raise problem("wrong-value", f"is {shown(value)}, neither true, false nor a score from 0 to 1")


Required = Annotated[
    bool | float,
    BeforeValidator(_required, json_schema_input_type=Flag | Annotated[float, Field(ge=0, le=1)]),
]


class EvaluatorSpec(Shape):
    """One entry of an `evaluators` list. Subclasses add their keys as fields.

    The fields are the whole definition: what the loader checks, what `assay schema`
    prints and what docs/evaluators lists.
    """

    #: compares with the case's expected output when it has no value of its own
    compares_with_expected: ClassVar[bool] = False
    #: a loader has to look at this evaluator together with its case
    depends_on_case: ClassVar[bool] = False
    #: the key that may hold any text but an empty one, in an entry with nothing else but its type
    free_text: ClassVar[str] = ""
    #: raised when the same answer may get another score than before
    version: ClassVar[int] = 1

    name: Text = ""
    type: str
    weight: Annotated[Number, Field(ge=0)] = 1.0
    required: Required = False

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.depends_on_case = cls.depends_on_case or cls.compares_with_expected

    @property
    def members(self) -> tuple[EvaluatorSpec, ...]:
        """The evaluators that this one is made of."""
        return ()

    def saying(self, text: str) -> Self:
        """The same with another free text: what validating an entry with it would give."""
        # A model is four slots; pydantic's own ways to fill them take three times as long.
        spec = object.__new__(type(self))
        put = object.__setattr__
        put(spec, "__dict__", self.__dict__ | {self.free_text: text})
        put(spec, "__pydantic_fields_set__", self.__pydantic_fields_set__)
        put(spec, "__pydantic_extra__", None)
        put(spec, "__pydantic_private__", None)
        return spec

    def fingerprint(self) -> bytes:
        """All that its judgement depends on; results compare only when it is the same."""
        return self.settings_but(_NAME)

    def instructions(self) -> bytes:
        """What its judge is told whatever the case; a calibration holds while it is the same."""
        return self.settings_but(_UNTOLD)

    def settings_but(self, left_out: set[str]) -> bytes:
        """The version and the settings as JSON, some of them left out."""
        settings = self.__dict__.copy()
        for key in left_out:
            settings.pop(key, None)
        return b"%d%s" % (self.version, _ENCODER.encode(settings))

    def cannot_fail(self) -> str:
        """Why no answer could fail this evaluator; empty when some answer can."""
        return ""

    def texts_to_contain(self) -> list[str]:
        """The texts that it wants to find somewhere in the answer."""
        return []


class NegatableSpec(EvaluatorSpec):
    """An evaluator that `negate: true` or a `not_` prefix of its type inverts."""

    negate: Flag = False


def resolve_type(raw: dict[str, Any], known: Container[str] = ()) -> dict[str, Any]:
    """The entry with its type in snake_case; a `not_` prefix becomes `negate`.

    A known type may itself start like that.
    """
    written = raw["type"]
    if written.startswith("python:"):
        return raw
    name = written.replace("-", "_")
    if name.startswith("not_") and name not in known:
        negate = raw.get("negate", False)
        if type(negate) is bool:  # anything else is left for validation to refuse
            negate = not negate
        return {**raw, "type": name[4:], "negate": negate}
    return raw if name == written else {**raw, "type": name}


def _by_type(raw: Any, info: ValidationInfo) -> EvaluatorSpec:
    """Validate an entry with the class that its `type` names."""
    if type(raw) is not dict:
        if isinstance(raw, EvaluatorSpec):
            return raw
        hint = _meant_by_text(raw, info.context) if isinstance(raw, str) else ""
        raise problem("wrong-type", f"is {shown(raw)}, not a mapping with a 'type'", hint)
    written = raw.get("type")
    if type(written) is not str:
        if "type" not in raw:
            raise problem("missing-key", "'type' is missing", _meant(raw, info.context))
        raise problem("wrong-type", f"is {shown(written)}, not text", at="type")
    reading: Reading | None = info.context
    if reading is None:
        raise problem("wrong-type", "evaluators in a file are read through a loader")
    return _first(raw, reading)


def _meant_by_text(raw: str, reading: Reading | None) -> str:
    """What would be right instead of a text alone."""
    if reading is not None and raw.replace("-", "_").removeprefix("not_") in reading.evaluators:
        return f"write {{type: {raw}}}"
    return "for a criterion in words: {type: rubric, rubrics: [...]}"


def _meant(raw: dict[str, Any], reading: Reading | None) -> str:
    """What would be right for an entry without a type; some put it in the place of a key."""
    known = () if reading is None else reading.evaluators
    for key in raw:
        if key.replace("-", "_").removeprefix("not_") in known:
            return f"write 'type: {key}', and what it takes under keys of their own"
    return "for example 'type: contains'"


def _first(raw: dict[str, Any], reading: Reading) -> EvaluatorSpec:
    """The first entry of a type, after which others are read in the way that was found for it."""
    written = raw["type"]
    validate: Callable[..., EvaluatorSpec] = _respelled
    if "-" not in written and not written.startswith("not_"):
        validate = reading.find_evaluator(written).__pydantic_validator__.validate_python
    spec = validate(raw, context=reading)
    reading.validators[written] = _quick(validate, spec, raw)
    return spec


def _quick(
    validate: Callable[..., EvaluatorSpec], spec: EvaluatorSpec, raw: dict[str, Any]
) -> Callable[..., EvaluatorSpec]:
    """How further entries of a type are read: those that differ in their free text, as copies."""
    key = spec.free_text
    if not key or raw.keys() != {"type", key} or not isinstance(raw[key], str):
        return validate
    model = spec.model_copy()
    _call(model, spec.name or spec.type)

    def quick(entry: dict[str, Any], context: Reading) -> EvaluatorSpec:
        text = entry.get(key)
        if type(text) is str and text and len(entry) == 2:
            return model.saying(text)
        return validate(entry, context=context)

    return quick


def _respelled(raw: dict[str, Any], context: Reading) -> EvaluatorSpec:
    """An entry whose type is in kebab-case or has the `not_` prefix."""
    reading = context
    entry = resolve_type(raw, reading.evaluators)
    written = raw["type"].replace("-", "_")
    kind = entry["type"]
    if kind == written and kind not in reading.evaluators:
        kind = raw["type"]  # whoever does not know it calls it as it was written
    cls = reading.find_evaluator(kind)
    negated = entry["type"] != written and entry["type"] != raw["type"]
    if negated and not issubclass(cls, NegatableSpec):
        raise problem("unknown-evaluator", f"{entry['type']!r} cannot be negated", at="type")
    before = len(reading.notes)
    spec: EvaluatorSpec = cls.__pydantic_validator__.validate_python(entry, context=reading)
    for index in range(before, len(reading.notes)):
        note = reading.notes[index]
        if note.container is entry:  # positions are found by the author's own mapping
            reading.notes[index] = replace(note, container=raw)
    if negated and not spec.name:
        _call(spec, written)
    return spec


def named(specs: tuple[EvaluatorSpec, ...]) -> tuple[EvaluatorSpec, ...]:
    """Give each unnamed evaluator its type as its name, numbered when it repeats."""
    if len({spec.name or spec.type for spec in specs}) == len(specs):
        for spec in specs:  # nothing repeats, as in most lists
            if not spec.name:
                _call(spec, spec.type)
        return specs
    taken: set[str] = set()
    unnamed: list[int] = []
    for index, spec in enumerate(specs):
        if "name" not in spec.__pydantic_fields_set__:
            unnamed.append(index)
        elif spec.name in taken:
            raise_all(_repeated(specs))
        else:
            taken.add(spec.name)
    if not unnamed:
        return specs
    numbers: dict[str, int] = {}
    called = list(specs)
    for index in unnamed:
        spec = specs[index]
        default = name = spec.name or spec.type
        number = numbers.get(default, 1)
        while name in taken:
            number += 1
            name = f"{default}_{number}"
        numbers[default] = number
        taken.add(name)
        if spec.name != name:
            # One that has a name already may be shared with others, which know it by that.
            called[index] = spec = spec.model_copy() if spec.name else spec
            _call(spec, name)
    return tuple(called)


def _call(spec: EvaluatorSpec, name: str) -> None:
    """Frozen for everyone else; here it has just been made and nobody has seen it."""
    object.__setattr__(spec, "name", name)


def _repeated(entries: Any) -> Iterator[Refusal]:
    return repeated(entries, "two evaluators are called {}", "name")


def _entries(
    raw: Any, handler: Callable[[Any], Any], info: ValidationInfo
) -> tuple[EvaluatorSpec, ...]:
    """The named entries; repeated names are reported together with wrong entries."""
    reading: Reading | None = info.context
    if reading is None:
        return _one_by_one(raw, handler)
    careful = reading.careful
    if type(raw) is list and not careful:
        specs = at_once(map(_CONTENT.encode, raw), raw.__getitem__, reading)
        if specs:
            return specs
    # Lists inside this one are not tried twice: a fault deep down would double at every level.
    reading.careful = True
    try:
        return _one_by_one(raw, handler)
    finally:
        reading.careful = careful


def _one_by_one(raw: Any, handler: Callable[[Any], Any]) -> tuple[EvaluatorSpec, ...]:
    try:
        specs: tuple[EvaluatorSpec, ...] = handler(raw)
    except ValidationError as error:
        raise together([error, *_repeated(raw)]) from None
    return named(specs)


def at_once(
    texts: Iterable[bytes], entry: Callable[[int], Any], reading: Reading
) -> tuple[EvaluatorSpec, ...]:
    """Entries without a detour through pydantic for each of which all is right.

    Each is known by its text; `entry` has what that says, by its number. Nothing when one is
    odd or wrong: then `_by_type` looks at them all and says what it is.
    """
    validators, known, noted = reading.validators, reading.known, len(reading.notes)
    specs: list[EvaluatorSpec] = []
    fresh: list[tuple[bytes, int, str]] = []
    try:
        for key in texts:
            spec = known.get(key) or known.again(key)
            if spec is None:
                raw = entry(len(specs))
                validate = validators.get(raw["type"])
                spec = _first(raw, reading) if validate is None else validate(raw, context=reading)
                fresh.append((key, len(specs), spec.name or spec.type))
            specs.append(spec)
        result = tuple(specs)
        names = {spec.name for spec in specs}
        if len(names) < len(specs) or "" in names:
            result = named(result)
    except _ODD:
        del reading.notes[noted:]
        return ()
    if fresh and len(reading.notes) == noted:  # what there is to say is said at each place
        for key, index, default in fresh:
            if result[index].name == default:
                known.meet(key, result[index])
    return result


Entry = Annotated[
    SerializeAsAny[EvaluatorSpec],
    PlainValidator(_by_type),
    WithJsonSchema({"$ref": "#/$defs/Evaluator"}),
]
Evaluators = Annotated[tuple[Entry, ...], WrapValidator(_entries)]
SomeEvaluators = Annotated[tuple[Entry, ...], Field(min_length=1), WrapValidator(_entries)]
