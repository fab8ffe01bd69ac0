"""Files of results, ours and other tools', as the outcomes of their cases.

| File | Known by |
|---|---|
| a result file of ours, or of another tool of the same contract | `cases` |
| what `assay run --json` prints | `suites` |
| our export, a line a case | `id` and `outcome` |
| AgentV's results, a line a case | `eval_id` or `test_id`, and `score` |
| promptfoo's results, as JSON or lines | `results`, or `success` |

Nothing but what comparing needs is decoded. A file of JSON is read at once and so has a limit;
lines of our export are read one by one.
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

from assay.documents.document import MAX_FILE_BYTES
from assay.documents.source import open_binary
from assay.errors import EvalFileErrors, ResultFileError, nearest, printable
from assay.model.case import CRITICAL_TIERS
from assay.model.comparison import CaseOutcome, CaseRef
from assay.model.result import JUDGED, Outcome
from assay.model.score import PASS_FROM, reaches
from assay.settings import shown_path

T = TypeVar("T")

MAX_LINE = 40 * 1024 * 1024
#: More cases than this are not gathered from a file of another tool.
MAX_CASES = 1_000_000
#: What promptfoo says when a case could not be judged; assertions that failed are 1.
PROMPTFOO_ERROR = 2
_LONG = 80
_BOM = b"\xef\xbb\xbf"
_BYTE = re.compile(r" \(byte (\d+)\)$")


class ResultFile(msgspec.Struct, frozen=True):
    """The cases of a file, to be read as often as one likes; `run_id` is empty if not known."""

    run_id: str
    read: Callable[[], Iterator[CaseOutcome]]


class _Wire(msgspec.Struct, rename="camel", gc=False):
    """What is taken of a JSON object; other keys are passed over."""


class _Trial(_Wire):
    outcome: Outcome
    confirms: bool = False


class _Details(_Wire):
    outcome: Outcome
    score: float | None = None
    critical: bool = False
    cluster: str | None = None
    trials: list[_Trial] = []


class _Case(_Wire):
    id: str
    passed: bool
    details: msgspec.Raw = msgspec.Raw(b"null")


class _Suite(_Wire):
    cases: list[_Case]
    run_id: str = ""
    file: str = ""
    tier: str = ""
    comparability: dict[str, str] = {}


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
    excused: bool = False
    comparability: str = ""
    critical: bool = False
    cluster: str | None = None


class _ForeignLine(_Wire):
    """A line of AgentV's or promptfoo's results, or an entry of those."""

    score: float | None = None
    eval_id: str | None = msgspec.field(default=None, name="eval_id")
    test_id: str | None = msgspec.field(default=None, name="test_id")
    target: Any = None
    error: Any = None
    success: bool | None = None
    failure_reason: Any = None
    grading_result: msgspec.Raw = msgspec.Raw(b"null")
    test_case: _Test | None = None
    vars: Any = None
    test_idx: int | None = None
    prompt_idx: int = 0


class _Results(_Wire):
    results: list[_ForeignLine]


class _Document(_Wire):
    """A whole file of JSON, whoever wrote it."""

    suites: list[_Suite] | None = None
    cases: list[_Case] | None = None
    results: _Results | list[_ForeignLine] | None = None
    eval_id: str = ""
    run_id: str = ""
    file: str = ""
    tier: str = ""
    comparability: dict[str, str] = {}


_document = msgspec.json.Decoder(_Document).decode
_details = msgspec.json.Decoder(_Details).decode
_own_line = msgspec.json.Decoder(_OwnLine).decode
_foreign_line = msgspec.json.Decoder(_ForeignLine).decode


def read_results(file: Path) -> ResultFile:
    """The results in a file; raises ResultFileError when it has none."""
    return _lines_of(file) if file.suffix == ".jsonl" else _document_of(file)


def _document_of(file: Path) -> ResultFile:
    name = shown_path(file)
    with _opened(file) as stream:
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        limit = f"the file has more than {MAX_FILE_BYTES:,} bytes"
        raise ResultFileError(f"{name}: {limit}; export the run as JSONL, or name it by its id")
    found = _decoded(_document, data.removeprefix(_BOM), name, 1)
    if found.results is not None:
        rows = found.results if isinstance(found.results, list) else found.results.results
        cases = list(_gathered(((_foreign(row, name) for row in rows)), name))
        return _not_empty(name, found.eval_id, cases)
    suites = found.suites
    if suites is None and found.cases is not None:
        suites = [
            _Suite(found.cases, found.run_id, found.file, found.tier, found.comparability),
        ]
    if suites is None:
        raise ResultFileError(
            f"{name}: these are no results: there is neither 'cases', 'suites' nor 'results'"
        )
    run_id = found.run_id or next((suite.run_id for suite in suites), "")
    cases = [case for suite in suites for case in _cases(suite, name)]
    return _not_empty(name, run_id, cases)


def _not_empty(name: str, run_id: str, cases: list[CaseOutcome]) -> ResultFile:
    if not cases:
        raise ResultFileError(f"{name}: there is no result of any case")
    return ResultFile(run_id, lambda: iter(cases))


def _cases(suite: _Suite, name: str) -> Iterator[CaseOutcome]:
    """The cases of a suite. Ours name their file; the details of others may be anything."""
    for case in suite.cases:
        outcome: Outcome = "passed" if case.passed else "failed"
        passes, judged, score, cluster, excused = int(case.passed), 1, None, None, False
        critical = suite.tier in CRITICAL_TIERS
        if suite.file:
            found = _decoded(_details, bytes(case.details), f"{name}: case {case.id!r}", 1)
            outcome, score = found.outcome, found.score
            critical, cluster = found.critical, found.cluster
            trials = [t.outcome for t in found.trials if not t.confirms] or [outcome]
            excused = any(t.confirms and t.outcome == "passed" for t in found.trials)
            passes = trials.count("passed")
            judged = passes + trials.count("failed")
        key = suite.comparability.get(case.id, "")
        ref = CaseRef(suite.file, case.id)
        counts = (passes, judged, _share(score))
        yield CaseOutcome(ref, outcome, *counts, key, critical, cluster, excused)


def _lines_of(file: Path) -> ResultFile:
    """Our lines are read anew on every pass; those of others are gathered, as they repeat."""
    name = shown_path(file)
    first = next(_read_lines(file, _own_line), None)
    if first is None:
        raise ResultFileError(f"{name}: the file is empty")
    if _is_own(first[1]):
        return ResultFile(first[1].run_id, lambda: _own_lines(file, name))
    lines = _read_lines(file, _foreign_line)
    rows = (_foreign(line, f"{name}:{number}") for number, line in lines)
    return _not_empty(name, "", list(_gathered(rows, name)))


def _read_lines(file: Path, decode: Callable[[bytes], T]) -> Iterator[tuple[int, T]]:
    name = shown_path(file)
    with _opened(file) as stream:
        number = 0
        while data := stream.readline(MAX_LINE + 1):
            number += 1
            if len(data) > MAX_LINE:
                raise ResultFileError(f"{name}:{number}: the line has more than {MAX_LINE:,} bytes")
            data = data.removeprefix(_BOM) if number == 1 else data
            if not data.isspace():
                yield number, _decoded(decode, data, name, number)


def _is_own(line: _OwnLine) -> bool:
    return isinstance(line.id, str) and line.outcome is not None


def _own_lines(file: Path, name: str) -> Iterator[CaseOutcome]:
    for number, line in _read_lines(file, _own_line):
        if not _is_own(line) or line.outcome is None:
            raise ResultFileError(f"{name}:{number}: the line lacks 'id' or 'outcome'")
        judged = line.judged if line.judged is not None else line.repeats
        judged = judged if line.outcome in JUDGED else 0
        passes = line.passes if line.passes is not None else judged * (line.outcome == "passed")
        yield CaseOutcome(
            CaseRef(line.file, line.id),
            *(line.outcome, min(passes, judged), judged, _share(line.score)),
            *(line.comparability, line.critical, line.cluster, line.excused),
        )


#: Id, outcome, score, and the variant: what else tells two lines of one case apart.
_Row = tuple[str, Outcome, float | None, str]


def _foreign(line: _ForeignLine, place: str) -> _Row:
    identity = line.test_id or line.eval_id
    if identity is not None and line.score is not None:
        passed = reaches(line.score, PASS_FROM)
        target = line.target if isinstance(line.target, str) else ""
        return identity, _said(bool(line.error), passed), _share(line.score), target
    if line.success is not None:
        unjudged = line.failure_reason == PROMPTFOO_ERROR
        if line.failure_reason is None:  # of an older version: failed assertions have an error too
            unjudged = bool(line.error) and bytes(line.grading_result) == b"null"
        outcome = _said(unjudged, line.success)
        return _promptfoo_id(line), outcome, _share(line.score), f"prompt {line.prompt_idx + 1}"
    keys = "'outcome' (Assay), 'eval_id' or 'test_id' with 'score' (AgentV), 'success' (promptfoo)"
    raise ResultFileError(f"{place}: this is not the result of a case: it has none of {keys}")


def _said(unjudged: bool, passed: bool) -> Outcome:
    return "errored" if unjudged else "passed" if passed else "failed"


def _promptfoo_id(line: _ForeignLine) -> str:
    """Its description, else its variables, else its number: cases there have no ids."""
    test = line.test_case or _Test()
    if test.description:
        return test.description
    variables = line.vars if line.vars is not None else test.vars
    if not variables:
        return f"test {(line.test_idx or 0) + 1}"
    text = json.dumps(variables, ensure_ascii=False, sort_keys=True)
    if len(text) <= _LONG:
        return text
    return f"{text[:_LONG]}... {sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"


class _Together(msgspec.Struct):
    """The lines of one case; several are repeats, and all must pass."""

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


def _gathered(rows: Iterable[_Row], name: str) -> Iterator[CaseOutcome]:
    """One outcome a case. With several variants in the file each makes a case of its own."""
    found: dict[tuple[str, str], _Together] = {}
    for identity, outcome, score, variant in rows:
        found.setdefault((identity, variant), _Together()).add(outcome, score)
        if len(found) > MAX_CASES:
            raise ResultFileError(f"{name}: there are more than {MAX_CASES:,} cases")
    several = len({variant for _, variant in found}) > 1
    for (identity, variant), together in found.items():
        yield together.outcome(f"{identity} [{variant}]" if several else identity)


def _share(score: float | None) -> float | None:
    """A score from 0 to 1; other tools may have others, which do not compare."""
    return score if score is not None and 0 <= score <= 1 else None


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with open_binary(file, shown_path(file)) as stream:
            yield stream
    except EvalFileErrors as error:
        problem = error.problems[0]
        hint = _neighbour(file) if problem.code == "not-found" else ""
        raise ResultFileError(f"{problem.place}: {problem.message}{hint}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise ResultFileError(f"{shown_path(file)}: it cannot be read: {reason}") from None


def _neighbour(file: Path) -> str:
    """A hint with the nearest name in the same folder."""
    try:
        hint = nearest(file.name, sorted(os.listdir(file.parent))[:1000])
    except OSError:
        return ""
    return f" ({hint})" if hint else ""


def _decoded(decode: Callable[[bytes], T], data: bytes, name: str, line: int) -> T:
    try:
        return decode(data)
    except RecursionError:
        raise ResultFileError(f"{name}:{line}: it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ResultFileError(f"{name}:{line}: it is not UTF-8") from None
    except msgspec.ValidationError as error:
        raise ResultFileError(f"{name}:{line}: {printable(str(error))}") from None
    except msgspec.DecodeError as error:
        place, message = _place(data, str(error), line)
        raise ResultFileError(f"{name}:{place}: {message}") from None


def _place(data: bytes, message: str, line: int) -> tuple[str, str]:
    """Line and column of a fault that is told by its byte."""
    found = _BYTE.search(message)
    before = data[: int(found[1])] if found else data.rstrip()
    line += before.count(b"\n")
    column = len(before) - before.rfind(b"\n")
    if not found:
        return f"{line}:{column}", "the JSON ends too early"
    return f"{line}:{column}", _BYTE.sub("", message).removeprefix("JSON is malformed: ")
