"""YAML suites: a mapping with cases, a list of cases, or one case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from assay.errors import EvalFileErrors
from assay.loaders import csv, jsonl
from assay.loaders.cases import CaseReader, validation_context
from assay.loaders.files import FileFinder
from assay.loaders.locators import Locator
from assay.loaders.parameters import declares
from assay.loaders.sidecars import SuiteKeys, other_sidecars
from assay.loaders.suite import cases_key, duplicate_ids, name_of, suite_keys, suite_of
from assay.model.case import EvalCase, EvalSuite
from assay.model.suite import CASES_KEYS, INPUT_KEYS, OneCaseFile, SuiteFile, named_cases
from assay.problems import Problem, Problems
from assay.settings import Settings, shown_path
from assay.wire import yaml
from assay.wire.document import DocPath, Document
from assay.wire.text_files import read_text
from assay.wire.validation import check
from assay.wire.validation_errors import shown

#: At most this many cases are made of one file.
MAX_CASES = 1_000_000
#: Matches a text that does not parse but looks like a suite: it has a key for cases or input.
_SUITE_WORDS = re.compile(
    rf"""^[{{\s]*["']?(?:{"|".join(CASES_KEYS)})["']?\s*:"""
    rf"""|^[-{{\s]*["']?(?:{"|".join(INPUT_KEYS)})["']?\s*:""",
    re.MULTILINE,
)
#: Matches where a key for cases may have a text: not a list in the flow or the block style.
_NAMED_CASES = re.compile(
    rf"""^[{{ \t]*+["']?(?:{"|".join(CASES_KEYS)})["']?[ \t]*+:\s++(?!\[|-\s)""", re.MULTILINE
)


def load(file: Path, settings: Settings) -> EvalSuite:
    """Load the suite of a file; raises EvalFileErrors with all of its problems."""
    document = yaml.parse(read_text(file, shown_path(file)), shown_path(file))
    data = document.data
    if _has_input(data) and not cases_key(data):
        return _one_case(document, file, settings)
    root, found = SuiteFile(), list(document.problems)
    if isinstance(data, dict):
        root, wrong = suite_keys(document, data, validation_context(file, settings))
        found += wrong
    if isinstance(root.cases, Path):
        found += other_sidecars(root.cases, file)
        suite = SuiteKeys(root, document, found, file)
        return suite_of(file, root, *_named_cases(root.cases, settings, suite))
    # If the keys of the suite are invalid, it is unknown what the cases inherit.
    incomplete = any(p.severity == "error" for p in found)
    reader = CaseReader(file, settings, root, incomplete=incomplete)
    reader.problems += [*found, *_check_root(document)]
    if not incomplete:
        reader.share(document)
    return suite_of(file, root, _cases(document, reader), reader.problems)


def cases_file(file: Path, settings: Settings) -> Path | None:
    """The file of cases that a suite names, if it does and the file exists."""
    try:
        text = read_text(file, shown_path(file))
        if _NAMED_CASES.search(text) is None:  # saves parsing a long file
            return None
        data = yaml.parse(text, shown_path(file)).data
        named = data.get(cases_key(data)) if isinstance(data, dict) else None
        finder = FileFinder(file, settings)
        return named_cases(named, finder.file) if isinstance(named, str) else None
    except (EvalFileErrors, PydanticCustomError):  # reported when it is loaded
        return None


def _named_cases(
    file: Path, settings: Settings, suite: SuiteKeys
) -> tuple[Sequence[EvalCase | None], Problems]:
    """The cases of a file that the suite names, and all problems."""
    if file.suffix == ".jsonl":
        return jsonl.cases_of(file, settings, suite)
    if file.suffix == ".csv":
        return csv.cases_of(file, settings, suite)
    reader = suite.reader(file, settings)
    reader.problems += suite.problems
    try:
        document = yaml.parse(read_text(file, shown_path(file)), shown_path(file))
    except EvalFileErrors as error:
        reader.problems += error.problems
        return (), reader.problems
    reader.problems += document.problems
    if not isinstance(document.data, list) or not document.data:
        message = f"the file contains {shown(document.data)} instead of a list of cases"
        hint = "a file that a suite names has no keys of a suite"
        reader.problems.append(document.problem((), "no-cases", message, hint))
        return (), reader.problems
    return _cases(document, reader, suite.document), reader.problems


def _one_case(document: Document, file: Path, settings: Settings) -> EvalSuite:
    """The suite of a root mapping that is itself a case."""
    reader = CaseReader(file, settings)
    reader.problems += document.problems
    root = SuiteFile()
    locate = Locator(document, ())

    def read(part: Document, at: DocPath) -> EvalCase | None:
        nonlocal root
        written, found = check(OneCaseFile, part, at, part.get(at), reader.context)
        reader.problems += found
        if written is not None:
            root = SuiteFile(dataset=written.dataset, execution=written.execution)
        return reader.finish(written, part, at, locate, default_id=name_of(file))

    cases = tuple(reader.read_rows(document, (), read, default_id=name_of(file)))
    return suite_of(file, root, cases, reader.problems)


def recognises(file: Path) -> str:
    """Why the file is not a suite: it has neither cases nor a list of mappings with input."""
    sidecar = file.with_suffix(".jsonl").is_file()
    if ".eval." in file.name and not sidecar:
        return ""
    try:
        data = yaml.parse(read_text(file, shown_path(file)), shown_path(file)).data
    except EvalFileErrors as error:
        # A suite with a syntax error must not be skipped.
        text = file.read_bytes().decode("utf-8", "replace")
        wrong = f"not valid YAML: {error.problems[0].message}"
        return "" if _SUITE_WORDS.search(text) else wrong
    if isinstance(data, dict) and cases_key(data):
        return ""
    if sidecar:
        return f"sidecar of {file.stem}.jsonl"
    if isinstance(data, list) and data:
        # One case with an input is enough: a mistake in another must not hide them all.
        cases = any(_has_input(item) for item in data)
        return "" if cases else "a list, but not of cases with an input"
    return "no cases"


def _has_input(raw: Any) -> bool:
    return isinstance(raw, dict) and any(key in raw for key in INPUT_KEYS)


def _cases(
    document: Document, reader: CaseReader, suite: Document | None = None
) -> tuple[EvalCase | None, ...]:
    """The cases of a document; `suite` is that of the suite's keys, if another one."""
    data = document.data
    base: DocPath = (cases_key(data),) if isinstance(data, dict) else ()
    entries = data.get(base[0]) if isinstance(data, dict) else data
    if not isinstance(entries, list):
        return ()
    reader.problems += duplicate_ids(document, base, entries)
    cases: list[EvalCase | None] = []
    expanded = False
    for index in range(len(entries)):
        if reader.problems.full:
            break
        path = (*base, index)
        locate = Locator(document, path, suite=suite)
        if reader.shared is None and not declares(entries[index]):
            cases.append(reader.read(document, path, locate=locate))
            continue
        expanded = True
        for case in reader.read_all(document, path, locate=locate):
            cases.append(case)
            if len(cases) > MAX_CASES:
                message = f"'vars' makes more than {MAX_CASES:,} cases of this file"
                hint = "write them as cases of a JSONL file"
                reader.problems.append(document.problem(path, "too-large", message, hint))
                return tuple(cases)
    reader.report_unused()
    if expanded and not reader.problems.errors:  # written ids have been compared
        reader.problems += _same_ids(cases)
    return tuple(cases)


def _same_ids(cases: Sequence[EvalCase | None]) -> Iterator[Problem]:
    """A problem for each id that `vars` made and another case has."""
    seen: dict[str, EvalCase] = {}
    for case in cases:
        if case is not None and seen.setdefault(case.id, case) is not case:
            first = seen[case.id].origin.line
            message = f"the id {case.id!r} is taken by a case on line {first}"
            yield Problem(*case.origin_of("id"), "error", "duplicate-id", message)


def _check_root(document: Document) -> list[Problem]:
    """The root must be or have a list of cases."""
    data = document.data
    key = cases_key(data) if isinstance(data, dict) else ""
    entries = data[key] if key else data
    if isinstance(entries, list):
        message = "" if entries else "the list of cases is empty"
    elif key:
        message = ""  # it has the wrong type, which validation has reported
    elif isinstance(data, dict):
        message = "there is no 'cases' key and no input"
    elif data is None:
        message = "the file is empty"
    else:
        message = f"the file contains {shown(data)} instead of cases"
    hint = "a suite has 'cases', a list of mappings with 'id' and 'input'"
    return [document.problem((key,) if key else (), "no-cases", message, hint)] if message else []
