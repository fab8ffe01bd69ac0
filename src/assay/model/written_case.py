"""The entry of an eval file that loads to a given case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from assay.errors import UsageError
from assay.model.case import EvalCase
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message, expand_output
from assay.model.unchecked import unread

#: Keys of a case that its entry has under the same name, unless they are empty.
_SAME = (
    *("description", "expected_outcome", "tags", "metadata", "conversation_id"),
    *("threshold", "repeat", "min_pass_rate", "skip", "cluster", "critical", "stubs", "max_turns"),
)
#: Keys that stand under `execution`.
_EXECUTION = ("target", "timeout_seconds")
#: What only cases of tier files have.
_TIER_ONLY = ("difficulty", "created_at", "bug_ref", "reference_data")


class _Evaluators(NamedTuple):
    """The effective evaluators of a case by where its author wrote them."""

    listed: tuple[EvaluatorSpec, ...]
    expect: EvaluatorSpec | None
    rubrics: bool
    inherits: bool


def entry_of(case: EvalCase, *, inherited: bool = False, names: bool = False) -> dict[str, Any]:
    """The entry of a case; functions stay objects, which no file can hold.

    `inherited` says whether the suite has evaluators, which the case gets unless it lists its own.
    With `names` every evaluator has its name, which otherwise is left out if it follows from its
    type.
    """
    if only := [name for name in _TIER_ONLY if getattr(case, name)]:
        raise UsageError(f"the case {case.id!r} is one of a tier file: a suite has no {only[0]!r}")
    entry: dict[str, Any] = {"id": case.id}
    if case.input_messages:
        entry["input"] = _input(case.input_messages)
    if case.expected_messages:
        key, value = _expected(case.expected_messages)
        entry[key] = value
    entry |= {name: _plain(getattr(case, name)) for name in _SAME if _given(case, name)}
    if execution := {name: getattr(case, name) for name in _EXECUTION if _given(case, name)}:
        entry["execution"] = execution
    return entry | _evaluators(case, inherited=inherited, names=names)


def inherited_evaluators(case: EvalCase) -> tuple[EvaluatorSpec, ...]:
    """The evaluators that the case must have from its suite."""
    found = _split(case)
    return found.listed if found.inherits else ()


def lists_no_evaluators(case: EvalCase) -> bool:
    """Does the case list no evaluators of its own?"""
    found = _split(case)
    return case.has_default_evaluators or found.inherits or not found.listed


def _given(case: EvalCase, name: str) -> bool:
    value = getattr(case, name)
    return value is not None and value is not False and value not in ("", (), {})


def _input(messages: Sequence[Message]) -> Any:
    first = messages[0]
    text = first.content if type(first.content) is str and first.content.strip() else None
    if len(messages) == 1 and first == Message("user", text) and text is not None:
        return text
    return [message.to_dict() for message in messages]


def _expected(messages: Sequence[Message]) -> tuple[str, Any]:
    content = messages[0].content
    if len(messages) == 1 and content is not None and type(content) is not tuple:
        try:
            if expand_output(content) == tuple(messages):
                return "expected_output", content
        except TypeError:  # a mapping that looks like a message
            pass
    return "expected_messages", [message.to_dict() for message in messages]


def _split(case: EvalCase) -> _Evaluators:
    specs = list(case.evaluators)
    if case.has_default_evaluators:
        return _Evaluators((), None, rubrics=False, inherits=False)
    inherits = case.added_defaults > 0
    del specs[len(specs) - case.added_defaults :]
    expect = specs.pop() if specs and _is_inline(specs[-1], "expect") else None
    rubrics = bool(case.rubrics and specs and _judges(specs[-1], case))
    if rubrics:
        specs.pop()
    elif expect is not None and case.rubrics:
        specs.append(expect)
        expect = None
    return _Evaluators(tuple(specs), expect, rubrics, inherits)


def _is_inline(spec: EvaluatorSpec, kind: str) -> bool:
    """Does it have nothing that only an entry of `evaluators` can set?"""
    common = EvaluatorSpec.model_fields.keys() - {"type"}
    return spec.type == kind and not common & spec.model_fields_set


def _judges(spec: EvaluatorSpec, case: EvalCase) -> bool:
    return _is_inline(spec, "rubric") and getattr(spec, "rubrics", None) == case.rubrics


def _evaluators(case: EvalCase, *, inherited: bool, names: bool) -> dict[str, Any]:
    found = _split(case)
    keys: dict[str, Any] = {}
    if found.rubrics:
        keys["rubrics"] = [_rubric(rubric) for rubric in case.rubrics]
    if found.expect is not None:
        keys["expect"] = {k: v for k, v in _given_keys(found.expect).items() if k != "type"}
    if found.listed and not found.inherits:
        keys["evaluators"] = [evaluator_entry(spec, names=names) for spec in found.listed]
    elif not found.inherits and (inherited or _would_add(case, found)):
        keys["evaluators"] = []  # so that the case gets no other evaluators
    return keys


def _would_add(case: EvalCase, found: _Evaluators) -> bool:
    """Would the loader add default evaluators, as these leave an expectation unread?"""
    if case.has_default_evaluators or not (found.rubrics or found.expect):
        return False
    missing = unread(case.expected, case.evaluators)
    return bool(case.expected_messages) and any(each != "expected_outcome" for each in missing)


def evaluator_entry(spec: EvaluatorSpec, *, names: bool = False) -> Any:
    """The entry of an evaluator: the keys that were given."""
    if is_function(spec):
        return spec
    entry = {"type": spec.type, **_given_keys(spec, names=names)}
    if spec.name and (names or not re.fullmatch(rf"{re.escape(spec.type)}(_\d+)?", spec.name)):
        entry["name"] = spec.name
    return entry


def functions_of(case: EvalCase) -> Iterator[str]:
    """The names of the evaluators that are functions of the project, given as objects."""
    return (spec.name or spec.type for _, spec in case.walk_evaluators() if is_function(spec))


def is_function(spec: EvaluatorSpec) -> bool:
    """Is it a function of the project, given as an object?"""
    return callable(getattr(type(spec), "function", None))


def _given_keys(shape: BaseModel, *, names: bool = False) -> dict[str, Any]:
    given = shape.model_fields_set
    values = {**shape.__dict__, **(shape.model_extra or {})}
    return {key: _plain(values[key], names=names) for key in values if key in given}


def _rubric(rubric: BaseModel) -> Any:
    given = _given_keys(rubric)
    if given.keys() == {"description", "required"} and given["required"] is True:
        return given["description"]
    return given


def _plain(value: Any, *, names: bool = False) -> Any:
    if isinstance(value, EvaluatorSpec):
        return evaluator_entry(value, names=names)
    if isinstance(value, BaseModel):
        return _given_keys(value, names=names)
    if isinstance(value, (list, tuple)):
        return [_plain(item, names=names) for item in value]
    return value
