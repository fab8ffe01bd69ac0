"""Reads the outcomes of cases from result files, our own and those of other tools.

| File | Recognised by |
|---|---|
| a result file, ours or of another tool with the same format | `cases` |
| the output of `assay run --json` | `suites` |
| our export, a line per case | `id` and `outcome` |
| AgentV's results, a line per case | `eval_id` or `test_id`, and `score` |
| promptfoo's results, JSON or JSONL | `results`, or `success` |

Only the fields that a comparison needs are decoded. A JSON file is read whole, and so limited in
size; the lines of our export are streamed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from assay.errors import EvalFileErrors, ResultFileError, nearest
from assay.model.case import CRITICAL_TIERS
from assay.model.comparison import CaseOutcome, CaseRef, Reasks
from assay.model.options import narrowing
from assay.model.result import JUDGED, Outcome, decode_case
from assay.model.score import PASS_FROM, reaches
from assay.model.suite_result import ResultBody
from assay.redaction import cut
from assay.settings import shown_path
from assay.text import printable
from assay.wire.document import MAX_FILE_BYTES
from assay.wire.text_files import open_binary

T = TypeVar("T")

MAX_LINE = 40 * 1024 * 1024
#: The most cases of another tool's file, which are held in memory.
MAX_CASES = 1_000_000
#: promptfoo's `failureReason` for a case that could not be judged; failed assertions have 1.
PROMPTFOO_ERROR = 2
_MAX_ID = 80
_BOM = b"\xef\xbb\xbf"
_BYTE = re.compile(r" \(byte (\d+)\)$")


class ResultFile(msgspec.Struct, frozen=True):
    """The cases of a file; `read` may be called repeatedly, and `run_id` is empty if not known.

    `narrowing` are the options that selected some of the cases, if the file has them.
    """

    run_id: str
    read: Callable[[], Iterator[CaseOutcome]]
    narrowing: str = ""


class _Wire(msgspec.Struct, rename="camel", gc=False):
    """The keys of a JSON object that are decoded; others are ignored."""


class _Case(_Wire):
    """A case of any tool with our format."""

    id: str
    passed: bool


class _Suite(_Wire):
    """A result file of any tool with our format; only ours name their `file`."""

    cases: list[_Case]
    run_id: str = ""
    file: str = ""
    tier: str = ""


class _OwnSuite(ResultBody, frozen=True, kw_only=True):
    """A result file of ours, whose cases are decoded one by one."""

    cases: list[Raw]
    comparability: dict[str, str]


class _Test(_Wire):
    description: str | None = None
    vars: Any = None


class _OwnLine(_Wire):
    """A line of our export."""

    id: Any = None
    outcome: Outcome | None = None
    score: float | None = None
    run_id: str = ""
    file: str = ""
    repeats: int = 1
    judged: int | None = None
    passes: int | None = None
    reasks: list[Outcome] = []
    comparability: str = ""
    critical: bool = False
    cluster: str | None = None


class _ForeignLine(_Wire):
    """A line of AgentV's or promptfoo's results, or an entry of promptfoo's `results`."""

    score: float | None = None
    eval_id: str | None = msgspec.field(default=None, name="eval_id")
    test_id: str | None = msgspec.field(default=None, name="test_id")
    target: Any = None
    error: Any = None
    success: bool | None = None
    failure_reason: Any = None
    grading_result: Raw = Raw(b"null")
    test_case: _Test | None = None
    vars: Any = None
    test_idx: int | None = None
    prompt_idx: int = 0


class _Results(_Wire):
    results: list[_ForeignLine]


class _Document(_Wire):
    """A whole JSON file, of any tool."""

    suites: list[Raw] | None = None
    cases: list[Raw] | None = None
    results: _Results | list[_ForeignLine] | None = None
    eval_id: str = ""
    run_id: str = ""


_decode_document = msgspec.json.Decoder(_Document).decode
_decode_suite = msgspec.json.Decoder(_Suite).decode
_decode_own_suite = msgspec.json.Decoder(_OwnSuite).decode
_decode_own_line = msgspec.json.Decoder(_OwnLine).decode
_decode_foreign_line = msgspec.json.Decoder(_ForeignLine).decode


def read_results(file: Path) -> ResultFile:
    """Open a result file; raises ResultFileError if it has no results."""
    return _open_lines(file) if file.suffix == ".jsonl" else _open_document(file)


def read_document(file: Path, decode: Callable[[bytes], T], hint: str) -> T:
    """Read and decode a whole JSON file; `hint` is what to do when it is too large."""
    return _decode(decode, _content(file, hint), shown_path(file), 1)


def _content(file: Path, hint: str) -> bytes:
    with _open(file) as stream:
        data: bytes = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        size = f"the file has more than {MAX_FILE_BYTES:,} bytes"
        raise ResultFileError(f"{shown_path(file)}: {size}; {hint}")
    return data.removeprefix(_BOM)


def _open_document(file: Path) -> ResultFile:
    name = shown_path(file)
    hint = "export the run as JSONL, or name it by its id"
    data = _content(file, hint)
    found = _decode(_decode_document, data, name, 1)
    if found.results is not None:
        rows = found.results if isinstance(found.results, list) else found.results.results
        merged = list(_merge((_foreign_row(row, name) for row in rows), name))
        return _result_file(name, found.eval_id, merged)
    suites = [data] if found.cases is not None else found.suites
    if suites is None:
        raise ResultFileError(
            f"{name}: not a result file: it has none of 'cases', 'suites' and 'results'"
        )
    run_id = found.run_id
    options: dict[str, Any] = {}
    cases: list[CaseOutcome] = []
    for written in suites:
        suite = _decode(_decode_suite, written, name, 1)
        run_id = run_id or suite.run_id
        if suite.file:
            own = _decode(_decode_own_suite, written, name, 1)
            options = options or own.options
            cases += _own_outcomes(own, suite.cases, name)
        else:
            cases += _outcomes(suite)
    return _result_file(name, run_id, cases, narrowing(options))


def _result_file(
    name: str, run_id: str, cases: list[CaseOutcome], narrowed: str = ""
) -> ResultFile:
    if not cases:
        raise ResultFileError(f"{name}: it has no case results")
    return ResultFile(run_id, lambda: iter(cases), narrowed)


def _outcomes(suite: _Suite) -> Iterator[CaseOutcome]:
    """The cases of another tool's suite, which may have any details."""
    for case in suite.cases:
        outcome: Outcome = "passed" if case.passed else "failed"
        critical = suite.tier in CRITICAL_TIERS
        counts = (int(case.passed), 1, None)
        yield CaseOutcome(CaseRef("", case.id), outcome, *counts, "", critical)


def _own_outcomes(suite: _OwnSuite, cases: list[_Case], name: str) -> Iterator[CaseOutcome]:
    for known, written in zip(cases, suite.cases, strict=True):
        case = _decode(decode_case, written, f"{name}: case {known.id!r}", 1)
        trials = [t.outcome for t in case.trials if not t.confirms] or [case.outcome]
        passes = trials.count("passed")
        yield CaseOutcome(
            CaseRef(suite.file, case.id),
            *(case.outcome, passes, passes + trials.count("failed"), case.score),
            *(suite.comparability.get(case.id, ""), case.details.critical, case.details.cluster),
            Reasks.of(t.outcome for t in case.trials if t.confirms),
        )


def _open_lines(file: Path) -> ResultFile:
    """Our lines are streamed on every read; those of others are held, as repeats are merged."""
    name = shown_path(file)
    first = next(_read_lines(file, _decode_own_line), None)
    if first is None:
        raise ResultFileError(f"{name}: the file is empty")
    if _is_own(first[1]):
        return ResultFile(first[1].run_id, lambda: _own_lines(file, name))
    lines = _read_lines(file, _decode_foreign_line)
    rows = (_foreign_row(line, f"{name}:{number}") for number, line in lines)
    return _result_file(name, "", list(_merge(rows, name)))


def _read_lines(file: Path, decode: Callable[[bytes], T]) -> Iterator[tuple[int, T]]:
    name = shown_path(file)
    with _open(file) as stream:
        number = 0
        while data := stream.readline(MAX_LINE + 1):
            number += 1
            if len(data) > MAX_LINE:
                raise ResultFileError(f"{name}:{number}: the line has more than {MAX_LINE:,} bytes")
            data = data.removeprefix(_BOM) if number == 1 else data
            if not data.isspace():
                yield number, _decode(decode, data, name, number)


def _is_own(line: _OwnLine) -> bool:
    return isinstance(line.id, str) and line.outcome is not None


def _own_lines(file: Path, name: str) -> Iterator[CaseOutcome]:
    for number, line in _read_lines(file, _decode_own_line):
        if not _is_own(line) or line.outcome is None:
            raise ResultFileError(f"{name}:{number}: the line lacks 'id' or 'outcome'")
        judged = line.judged if line.judged is not None else line.repeats
        judged = judged if line.outcome in JUDGED else 0
        passes = line.passes if line.passes is not None else judged * (line.outcome == "passed")
        yield CaseOutcome(
            CaseRef(line.file, line.id),
            *(line.outcome, min(passes, judged), judged, _share(line.score)),
            *(line.comparability, line.critical, line.cluster, Reasks.of(line.reasks)),
        )


#: Id, outcome, score, and the variant: the target or prompt, if a file has several of them.
_Row = tuple[str, Outcome, float | None, str]


def _foreign_row(line: _ForeignLine, place: str) -> _Row:
    identity = line.test_id or line.eval_id
    if identity is not None and line.score is not None:
        passed = reaches(line.score, PASS_FROM)
        target = line.target if isinstance(line.target, str) else ""
        return identity, _outcome(bool(line.error), passed), _share(line.score), target
    if line.success is not None:
        unjudged = line.failure_reason == PROMPTFOO_ERROR
        if line.failure_reason is None:  # in older versions, failed assertions have an error too
            unjudged = bool(line.error) and bytes(line.grading_result) == b"null"
        outcome = _outcome(unjudged, line.success)
        return _promptfoo_id(line), outcome, _share(line.score), f"prompt {line.prompt_idx + 1}"
    keys = "'outcome' (Assay), 'eval_id' or 'test_id' with 'score' (AgentV), 'success' (promptfoo)"
    raise ResultFileError(f"{place}: this is not the result of a case: it has none of {keys}")


def _outcome(unjudged: bool, passed: bool) -> Outcome:
    return "errored" if unjudged else "passed" if passed else "failed"


def _promptfoo_id(line: _ForeignLine) -> str:
    """The description, else the variables, else the number: promptfoo's cases have no ids."""
    test = line.test_case or _Test()
    if test.description:
        return test.description
    variables = line.vars if line.vars is not None else test.vars
    if not variables:
        return f"test {(line.test_idx or 0) + 1}"
    text = json.dumps(variables, ensure_ascii=False, sort_keys=True)
    if len(text) <= _MAX_ID:
        return text
    return f"{cut(text, _MAX_ID + 3)} {sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"


class _CaseLines(msgspec.Struct):
    """The lines of one case; several are repeats, which must all pass."""

    passed: int = 0
    failed: int = 0
    total: float = 0.0
    scored: int = 0

    def add(self, outcome: Outcome, score: float | None) -> None:
        self.passed += outcome == "passed"
        self.failed += outcome == "failed"
        if score is not None and outcome != "errored":
            self.total += score
            self.scored += 1

    def outcome(self, identity: str) -> CaseOutcome:
        judged = self.passed + self.failed
        outcome: Outcome = "errored" if not judged else "failed" if self.failed else "passed"
        score = self.total / self.scored if self.scored else None
        return CaseOutcome(CaseRef("", identity), outcome, self.passed, judged, score)


def _merge(rows: Iterable[_Row], name: str) -> Iterator[CaseOutcome]:
    """One outcome per case; if the file has several variants, per case and variant."""
    merged: dict[tuple[str, str], _CaseLines] = {}
    for identity, outcome, score, variant in rows:
        merged.setdefault((identity, variant), _CaseLines()).add(outcome, score)
        if len(merged) > MAX_CASES:
            raise ResultFileError(f"{name}: there are more than {MAX_CASES:,} cases")
    several = len({variant for _, variant in merged}) > 1
    for (identity, variant), lines in merged.items():
        yield lines.outcome(f"{identity} [{variant}]" if several else identity)


def _share(score: float | None) -> float | None:
    """The score if it is from 0 to 1; other tools may have others, which cannot be compared."""
    return score if score is not None and 0 <= score <= 1 else None


@contextmanager
def _open(file: Path) -> Iterator[Any]:
    try:
        with open_binary(file, shown_path(file)) as stream:
            yield stream
    except EvalFileErrors as error:
        problem = error.problems[0]
        hint = _similar_name(file) if problem.code == "not-found" else ""
        raise ResultFileError(f"{problem.place}: {problem.message}{hint}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise ResultFileError(f"{shown_path(file)}: it cannot be read: {reason}") from None


def _similar_name(file: Path) -> str:
    """A hint with the most similar file name in the folder."""
    try:
        hint = nearest(file.name, sorted(os.listdir(file.parent))[:1000])
    except OSError:
        return ""
    return f" ({hint})" if hint else ""


def _decode(decode: Callable[[bytes], T], data: bytes | Raw, name: str, line: int) -> T:
    try:
        return decode(data)
    except RecursionError:
        raise ResultFileError(f"{name}:{line}: it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ResultFileError(f"{name}:{line}: it is not UTF-8") from None
    except msgspec.ValidationError as error:
        raise ResultFileError(f"{name}:{line}: {printable(str(error))}") from None
    except msgspec.DecodeError as error:
        place, message = _locate_error(bytes(data), str(error), line)
        raise ResultFileError(f"{name}:{place}: {message}") from None


def _locate_error(data: bytes, message: str, line: int) -> tuple[str, str]:
    """The line and column of a syntax error, and its message without the byte offset."""
    found = _BYTE.search(message)
    before = data[: int(found[1])] if found else data.rstrip()
    line += before.count(b"\n")
    column = len(before) - before.rfind(b"\n")
    if not found:
        return f"{line}:{column}", "the JSON ends too early"
    return f"{line}:{column}", _BYTE.sub("", message).removeprefix("JSON is malformed: ")
