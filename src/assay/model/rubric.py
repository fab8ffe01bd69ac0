"""Rubric items: criteria that a judge checks one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    WrapValidator,
    model_validator,
)

from assay.wire.fields import Count, Flag, Number, Positive, Text
from assay.wire.key_names import Key
from assay.wire.shape import Shape
from assay.wire.validation_errors import AlsoCheck, AnyValidationError, problem, repeated, shown


class ScoreRange(Shape):
    """What an answer must be like to earn a score within `score_range`."""

    score_range: Annotated[list[Count], Field(min_length=2, max_length=2)]
    expected_outcome: Text = Key(aliases=("description", "outcome"))

    @model_validator(mode="after")
    def _ordered(self) -> ScoreRange:
        low, high = self.score_range
        if low > high:
            raise problem(
                "wrong-value", f"the range {low} to {high} runs backwards", at="score_range"
            )
        return self


class Rubric(Shape):
    """One criterion; with `score_ranges` it is graded, otherwise met or not met."""

    # JSON Schema cannot compare with the highest of the ranges; without any it is 1.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"score_ranges": {"type": "null"}}},
            "then": {"properties": {"required_min_score": {"maximum": 1}}},
        }
    )

    id: Text = ""
    description: Text = Key(aliases=("outcome", "expected_outcome"))
    weight: Annotated[Number, Field(ge=0)] = 1.0
    required: Flag = False
    required_min_score: Annotated[Number, Field(ge=0)] | None = None
    score_ranges: Annotated[list[ScoreRange], Field(min_length=1)] | None = None
    _max_score: float = PrivateAttr(default=1.0)

    @property
    def max_score(self) -> float:
        """The highest score that the judge can give this item."""
        return self._max_score

    @model_validator(mode="after")
    def _consistent(self) -> Rubric:
        if self.score_ranges:
            _check_coverage(self.score_ranges)
            self._max_score = float(max(r.score_range[1] for r in self.score_ranges))
        if self.required_min_score is not None and self.required_min_score > self._max_score:
            message = f"is above the highest score of the item, {self._max_score:g}"
            raise problem("wrong-value", message, at="required_min_score")
        return self


def _check_coverage(ranges: list[ScoreRange]) -> None:
    """Score ranges must cover every integer from 0 to the highest score exactly once."""
    expected = 0
    for index in sorted(range(len(ranges)), key=lambda index: ranges[index].score_range):
        low, high = ranges[index].score_range
        if low != expected:
            word = "overlap" if low < expected else "leave a gap"
            message = f"score_ranges {word} at {min(low, expected)}"
            raise problem("wrong-value", message, at=("score_ranges", index, "score_range"))
        expected = high + 1


class Dimension(Shape):
    """A rubric item as the rubric tier writes it: `maxScore` 1 is pass or fail, more is graded."""

    dimension: Text
    maxScore: Positive
    criteria: Text

    def to_rubric(self) -> Rubric:
        rubric = Rubric(id=self.dimension, description=self.criteria, required=self.maxScore == 1)
        rubric._max_score = self.maxScore
        return rubric


def _validate_item(raw: Any, handler: Any, info: ValidationInfo) -> Any:
    """A text is a required criterion; a mapping with `dimension` is the form of the rubric tier."""
    if isinstance(raw, str):
        raw = {"description": raw, "required": True}
    elif isinstance(raw, dict) and "dimension" in raw:
        return Dimension.model_validate(raw, context=info.context).to_rubric()
    elif not isinstance(raw, (dict, Rubric)):
        raise problem("wrong-type", f"is {shown(raw)}, neither text nor a mapping")
    return handler(raw)


def _fill_in_ids(items: tuple[Rubric, ...]) -> tuple[Rubric, ...]:
    """Items without an id get rubric-1, rubric-2 by their position."""
    for index, item in enumerate(items, 1):
        if not item.id:
            object.__setattr__(item, "id", f"rubric-{index}")
    return items


def _duplicate_ids(items: Any) -> Iterator[AnyValidationError]:
    message = "two rubric items have the id {}"
    return repeated(items, message, "dimension", "id", default="rubric-{}")


def _duplicate_dimensions(items: Any) -> Iterator[AnyValidationError]:
    return repeated(items, "the dimension {} appears twice", "dimension")


Rubrics = Annotated[
    tuple[
        Annotated[
            Rubric, WrapValidator(_validate_item, json_schema_input_type=Text | Rubric | Dimension)
        ],
        ...,
    ],
    Field(min_length=1),
    AfterValidator(_fill_in_ids),
    AlsoCheck(_duplicate_ids),
]
Dimensions = Annotated[
    tuple[Dimension, ...],
    Field(min_length=1),
    AlsoCheck(_duplicate_dimensions),
]
