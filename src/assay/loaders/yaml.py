"""YAML suites: a mapping with cases, a list of cases, or one case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from assay.documents import yaml
from assay.documents.checking import check
from assay.documents.document import DocPath, Document
from assay.documents.source import read_text
from assay.errors import EvalFileErrors, Problem
from assay.loaders.cases import CaseReader, reading_of
from assay.model.case import EvalCase, Suite
from assay.model.shape import Reading
from assay.model.shape import shown as shown_value
from assay.model.suite import CASES_KEYS, INPUT_KEYS, SuiteExecution, SuiteFile
from assay.settings import Settings, shown

#: Words of a suite in a text that does not parse: a key for cases, or an input in a list.
_SUITE_WORDS = re.compile(
    rf"""^[{{\s]*["']?(?:{"|".join(CASES_KEYS)})["']?\s*:"""
    rf"""|^[-{{\s]*["']?(?:{"|".join(INPUT_KEYS)})["']?\s*:""",
    re.MULTILINE,
)


def load(file: Path, settings: Settings) -> Suite:
    """The file's suite; raises EvalFileErrors with all of its problems."""
    document = yaml.parse(read_text(file, shown(file)), shown(file))
    data = document.data
    if isinstance(data, dict) and _has_input(data) and not cases_key(data):
        reader = CaseReader(file, settings)
        case = reader.read(document, (), default_id=name_of(file))
        return suite_of(file, SuiteFile(), [case], [*document.problems, *reader.problems])
    root, problems = SuiteFile(), list(document.problems)
    if isinstance(data, dict):
        root, found = suite_keys(document, data, reading_of(file, settings))
        problems += found
    # When the suite's own keys are wrong, nobody knows what the cases inherit.
    unsure = any(p.severity == "error" for p in problems)
    problems += _check_root(document)
    reader = CaseReader(file, settings, root.execution, unsure=unsure)
    cases = _cases(document, reader)
    return suite_of(file, root, cases, [*problems, *reader.problems])


def recognises(file: Path) -> str:
    """Why the file is no suite: it has neither cases nor a list of inputs."""
    sidecar = file.with_suffix(".jsonl").is_file()
    if ".eval." in file.name and not sidecar:
        return ""
    try:
        data = yaml.parse(read_text(file, shown(file)), shown(file)).data
    except EvalFileErrors as error:
        # A suite with a slip in it must not be passed over.
        text = file.read_bytes().decode("utf-8", "replace")
        wrong = f"it is not valid YAML: {error.problems[0].message}"
        return "" if _SUITE_WORDS.search(text) else wrong
    if isinstance(data, dict) and cases_key(data):
        return ""
    if sidecar:
        return f"it is the sidecar of {file.stem}.jsonl"
    if isinstance(data, list) and data and all(_has_input(item) for item in data):
        return ""
    return "it has no cases"


def _has_input(raw: Any) -> bool:
    return isinstance(raw, dict) and any(key in raw for key in INPUT_KEYS)


def cases_key(data: dict[str, Any]) -> str:
    """The spelling of `cases` that a root mapping uses; the canonical one wins."""
    return next((key for key in CASES_KEYS if key in data), "")


def suite_keys(document: Document, raw: Any, reading: Reading) -> tuple[SuiteFile, list[Problem]]:
    """The suite-level keys of a root mapping, and what is wrong with them."""
    written, problems = check(SuiteFile, document, (), raw, reading)
    return written or SuiteFile(), problems


def name_of(file: Path) -> str:
    """What a suite is called when its file does not say: `weather` for weather.eval.yaml."""
    return file.stem.removesuffix(".eval")


def suite_of(
    file: Path,
    root: SuiteFile,
    cases: Sequence[EvalCase | None],
    problems: list[Problem],
) -> Suite:
    """The suite, or all of its problems."""
    files = list(dict.fromkeys(p.file for p in problems))
    problems = sorted(problems, key=lambda p: (files.index(p.file), p.line, p.column))
    if any(p.severity == "error" for p in problems):
        raise EvalFileErrors(problems)
    execution = root.execution or SuiteExecution()
    return Suite(
        name=root.dataset or name_of(file),
        file=shown(file),
        cases=cast("Sequence[EvalCase]", cases),  # without errors there is no None among them
        description=root.description,
        target=execution.target,
        workers=execution.workers,
        warnings=tuple(problems),
    )


def _cases(document: Document, reader: CaseReader) -> tuple[EvalCase | None, ...]:
    data = document.data
    base: DocPath = (cases_key(data),) if isinstance(data, dict) else ()
    entries = data.get(base[0]) if isinstance(data, dict) else data
    if not isinstance(entries, list):
        return ()
    reader.problems += duplicate_ids(document, base, entries)
    return tuple(reader.read(document, (*base, index)) for index in range(len(entries)))


def duplicate_ids(document: Document, base: DocPath, entries: list[Any]) -> list[Problem]:
    """Ids that an earlier case of the list has already."""
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for index, raw in enumerate(entries):
        identity = raw.get("id") if isinstance(raw, dict) else None
        if isinstance(identity, str) and seen.setdefault(identity, index) != index:
            line, _ = document.position((*base, seen[identity]))
            message = f"the id {identity!r} is taken by the case on line {line}"
            problems.append(document.problem((*base, index, "id"), "duplicate-id", message))
    return problems


def _check_root(document: Document) -> list[Problem]:
    """The root must be a list of cases or have one."""
    data = document.data
    key = cases_key(data) if isinstance(data, dict) else ""
    entries = data[key] if key else data
    if isinstance(entries, list):
        message = "" if entries else "the list of cases is empty"
    elif key:
        message = ""  # it has the wrong type, which the shape has said
    elif isinstance(data, dict):
        message = "there is no 'cases' key and no input"
    elif data is None:
        message = "the file is empty"
    else:
        message = f"the file holds {shown_value(data)} instead of cases"
    hint = "a suite has 'cases', a list of mappings with 'id' and 'input'"
    return [document.problem((key,) if key else (), "no-cases", message, hint)] if message else []
