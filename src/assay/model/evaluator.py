"""EvaluatorSpec: the base of all evaluators, and how entries in files are validated."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

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

from assay.model.expectations import EVERYTHING, Expectation, Expected
from assay.model.observation import Observation
from assay.wire.fields import Flag, Number, Text
from assay.wire.shape import Shape
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import (
    AnyValidationError,
    merge_errors,
    problem,
    raise_all,
    repeated,
    shown,
)


def _encode_other(value: Any) -> Any:
    """The fields of a shape; any other value that is not JSON, as text."""
    return dict(value.__dict__) if isinstance(value, Shape) else repr(value)


_SETTINGS_ENCODER = msgspec.json.Encoder(order="sorted", enc_hook=_encode_other)
_RAW_ENCODER = msgspec.json.Encoder()
#: What validating an invalid entry raises; a lone surrogate cannot be encoded.
_INVALID = (
    *(KeyError, TypeError, AttributeError, UnicodeEncodeError),
    *(ValidationError, PydanticCustomError),
)
#: Other names of types, in snake_case, as later versions of AgentV write them.
TYPE_ALIASES = {
    "code_grader": "code_judge",
    "script": "code_judge",
    "llm_grader": "llm_judge",
    "llm_rubric": "llm_judge",
    "rubrics": "rubric",
}
#: An entry that is just a text is a criterion, unless it looks like the name of a type.
_NAME_LIKE = re.compile(r"[A-Za-z0-9_.:-]*\Z")
#: The name of an evaluator does not affect its judgement.
_NAME = {"name"}
#: Settings that the judge does not see.
_UNSEEN_BY_JUDGE = {"name", "weight", "required"}


def _required(value: Any) -> Any:
    if type(value) is bool or (type(value) in (int, float) and 0 <= value <= 1):
        return value
    raise problem("wrong-value", f"is {shown(value)}, neither true, false nor a score from 0 to 1")


Required = Annotated[
    bool | float,
    BeforeValidator(_required, json_schema_input_type=Flag | Annotated[float, Field(ge=0, le=1)]),
]


#: Where a check runs: see `EvaluatorSpec.runs_in`.
CheckPlace = Literal["loop", "worker", "thread"]


class MissingDependency(NamedTuple):
    """Something that an evaluator needs and that this machine does not have."""

    message: str
    hint: str = ""


class EvaluatorSpec(Shape):
    """One entry of an `evaluators` list. Subclasses add their keys as fields.

    The fields are the whole definition: what the loader checks, what `assay schema`
    prints and what docs/evaluators lists.
    """

    #: compares with the expected output of the case when it has no value of its own
    compares_with_expected: ClassVar[bool] = False
    #: the expectations of the case that it may read; all, unless a subclass narrows it
    reads: ClassVar[frozenset[Expectation]] = EVERYTHING
    #: a loader has to check this evaluator together with its case
    depends_on_case: ClassVar[bool] = False
    #: it runs no program and reads no file, so that a REST request may contain it; not inherited,
    #: as a subclass may do either
    allowed_in_requests: ClassVar[bool] = False
    #: incremented when the same answer may get another score than before
    version: ClassVar[int] = 1

    name: Text = ""
    type: str
    weight: Annotated[Number, Field(ge=0)] = 1.0
    required: Required = False

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.depends_on_case = cls.depends_on_case or cls.compares_with_expected
        cls.allowed_in_requests = cls.__dict__.get("allowed_in_requests", False)

    @property
    def members(self) -> tuple[EvaluatorSpec, ...]:
        """The evaluators that this one is made of."""
        return ()

    def reads_of(self, expected: Expected) -> frozenset[Expectation]:
        """What it reads of these expectations with its settings: at most its `reads`."""
        return self.reads

    def runs_in(self) -> CheckPlace:
        """Where its check runs, so that a slow one does not delay the trials in flight.

        `thread`: in a thread, one check of a run at a time; for code that may do anything.
        `loop`: on the event loop, for a check that is always quick. `worker`: on the event loop if
        it is quick, else again in a worker process; for a check whose loops call `check_deadline`
        and that needs nothing but this record, the observation and the expected output.
        """
        return "thread"

    def fingerprint(self) -> bytes:
        """Everything that its judgement depends on; results are comparable only if it is equal."""
        return self.settings_but(_NAME)

    def instructions(self) -> bytes:
        """What its judge gets for every case; a calibration is valid while this is equal."""
        return self.settings_but(_UNSEEN_BY_JUDGE)

    def settings_but(self, left_out: set[str]) -> bytes:
        """The version and the settings as JSON, except some."""
        settings = self.__dict__.copy()
        for key in left_out:
            settings.pop(key, None)
        return b"%d%s" % (self.version, _SETTINGS_ENCODER.encode(settings))

    def missing_dependencies(self, folder: str) -> Iterator[MissingDependency]:
        """What it needs and this machine does not have; `folder` is that of the eval file.

        A run with any of these is refused. Members of a composite report theirs separately.
        """
        return iter(())

    def cannot_fail(self) -> str:
        """Why no answer could fail this evaluator; empty when some answer can."""
        return ""

    def texts_to_contain(self) -> list[str]:
        """The texts that it expects somewhere in the answer."""
        return []

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        """What it requires of an answer that it failed, as keys of an `expect` block.

        Empty if no key can express it. The keys may leave out what this answer gets right.
        """
        return {}


class NegatableSpec(EvaluatorSpec):
    """An evaluator that `negate: true` or a `not_` prefix of its type inverts."""

    negate: Flag = False


def resolve_type(raw: dict[str, Any], known: Container[str] = ()) -> dict[str, Any]:
    """The entry with its type in snake_case and no alias; a `not_` prefix becomes `negate`.

    A `known` type may itself start with `not_`, or have the name of an alias.
    """
    written = raw["type"]
    if written.startswith("python:"):
        return raw
    name = written.replace("-", "_")
    if name not in known:
        name = TYPE_ALIASES.get(name, name)
    if name.startswith("not_") and name not in known:
        negate = raw.get("negate", False)
        if type(negate) is bool:  # validation rejects anything else
            negate = not negate
        return {**raw, "type": TYPE_ALIASES.get(name[4:], name[4:]), "negate": negate}
    return raw if name == written else {**raw, "type": name}


def _validate_by_type(raw: Any, info: ValidationInfo) -> EvaluatorSpec:
    """Validate an entry with the class that its `type` names."""
    if type(raw) is not dict:
        if isinstance(raw, EvaluatorSpec):
            return raw
        if isinstance(raw, str) and info.context is not None and not _NAME_LIKE.match(raw):
            return _rubric_of([raw], info.context)
        hint = _text_hint(raw, info.context) if isinstance(raw, str) else ""
        raise problem("wrong-type", f"is {shown(raw)}, not a mapping with a 'type'", hint)
    written = raw.get("type")
    if type(written) is not str:
        if "type" not in raw:
            raise problem("missing-key", "'type' is missing", _missing_type_hint(raw, info.context))
        raise problem("wrong-type", f"is {shown(written)}, not text", at="type")
    context: ValidationContext | None = info.context
    if context is None:
        raise problem("wrong-type", "evaluators in a file are read through a loader")
    return _validate_first(raw, context)


def _rubric_of(criteria: list[str], context: ValidationContext) -> EvaluatorSpec:
    """One evaluator for all entries that are just criteria."""
    entry = {"type": "rubric", "rubrics": criteria}
    cls = context.find_evaluator("rubric")
    spec: EvaluatorSpec = cls.__pydantic_validator__.validate_python(entry, context=context)
    return spec


def _text_hint(raw: str, context: ValidationContext | None) -> str:
    """The hint for an entry that is just a text."""
    if context is not None and raw.replace("-", "_").removeprefix("not_") in context.evaluators:
        return f"write {{type: {raw}}}"
    return "for a criterion in words: {type: rubric, rubrics: [...]}"


def _missing_type_hint(raw: dict[str, Any], context: ValidationContext | None) -> str:
    """The hint for an entry without a type; some authors write the type as a key."""
    known = () if context is None else context.evaluators
    for key in raw:
        if key.replace("-", "_").removeprefix("not_") in known:
            return f"write 'type: {key}', and its settings as separate keys"
    return "for example 'type: contains'"


def _validate_first(raw: dict[str, Any], context: ValidationContext) -> EvaluatorSpec:
    """Validate the first entry of a type, and remember the validator for further ones."""
    written = raw["type"]
    validate: Callable[..., EvaluatorSpec] = _validate_respelled
    if "-" not in written and not written.startswith("not_") and written not in TYPE_ALIASES:
        validate = context.find_evaluator(written).__pydantic_validator__.validate_python
    spec = validate(raw, context=context)
    context.validators[written] = validate
    return spec


def _validate_respelled(raw: dict[str, Any], context: ValidationContext) -> EvaluatorSpec:
    """Validate an entry whose type is in kebab-case, an alias, or has the `not_` prefix."""
    entry = resolve_type(raw, context.evaluators)
    written = raw["type"].replace("-", "_")
    kind = entry["type"]
    if kind == written and kind not in context.evaluators:
        kind = raw["type"]  # an unknown type is reported as it was written
    cls = context.find_evaluator(kind)
    negated = written.startswith("not_") and written not in context.evaluators
    if negated and not issubclass(cls, NegatableSpec):
        raise problem("unknown-evaluator", f"{entry['type']!r} cannot be negated", at="type")
    before = len(context.notes)
    spec: EvaluatorSpec = cls.__pydantic_validator__.validate_python(entry, context=context)
    for index in range(before, len(context.notes)):
        note = context.notes[index]
        if note.container is entry:  # positions are found by the identity of the author's mapping
            context.notes[index] = replace(note, container=raw)
    if negated and not spec.name:
        _set_name(spec, written)
    return spec


def named(specs: tuple[EvaluatorSpec, ...]) -> tuple[EvaluatorSpec, ...]:
    """Name each unnamed evaluator after its type, with a number if that is taken."""
    if len({spec.name or spec.type for spec in specs}) == len(specs):
        for spec in specs:  # no duplicates, as in most lists
            if not spec.name:
                _set_name(spec, spec.type)
        return specs
    taken: set[str] = set()
    unnamed: list[int] = []
    for index, spec in enumerate(specs):
        if "name" not in spec.__pydantic_fields_set__:
            unnamed.append(index)
        elif spec.name in taken:
            raise_all(_duplicate_names(specs))
        else:
            taken.add(spec.name)
    if not unnamed:
        return specs
    numbers: dict[str, int] = {}
    named_specs = list(specs)
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
            # A spec that has a name may be shared with other lists: do not rename it there.
            named_specs[index] = spec = spec.model_copy() if spec.name else spec
            _set_name(spec, name)
    return tuple(named_specs)


def _set_name(spec: EvaluatorSpec, name: str) -> None:
    """Set a frozen field, of a spec that was just created and is not shared yet."""
    object.__setattr__(spec, "name", name)


def _duplicate_names(entries: Any) -> Iterator[AnyValidationError]:
    return repeated(entries, "two evaluators have the name {}", "name")


def _validate_entries(
    raw: Any, handler: Callable[[Any], Any], info: ValidationInfo
) -> tuple[EvaluatorSpec, ...]:
    """Validate and name a list; duplicate names are reported together with invalid entries."""
    context: ValidationContext | None = info.context
    if context is None:
        return _one_by_one(raw, handler, None)
    one_by_one = context.one_by_one
    if type(raw) is list and not one_by_one and (specs := _validate_quickly(raw, context)):
        return specs
    # Do not try nested lists twice: the work would double with every level above an error.
    context.one_by_one = True
    try:
        return _one_by_one(raw, handler, context)
    finally:
        context.one_by_one = one_by_one


def _one_by_one(
    raw: Any, handler: Callable[[Any], Any], context: ValidationContext | None
) -> tuple[EvaluatorSpec, ...]:
    try:
        specs: tuple[EvaluatorSpec, ...] = handler(raw)
    except ValidationError as error:
        raise merge_errors([error, *_duplicate_names(raw)]) from None
    criteria = [entry for entry in raw if isinstance(entry, str)]
    if len(criteria) > 1 and context is not None:
        # Together they are one rubric, in the place of the first: its judge is asked once.
        first = next(index for index, entry in enumerate(raw) if isinstance(entry, str))
        kept = [spec for spec, entry in zip(specs, raw, strict=True) if not isinstance(entry, str)]
        specs = (*kept[:first], _rubric_of(criteria, context), *kept[first:])
    return named(specs)


def _validate_quickly(entries: list[Any], context: ValidationContext) -> tuple[EvaluatorSpec, ...]:
    """The specs of entries that are all valid: cached, or validated directly by their class.

    Returns nothing when any is invalid or unusual: then `_validate_by_type` reports why.
    """
    validators, known, notes_before = context.validators, context.known, len(context.notes)
    specs: list[EvaluatorSpec] = []
    fresh: list[tuple[bytes, int, str]] = []
    try:
        for raw in entries:
            key = _RAW_ENCODER.encode(raw)
            spec = known.get(key) or known.promote(key)
            if spec is None:
                validate = validators.get(raw["type"])
                if validate is None:
                    spec = _validate_first(raw, context)
                else:
                    spec = validate(raw, context=context)
                fresh.append((key, len(specs), spec.name or spec.type))
            specs.append(spec)
        result = tuple(specs)
        names = {spec.name for spec in specs}
        if len(names) < len(specs) or "" in names:
            result = named(result)
    except _INVALID:
        del context.notes[notes_before:]
        return ()
    # Entries with notes are not cached: the notes are reported for each of them.
    if fresh and len(context.notes) == notes_before:
        for key, index, default in fresh:
            if result[index].name == default:
                known.add(key, result[index])
    return result


Entry = Annotated[
    SerializeAsAny[EvaluatorSpec],
    PlainValidator(_validate_by_type),
    WithJsonSchema({"$ref": "#/$defs/Evaluator"}),
]
#: JSON Schema of an entry that is just a criterion.
CRITERION = {"type": "string", "pattern": r"[^A-Za-z0-9_.:\-]"}
Evaluators = Annotated[tuple[Entry, ...], WrapValidator(_validate_entries)]
SomeEvaluators = Annotated[tuple[Entry, ...], Field(min_length=1), WrapValidator(_validate_entries)]
