"""Public names as tools read them: help, signatures, type hints, evaluators made in Python."""

from __future__ import annotations

import inspect
import pydoc
from typing import Any, get_type_hints

import pytest

import assay
from assay.evaluators.text import ContainsEvaluator
from assay.registry import evaluators

NAMES = [name for name in assay.__all__ if name != "__version__"]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(assay, name))]
#: Settings without which an evaluator cannot be made.
NEEDED: dict[str, dict[str, Any]] = {
    "code_judge": {"script": ["true"]},
    "composite": {"evaluators": [ContainsEvaluator(value="x")]},
    "contains": {"value": "x"},
    "contains_all": {"values": ["x"]},
    "contains_any": {"values": ["x"]},
    "cost": {"budget": 1},
    "ends_with": {"value": "x"},
    "equals": {},
    "execution_metrics": {"max_tokens": 1},
    "expect": {"response_contains": ["x"]},
    "field_accuracy": {"fields": [{"path": "a", "match": "exact"}]},
    "icontains": {"value": "x"},
    "icontains_any": {"values": ["x"]},
    "is_json": {},
    "json_schema": {"value": {"type": "object"}},
    "latency": {"threshold": 1},
    "llm_judge": {},
    "regex": {"value": "x"},
    "rubric": {"rubrics": ["is polite"]},
    "similarity": {},
    "starts_with": {"value": "x"},
    "token_usage": {"max_total": 1},
    "tool_trajectory": {"forbidden": ["rm"]},
}


@pytest.mark.parametrize("name", NAMES)
def test_help_and_signature_of_every_public_name(name: str) -> None:
    public = getattr(assay, name)
    assert name in pydoc.plain(pydoc.render_doc(public))
    if public.__init__ is not Exception.__init__:  # Python itself knows no signature of that one
        inspect.signature(public)


@pytest.mark.parametrize("name", NAMES)
def test_type_hints_of_every_public_name_resolve(name: str) -> None:
    get_type_hints(getattr(assay, name))


@pytest.mark.parametrize("name", CLASSES)
def test_type_hints_of_every_public_method_resolve(name: str) -> None:
    for _, member in inspect.getmembers_static(getattr(assay, name)):
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if inspect.isfunction(function) and function.__module__.startswith("assay."):
            get_type_hints(function)


def test_every_built_in_evaluator_knows_its_type() -> None:
    # `python` has no type of its own: it is the function that is called.
    own = evaluators.usable().keys() - {"python"}
    assert {name: evaluators.get(name).model_fields["type"].default for name in own} == {
        name: name for name in own
    }


@pytest.mark.parametrize("name", NEEDED)
def test_an_evaluator_needs_no_type_in_python(name: str) -> None:
    made = evaluators.usable()[name](**NEEDED[name])
    assert made.type == name
    assert made == type(made).model_validate({"type": name, **NEEDED[name]})
