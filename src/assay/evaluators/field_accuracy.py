"""`field_accuracy`: fields of a JSON answer against the expected ones."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from assay.model.evaluator import EvaluatorSpec
from assay.model.rules import BelongsTo, Rule, Ruled
from assay.model.shape import Empty, Flag, Number, Text, problem

_PATH = r"(?:[^.\[\]]+|\[[0-9]+\])(?:\.[^.\[\]]+|\[[0-9]+\])*"


def _path(path: str) -> str:
    if not re.fullmatch(_PATH, path):
        raise problem("wrong-value", f"{path!r} is not a path", "for example 'items[1].price'")
    return path


class FieldRule(Ruled):
    """One field: where it is and how it is compared."""

    rules: ClassVar[tuple[Rule, ...]] = (
        BelongsTo("tolerance", "match", ("numeric_tolerance",)),
        BelongsTo("relative", "match", ("numeric_tolerance",)),
        BelongsTo("formats", "match", ("date",)),
    )

    path: Annotated[Text, AfterValidator(_path), Field(json_schema_extra={"pattern": f"^{_PATH}$"})]
    match: Literal["exact", "numeric_tolerance", "date"] = "exact"
    tolerance: Annotated[Number, Field(ge=0)] = 0.0
    relative: Flag = False
    formats: list[Text] = Empty(list)
    required: Flag = True
    weight: Annotated[Number, Field(ge=0)] = 1.0


class FieldAccuracyEvaluator(EvaluatorSpec):
    """The share of fields, by weight, that agree with the expected output."""

    compares_with_expected: ClassVar[bool] = True
    fields: Annotated[list[FieldRule], Field(min_length=1)]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"
