"""`field_accuracy`: compares fields of a JSON answer with the expected ones."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, Field

from assay.evaluators.answers import expected_output
from assay.evaluators.field_values import (
    FORMAT_PATTERN,
    Incomparable,
    Unreadable,
    directives,
    near,
    same_date,
)
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec
from assay.model.expectations import Expectation
from assay.model.score import EvaluationScore, weighted
from assay.model.values import MISSING, find_json, json_values, quoted, same, value_at
from assay.wire.fields import Empty, Flag, Number, Text
from assay.wire.rules import BelongsTo, Rule, Ruled
from assay.wire.validation_errors import problem

_PATH = r"(?:[^.\[\]]+|\[[0-9]+\])(?:\.[^.\[\]]+|\[[0-9]+\])*"


def _path(path: str) -> str:
    if not re.fullmatch(_PATH, path):
        raise problem("wrong-value", f"{path!r} is not a path", "for example 'items[1].price'")
    return path


def _date_format(form: str) -> str:
    try:
        directives(form)
    except ValueError as error:
        message = f"{form!r} is not a date format: {error}"
        hint = "for example 'DD-MMM-YYYY', 'MM/DD/YYYY' or '%d.%m.%Y'"
        raise problem("wrong-value", message, hint) from None
    return form


DateFormat = Annotated[
    Text, AfterValidator(_date_format), Field(json_schema_extra={"pattern": FORMAT_PATTERN})
]


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
    formats: list[DateFormat] = Empty(list)
    required: Flag = True
    weight: Annotated[Number, Field(ge=0)] = 1.0


class FieldAccuracyEvaluator(EvaluatorSpec):
    """The share of fields, by weight, that agree with the expected output."""

    compares_with_expected: ClassVar[bool] = True
    version: ClassVar[int] = 2
    reads: ClassVar[frozenset[Expectation]] = frozenset({"expected_output"})
    allowed_in_requests: ClassVar[bool] = True
    type: str = "field_accuracy"
    fields: Annotated[list[FieldRule], Field(min_length=1)]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"

    def runs_in(self) -> CheckPlace:
        return "loop"

    def evaluate(self, context: Context) -> EvaluationScore:
        expected = _structured(expected_output(context))
        if expected is MISSING:
            return EvaluationScore.errored("the expected output contains no JSON to compare with")
        kind = type(expected) if isinstance(expected, (dict, list)) else object
        answer = answer_in(context.observation.response, kind, self.fields)
        try:
            pairs = [(rule, compare(rule, expected, answer)) for rule in self.fields]
        except Incomparable as reason:
            return EvaluationScore.errored(str(reason))
        counted = [(rule, found) for rule, found in pairs if found is not None]
        if not counted:
            return EvaluationScore(skipped="nothing verified")
        score = weighted((rule.weight, float(found.agrees)) for rule, found in counted)
        if self.aggregation == "all_or_nothing":
            agreeing = [found.agrees for rule, found in counted if rule.weight]
            score = float(bool(agreeing) and all(agreeing))
        return EvaluationScore(
            score,
            hits=tuple(found.message for _, found in counted if found.agrees),
            misses=tuple(found.message for _, found in counted if not found.agrees),
            reasoning="the answer contains no JSON" if answer is MISSING else "",
        )


def _structured(expected: Any) -> Any:
    return find_json(expected) if isinstance(expected, str) else expected


def answer_in(response: str, kind: type, fields: list[FieldRule]) -> Any:
    """The first value in a response that has one of the fields, else the first of all."""
    values = [value for value in json_values(response) if isinstance(value, kind)]
    for value in values:
        if any(value_at(value, rule.path) is not MISSING for rule in fields):
            return value
    return values[0] if values else MISSING


class Comparison(NamedTuple):
    """Whether a field agrees, and the message about it."""

    agrees: bool
    message: str


def compare(rule: FieldRule, expected: Any, answer: Any) -> Comparison | None:
    """Compare one field; None if it does not count. Raises Incomparable."""
    wanted, found = value_at(expected, rule.path), value_at(answer, rule.path)
    if not rule.required and (wanted is MISSING or found is MISSING):
        return None
    if wanted is MISSING:
        raise Incomparable(f"the expected output has no {rule.path!r}")
    if found is MISSING:
        return Comparison(False, f"{rule.path}: expected {quoted(wanted)}, but it is missing")
    message = f"{rule.path}: expected {quoted(wanted)}, found {quoted(found)}"
    try:
        agrees = _agrees(rule, wanted, found)
    except Unreadable as reason:
        return Comparison(False, f"{message}, which is {reason}")
    return (
        Comparison(True, f"{rule.path}: {quoted(found)}") if agrees else Comparison(False, message)
    )


def _agrees(rule: FieldRule, wanted: Any, found: Any) -> bool:
    if rule.match == "exact":
        return same(wanted, found)
    if rule.match == "date":
        return same_date(wanted, found, rule.formats)
    return near(wanted, found, rule.tolerance, rule.relative)
