"""Reads test cases from our own exports, and from files of promptfoo and of OpenAI's evals.

| File | Recognised by |
|---|---|
| our export, as YAML, JSONL or CSV | entries with only the fields of a test case |
| a promptfoo config | `prompts`, or `tests` with `vars` |
| samples of OpenAI's evals, one per line | `ideal` |

Any other file is an eval file, which a loader reads.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from assay.documents import yaml
from assay.documents.document import DocPath, Document
from assay.documents.json import Reader
from assay.documents.source import read_text
from assay.errors import EvalFileErrors, Problem
from assay.formulas import restored
from assay.model.suite import CASES_KEYS
from assay.settings import shown_path

FIELDS = ("id", "input", "expected_output", "description", "tags")
#: Assertions of promptfoo that compare the answer with a text, their value.
_COMPARISONS = ("equals", "contains", "icontains", "starts-with", "similar", "factuality")
_VARIABLE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
_TEMPLATE = re.compile(r"\{\{|\{%")
_TAG_SEPARATOR = re.compile("[,;]")
#: The prefix of texts that promptfoo reads from another file.
_FILE_PREFIX = "file://"


class Draft(msgspec.Struct, frozen=True):
    """A future test case: what a file says, not validated, and where.

    `left_out` is the number of its evaluators, which a test case cannot hold.
    """

    file: str
    line: int
    name: str
    input: Any
    expected_output: Any
    description: Any = None
    tags: Any = ()
    left_out: int = 0

    def problem(self, code: str, message: str, hint: str = "") -> Problem:
        return Problem(self.file, self.line, 1 if self.line else 0, "error", code, message, hint)


class Drafts(msgspec.Struct):
    """The test cases of a file, and its problems."""

    found: list[Draft] = []
    problems: list[Problem] = []


def read_drafts(file: Path, *, raw: bool = False) -> Drafts | None:
    """The test cases of a file; None when it is an eval file. Raises EvalFileErrors.

    In a `raw` CSV file, an apostrophe before a formula is part of the text.
    """
    name = shown_path(file)
    if file.suffix == ".jsonl":
        return _from_jsonl(read_text(file, name), name)
    if file.suffix == ".csv":
        return _from_csv(read_text(file, name), name, raw=raw)
    if file.suffix in (".yaml", ".yml"):
        return _from_document(yaml.parse(read_text(file, name), name), file)
    if file.suffix == ".json" and not re.search(r"\.\w+\.json\Z", file.name):
        found = _from_document(Reader(name).parse(read_text(file, name)), file)
        if found is None:
            message = (
                "the file is not a promptfoo config, and JSON eval files are named differently"
            )
            raise EvalFileErrors([Problem(name, 1, 1, "error", "unknown-format", message)])
        return found
    return None


def _from_jsonl(text: str, file: str) -> Drafts | None:
    reader = Reader(file)
    written = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    documents = [(n, reader.parse(line, n)) for n, line in written]
    entries = [(n, document.data) for n, document in documents]
    problems = [problem for _, document in documents for problem in document.problems]
    if entries and all(isinstance(data, dict) and "ideal" in data for _, data in entries):
        return _from_openai(entries, problems, file)
    if not entries or not all(_is_test_case(data) for _, data in entries):
        return None
    return Drafts([_draft(data, file, n) for n, data in entries], problems)


def _from_csv(text: str, file: str, *, raw: bool) -> Drafts | None:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(rows, [])
        if not {"input", "expected_output"} <= set(header) <= set(FIELDS):
            return None
        drafts = Drafts()
        for cells in rows:
            if cells:
                if len(cells) != len(header):
                    return None  # the loader reports it
                cells = cells if raw else list(map(restored, cells))
                entry: dict[str, Any] = dict(zip(header, cells, strict=True))
                entry["tags"] = _tags(entry.get("tags", ""))
                entry["description"] = entry.get("description") or None
                drafts.found.append(_draft(entry, file, rows.line_num))
    except csv.Error:
        return None
    return drafts


def _tags(cell: str) -> Any:
    """The tags in a cell: a JSON array, or separated by commas or semicolons."""
    if cell.startswith("["):
        try:
            return json.loads(cell)
        except json.JSONDecodeError:
            pass
    return [tag.strip() for tag in _TAG_SEPARATOR.split(cell) if tag.strip()]


def _from_document(document: Document, file: Path) -> Drafts | None:
    data = document.data
    if isinstance(data, dict) and _is_promptfoo(data):
        return _Promptfoo(document, file).read()
    cases: Any = data
    path: DocPath = ()
    if isinstance(data, dict):
        key = next((key for key in CASES_KEYS if key in data), None)
        if key is None or len(data) > 1:
            return None
        cases, path = data[key], (key,)
    if not isinstance(cases, list) or not cases or not all(map(_is_test_case, cases)):
        return None
    places = [document.position((*path, index))[0] for index in range(len(cases))]
    found = [_draft(case, document.file, line) for case, line in zip(cases, places, strict=True)]
    return Drafts(found, list(document.problems))


def _is_test_case(entry: Any) -> bool:
    """Has it only the fields of a test case, and all that are required?"""
    if not isinstance(entry, dict) or not set(entry) <= set(FIELDS):
        return False
    return all(isinstance(entry.get(name), str) for name in ("input", "expected_output"))


def _draft(entry: Mapping[str, Any], file: str, line: int) -> Draft:
    name = str(entry.get("id") or f"line-{line}")
    texts = entry["input"], entry["expected_output"], entry.get("description")
    return Draft(file, line, name, *texts, entry.get("tags", ()))


def _from_openai(
    entries: list[tuple[int, dict[str, Any]]], problems: list[Problem], file: str
) -> Drafts:
    """Samples have an `input`, a text or messages, and an `ideal`, one text or several."""
    drafts = Drafts(problems=problems)
    for line, sample in entries:
        ideal = sample["ideal"]
        expected = ideal[0] if isinstance(ideal, list) and ideal else ideal
        asked = sample.get("input")
        draft = Draft(file, line, f"line-{line}", _join_texts(asked), expected)
        if draft.input is None:
            message = "'input' is neither a text nor a list of messages of the system and the user"
            drafts.problems.append(draft.problem("wrong-type", message))
        else:
            drafts.found.append(draft)
    return drafts


def _join_texts(asked: Any) -> str | None:
    """The joined texts of messages; None if any is from an assistant or a tool."""
    if isinstance(asked, str):
        return asked
    if not isinstance(asked, list) or not all(isinstance(m, dict) for m in asked):
        return None
    texts = [m.get("content") for m in asked if m.get("role") in ("system", "user", "developer")]
    if len(texts) != len(asked) or not all(isinstance(text, str) for text in texts):
        return None
    return "\n\n".join(str(text) for text in texts)


def _is_promptfoo(data: Mapping[str, Any]) -> bool:
    tests = data.get("tests")
    listed = tests if isinstance(tests, list) else []
    return "prompts" in data or any(isinstance(t, dict) and "vars" in t for t in listed)


class _Promptfoo:
    """Combines every test of a config with every prompt; `expected_output` is from an assertion."""

    def __init__(self, document: Document, file: Path) -> None:
        self._document, self._file = document, file
        self._drafts = Drafts(problems=list(document.problems))

    def read(self) -> Drafts:
        data = self._document.data
        if data.get("scenarios"):
            message = "scenarios are not imported"
            self._refuse(("scenarios",), "wrong-value", message, "write them as tests")
        prompts = list(self._prompts(data.get("prompts", [])))
        default = data.get("defaultTest")
        default = default if isinstance(default, dict) else {}
        for number, (path, test) in enumerate(self._tests(data.get("tests", [])), 1):
            variables = {**_mapping(default.get("vars")), **_mapping(test.get("vars"))}
            checks = [*_list(test.get("assert")), *_list(default.get("assert"))]
            for place, (prompt, given) in enumerate(
                itertools.product(prompts, _combinations(variables)), 1
            ):
                several = f"-{place}" if place > 1 else ""
                name = f"{self._file.stem}-{number}{several}"
                self._add(path, name, prompt, given, checks, test)
        return self._drafts

    def _add(
        self,
        path: DocPath,
        name: str,
        prompt: str,
        given: Mapping[str, Any],
        checks: list[Any],
        test: Mapping[str, Any],
    ) -> None:
        expected = next((c.get("value") for c in checks if _is_comparison(c)), None)
        if expected is None:
            message = "the test has no assertion that compares the answer with a text"
            hint = "such as equals, contains or similar"
            self._refuse(path, "missing-key", message, hint)
            return
        asked, wanted = (self._render(path, _as_text(text), given) for text in (prompt, expected))
        if asked is not None and wanted is not None:
            line, about = self._document.position(path)[0], test.get("description")
            others = len(checks) - 1
            draft = Draft(self._document.file, line, name, asked, wanted, about, left_out=others)
            self._drafts.found.append(draft)

    def _prompts(self, written: Any) -> Iterator[str]:
        for index, prompt in enumerate(_list(written)):
            if isinstance(prompt, dict):
                prompt = prompt.get("raw", prompt.get("content"))
            if isinstance(prompt, str) and not prompt.startswith(_FILE_PREFIX):
                yield prompt
            else:
                message = "prompts in files are not imported"
                self._refuse(("prompts", index), "wrong-value", message, "write its text here")

    def _tests(self, written: Any) -> Iterator[tuple[DocPath, Mapping[str, Any]]]:
        if isinstance(written, str):
            yield from self._tests_of_csv(written)
            return
        for index, test in enumerate(_list(written)):
            if isinstance(test, dict):
                yield ("tests", index), test
            else:
                message = "tests in such files are not imported"
                self._refuse(("tests", index), "wrong-value", message, "write it here")

    def _tests_of_csv(self, written: str) -> Iterator[tuple[DocPath, Mapping[str, Any]]]:
        """The tests of a CSV file: columns are variables, `__expected` is an assertion."""
        file = self._file.parent / written.removeprefix(_FILE_PREFIX)
        for row in csv.DictReader(io.StringIO(read_text(file, shown_path(file)), newline="")):
            expected = row.get("__expected") or ""
            kind, colon, value = expected.partition(":")
            if not colon or kind not in _COMPARISONS:
                kind, value = "equals", expected
            variables = {k: v for k, v in row.items() if k and not k.startswith("__")}
            checks = [{"type": kind, "value": value.strip()}] if expected else []
            test = {"vars": variables, "assert": checks}
            yield ("tests",), test | {"description": row.get("__description")}

    def _render(self, path: DocPath, text: str, given: Mapping[str, Any]) -> str | None:
        """The text with its variables replaced; None, and a problem, when that is impossible."""
        used = _VARIABLE.findall(text)
        missing = [name for name in used if name not in given]
        values = {name: _as_text(given[name]) for name in used if name in given}
        if missing:
            self._refuse(path, "bad-token", f"the variable {missing[0]!r} has no value")
        elif any(one.startswith(_FILE_PREFIX) for one in (text, *values.values())):
            message = "a text of the test is in another file"
            self._refuse(path, "wrong-value", message, "write it here")
        elif _TEMPLATE.search(_VARIABLE.sub("", text)):
            message = "the prompt has more of a template than variables"
            self._refuse(path, "bad-token", message, "write the text that it stands for")
        else:
            return _VARIABLE.sub(lambda match: values[match[1]], text)
        return None

    def _refuse(self, path: DocPath, code: str, message: str, hint: str = "") -> None:
        problem = self._document.problem(path, code, message, hint)
        # What is wrong with every prompt is reported once.
        if self._drafts.problems[-1:] != [problem]:
            self._drafts.problems.append(problem)


def _is_comparison(check: Any) -> bool:
    if not isinstance(check, dict) or check.get("type") not in _COMPARISONS:
        return False
    return isinstance(check.get("value"), (str, int, float))


def _as_text(value: Any) -> str:
    """A value as a promptfoo template renders it: as JSON, and null as nothing."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _combinations(variables: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All combinations of values: a variable with a list stands for one test per value."""
    choices = [value if isinstance(value, list) else [value] for value in variables.values()]
    return (dict(zip(variables, values, strict=True)) for values in itertools.product(*choices))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
