"""Signatures that show the keys of a TypedDict."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import assay
from assay.model.keywords import CaseKeys, ContainsKeys, OptionKeys
from assay.registry import evaluators

KEYS: list[tuple[Any, Any]] = [
    (assay.contains, ContainsKeys),
    (assay.Case, CaseKeys),
    (assay.Cases, CaseKeys),
    (assay.run, OptionKeys),
    (assay.arun, OptionKeys),
    (assay.regrade, OptionKeys),
]


@pytest.mark.parametrize(("function", "keys"), KEYS)
def test_a_signature_has_every_key_by_name(function: Any, keys: Any) -> None:
    parameters = inspect.signature(function).parameters
    assert parameters.keys() >= keys.__annotations__.keys()
    for name in keys.__annotations__:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("kind", sorted(set(evaluators.usable()) - {"python"}))
def test_no_function_of_an_evaluator_hides_its_keys(kind: str) -> None:
    kinds = {p.kind for p in inspect.signature(getattr(assay, kind)).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert "weight: 'float' = ..." in str(inspect.signature(getattr(assay, kind)))


def test_help_shows_types_and_that_a_key_can_be_omitted() -> None:
    shown = inspect.signature(assay.contains)
    assert str(shown).startswith("(value: 'str' = ..., *, name: 'str' = ..., weight: 'float' = ...")
    assert str(shown).endswith("-> 'EvaluatorSpec'")


def test_a_misspelt_key_is_still_refused_with_the_nearest_one() -> None:
    with pytest.raises(assay.EvalFileErrors) as error:
        assay.contains("x", negat=True)  # type: ignore[call-arg]
    assert "'negat'" in error.value.problems[0].message
    assert "'negate'" in error.value.problems[0].hint
