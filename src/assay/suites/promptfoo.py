"""Reads the tests of promptfoo configs as questions with the answer that is expected.

A test case compares the answer with one text, so only `equals` is read. Any other assertion, and
whatever else would change what is asked or how the answer is checked, is refused.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from assay.errors import EvalFileErrors
from assay.problems import Problem
from assay.settings import Settings, shown_path
from assay.wire.document import DocPath, Document
from assay.wire.text_files import read_text

#: Keys of a test that a test case can express, or that do not affect its checks.
_TEST_KEYS = {
    *("vars", "assert", "description", "options", "metadata"),
    *("threshold", "provider", "providers"),
}
#: Options that only concern other assertions than `equals`, besides `prefix` and `suffix`.
_OPTIONS = {"prefix", "suffix", "provider", "rubricPrompt", "factuality"}
_CHECK_KEYS = {"type", "value", "metric", "weight"}
#: Columns of a table of tests that do not affect its checks.
_HARMLESS_COLUMNS = re.compile(r"__(?:description|metric|threshold|metadata:.*)\Z", re.DOTALL)
_VARIABLE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
_TEMPLATE = re.compile(r"\{\{|\{%")
#: The prefix of texts that are in another file.
_FILE = "file://"
_FILE_NAME = re.compile(
    r"[^\s{}]+\.(?:txt|md|j2|json|jsonl|ya?ml|csv|py|rb|sh|[cm]?[jt]s)(?::\w+)?\Z"
)
_CHAT = re.compile(r"\s*(?:\[\s*\{|-\s+\{?)\s*[\"']?role[\"']?\s*:")
#: A cell that names a check: its type, perhaps a number, perhaps a value. Other cells are answers.
_CELL = re.compile(
    r"(not-)?(fn|eval|grade|answer-relevance|agent-rubric|bleu|classifier"
    r"|contains(?:-all|-any|-html|-json|-sql|-xml)?|context-(?:faithfulness|recall|relevance)"
    r"|conversation-relevance|cost|equals|factuality|finish-reason|g-eval|gleu|guardrails|human"
    r"|icontains(?:-all|-any)?|is-(?:html|json|refusal|sql|xml|valid-(?:openai-)?function-call"
    r"|valid-openai-tools-call)|javascript|latency|levenshtein|llm-rubric|max-score|meteor"
    r"|model-graded-(?:closedqa|factuality)|moderation|perplexity(?:-score)?|pi|python|regex"
    r"|rouge-[lns]|ruby|search-rubric|select-best|similar(?::cosine|:dot|:euclidean)?|skill-used"
    r"|starts-with|tool-call-f1|trace-[a-z-]+|trajectory:[a-z-]+|webhook|word-count)"
    r"(?:\([0-9]+(?:\.[0-9]+)?\))?(?::(.*))?\Z",
    re.DOTALL,
)


class Row(msgspec.Struct, frozen=True):
    """One question of a config; or, if it has a `permitted_root`, why it cannot be imported."""

    name: str
    input: str
    expected_output: str
    description: Any
    problem: Problem | None
    file: str
    line: int


class _Test(msgspec.Struct, frozen=True):
    """A test as it is written, and where."""

    file: str
    line: int
    column: int
    written: Mapping[str, Any]

    def problem(self, code: str, message: str, hint: str = "") -> Problem:
        return Problem(self.file, self.line, self.column, "error", code, message, hint)


class _Refused(Exception):
    """The problem why a test is not imported."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.code, self.message, self.hint = code, message, hint


def is_config(data: Mapping[str, Any]) -> bool:
    """Is it a promptfoo config, rather than a suite? It has prompts, or tests with variables."""
    tests = data.get("tests")
    listed = tests if isinstance(tests, list) else []
    return "prompts" in data or any(isinstance(t, dict) and "vars" in t for t in listed)


def read_config(document: Document, file: Path, settings: Settings) -> Iterator[Row]:
    """Every test with every prompt and every combination of its variables."""
    return _Config(document, file, settings).rows()


class _Config:
    def __init__(self, document: Document, file: Path, settings: Settings) -> None:
        self._document, self._file, self._settings = document, file, settings

    def rows(self) -> Iterator[Row]:
        data = self._document.data
        if data.get("scenarios"):
            message = "scenarios are not imported"
            yield self._refused(("scenarios",), "not-importable", message, "write them as tests")
        default = data.get("defaultTest", {})
        if not isinstance(default, dict):
            message = "the default test is in another file"
            yield self._refused(("defaultTest",), "not-importable", message, "write it here")
            return
        prompts: list[str] = []
        for index, prompt in enumerate(_list(data.get("prompts", "{{prompt}}"))):
            if isinstance(prompt, dict):
                prompt = prompt.get("raw", prompt.get("content"))
            if reason := _not_a_text(prompt):
                hint = "write its text here" if "file" in reason else ""
                yield self._refused(("prompts", index), "not-importable", reason, hint)
            else:
                prompts.append(prompt)
        for number, test in enumerate(self._tests(data.get("tests", [])), 1):
            if isinstance(test, Problem):
                yield _refused_row(test)
                continue
            try:
                yield from self._rows_of(test, _merged(default, test.written), prompts, number)
            except _Refused as reason:
                yield _refused_row(test.problem(reason.code, reason.message, reason.hint))

    def _rows_of(
        self, test: _Test, merged: Mapping[str, Any], prompts: list[str], number: int
    ) -> Iterator[Row]:
        expected, options = _expected(merged), _options(merged)
        reported: set[str] = set()
        combinations = itertools.product(prompts, _combinations(merged["vars"]))
        for place, (prompt, given) in enumerate(combinations, 1):
            several = f"-{place}" if place > 1 else ""
            name = f"{self._file.stem}-{number}{several}"
            try:
                texts = (options.get("prefix", ""), prompt, options.get("suffix", ""))
                asked = "".join(_render(_as_text(text), given) for text in texts)
                answer = _render(_as_text(expected), given)
            except _Refused as reason:
                if (
                    reason.message not in reported
                ):  # what is wrong with every prompt is reported once
                    reported.add(reason.message)
                    yield _refused_row(test.problem(reason.code, reason.message, reason.hint))
                continue
            about = merged.get("description")
            yield Row(name, asked, answer, about, None, test.file, test.line)

    def _tests(self, written: Any) -> Iterator[_Test | Problem]:
        for index, test in enumerate(_list(written)):
            path: DocPath = ("tests", index) if isinstance(written, list) else ("tests",)
            if isinstance(test, dict) and "path" not in test:
                yield _Test(self._document.file, *self._document.position(path), test)
            elif isinstance(test, str) and test.endswith(".csv") and "://" not in _bare(test):
                try:
                    yield from self._table(path, _bare(test))
                except EvalFileErrors as error:
                    yield from error.problems
            else:
                message = "tests are imported from the config and from CSV files only"
                yield self._document.problem(path, "not-importable", message, "write them here")

    def _table(self, path: DocPath, name: str) -> Iterator[_Test | Problem]:
        """The tests of a CSV file, which must be in the project: a test for each row."""
        file = (self._file.parent / name).resolve()
        if not self._settings.permits(file):
            root, hint = self._settings.permitted_root()
            yield self._document.problem(path, "outside-root", f"{name!r} leaves {root}", hint)
            return
        shown = shown_path(file)
        rows = csv.reader(io.StringIO(read_text(file, shown), newline=""), strict=True)
        try:
            header = next(rows, [])
            for cells in rows:
                if not cells:
                    continue
                if len(cells) != len(header):
                    message = f"the row has {len(cells)} cells, and the header {len(header)}"
                    yield Problem(shown, rows.line_num, 1, "error", "csv-syntax", message)
                    continue
                row = dict(zip(header, cells, strict=True))
                yield _Test(shown, rows.line_num, 1, _test_of_row(row))
        except csv.Error as error:
            yield Problem(shown, rows.line_num, 1, "error", "csv-syntax", str(error))

    def _refused(self, path: DocPath, code: str, message: str, hint: str) -> Row:
        return _refused_row(self._document.problem(path, code, message, hint))


def _refused_row(problem: Problem) -> Row:
    return Row("", "", "", None, problem, problem.file, problem.line)


def _bare(name: str) -> str:
    return name.removeprefix(_FILE)


def _test_of_row(row: Mapping[str, str]) -> dict[str, Any]:
    """A row of a table as a test: `__` columns say how it is checked, others are variables."""
    test: dict[str, Any] = {"vars": {}, "assert": [], "options": {}}
    for column, cell in row.items():
        if not column.startswith("__"):
            test["vars"][column] = cell
        elif re.fullmatch(r"__expected(\d*|N)", column):
            if cell.strip():
                test["assert"].append(_check_of_cell(cell))
        elif column in ("__prefix", "__suffix"):
            test["options"][column.removeprefix("__")] = cell
        elif column == "__description":
            test["description"] = cell or None
        elif cell.strip() and not _HARMLESS_COLUMNS.match(column):
            test[column] = cell  # no test has such a key, so it is refused
    return test


def _check_of_cell(cell: str) -> dict[str, Any]:
    if parts := _CELL.match(cell):
        return {"type": (parts[1] or "") + parts[2], "value": (parts[3] or "").strip()}
    return {"type": "equals", "value": cell}


def _not_a_text(prompt: Any) -> str:
    """Why a prompt is not one text; empty if it is."""
    if not isinstance(prompt, str):
        return "the prompt is not a text"
    if prompt.startswith((_FILE, "exec:")) or _FILE_NAME.match(prompt):
        return "prompts in files are not imported"
    if _CHAT.match(prompt):
        return "the prompt has several messages; a test case has one text"
    return ""


def _merged(default: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    """The test with what it inherits of the default test."""
    merged = {**default, **test}
    for key in ("vars", "options"):
        merged[key] = {**_mapping(default, key), **_mapping(test, key)}
    merged["assert"] = [*_list(default.get("assert")), *_list(test.get("assert"))]
    for key in merged:
        if key not in _TEST_KEYS:
            _refuse(f"the test has {key!r}, which is not imported")
    return merged


def _mapping(test: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = test.get(key) or {}
    if not isinstance(value, dict):
        _refuse(f"{key!r} of the test is not a mapping")
    return value


def _options(test: Mapping[str, Any]) -> Mapping[str, Any]:
    options: Mapping[str, Any] = test["options"]
    for key in options:
        if key not in _OPTIONS:
            _refuse(f"the test has the option {key!r}, which is not imported")
    return options


def _expected(test: Mapping[str, Any]) -> Any:
    """The text that the answer must equal, according to all assertions of a test."""
    if not test["assert"]:
        _refuse("the test has no assertion", "for example {type: equals, value: ...}")
    values = [_value_of(check) for check in test["assert"]]
    if len(set(map(_as_text, values))) > 1:
        _refuse("the answer cannot equal several texts")
    return values[0]


def _value_of(check: Any) -> Any:
    kind = check.get("type") if isinstance(check, dict) else None
    if kind != "equals":
        shown = (
            f"the assertion {kind!r}" if isinstance(kind, str) else "an assertion without a type"
        )
        hint = "write the test as a case of an eval file, whose evaluators can express more"
        _refuse(f"{shown} is not imported: a test case only compares the answer with a text", hint)
    for key in check:
        if key not in _CHECK_KEYS or (key == "weight" and not check[key]):
            _refuse(f"the assertion 'equals' has {key!r}, which is not imported")
    if not isinstance(check.get("value"), (str, int, float)):
        _refuse("the value of 'equals' is not a text: test cases do not compare data")
    return check["value"]


def _refuse(message: str, hint: str = "") -> NoReturn:
    raise _Refused("not-importable", message, hint)


def _render(text: str, given: Mapping[str, Any]) -> str:
    """The text with its variables replaced; raises _Refused when that is impossible."""
    used = _VARIABLE.findall(text)
    if missing := [name for name in used if name not in given]:
        raise _Refused("bad-token", f"the variable {missing[0]!r} has no value")
    values = {name: _as_text(given[name]) for name in used}
    if any(one.startswith(_FILE) for one in (text, *values.values())):
        _refuse("a text of the test is in another file", "write it here")
    if _TEMPLATE.search(_VARIABLE.sub("", text)) or any(map(_TEMPLATE.search, values.values())):
        message = "the text has more of a template than variables"
        raise _Refused("bad-token", message, "write the text that it stands for")
    return _VARIABLE.sub(lambda match: values[match[1]], text)


def _as_text(value: Any) -> str:
    """A value as a promptfoo template renders it: as JSON, and null as nothing."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _combinations(variables: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All combinations of values: a variable with a list stands for one test per value."""
    choices = [value if isinstance(value, list) else [value] for value in variables.values()]
    return (dict(zip(variables, values, strict=True)) for values in itertools.product(*choices))


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
