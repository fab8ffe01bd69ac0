"""Turns raw cases into EvalCases; shared by the YAML, JSONL and CSV loaders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.loaders.effective import EffectiveEvaluators, evaluator_class, needs_expected
from assay.loaders.files import FileFinder
from assay.loaders.locators import Locator
from assay.loaders.parameters import (
    Declared,
    FileRows,
    ReadCase,
    declared,
    declares,
    expanded,
    rows_of_file,
    uses_names,
)
from assay.loaders.suite import deprecated_keys
from assay.model.case import EvalCase, Origin
from assay.model.message import Message
from assay.model.parameters import names_in
from assay.model.stubs import unreachable_stubs
from assay.model.suite import INPUT_KEYS, CaseExecution, CaseFile, SuiteExecution, SuiteFile
from assay.model.unchecked import unchecked_expectations
from assay.problems import Problem, Problems
from assay.registry import evaluators as registered
from assay.seed_manifest import Seeds
from assay.settings import Settings, shown_path
from assay.wire.document import DocPath, Document
from assay.wire.validation import check, missing
from assay.wire.validation_context import ValidationContext

#: Keys of a suite in which names are not replaced, and what they have.
_SHARED = dict.fromkeys(("evaluators", "assert", "assertions", "execution"), "evaluators")
_SHARED["stubs"] = "stubs"
_SEVERAL = "in Python, assay.Cases(...) makes them"
LEGACY_KEYS = CaseFile.key_names.legacy
#: The keys that give a case something that can fail.
ASSERTING_KEYS = ("expected_outcome", "expected_messages", "rubrics", "evaluators", "expect")


def validation_context(file: Path, settings: Settings) -> ValidationContext:
    """The validation context of a file: how to find referenced files and evaluators."""
    finder = FileFinder(file, settings)
    return ValidationContext(finder.file, finder.directory, evaluator_class, registered)


class CaseReader:
    """Turns the raw cases of one file into EvalCases and collects their problems.

    It is `incomplete` when keys of the suite or columns could not be read: these may contain what
    a case seems to lack. Paths are relative to `eval_file`, if it is another file than that of the
    cases.
    """

    def __init__(
        self,
        file: Path,
        settings: Settings,
        root: SuiteFile | None = None,
        *,
        incomplete: bool = False,
        eval_file: Path | None = None,
    ) -> None:
        self.context = validation_context(eval_file or file, settings)
        self.eval_file = "" if eval_file is None else shown_path(eval_file)
        self.seeds = Seeds(settings)
        self.inherited = SuiteExecution.model_construct() if root is None else root.inherited
        self.tags = () if root is None else tuple(root.tags)
        self.stubs = {} if root is None else root.stubs
        self.evaluators = EffectiveEvaluators(self.inherited)
        self.shared: Declared | None = None
        self._row_files: dict[Path, FileRows] = {}
        self.incomplete = incomplete
        self.problems = Problems(shown_path(file))

    def share(self, document: Document) -> None:
        """Use the `vars` of a suite, if it has any, for each of its cases with names in it."""
        raw = document.data
        if not declares(raw):
            return
        self.shared = self._declared(document, ())
        if self.shared is None:
            return
        self.shared.own = False
        for key in _SHARED.keys() & raw.keys():
            for steps, name in names_in(raw[key], (key,)):
                if name in self.shared.names:
                    message = f"{{{{{name}}}}} is not replaced in the {_SHARED[key]} of a suite"
                    hint = f"write these {_SHARED[key]} in the cases"
                    self.problems.append(document.problem(steps, "bad-token", message, hint))

    def read_all(
        self,
        document: Document,
        path: DocPath,
        *,
        locate: Callable[[Sequence[str | int]], Origin],
        only: int | None = None,
    ) -> Iterator[EvalCase | None]:
        """The cases of an entry: one for each row of its `vars`, or the one that it is.

        `only` is the number of the row to read, from 0.
        """

        def read(part: Document, at: DocPath = ()) -> EvalCase | None:
            return self.read(part, at, locate=locate)

        yield from self.read_rows(document, path, read, only=only)

    def read_rows(
        self,
        document: Document,
        path: DocPath,
        read: ReadCase,
        *,
        default_id: str = "",
        only: int | None = None,
    ) -> Iterator[EvalCase | None]:
        """As `read_all`, with a function that reads a case of a document."""
        raw, rows = document.get(path), self.shared
        if declares(raw):
            rows = self._declared(document, path)
            if rows is None:
                yield None
                return
        elif rows is None or not uses_names(raw):
            yield read(document, path)
            return
        yield from expanded(
            document, path, rows, read, self.problems, default_id=default_id, only=only
        )

    def _declared(self, document: Document, path: DocPath) -> Declared | None:
        return declared(document, path, self.context, self.problems, self._rows_of_file)

    def _rows_of_file(self, file: Path) -> FileRows:
        if file not in self._row_files:
            self._row_files[file] = rows_of_file(file)
        return self._row_files[file]

    def report_unused(self) -> None:
        """Report the names of the suite that no case used; all cases must have been read."""
        if self.shared is not None and not self.problems.errors:
            self.problems += self.shared.unused()

    def read(
        self,
        document: Document,
        path: DocPath,
        *,
        locate: Callable[[Sequence[str | int]], Origin] | None = None,
    ) -> EvalCase | None:
        """The case at `path` of the document; None when it has errors, which are collected."""
        raw = document.data
        for step in path:
            raw = raw[step]
        written, problems = check(CaseFile, document, path, raw, self.context)
        missing_keys = self._missing_keys(raw)
        if problems or missing_keys:
            self.problems += problems
            self.problems += [document.problem(path, "missing-key", text) for text in missing_keys]
        case = self.finish(written, document, path, locate)
        return None if missing_keys else case

    def finish(
        self,
        written: CaseFile | None,
        document: Document,
        path: DocPath,
        locate: Callable[[Sequence[str | int]], Origin] | None = None,
        default_id: str = "",
    ) -> EvalCase | None:
        """Make the case of a validated shape; None when it has errors, of any key or as a whole."""
        raw = document.get(path)
        if type(raw) is dict:
            self._warn(raw, document, path)
        if written is None:
            if type(raw) is dict and not self.incomplete and self._asserts_nothing(raw):
                self.problems.append(_asserts_nothing_problem(document, path, raw.get("id")))
            return None
        if written.vars is not None or written.vars_from is not None:
            message, hint = "'vars' makes several cases, where one is needed", _SEVERAL
            where = (*path, "vars" if written.vars is not None else "vars_from")
            self.problems.append(document.problem(where, "wrong-value", message, hint))
        case_id = written.id or default_id
        case = self._case(written, case_id, locate or Locator(document, path))
        errors_before = self.problems.errors
        if not case.evaluators and case.skip is None and not self.incomplete:
            self.problems.append(
                _asserts_nothing_problem(document, path, case_id, case.expected_messages)
            )
        if not case.has_default_evaluators and not self.incomplete:
            self.problems += unchecked_expectations(case)
        if written.stubs:
            self.problems += unreachable_stubs(case_id, written.stubs, case.origin_of)
        for spec in case.evaluators:
            if spec.depends_on_case:
                self._check_evaluators(case)
                break
        return case if self.problems.errors == errors_before else None

    @staticmethod
    def _missing_keys(raw: Any) -> list[str]:
        """Messages about missing required keys; the raw case may also have other errors."""
        if type(raw) is not dict:
            return []
        messages = []
        if raw.get("id") is None and not _is_misspelt(raw, "id"):
            messages.append("the key 'id' is missing")
        needs_input = raw.get("skip") is None and raw.keys().isdisjoint(INPUT_KEYS)
        if needs_input and not _is_misspelt(raw, "input_messages"):
            messages.append(missing(CaseFile, "input_messages"))
        return messages

    def _asserts_nothing(self, raw: dict[str, Any]) -> bool:
        """Whether an invalid case would have nothing that can fail once it is fixed."""
        if raw.get("skip") is not None or self.inherited.evaluators or raw.get("execution"):
            return False
        spelling = CaseFile.key_names
        return not any(
            raw.get(spelling.effective_spelling(raw, key)) is not None or _is_misspelt(raw, key)
            for key in ASSERTING_KEYS
        )

    def _warn(self, raw: dict[str, Any], document: Document, path: DocPath) -> None:
        if not LEGACY_KEYS.isdisjoint(raw):
            self.problems += deprecated_keys(CaseFile, document, path, raw)
        execution = raw.get("execution")
        if type(execution) is not dict:
            return
        own = CaseFile.key_names.effective_spelling(raw, "evaluators")
        other = CaseExecution.key_names.effective_spelling(execution, "evaluators")
        if execution.get(other) and raw.get(own) is not None:
            message = f"'execution.{other}' is ignored because {own!r} is given too"
            where = (*path, "execution", other)
            self.problems.append(
                document.warning(where, "ignored-alias", message, "keep one of the two")
            )

    def _case(
        self, written: CaseFile, case_id: str, locate: Callable[[Sequence[str | int]], Origin]
    ) -> EvalCase:
        execution = written.execution
        executions = (self.inherited,) if execution is None else (execution, self.inherited)
        effective = self.evaluators.of(written)
        threshold, repeat = written.threshold, written.repeat
        return EvalCase(
            id=case_id,
            input_messages=written.input_messages,
            evaluators=effective.specs,
            description=written.description,
            expected_outcome=written.expected_outcome,
            expected_messages=written.expected_messages or (),
            rubrics=written.rubrics or (),
            tags=tuple(dict.fromkeys((*self.tags, *written.tags))),
            metadata=written.metadata,
            conversation_id=written.conversation_id,
            target=_first_set(executions, "target"),
            threshold=_first_set(executions, "threshold") if threshold is None else threshold,
            repeat=_first_set(executions, "repeat") if repeat is None else repeat,
            min_pass_rate=written.min_pass_rate,
            timeout_seconds=_first_set(executions, "timeout_seconds"),
            skip=written.skip,
            cluster=written.cluster,
            critical=written.critical,
            stubs={**self.stubs, **written.stubs} if self.stubs else written.stubs,
            max_turns=written.max_turns,
            has_default_evaluators=effective.defaulted,
            added_defaults=effective.added,
            eval_file=self.eval_file,
            locate=locate,
        )

    def _check_evaluators(self, case: EvalCase) -> None:
        """Check what evaluators need of their case: an expected output, values for tokens."""
        for index, spec in enumerate(case.evaluators):
            if needs_expected(spec) and case.expected_output is None:
                message = f"{spec.type!r} compares with the expected output; {case.id!r} has none"
                place = case.origin_of(("evaluators", index))
                hint = "give the case an expected_output"
                self.problems.append(Problem(*place, "error", "needs-expected", message, hint))
        self.problems += self.seeds.problems(case)


def _is_misspelt(raw: dict[str, Any], key: str) -> bool:
    """Whether some key may be a misspelling of this one, which is then not reported as missing."""
    return CaseFile.key_names.has_misspelling_of(raw, key)


def _asserts_nothing_problem(
    document: Document, path: DocPath, case_id: Any, expected: Sequence[Message] = ()
) -> Problem:
    name = f"the case {case_id!r}" if case_id else "the case"
    message = f"{name} has nothing that could fail"
    hint = "give it an expected_output, expected_outcome, rubrics, evaluators or expect"
    if expected:
        message += ": its expected output has no message of the assistant"
        hint = "give the expected answer the role 'assistant'"
    return document.problem(path, "asserts-nothing", message, hint)


def _first_set(executions: tuple[CaseExecution, ...], key: str) -> Any:
    """The first value of a field that is not None."""
    for execution in executions:
        value = getattr(execution, key)
        if value is not None:
            return value
    return None
