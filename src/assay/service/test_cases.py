"""The verbs that import and export test cases."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec
from msgspec.structs import replace

from assay.engine.run_spec import project_path
from assay.errors import EvalFileErrors, UsageError
from assay.model.case import EvalCase
from assay.model.evaluator import EvaluatorSpec
from assay.model.test_case import (
    MAX_DESCRIPTION,
    MAX_TAG,
    MAX_TAGS,
    MAX_TEXT,
    NewTestCase,
    TestCase,
    TestCaseChanges,
    storable,
)
from assay.ports import Store
from assay.problems import Problem
from assay.service.eval_files import Paths, as_paths, load_all
from assay.service.project import project
from assay.service.store import open_store, project_store
from assay.settings import Settings, shown_path
from assay.suites import test_cases
from assay.suites.discovery import discover
from assay.suites.importers import FIELDS, ImportedCase, ImportedCases, read_importable
from assay.wire.csv_formulas import neutralised
from assay.wire.text_files import is_absent

#: Characters that JSON does not escape, and that a double-quoted YAML scalar has to.
_YAML_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SIMPLE_TAG = re.compile(r"[^\s,;\[][^,;]*(?<!\s)")
#: The test cases of a store by id; None for one that was deleted.
Known = dict[str, TestCase | None]


class ImportResult(msgspec.Struct, frozen=True):
    """How many test cases were new, changed and unchanged, and how many entries were refused.

    `problems` says why, at least once for each entry.
    """

    added: int
    changed: int
    unchanged: int
    refused: int = 0
    problems: tuple[Problem, ...] = ()


def import_test_cases(
    paths: Paths, *, tags: Iterable[str] = (), store: str | None = None, raw: bool = False
) -> ImportResult:
    """Put the test cases of files into the store, except entries that are refused.

    An entry is refused if it is invalid, or if it checks what a test case cannot express. A test
    case whose id is in the store is changed if it differs. `tags` are added to all. `raw` is for
    CSV files whose formulas were not neutralised. Raises EvalFileErrors when nothing can be
    imported.
    """
    settings = project()
    imported_cases = _read_files(as_paths(paths), settings, raw=raw)
    with closing(open_store(settings, store)) as opened:
        imported = _write(*_validate(imported_cases, tuple(tags), settings, opened), opened)
    return replace(
        imported, refused=imported_cases.refused, problems=tuple(imported_cases.problems)
    )


def _read_files(paths: list[Path], settings: Settings, *, raw: bool) -> ImportedCases:
    every = ImportedCases()
    for path in paths:
        if is_absent(path):
            raise UsageError(f"{shown_path(path)} does not exist")
        files = discover([path], settings).files if path.is_dir() else [path]
        for file in files:
            try:
                own = read_importable(file, settings.for_file(file), raw=raw)
                every += _read_eval_file(file, settings) if own is None else own
            except EvalFileErrors as error:
                every.refuse(*(p for p in error.problems if p.severity == "error"))
    return every


def _read_eval_file(file: Path, settings: Settings) -> ImportedCases:
    loaded = load_all([file], settings=settings)
    if loaded.errors:
        raise EvalFileErrors(loaded.errors)
    imported_cases = ImportedCases()
    for suite in loaded.suites:
        for case in suite:
            imported_case = _imported_case(case, suite.file)
            if reason := _inexpressible(case):
                hint = "it can be run from its eval file"
                imported_cases.refuse(imported_case.problem("not-importable", reason, hint))
            else:
                imported_cases.found.append(imported_case)
    return imported_cases


def _imported_case(case: EvalCase, file: str) -> ImportedCase:
    place = case.origin
    return ImportedCase(
        shown_path(Path(place.file or file)),
        place.line,
        case.id,
        case.question,
        _expected_text(case),
        case.description or None,
        case.tags,
    )


def _inexpressible(case: EvalCase) -> str:
    """What a case has that a test case cannot express: one question, and the text to equal."""
    if case.skip is not None:
        return f"the case is skipped: {case.skip}"
    messages = case.input_messages
    if len(messages) != 1 or messages[0].role != "user":
        return "a test case has one message of the user; this case has other messages"
    if not _is_text(messages[0].content):
        return "a test case asks with text; the input of this case has files or data"
    others = [spec for spec in case.evaluators if not _is_plain_equality(spec)]
    if others or len(case.evaluators) != 1:
        name = f"{others[0].type!r}" if others else "more than one evaluator"
        return f"a test case only compares the answer with a text; this case has {name}"
    if _expected_text(case) is None:
        return "a test case compares texts; this case expects data or the content of a file"
    return ""


def _is_text(content: Any) -> bool:
    """Is it text, or a list of parts that are all text?"""
    if isinstance(content, tuple):
        return all(part.type == "text" for part in content)
    return isinstance(content, str)


def _is_plain_equality(spec: EvaluatorSpec) -> bool:
    given = spec.model_dump(exclude_defaults=True, exclude={"name", "weight", "required"})
    return spec.type == test_cases.DEFAULT_EVALUATOR and given.keys() <= {"type", "value"}


def _expected_text(case: EvalCase) -> str | None:
    """The text that the answer must equal: of the evaluator, or the expected output."""
    wanted = case.expected_output
    if case.evaluators and case.evaluators[0].is_given("value"):
        wanted = getattr(case.evaluators[0], "value", None)
    if not _is_text(wanted):
        return None
    return wanted if isinstance(wanted, str) else "\n".join(part.value for part in wanted)


def _validate(
    imported_cases: ImportedCases, tags: tuple[str, ...], settings: Settings, store: Store
) -> tuple[list[NewTestCase], Known]:
    """The valid test cases, and those in the store with their ids; the others are refused."""
    valid = []
    for imported_case in imported_cases.found:
        if found := list(_problems(imported_case, tags)):
            imported_cases.refuse(*found)
        else:
            valid.append((imported_case, _new_test_case(imported_case, tags, settings)))
    known = store.test_cases.find([case.id for _, case in valid if case.id])
    cases: dict[str | None, NewTestCase] = {}
    for imported_case, case in valid:
        if case.id in cases:
            message = f"the id {imported_case.name!r} is taken by another test case of the import"
            imported_cases.refuse(imported_case.problem("duplicate-id", message))
        elif known.get(str(case.id), case) is None:
            message = f"the test case {case.id} was deleted, and its id cannot be used again"
            imported_cases.refuse(imported_case.problem("duplicate-id", message))
        else:
            cases[case.id] = case
    if not cases:
        if imported_cases.problems:
            raise EvalFileErrors(imported_cases.problems)
        raise UsageError("there is no test case in the files given")
    return list(cases.values()), known


def _problems(imported_case: ImportedCase, tags: tuple[str, ...]) -> Iterator[Problem]:
    texts = {"input": imported_case.input, "expected_output": imported_case.expected_output}
    for name, text in texts.items():
        if text is None:
            what = "one message of the user, in text" if name == "input" else "an expected output"
            yield imported_case.problem("missing-key", f"a test case needs {what}")
        elif not isinstance(text, str):
            yield imported_case.problem("wrong-type", f"{name!r} is not text")
        elif not 1 <= len(text) <= MAX_TEXT:
            message = f"{name!r} has {len(text):,} characters, not 1 to {MAX_TEXT:,}"
            yield imported_case.problem("too-large" if text else "wrong-value", message)
    if imported_case.description is not None and not isinstance(imported_case.description, str):
        yield imported_case.problem("wrong-type", "'description' is not text")
    elif len(imported_case.description or "") > MAX_DESCRIPTION:
        message = f"'description' has more than {MAX_DESCRIPTION} characters"
        yield imported_case.problem("too-large", message)
    yield from _tag_problems(imported_case, tags)
    written = [*texts.values(), imported_case.description]
    if any(isinstance(text, str) and not storable(text) for text in written):
        message = "a text has a NUL or half of a surrogate pair, which cannot be stored"
        yield imported_case.problem("bad-character", message)


def _tag_problems(imported_case: ImportedCase, added: tuple[str, ...]) -> Iterator[Problem]:
    tags = imported_case.tags
    if not isinstance(tags, (list, tuple)) or not all(isinstance(tag, str) for tag in tags):
        yield imported_case.problem("wrong-type", "'tags' is not a list of texts")
        return
    every = dict.fromkeys((*tags, *added))
    if len(every) > MAX_TAGS:
        yield imported_case.problem("too-large", f"{len(every)} tags are more than {MAX_TAGS}")
    if not all(1 <= len(tag) <= MAX_TAG and storable(tag) for tag in every):
        yield imported_case.problem("wrong-value", f"a tag must have 1 to {MAX_TAG} characters")


def _new_test_case(
    imported_case: ImportedCase, tags: tuple[str, ...], settings: Settings
) -> NewTestCase:
    own = tuple(imported_case.tags)
    every = (*own, *(tag for tag in tags if tag not in own))
    identity = _uuid(imported_case.name, project_path(imported_case.file, settings))
    return NewTestCase(
        imported_case.input,
        imported_case.expected_output,
        imported_case.description,
        every,
        identity,
    )


def _uuid(name: str, file: str) -> str:
    """The name if it is a UUID, else a UUID that stays the same when the file is imported again."""
    try:
        return str(UUID(name))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"assay:{file}:{name}"))


def _write(cases: list[NewTestCase], known: Known, store: Store) -> ImportResult:
    added = changed = unchanged = 0
    pending: list[Any] = []
    now = datetime.now(UTC)
    for case in cases:
        before = known.get(str(case.id))
        texts = (case.input, case.expected_output, case.description, case.tags)
        if before is None:
            added += 1
            pending.append(store.test_cases.add(case, now))
        elif texts == (before.input, before.expected_output, before.description, before.tags):
            unchanged += 1
        else:
            changed += 1
            pending.append(store.test_cases.change(before.id, TestCaseChanges(*texts), now))
    for future in pending:
        future.result()
    return ImportResult(added, changed, unchanged)


FORMATS = ("jsonl", "yaml", "csv")


def export_test_cases(
    form: str = "jsonl", *, tag: str | None = None, store: str | None = None, raw: bool = False
) -> Iterator[str]:
    """The test cases of the store as chunks of a file, which can be run or imported.

    In CSV, texts that a spreadsheet would take for a formula are neutralised unless `raw`.
    """
    write = partial(_csv, raw=raw) if form == "csv" else _WRITERS[form]
    with project_store(store) as opened:
        yield from write(test_cases.all_cases(opened, tag))


def _jsonl(cases: Iterable[TestCase]) -> Iterator[str]:
    for case in cases:
        yield json.dumps(_exported_fields(case), ensure_ascii=False) + "\n"


def _yaml(cases: Iterable[TestCase]) -> Iterator[str]:
    head = "cases:\n"
    for case in cases:
        lines = [f"{name}: {_scalar(value)}" for name, value in _exported_fields(case).items()]
        yield f"{head}  - " + "\n    ".join(lines) + "\n"
        head = ""
    if head:
        yield "cases: []\n"


def _csv(cases: Iterable[TestCase], *, raw: bool = False) -> Iterator[str]:
    def row(cells: Iterable[str]) -> str:
        out = io.StringIO(newline="")
        written = cells if raw else map(neutralised, cells)
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(written)
        return out.getvalue()

    yield ",".join(FIELDS) + "\n"
    for case in cases:
        simple = all(_SIMPLE_TAG.fullmatch(tag) for tag in case.tags)
        tags = ";".join(case.tags) if simple else json.dumps(case.tags, ensure_ascii=False)
        yield row((case.id, case.input, case.expected_output, case.description or "", tags))


def _exported_fields(case: TestCase) -> dict[str, Any]:
    """The fields that a file has; empty ones are left out."""
    shown = {name: getattr(case, name) for name in FIELDS}
    if case.description is None:
        del shown["description"]
    if not case.tags:
        del shown["tags"]
    return shown


def _scalar(value: Any) -> str:
    """A value as JSON that is also valid YAML."""
    text = json.dumps(value, ensure_ascii=False)
    return _YAML_ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


_WRITERS = {"jsonl": _jsonl, "yaml": _yaml, "csv": _csv}
