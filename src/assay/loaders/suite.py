"""What the loaders share about suites: their keys, their names, duplicate ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from assay.errors import EvalFileErrors
from assay.model.case import EvalCase, EvalSuite
from assay.model.stubs import unreachable_stubs
from assay.model.suite import CASES_KEYS, SuiteExecution, SuiteFile
from assay.problems import Problem, Problems
from assay.settings import shown_path
from assay.wire.document import DocPath, Document
from assay.wire.shape import Shape
from assay.wire.validation import check
from assay.wire.validation_context import ValidationContext


def cases_key(data: dict[str, Any]) -> str:
    """The spelling of `cases` in a root mapping, preferably the canonical one; empty if none."""
    return next((key for key in CASES_KEYS if key in data), "")


def suite_keys(
    document: Document, raw: Any, context: ValidationContext
) -> tuple[SuiteFile, list[Problem]]:
    """Validate the suite-level keys of a root mapping."""
    written, problems = check(SuiteFile, document, (), raw, context)
    if type(raw) is dict:
        problems += _warnings(document, raw)
    if written is not None:
        problems += unreachable_stubs("the suite", written.stubs, document.place)
    return written or SuiteFile(), problems


def _warnings(document: Document, raw: dict[str, Any]) -> Iterator[Problem]:
    """Legacy keys, and keys of the root that `execution` has too."""
    yield from deprecated_keys(SuiteFile, document, (), raw)
    execution = raw.get("execution")
    if type(execution) is not dict:
        return
    for key in ("target", "evaluators"):
        own = SuiteFile.key_names.effective_spelling(raw, key)
        other = SuiteExecution.key_names.effective_spelling(execution, key)
        if raw.get(own) is not None and execution.get(other) is not None:
            message = f"{own!r} is ignored because 'execution.{other}' is given too"
            yield document.warning((own,), "ignored-alias", message, "keep one of the two")


def deprecated_keys(
    shape: type[Shape], document: Document, path: DocPath, raw: dict[str, Any]
) -> Iterator[Problem]:
    """A warning for every legacy key of a mapping."""
    for key in sorted(shape.key_names.legacy & raw.keys()):
        message = f"{key!r} has no effect"
        yield document.warning((*path, key), "deprecated-key", message, "remove it")


def name_of(file: Path) -> str:
    """The default name of a suite: `weather` for weather.eval.yaml."""
    return file.stem.removesuffix(".eval") or file.stem


def suite_of(
    file: Path, root: SuiteFile, cases: Sequence[EvalCase | None], problems: Problems
) -> EvalSuite:
    """Build the suite; raises EvalFileErrors if there are errors."""
    if problems.errors:
        raise EvalFileErrors(problems.sorted())
    execution = root.inherited
    return EvalSuite(
        name=root.dataset or name_of(file),
        file=shown_path(file),
        cases=cast("Sequence[EvalCase]", cases),  # without errors none is None
        description=root.description,
        target=execution.target,
        workers=execution.workers,
        warnings=tuple(problems.sorted()),
    )


def duplicate_ids(document: Document, base: DocPath, entries: list[Any]) -> Iterator[Problem]:
    """A problem for every id that an earlier case in the list has."""
    seen: dict[str, int] = {}
    for index, raw in enumerate(entries):
        case_id = raw.get("id") if isinstance(raw, dict) else None
        if isinstance(case_id, str) and seen.setdefault(case_id, index) != index:
            line, _ = document.position((*base, seen[case_id]))
            message = f"the id {case_id!r} is taken by the case on line {line}"
            yield document.problem((*base, index, "id"), "duplicate-id", message)
