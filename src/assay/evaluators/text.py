"""`equals`, `contains` and their family: one check of the answer's text each."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from assay.model.evaluator import NegatableSpec
from assay.model.expect import Regex
from assay.model.rules import Excludes, NeedsOne, Rule, Ruled
from assay.model.shape import Json, Text, problem, shown
from assay.patterns import compile_pattern


def _listed(raw: Any) -> Any:
    if isinstance(raw, (str, list)):
        return [raw] if isinstance(raw, str) else raw
    raise problem(
        "wrong-type", f"is {shown(raw)}, neither text nor a list of texts", "put it in quotes"
    )


_NOT_BOTH = Excludes("value", ("values",))


class _TextSpec(NegatableSpec, Ruled):
    """`value` is one text, `values` is a list; each is one check."""

    rules: ClassVar[tuple[Rule, ...]] = (
        NeedsOne(("value", "values"), "'value' is missing, or 'values' for a list"),
        _NOT_BOTH,
    )

    value: Text | None = None
    values: Annotated[list[Text], Field(min_length=1)] | None = None

    @property
    def wanted(self) -> list[str]:
        """The texts to look for, however they were written."""
        return self.values if self.values is not None else [self.value or ""]


class ContainsEvaluator(_TextSpec):
    """The answer contains the text, case-sensitive."""


class IContainsEvaluator(_TextSpec):
    """The answer contains the text, whatever the case."""


class StartsWithEvaluator(_TextSpec):
    """The answer starts with the text."""


class EndsWithEvaluator(_TextSpec):
    """The answer ends with the text."""


class RegexEvaluator(_TextSpec):
    """The regular expression is found in the answer."""

    value: Regex | None = None
    values: Annotated[list[Annotated[Regex, Field(min_length=1)]], Field(min_length=1)] | None = (
        None
    )

    def cannot_fail(self) -> str:
        probes = ("", "x", "0 \n~")
        if not self.negate and all(_finds(p, probes) for p in self.wanted):
            return "the regular expression is found in every text"
        return ""


def _finds(pattern: str, texts: tuple[str, ...]) -> bool:
    return all(compile_pattern(pattern).search(text) for text in texts)


class _ManySpec(NegatableSpec):
    values: Annotated[
        list[Text],
        Field(min_length=1, json_schema_extra={"aliases": ("value",), "deprecated": ()}),
        BeforeValidator(
            _listed, json_schema_input_type=Text | Annotated[list[Text], Field(min_length=1)]
        ),
    ]


class ContainsAnyEvaluator(_ManySpec):
    """The answer contains at least one of the texts."""


class ContainsAllEvaluator(_ManySpec):
    """The answer contains all of the texts."""


class EqualsEvaluator(NegatableSpec, Ruled):
    """The answer equals the value, or the case's expected output when none is given."""

    rules: ClassVar[tuple[Rule, ...]] = (_NOT_BOTH,)
    compares_with_expected: ClassVar[bool] = True
    value: Json = None
    values: Annotated[list[Json], Field(min_length=1)] | None = None


class SimilarityEvaluator(NegatableSpec, Ruled):
    """How near the answer is to the value by edit distance; no value: to the expected output."""

    rules: ClassVar[tuple[Rule, ...]] = (_NOT_BOTH,)
    compares_with_expected: ClassVar[bool] = True
    value: Text | None = None
    values: Annotated[list[Text], Field(min_length=1)] | None = None


class IsJsonEvaluator(NegatableSpec):
    """The answer is valid JSON."""


def _schema(raw: Any) -> Any:
    if isinstance(raw, (dict, bool)):
        return raw
    raise problem("wrong-type", f"is {shown(raw)}, not a JSON Schema")


class JsonSchemaEvaluator(NegatableSpec):
    """The answer is JSON that the schema accepts."""

    value: Annotated[Any, BeforeValidator(_schema, json_schema_input_type=dict[str, Any] | bool)]
