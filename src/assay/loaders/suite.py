"""What the loaders share about suites: their keys, their names, duplicate ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from assay.documents.checking import check
from assay.documents.document import DocPath, Document
from assay.errors import EvalFileErrors, Problem, Problems
from assay.model.case import EvalCase, Suite
from assay.model.reading import Reading
from assay.model.suite import CASES_KEYS, SuiteExecution, SuiteFile
from assay.settings import shown_path


def cases_key(data: dict[str, Any]) -> str:
    """The spelling of `cases` in a root mapping, preferably the canonical one; empty if none."""
    return next((key for key in CASES_KEYS if key in data), "")


def suite_keys(document: Document, raw: Any, reading: Reading) -> tuple[SuiteFile, list[Problem]]:
    """Validate the suite-level keys of a root mapping."""
    written, problems = check(SuiteFile, document, (), raw, reading)
    return written or SuiteFile(), problems


def name_of(file: Path) -> str:
    """The default name of a suite: `weather` for weather.eval.yaml."""
    return file.stem.removesuffix(".eval") or file.stem


def suite_of(
    file: Path, root: SuiteFile, cases: Sequence[EvalCase | None], problems: Problems
) -> Suite:
    """Build the suite; raises EvalFileErrors if there are errors."""
    if problems.errors:
        raise EvalFileErrors(problems.told())
    execution = root.execution or SuiteExecution()
    return Suite(
        name=root.dataset or name_of(file),
        file=shown_path(file),
        cases=cast("Sequence[EvalCase]", cases),  # without errors none is None
        description=root.description,
        target=execution.target,
        workers=execution.workers,
        warnings=tuple(problems.told()),
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
