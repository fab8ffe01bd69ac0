"""`tool_trajectory`: which tools were called, how often, in which order, with what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from assay.errors import nearest
from assay.model.evaluator import EvaluatorSpec
from assay.model.expect import Regex
from assay.model.message import ToolCall
from assay.model.shape import (
    Count,
    Empty,
    Flag,
    Json,
    Key,
    Number,
    Positive,
    Refusal,
    Shape,
    Steps,
    Text,
    problem,
    raise_all,
    shown,
    together,
)

ARGS_MODES = ("exact", "superset", "subset", "ignore")


class Predicate(Shape):
    """A condition on an argument, in place of its value."""

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

    @model_validator(mode="after")
    def _tolerance_of_approx(self) -> Predicate:
        if "tolerance" in self.model_fields_set and "approx" not in self.model_fields_set:
            raise problem("missing-key", "'tolerance' belongs to 'approx'", at="tolerance")
        return self


PREDICATES = frozenset(Predicate.model_fields)


def is_predicate(value: Any) -> bool:
    """A mapping whose keys are all names of conditions is one; `equals` quotes a literal."""
    return isinstance(value, dict) and bool(value) and PREDICATES.issuperset(value)


def literal(value: Any) -> Any:
    """A value in which mappings that look like conditions are quoted."""
    if is_predicate(value):
        return {"equals": value}
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    return [literal(item) for item in value] if isinstance(value, list) else value


def _literal_args(value: Any) -> dict[str, Any]:
    """The `args` of a step for the input of a call, if it has one."""
    if isinstance(value, dict):
        return {"args": {key: literal(item) for key, item in value.items()}}
    return {} if value is None else {"args": literal(value)}


def _wrong_predicates(value: Any, path: Steps = ()) -> Iterator[Refusal]:
    """What is wrong with the conditions anywhere in a value, in all of them."""
    if is_predicate(value):
        try:
            Predicate.model_validate(value)  # what `equals` quotes is not looked into
        except ValidationError as error:
            yield together([error], path)
    elif isinstance(value, (dict, list)):
        yield from _wrong_inside(value, path)


def _wrong_inside(value: dict[str, Any] | list[Any], path: Steps = ()) -> Iterator[Refusal]:
    for step, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _wrong_predicates(item, (*path, step))


def _check_output(value: Any) -> Any:
    raise_all(_wrong_predicates(value))
    return value


def _check_args(value: Any) -> Any:
    """Arguments are a mapping of values; the mapping itself is never a condition."""
    raise_all(_wrong_inside(value) if isinstance(value, (dict, list)) else ())
    return value


def _args_match(raw: Any) -> Any:
    if isinstance(raw, list) and raw and all(isinstance(item, str) and item for item in raw):
        return raw
    if raw in ARGS_MODES:
        return raw
    hint = nearest(raw, ARGS_MODES) if isinstance(raw, str) else ""
    message = f"is {shown(raw)}, neither one of {', '.join(ARGS_MODES)} nor a list of paths"
    raise problem("wrong-value", message, hint)


ArgsMatch = Annotated[
    Any,
    BeforeValidator(
        _args_match,
        json_schema_input_type=Literal["exact", "superset", "subset", "ignore"]
        | Annotated[list[Text], Field(min_length=1)],
    ),
]


Arguments = Annotated[Json, AfterValidator(_check_args)]
Output = Annotated[Json, AfterValidator(_check_output)]


class Call(Shape):
    """A call to look for."""

    tool: Text
    args: Arguments = Key(None, aliases=("input",))
    output: Output = None
    args_match: ArgsMatch = "superset"
    max_duration_ms: Positive | None = None


class Step(Call):
    """A step of the expected path: one call, or any one of several."""

    tool: Text | None = None  # type: ignore[assignment]
    optional: Flag = False
    any_of: Annotated[list[Call], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Step:
        if (self.tool is None) == (self.any_of is None):
            if self.tool is None:
                raise problem("missing-key", "a step needs 'tool', or 'any_of' with several calls")
            message = "'tool' and 'any_of' exclude each other"
            raise problem("conflicting-keys", message, at="any_of")
        if self.any_of is not None:
            raise_all(
                problem("conflicting-keys", "belongs to the calls inside 'any_of'", at=key)
                for key in self.model_fields_set - {"any_of", "optional"}
            )
        return self


class ToolTrajectoryEvaluator(EvaluatorSpec):
    """Compares the calls the agent made with the calls it should have made."""

    mode: Literal["any_order", "in_order", "exact", "superset", "subset"] = "in_order"
    expected: list[Step] = Empty(list)
    minimums: dict[str, Count] = Empty(dict)
    maximums: dict[str, Count] = Empty(dict)
    ignore: list[Text] = Empty(list)
    forbidden: list[Text] = Empty(list)

    @model_validator(mode="after")
    def _asserts(self) -> ToolTrajectoryEvaluator:
        # An empty list of expected steps says: no call at all.
        given = self.minimums or self.maximums or self.forbidden
        if not given and "expected" not in self.model_fields_set:
            message = "give 'expected', 'minimums', 'maximums' or 'forbidden'"
            raise problem("asserts-nothing", message)
        raise_all(
            problem(
                "conflicting-keys", f"is {least}, above its maximum {most}", at=("minimums", tool)
            )
            for tool, least in self.minimums.items()
            if least > (most := self.maximums.get(tool, least))
        )
        return self

    @classmethod
    def of_calls(cls, calls: Sequence[ToolCall]) -> ToolTrajectoryEvaluator:
        """The calls of expected messages in order; their inputs are data, never conditions."""
        steps = [{"tool": call.tool} | _literal_args(call.input) for call in calls]
        return cls.model_validate(
            {"type": "tool_trajectory", "mode": "in_order", "expected": steps}
        )

    def cannot_fail(self) -> str:
        demanding = any(not step.optional for step in self.expected) or self.mode in (
            "exact",
            "subset",
        )
        if demanding or self.maximums or self.forbidden or any(self.minimums.values()):
            return ""
        return "it requires no call"
