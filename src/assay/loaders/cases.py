"""From a raw case to an EvalCase: the part that YAML, JSONL and CSV share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from assay.documents.checking import check, missing
from assay.documents.document import DocPath, Document
from assay.errors import Problem, Problems
from assay.loaders.effective import EffectiveEvaluators, evaluator_class, needs_expected
from assay.loaders.files import Finder
from assay.loaders.locators import Locator
from assay.model.case import EvalCase, Origin
from assay.model.message import Message
from assay.model.reading import Reading
from assay.model.suite import INPUT_KEYS, CaseExecution, CaseFile, SuiteExecution
from assay.registry import evaluators as registered
from assay.seeds import Seeds
from assay.settings import Settings, shown_path

LEGACY_KEYS = CaseFile.spelling.legacy
#: The keys that give a case something that could fail.
ASSERTING_KEYS = ("expected_outcome", "expected_messages", "rubrics", "evaluators", "expect")


def reading_of(file: Path, settings: Settings) -> Reading:
    """What validating a file needs: where its references lead and which evaluators there are."""
    finder = Finder(file, settings)
    return Reading(finder.file, finder.directory, evaluator_class, registered)


class CaseReader:
    """Turns the raw cases of one file into EvalCases and gathers their problems."""

    def __init__(
        self,
        file: Path,
        settings: Settings,
        inherited: SuiteExecution | None = None,
        *,
        unsure: bool = False,
    ) -> None:
        self.reading = reading_of(file, settings)
        self.seeds = Seeds(settings)
        self.inherited = inherited or SuiteExecution.model_construct()
        self.evaluators = EffectiveEvaluators(self.inherited)
        self.unsure = unsure  # whether the suite's evaluators could be read
        self.problems = Problems(shown_path(file))

    def read(
        self,
        document: Document,
        path: DocPath,
        *,
        locate: Callable[[Sequence[str | int]], Origin] | None = None,
    ) -> EvalCase | None:
        """The case at `path` of the document; None when it has errors, which are noted."""
        raw = document.data
        for step in path:
            raw = raw[step]
        written, problems = check(CaseFile, document, path, raw, self.reading)
        lacking = self._lacking(raw)
        if problems or lacking:
            self.problems += problems
            self.problems += [document.problem(path, "missing-key", text) for text in lacking]
        case = self.finish(written, document, path, locate)
        return None if lacking else case

    def finish(
        self,
        written: CaseFile | None,
        document: Document,
        path: DocPath,
        locate: Callable[[Sequence[str | int]], Origin] | None = None,
        default_id: str = "",
    ) -> EvalCase | None:
        """The case of what was written; None when it has errors, also those that no shape sees."""
        raw = document.get(path)
        if type(raw) is dict:
            self._warn(raw, document, path)
        if written is None:
            if type(raw) is dict and not self.unsure and self._asserts_nothing(raw):
                self.problems.append(_nothing(document, path, raw.get("id")))
            return None
        identity = written.id or default_id
        case = self._case(written, identity, locate or Locator(document, path))
        before = self.problems.errors
        if not case.evaluators and case.skip is None and not self.unsure:
            self.problems.append(_nothing(document, path, identity, case.expected_messages))
        for spec in case.evaluators:
            if spec.depends_on_case:
                self._check_evaluators(case)
                break
        return case if self.problems.errors == before else None

    @staticmethod
    def _lacking(raw: Any) -> list[str]:
        """What a case must have; looked for in the raw case, which may be wrong otherwise."""
        if type(raw) is not dict:
            return []
        messages = []
        if raw.get("id") is None and not _slip(raw, "id"):
            messages.append("the key 'id' is missing")
        needs_input = raw.get("skip") is None and raw.keys().isdisjoint(INPUT_KEYS)
        if needs_input and not _slip(raw, "input_messages"):
            messages.append(missing(CaseFile, "input_messages"))
        return messages

    def _asserts_nothing(self, raw: dict[str, Any]) -> bool:
        """Whether a case that is wrong somewhere has nothing that could fail once it is right."""
        if raw.get("skip") is not None or self.inherited.evaluators or raw.get("execution"):
            return False
        spelling = CaseFile.spelling
        return not any(
            raw.get(spelling.in_force(raw, key)) is not None or _slip(raw, key)
            for key in ASSERTING_KEYS
        )

    def _warn(self, raw: dict[str, Any], document: Document, path: DocPath) -> None:
        if not LEGACY_KEYS.isdisjoint(raw):
            for key in sorted(LEGACY_KEYS & raw.keys()):
                message = f"{key!r} has no effect"
                self.problems.append(
                    document.warning((*path, key), "deprecated-key", message, "remove it")
                )
        execution = raw.get("execution")
        if type(execution) is not dict:
            return
        own = CaseFile.spelling.in_force(raw, "evaluators")
        other = CaseExecution.spelling.in_force(execution, "evaluators")
        if execution.get(other) and raw.get(own) is not None:
            message = f"'execution.{other}' is ignored because {own!r} is given too"
            where = (*path, "execution", other)
            self.problems.append(
                document.warning(where, "ignored-alias", message, "keep one of the two")
            )

    def _case(
        self, written: CaseFile, identity: str, locate: Callable[[Sequence[str | int]], Origin]
    ) -> EvalCase:
        execution = written.execution
        ways = (self.inherited,) if execution is None else (execution, self.inherited)
        specs, defaulted = self.evaluators.of(written)
        threshold, repeat = written.threshold, written.repeat
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
            target=_first(ways, "target"),
            threshold=_first(ways, "threshold") if threshold is None else threshold,
            repeat=_first(ways, "repeat") if repeat is None else repeat,
            min_pass_rate=written.min_pass_rate,
            timeout_seconds=_first(ways, "timeout_seconds"),
            skip=written.skip,
            cluster=written.cluster,
            critical=written.critical,
            has_default_evaluators=defaulted,
            locate=locate,
        )

    def _check_evaluators(self, case: EvalCase) -> None:
        """What an evaluator asks of its case: an expected output, values for its tokens."""
        for index, spec in enumerate(case.evaluators):
            if needs_expected(spec) and case.expected_output is None:
                message = f"{spec.type!r} compares with the expected output; {case.id!r} has none"
                place = case.origin_of(("evaluators", index))
                hint = "give the case an expected_output"
                self.problems.append(Problem(*place, "error", "needs-expected", message, hint))
        self.problems += self.seeds.problems(case)


def _slip(raw: dict[str, Any], key: str) -> bool:
    """Whether a key of the case may be this one, misspelt; then it is not said to be missing."""
    return CaseFile.spelling.has_slip_of(raw, key)


def _nothing(
    document: Document, path: DocPath, identity: Any, expected: Sequence[Message] = ()
) -> Problem:
    name = f"the case {identity!r}" if identity else "the case"
    message = f"{name} has nothing that could fail"
    hint = "give it an expected_output, expected_outcome, rubrics, evaluators or expect"
    if expected:
        message += ": no assistant message is in its expected output"
        hint = "an answer is expected in the role 'assistant'"
    return document.problem(path, "asserts-nothing", message, hint)


def _first(ways: tuple[CaseExecution, ...], key: str) -> Any:
    """What the first says of these that says something about a key."""
    for way in ways:
        value = getattr(way, key)
        if value is not None:
            return value
    return None
