"""YAML suites: a mapping with cases, a list of cases, or one case."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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

_CASES_LINE = re.compile(rf"^(?:{'|'.join(CASES_KEYS)})\s*:", re.MULTILINE)


def load(file: Path, settings: Settings) -> Suite:
    """The file's suite; raises EvalFileErrors with all of its problems."""
    document = yaml.parse(read_text(file, shown(file)), shown(file))
    return _suite(file, document, reading_of(file, settings))


def recognises(file: Path) -> str:
    """Why the file is no suite: it has neither cases nor a list of inputs."""
    if any(file.with_suffix(s).is_file() for s in (".jsonl",)):
        return f"it is the sidecar of {file.stem}.jsonl"
    text = read_text(file, shown(file))
    try:
        data = yaml.parse(text, shown(file)).data
    except EvalFileErrors as error:
        # A suite with a slip in it must not be passed over.
        return (
            "" if _CASES_LINE.search(text) else f"it is not valid YAML: {error.problems[0].message}"
        )
    if isinstance(data, dict) and any(key in data for key in CASES_KEYS):
        return ""
    if isinstance(data, list) and data and all(_has_input(item) for item in data):
        return ""
    return "it has no cases"


def _has_input(raw: Any) -> bool:
    return isinstance(raw, dict) and any(key in raw for key in INPUT_KEYS)


def suite_keys(document: Document, raw: Any, reading: Reading) -> tuple[SuiteFile, list[Problem]]:
    """The suite-level keys of a root mapping, and what is wrong with them."""
    written, problems = check(SuiteFile, document, (), raw, reading)
    return written or SuiteFile(), problems


def name_of(file: Path) -> str:
    """What a suite is called when its file does not say: `weather` for weather.eval.yaml."""
    return file.stem.removesuffix(".eval")


def _suite(file: Path, document: Document, reading: Reading) -> Suite:
    data = document.data
    root, problems = SuiteFile(), list(document.problems)
    reader = CaseReader(reading)
    cases: list[EvalCase] = []
    if isinstance(data, dict) and _has_input(data) and not any(key in data for key in CASES_KEYS):
        one = reader.read(document, (), data, name_of(file))
        cases = [one] if one else []
    else:
        key = ""
        if isinstance(data, dict):
            root, found = suite_keys(document, data, reading)
            problems += found
            reader.inherited = root.execution or SuiteExecution()
            key = next((k for k in CASES_KEYS if k in data), "")
        problems += _check_root(document, key)
        entries = data.get(key) if isinstance(data, dict) else data
        if isinstance(entries, list):
            cases = _cases(document, (key,) if key else (), entries, reader)
    problems += reader.problems
    if any(p.severity == "error" for p in problems):
        raise EvalFileErrors(sorted(problems, key=lambda p: (p.line, p.column)))
    return Suite(
        name=root.dataset or name_of(file),
        file=document.file,
        cases=tuple(cases),
        description=root.description,
        target=reader.inherited.target,
        workers=reader.inherited.workers,
        warnings=tuple(problems),
    )


def _cases(
    document: Document, base: tuple[str, ...], entries: list[Any], reader: CaseReader
) -> list[EvalCase]:
    cases: list[EvalCase] = []
    seen: dict[str, int] = {}
    for index, raw in enumerate(entries):
        path: DocPath = (*base, index)
        case = reader.read(document, path, raw)
        identity = raw.get("id") if isinstance(raw, dict) else None
        if isinstance(identity, str) and identity in seen:
            first_line, _ = document.position((*base, seen[identity]))
            line, column = document.position((*path, "id"))
            message = f"the id {identity!r} is taken by the case on line {first_line}"
            reader.problems.append(
                Problem(document.file, line, column, "error", "duplicate-id", message)
            )
        elif isinstance(identity, str):
            seen[identity] = index
        if case is not None:
            cases.append(case)
    return cases


def _check_root(document: Document, key: str) -> list[Problem]:
    """The root must be a list of cases or have one."""
    data = document.data
    line, column = document.position((key,) if key else ())
    entries = data.get(key) if isinstance(data, dict) and key else data
    hint = "a suite has 'cases', a list of mappings with 'id' and 'input'"
    if isinstance(entries, list):
        message = "" if entries else "the list of cases is empty"
    elif isinstance(data, dict) and not key:
        message = "there is no 'cases' key and no input"
    elif isinstance(data, dict):
        return []  # `cases` has the wrong type, which the shape has said
    else:
        message = (
            f"the file holds {shown_value(data)} instead of cases"
            if data is not None
            else "the file is empty"
        )
    return (
        [Problem(document.file, line, column, "error", "no-cases", message, hint)]
        if message
        else []
    )
