"""Expected values in files: literal, or conditions in their place."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from assay.model.arguments import CONDITIONS, is_condition
from assay.model.expect import Regex
from assay.wire.fields import Flag, Json, Number
from assay.wire.rules import Needs, Rule, Ruled
from assay.wire.validation_errors import AnyValidationError, Steps, merge_errors


class Predicate(Ruled):
    """A condition on an argument, in place of its value."""

    rules: ClassVar[tuple[Rule, ...]] = (Needs("tolerance", "approx"),)

    regex: Regex | None = None
    one_of: Annotated[list[Json], Field(min_length=1)] | None = None
    gte: Number | None = None
    lte: Number | None = None
    approx: Number | None = None
    tolerance: Annotated[Number, Field(ge=0)] | None = None
    contains: Json = None
    exists: Flag | None = None
    type: Literal["string", "number", "integer", "boolean", "object", "array", "null"] | None = None
    equals: Json = None

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> JsonSchemaValue:
        """The schema of an expected value, which can contain conditions at any depth."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        body = handler.resolve_ref_schema(schema)
        condition = dict(body)
        names = {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"enum": sorted(CONDITIONS)},
        }
        body.clear()
        body |= {
            "if": names,
            "then": condition,
            "else": {"additionalProperties": _EXPECTED, "items": _EXPECTED},
        }
        return schema


_EXPECTED = {"$ref": "#/$defs/Predicate"}


def _wrong_predicates(value: Any, path: Steps = ()) -> list[AnyValidationError]:
    """What is wrong with the conditions in a value, at any depth."""
    if not is_condition(value):
        return _wrong_inside(value, path)
    try:
        Predicate.model_validate(value)  # a literal quoted by `equals` is not checked
    except ValidationError as error:
        return [merge_errors([error], path)]
    return []


def _wrong_inside(value: Any, path: Steps = ()) -> list[AnyValidationError]:
    found: list[AnyValidationError] = []
    if isinstance(value, (dict, list)):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(item, (dict, list)):
                found += _wrong_predicates(item, (*path, step))
    return found


def _check_output(value: Any) -> Any:
    if wrong := _wrong_predicates(value):
        raise merge_errors(wrong)
    return value


def check_args(value: Any) -> Any:
    """Check the conditions in arguments; the mapping of arguments itself is never one."""
    if wrong := _wrong_inside(value):
        raise merge_errors(wrong)
    return value


Arguments = Annotated[
    Json,
    AfterValidator(check_args),
    WithJsonSchema(
        {"if": {"type": "object"}, "then": {"additionalProperties": _EXPECTED}, "else": _EXPECTED}
    ),
]
Output = Annotated[Json, BeforeValidator(_check_output, json_schema_input_type=Predicate)]
