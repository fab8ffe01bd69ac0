"""`assay.Case`: cases written in Python, checked like those of eval files when they are made."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, Unpack, cast

from msgspec.structs import replace

from assay import registry
from assay.errors import EvalFileErrors
from assay.loaders.cases import CaseReader
from assay.model.case import EvalCase, SourceLine
from assay.model.evaluator import EvaluatorSpec
from assay.model.keywords import CaseKeys, Input
from assay.model.message import ContentPart, Message, ToolCall
from assay.model.signatures import shows_keys
from assay.model.stubs import unreachable_stubs
from assay.model.suite import SuiteFile
from assay.model.written_case import entry_of, evaluator_entry, lists_no_evaluators
from assay.problems import Problem, Problems
from assay.settings import Settings, shown_path
from assay.wire.document import MAX_DEPTH, Document, TextMark
from assay.wire.shape import Shape
from assay.wire.validation import WHOLE, check
from assay.wire.validation_errors import kind_of

_EVALUATOR_KEYS = ("evaluators", "assert", "assertions")
#: A warning of a case that its run repeats; others are mistakes in the code.
_LATER = "unresolved-seed"


def document_at(line: SourceLine, data: Any) -> Document:
    """The data as a document whose parts are all on this line."""
    return Document(line.file, data, [], TextMark(line.line - 1, 0, 0))


def reader_at(line: SourceLine) -> CaseReader:
    """The reader for cases of this file, which shares equal evaluators between them."""
    # A reader collects problems, and so belongs to one thread.
    return _reader(line.file, os.getcwd(), threading.get_ident())


@lru_cache(maxsize=64)
def _reader(file: str, folder: str, thread: int) -> CaseReader:
    # A suite may supply what a case seems to lack.
    return new_reader(file, None)


def new_reader(file: str, root: SuiteFile | None) -> CaseReader:
    """A reader for cases of this Python file that inherit the keys of a suite."""
    path = Path(file)
    return CaseReader(path, Settings.find(Path.cwd()).for_file(path), root, incomplete=True)


def calling_line() -> SourceLine:
    """The line outside this package that is being executed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return SourceLine(shown_path(Path(frame.f_code.co_filename)), frame.f_lineno)


def _is_ours(module: Any) -> bool:
    return isinstance(module, str) and (module == "assay" or module.startswith("assay."))


@shows_keys
def Case(  # noqa: N802 - reads as the record that it makes
    id: str,  # noqa: A002 - the key of eval files
    input: Input | None = None,  # noqa: A002
    **keys: Unpack[CaseKeys],
) -> EvalCase:
    """A case with the keys and the shorthand of eval files, checked at once.

    Case("refund", "Refund order A100", expected_output="Done.", tags=["billing"])

    Raises EvalFileErrors with every problem, at this line of Python.
    """
    line = calling_line()
    written = {"id": id, **({} if input is None else {"input": input}), **keys}
    return read_case(line, plain_mapping(line, written))


@shows_keys
def Cases(  # noqa: N802 - as Case
    id: str,  # noqa: A002
    input: Input | None = None,  # noqa: A002
    **keys: Unpack[CaseKeys],
) -> list[EvalCase]:
    """A case for each row of `vars` or `vars_from`, with `{{name}}` replaced by its values.

    Cases("warm", "How warm is {{city}}?", expected_output="{{t}}", vars=[{"city": "Oslo", "t": 4}])
    """
    line = calling_line()
    written = {"id": id, **({} if input is None else {"input": input}), **keys}
    raw = _as_entries(plain_mapping(line, written))
    reader = reader_at(line)
    reader.problems = Problems(line.file)
    found = list(reader.read_all(document_at(line, raw), (), locate=line))
    _raise_problems(reader)
    return [case for case in found if case is not None]


def _as_entries(value: Any) -> Any:
    """The data with evaluators as entries of a file, in whose settings names can be replaced."""
    if isinstance(value, EvaluatorSpec):
        return evaluator_entry(value)
    if isinstance(value, dict):
        return {key: _as_entries(item) for key, item in value.items()}
    return [_as_entries(item) for item in value] if isinstance(value, list) else value


def read_case(line: SourceLine, raw: dict[str, Any], reader: CaseReader | None = None) -> EvalCase:
    """The case of raw data; raises EvalFileErrors with all of its problems."""
    reader = reader or reader_at(line)
    reader.problems = Problems(line.file)
    case = reader.read(document_at(line, raw), (), locate=line)
    _raise_problems(reader)
    assert case is not None  # otherwise there is a problem
    return case


def _raise_problems(reader: CaseReader) -> None:
    if not reader.problems:
        return
    found = [problem for problem in reader.problems.sorted() if problem.code != _LATER]
    if found:
        raise EvalFileErrors([replace(problem, severity="error") for problem in found])


def read_evaluator(raw: dict[str, Any], cls: type[EvaluatorSpec]) -> EvaluatorSpec:
    """The evaluator of raw keys, which code made; raises EvalFileErrors with all problems."""
    line = calling_line()
    spec: EvaluatorSpec = checked(line, cls, plain_mapping(line, raw))
    return spec


def checked(line: SourceLine, shape: type[Shape], raw: dict[str, Any]) -> Any:
    """The shape of raw data; raises EvalFileErrors with all problems, at this line."""
    found, problems = check(shape, document_at(line, raw), (), raw, reader_at(line).context)
    if problems:
        named = (_without_document(problem, raw) for problem in problems)
        raise EvalFileErrors([replace(problem, severity="error") for problem in named])
    return found


def _without_document(problem: Problem, raw: Mapping[str, Any]) -> Problem:
    """The problem with the evaluator in place of the document, which code does not have."""
    after = problem.message.removeprefix(WHOLE)
    name = raw.get("type")
    if name is None or after == problem.message:
        return problem
    return replace(problem, message=f"{name}{after}")


def plain_mapping(line: SourceLine, raw: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with nothing but what a file can hold, and evaluators; raises EvalFileErrors."""
    try:
        return {key: _plain(value, key, 1) for key, value in raw.items()}
    except _NotPlain as error:
        raise EvalFileErrors(
            [Problem(*line(), "error", error.code, str(error), error.hint)]
        ) from None


class _NotPlain(Exception):
    """A value that no eval file can hold."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.code, self.hint = code, hint
        super().__init__(message)


def _plain(value: Any, name: str, depth: int) -> Any:
    if isinstance(value, EvaluatorSpec) and depth == 1:
        found = f"{name!r} is the evaluator {value.type}; it must be a list"
        raise _NotPlain("wrong-type", found, f"write [{value.type}(...)]")
    if value is None or isinstance(value, (bool, EvaluatorSpec)):
        return value
    if isinstance(value, str):
        return _text(value, name)
    if isinstance(value, (int, float)):
        return _number(value, name)
    if depth > MAX_DEPTH:
        raise _NotPlain("too-deep", f"{name!r} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, (Message, ToolCall, ContentPart)):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {_key(key, name): _plain(item, str(key), depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        if name in _EVALUATOR_KEYS:
            value = [evaluator_of(item) if callable(item) else item for item in value]
        return [_plain(item, name, depth + 1) for item in value]
    hint = "use text, numbers, booleans, None, lists and dicts"
    raise _NotPlain("wrong-type", f"{name!r} has {kind_of(value)}, which is not JSON", hint)


def _key(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise _NotPlain("wrong-type", f"{name!r} has the key {key!r}, which is not text")
    return _text(key, name)


def _text(value: str, name: str) -> str:
    text = value if type(value) is str else str.__str__(value)
    try:
        text.encode()
        wrong = "a NUL" if "\0" in text else ""
    except UnicodeEncodeError:
        wrong = "half of a surrogate pair"
    if wrong:
        message = f"{name!r} has {wrong}, which cannot be stored"
        raise _NotPlain("bad-character", message, "remove it")
    return text


def _number(value: float, name: str) -> float:
    fits = -(2**63) <= value < 2**64 if isinstance(value, int) else isfinite(value)
    if not fits:
        message = f"{name!r} is {value!r}; it must be a finite number that fits 64 bits"
        raise _NotPlain("bad-number", message)
    return int(value) if isinstance(value, int) else float(value)


def evaluator_of(function: Callable[..., Any], **settings: Any) -> EvaluatorSpec:
    """A function as an evaluator; its other parameters are the settings."""
    cls = cast("Any", registry.evaluators.get("python")).spec_of(function)
    named = function if inspect.isroutine(function) else type(function)
    kind = f"python:{named.__module__}:{named.__qualname__}"
    return read_evaluator({"type": kind, **settings}, cls)


#: Keys under `execution` that cases inherit, besides the target.
_EXECUTION = ("threshold", "repeat", "timeout_seconds")


def inheriting(cases: Sequence[Any], given: Mapping[str, Any]) -> tuple[Any, ...]:
    """The cases with the keys of a suite that was made in Python; others than cases are kept."""
    line = calling_line()
    execution = {name: given[name] for name in _EXECUTION if name in given}
    root = {name: value for name, value in given.items() if name not in execution}
    keys = checked(line, SuiteFile, plain_mapping(line, {**root, "execution": execution}))
    unused = unreachable_stubs("the suite", keys.stubs, lambda path: line())
    if problems := [replace(problem, severity="error") for problem in unused]:
        raise EvalFileErrors(problems)
    return tuple(
        _with_inherited(case, keys, line) if isinstance(case, EvalCase) else case for case in cases
    )


def _with_inherited(case: EvalCase, keys: SuiteFile, suite: SourceLine) -> EvalCase:
    inherited, filled = keys.inherited, dict[str, Any]()
    for name in ("target", *_EXECUTION):
        if getattr(case, name) is None:
            filled[name] = getattr(inherited, name)
    filled["stubs"] = {**keys.stubs, **case.stubs}
    filled["tags"] = tuple(dict.fromkeys((*keys.tags, *case.tags)))
    if inherited.evaluators and lists_no_evaluators(case):
        line = case.locate if isinstance(case.locate, SourceLine) else suite
        reader = new_reader(line.file, SuiteFile(evaluators=inherited.evaluators))
        made = read_case(line, {**entry_of(case), "evaluators": None}, reader)
        for name in ("evaluators", "has_default_evaluators", "added_defaults"):
            filled[name] = getattr(made, name)
    return case.replace(**filled)
