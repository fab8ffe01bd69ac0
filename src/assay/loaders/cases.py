"""From a validated case to an EvalCase: the part that all file formats share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.documents.checking import check, written_path
from assay.documents.document import DocPath, Document
from assay.errors import PluginError, Problem, Severity, UnknownName
from assay.loaders.files import finder
from assay.model.case import EvalCase, Origin
from assay.model.evaluator import EvaluatorSpec, named
from assay.model.expect import ExpectBase
from assay.model.message import ToolCall
from assay.model.rubric import Rubric
from assay.model.shape import Reading, problem
from assay.model.suite import CaseExecution, CaseFile, SuiteExecution
from assay.registry import evaluators as registered
from assay.settings import Settings

LEGACY_KEYS = frozenset({"evaluator", "note"})
_NO_EXECUTION = CaseExecution()


def evaluator_class(name: str) -> type[EvaluatorSpec]:
    """The class for an evaluator's `type`; raises in the words of a validation error."""
    try:
        return registered.get("python" if name.startswith("python:") else name)
    except UnknownName as error:
        hint = error.hint or "known are " + ", ".join(registered)
        raise problem(
            "unknown-evaluator", f"no evaluator is called {name!r}", hint, "type"
        ) from None
    except PluginError as error:
        raise problem("plugin-failed", str(error), at="type") from None


def reading_of(file: Path, settings: Settings) -> Reading:
    return Reading(finder(file, settings), evaluator_class)


@dataclass(slots=True)
class CaseReader:
    """Turns the raw cases of one file into EvalCases and gathers their problems."""

    reading: Reading
    inherited: SuiteExecution = field(default_factory=SuiteExecution)
    problems: list[Problem] = field(default_factory=list)
    defaults: dict[str, EvaluatorSpec] = field(default_factory=dict)

    def read(
        self, document: Document, path: DocPath, raw: Any, default_id: str = ""
    ) -> EvalCase | None:
        """The case at `path` of the document; None when it has errors, which are noted."""
        written, problems = check(CaseFile, document, path, raw, self.reading)
        self.problems += problems
        if written is None:
            return None
        if written.evaluators is not None and written.execution and written.execution.evaluators:
            message = "'execution.evaluators' is ignored because 'evaluators' is given too"
            self._note(
                document,
                (*path, "execution"),
                "ignored-alias",
                message,
                "keep one of the two",
                True,
            )
        if not LEGACY_KEYS.isdisjoint(written.model_fields_set):
            for key in sorted(LEGACY_KEYS & written.model_fields_set):
                self._note(
                    document,
                    (*path, key),
                    "deprecated-key",
                    f"{key!r} has no effect",
                    "remove it",
                    True,
                )
        identity = written.id or default_id
        if not identity:
            self._note(document, path, "missing-key", "the key 'id' is missing")
            return None
        case = self._case(written, identity, document, path)
        return case if self._can_fail(case, document, path) else None

    def _case(
        self, written: CaseFile, identity: str, document: Document, path: DocPath
    ) -> EvalCase:
        execution, inherited = written.execution or _NO_EXECUTION, self.inherited
        specs, defaulted = self._evaluators(written, execution)
        return EvalCase(
            id=identity,
            input_messages=written.input_messages,
            evaluators=specs,
            description=written.description,
            expected_outcome=written.expected_outcome,
            expected_messages=written.expected_messages or (),
            rubrics=written.rubrics or (),
            tags=tuple(written.tags),
            metadata=written.metadata,
            conversation_id=written.conversation_id,
            target=execution.target or inherited.target,
            threshold=first(written.threshold, execution.threshold, inherited.threshold),
            repeat=first(written.repeat, execution.repeat, inherited.repeat),
            min_pass_rate=written.min_pass_rate,
            timeout_seconds=first(execution.timeout_seconds, inherited.timeout_seconds),
            skip=written.skip,
            cluster=written.cluster,
            critical=written.critical,
            has_default_evaluators=defaulted,
            locate=Locator(document, path),
        )

    def _evaluators(
        self, written: CaseFile, execution: CaseExecution
    ) -> tuple[tuple[EvaluatorSpec, ...], bool]:
        """The effective list, and whether it is the default one."""
        own = first(written.evaluators, execution.evaluators, self.inherited.evaluators)
        added: list[EvaluatorSpec] = []
        if written.rubrics:
            added.append(rubric_evaluator(written.rubrics))
        if written.expect is not None:
            added.append(expect_evaluator(written.expect))
        if own is None and not added:
            return named(tuple(self._default(written))), True
        return (named((*(own or ()), *added)) if added else own or ()), False

    def _default(self, written: CaseFile) -> Iterator[EvaluatorSpec]:
        """What judges a case whose author named no evaluator."""
        expected = written.expected_messages or ()
        if written.expected_outcome:
            yield self._shared("llm_judge")
        elif any(m.content is not None for m in expected if m.role == "assistant"):
            yield self._shared("equals")
        if calls := [call for message in expected for call in message.tool_calls]:
            yield trajectory_evaluator(calls)

    def _shared(self, name: str) -> EvaluatorSpec:
        """One evaluator for all cases of the file: it is prepared once."""
        if name not in self.defaults:
            self.defaults[name] = evaluator_class(name).model_validate({"type": name, "name": name})
        return self.defaults[name]

    def _can_fail(self, case: EvalCase, document: Document, path: DocPath) -> bool:
        """A case that asserts nothing would pass for ever; refuse it unless it is skipped."""
        if not case.evaluators and case.skip is None:
            message = f"the case {case.id!r} has nothing that could fail"
            hint = "give it an expected_output, expected_outcome, rubrics, evaluators or expect"
            self._note(document, path, "asserts-nothing", message, hint)
            return False
        good = True
        for index, spec in enumerate(case.evaluators):
            if needs_expected(spec) and case.expected_output is None:
                message = f"{spec.type!r} compares with the expected output, and the case has none"
                where = case.origin_of(("evaluators", index))
                hint = "give the case an expected_output" + (
                    ", or the evaluator a value" if spec.type != "field_accuracy" else ""
                )
                self.problems.append(Problem(*where, "error", "needs-expected", message, hint))
                good = False
        return good

    def _note(
        self,
        document: Document,
        path: DocPath,
        code: str,
        message: str,
        hint: str = "",
        warn: bool = False,
    ) -> None:
        line, column = document.position(path, key=warn)
        severity: Severity = "warning" if warn else "error"
        self.problems.append(Problem(document.file, line, column, severity, code, message, hint))


def first(*values: Any) -> Any:
    """The first value that was given."""
    for value in values:
        if value is not None:
            return value
    return None


@dataclass(frozen=True, slots=True)
class Locator:
    """Finds the place of a part of one case; evaluators may stand in three places."""

    document: Document
    path: DocPath

    def __call__(self, steps: Sequence[str | int]) -> Origin:
        path = (*self.path, *steps)
        if steps and steps[0] == "evaluators":
            for base in (path, (*self.path, "execution", *steps), ("execution", *steps)):
                if self._exists(written_path(self.document, base[: len(base) - len(steps) + 1])):
                    path = base
                    break
        return Origin(
            self.document.file, *self.document.position(written_path(self.document, path))
        )

    def _exists(self, path: DocPath) -> bool:
        node = self.document.data
        for step in path:
            if not isinstance(node, (dict, list)) or (isinstance(node, dict) and step not in node):
                return False
            node = node[step]  # type: ignore[index]
        return True


def rubric_evaluator(rubrics: tuple[Rubric, ...]) -> EvaluatorSpec:
    return evaluator_class("rubric").model_validate({"type": "rubric", "rubrics": rubrics})


def expect_evaluator(block: ExpectBase) -> EvaluatorSpec:
    """The block as an evaluator; a failed assertion in it fails the case."""
    cls = evaluator_class("expect")
    settings = {name: getattr(block, name) for name in block.model_fields_set}
    return cls.model_construct(**settings, type="expect", required=True)


def trajectory_evaluator(calls: Sequence[ToolCall]) -> EvaluatorSpec:
    """Expected tool calls, in order, their inputs as the least that must be given."""
    steps = [
        {"tool": call.tool} | ({} if call.input is None else {"args": call.input}) for call in calls
    ]
    cls = evaluator_class("tool_trajectory")
    return cls.model_validate({"type": "tool_trajectory", "mode": "in_order", "expected": steps})


def needs_expected(spec: EvaluatorSpec) -> bool:
    """Does the evaluator, or a member of it, compare with the case's expected output?"""
    if spec.compares_with_expected:
        return getattr(spec, "value", None) is None
    return any(needs_expected(member) for member in spec.members)
