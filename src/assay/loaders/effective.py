"""The effective evaluators of a case: its own or the suite's, inline ones, or the default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from assay.errors import PluginError, UnknownName
from assay.model.evaluator import EvaluatorSpec, named
from assay.model.expect import ExpectBase
from assay.model.message import ToolCall
from assay.model.refusal import problem
from assay.model.rubric import Rubric
from assay.model.suite import CaseExecution, CaseFile
from assay.registry import evaluators as registered

_NO_EXECUTION = CaseExecution()


def evaluator_class(name: str) -> type[EvaluatorSpec]:
    """The class for an evaluator's `type`; raises a validation error."""
    try:
        return registered.get(name)
    except UnknownName as error:
        hint = error.hint or "known: " + ", ".join(registered)
        message = f"no evaluator is called {name!r}"
        raise problem("unknown-evaluator", message, hint, "type") from None
    except PluginError as error:
        raise problem("plugin-failed", str(error), at="type") from None


class EffectiveEvaluators:
    """Builds the effective lists of evaluators for the cases of one suite."""

    def __init__(self, inherited: CaseExecution = _NO_EXECUTION) -> None:
        self.inherited = inherited
        self._shared: dict[str, EvaluatorSpec] = {}

    def of(self, written: CaseFile) -> tuple[tuple[EvaluatorSpec, ...], bool]:
        """The effective list, and whether it is the default one."""
        own = written.evaluators
        for execution in (written.execution, self.inherited):
            if own is None and execution is not None:
                own = execution.evaluators
        added: list[EvaluatorSpec] = []
        if written.rubrics:
            added.append(rubric_evaluator(written.rubrics))
        if written.expect is not None and written.expect.asserted():
            added.append(expect_evaluator(written.expect))
        if not own and not added:  # an empty list only overrides that of the suite
            return named(tuple(self._default(written))), True
        return (named((*(own or ()), *added)) if added else own or ()), False

    def _default(self, written: CaseFile) -> Iterator[EvaluatorSpec]:
        """The evaluators of a case that names none."""
        expected = written.expected_messages or ()
        if written.expected_outcome:
            yield self._shared_evaluator("llm_judge")
        elif any(m.content is not None for m in expected if m.role == "assistant"):
            yield self._shared_evaluator("equals")
        if calls := [call for message in expected for call in message.tool_calls]:
            yield trajectory_evaluator(calls)

    def _shared_evaluator(self, name: str) -> EvaluatorSpec:
        """One evaluator for all cases of the suite, so that it is prepared once."""
        if name not in self._shared:
            self._shared[name] = evaluator_class(name).model_validate({"type": name, "name": name})
        return self._shared[name]


def rubric_evaluator(rubrics: tuple[Rubric, ...]) -> EvaluatorSpec:
    return evaluator_class("rubric").model_validate({"type": "rubric", "rubrics": rubrics})


def expect_evaluator(block: ExpectBase) -> EvaluatorSpec:
    """The block as an evaluator; a failed assertion in it fails the case."""
    cls = evaluator_class("expect")
    known = cls.model_fields.keys() & type(block).model_fields.keys()
    # Pass every key, given or not: for a missing one pydantic would inspect the signature of its
    # default factory, which takes longer than all the rest.
    settings = {name: getattr(block, name) for name in known}
    given = {*block.model_fields_set, "type"}
    return cls.model_construct(given, **settings, type="expect")


def trajectory_evaluator(calls: Sequence[ToolCall]) -> EvaluatorSpec:
    """Expects the calls in order, each with at least the arguments of its input."""
    cls: Any = evaluator_class("tool_trajectory")
    spec: EvaluatorSpec = cls.of_calls(calls)
    return spec


def needs_expected(spec: EvaluatorSpec) -> bool:
    """Does the evaluator, or a member of it, compare with the expected output of the case?"""
    if spec.compares_with_expected:
        return not (spec.is_given("value") or spec.is_given("values"))
    return any(needs_expected(member) for member in spec.members)
