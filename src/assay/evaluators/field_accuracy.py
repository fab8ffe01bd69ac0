"""`field_accuracy`: fields of a JSON answer against the expected ones."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from assay.model.evaluator import EvaluatorSpec
from assay.model.shape import Empty, Flag, Number, Shape, Text, problem, raise_all

_PATH = r"(?:[^.\[\]]+|\[[0-9]+\])(?:\.[^.\[\]]+|\[[0-9]+\])*"


def _path(path: str) -> str:
    if not re.fullmatch(_PATH, path):
        raise problem("wrong-value", f"{path!r} is not a path", "for example 'items[1].price'")
    return path


_BELONGS = {"tolerance": "numeric_tolerance", "relative": "numeric_tolerance", "formats": "date"}


class FieldRule(Shape):
    """One field: where it is and how it is compared."""

    path: Annotated[Text, AfterValidator(_path), Field(json_schema_extra={"pattern": f"^{_PATH}$"})]
    match: Literal["exact", "numeric_tolerance", "date"] = "exact"
    tolerance: Annotated[Number, Field(ge=0)] = 0.0
    relative: Flag = False
    formats: list[Text] = Empty(list)
    required: Flag = True
    weight: Annotated[Number, Field(ge=0)] = 1.0

    @model_validator(mode="after")
    def _keys_fit(self) -> FieldRule:
        raise_all(
            problem("conflicting-keys", f"belongs to {match}", at=key)
            for key, match in _BELONGS.items()
            if key in self.model_fields_set and self.match != match
        )
        return self


class FieldAccuracyEvaluator(EvaluatorSpec):
    """The share of fields, by weight, that agree with the expected output."""

    compares_with_expected: ClassVar[bool] = True
    fields: Annotated[list[FieldRule], Field(min_length=1)]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"
