"""The effective evaluators of a case: its own or the suite's, inline ones, or the default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from assay.errors import PluginError, UnknownName
from assay.model.evaluator import EvaluatorSpec, named
from assay.model.expect import ExpectBase
from assay.model.expectations import Expectation, Expected
from assay.model.message import ToolCall
from assay.model.rubric import Rubric
from assay.model.suite import CaseExecution, CaseFile
from assay.model.unchecked import unread
from assay.registry import evaluators as registered
from assay.wire.validation_errors import problem

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


class Effective(NamedTuple):
    """The evaluators of a case: whether all are defaults, else how many of the last are."""

    specs: tuple[EvaluatorSpec, ...]
    defaulted: bool = False
    added: int = 0


class EffectiveEvaluators:
    """Builds the effective lists of evaluators for the cases of one suite."""

    def __init__(self, inherited: CaseExecution = _NO_EXECUTION) -> None:
        self.inherited = inherited
        self._shared: dict[tuple[str, bool], EvaluatorSpec] = {}

    def of(self, written: CaseFile) -> Effective:
        """The effective list of a case."""
        own = written.evaluators
        if own is None and written.execution is not None:
            own = written.execution.evaluators
        listed = (own if own is not None else self.inherited.evaluators) or ()
        inline: list[EvaluatorSpec] = []
        if written.rubrics:
            inline.append(rubric_evaluator(written.rubrics))
        if written.expect is not None and written.expect.asserted():
            inline.append(expect_evaluator(written.expect))
        expected = Expected(written.expected_outcome, written.expected_messages or ())
        if not listed and not inline:  # an empty list only overrides that of the suite
            return Effective(named(tuple(self._default(expected, expected.stated()))), True)
        added: list[EvaluatorSpec] = []
        if own is None and expected.messages:
            missing = unread(expected, (*listed, *inline))
            needed = [each for each in missing if each != "expected_outcome"]
            added += self._default(expected, needed, required=True)
        more = (*inline, *added)
        return Effective(named((*listed, *more)) if more else listed, added=len(added))

    def _default(
        self, expected: Expected, needed: Sequence[Expectation], *, required: bool = False
    ) -> Iterator[EvaluatorSpec]:
        """The default evaluators for the expectations that need one."""
        if "expected_outcome" in needed or "expected_output" in needed:
            yield self._shared_evaluator("llm_judge" if expected.outcome else "equals", required)
        if "tool_calls" in needed:
            yield trajectory_evaluator(expected.calls, required=required)

    def _shared_evaluator(self, name: str, required: bool) -> EvaluatorSpec:
        """One evaluator for all cases of the suite, so that it is prepared once."""
        if (name, required) not in self._shared:
            spec = evaluator_class(name).model_validate({"type": name, "required": required})
            self._shared[name, required] = named((spec,))[0]
        return self._shared[name, required]


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


def trajectory_evaluator(calls: Sequence[ToolCall], *, required: bool) -> EvaluatorSpec:
    """Expects the calls in order, each with at least the arguments of its input."""
    cls: Any = evaluator_class("tool_trajectory")
    spec: EvaluatorSpec = cls.of_calls(calls, required=required)
    return spec


def needs_expected(spec: EvaluatorSpec) -> bool:
    """Does the evaluator, or a member of it, compare with the expected output of the case?"""
    if spec.compares_with_expected:
        return "expected_output" in spec.reads_of(Expected())
    return any(needs_expected(member) for member in spec.members)
