"""Suites made in Python: what `run` takes, the checks that files get, what stands for a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from assay.engine.job import project_path
from assay.errors import UsageError
from assay.model.case import EvalCase, Suite
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message
from assay.model.refusal import kind_of
from assay.model.run import MADE, RunRecord
from assay.settings import Settings
from assay.suites.discovery import loader_for

_WANTED = "give a Suite, several of them, or paths of eval files"
#: How many problems are told; a mistake in a loop makes one of every case.
_TOLD = 100


def listed(cases: Any) -> list[Any]:
    """One suite or path, or several, as a list of suites or of paths."""
    if isinstance(cases, (Suite, str, os.PathLike)):
        return [cases]
    if not isinstance(cases, Iterable) or isinstance(cases, (bytes, Mapping)):
        raise UsageError(f"{kind_of(cases)} cannot be run: {_WANTED}")
    given = list(cases)
    for each in given:
        if not isinstance(each, (Suite, str, os.PathLike)):
            hint = "; cases go into a Suite(name, '', cases)" if isinstance(each, EvalCase) else ""
            raise UsageError(f"a list with {kind_of(each)} cannot be run: {_WANTED}{hint}")
    if 0 < sum(isinstance(each, Suite) for each in given) < len(given):
        raise UsageError("suites and paths are given together: `assay.load` makes suites of paths")
    return given


def checked(suites: Sequence[Suite], *, defaults: bool = False) -> list[Suite]:
    """The suites, each with a file or what stands for it; raises a UsageError with all problems.

    With `defaults` there are evaluators for cases that leave theirs to the options.
    """
    taken: dict[str, set[str]] = {}
    named: list[Suite] = []
    problems: list[str] = []
    for suite in suites:
        if found := list(_suite_problems(suite)):
            problems += found
            continue
        file = suite.file or _unique(f"{MADE}{suite.name}", taken)
        ids = taken.setdefault(file, set())
        problems += islice(_case_problems(suite, ids, defaults=defaults), _TOLD + 1)
        named.append(replace(suite, file=file))
    if problems:
        more = ["and more"] if len(problems) > _TOLD else []
        raise UsageError("\n  ".join(["these suites cannot be run:", *problems[:_TOLD], *more]))
    return named


def paths_of(suites: Iterable[Suite], settings: Settings) -> list[str]:
    """The files of the suites as a run records them, so that they can be loaded again."""
    return [
        project_path(suite.file, settings)
        if _is_eval_file(suite.file)
        else f"{MADE}{suite.file.removeprefix(MADE)}"
        for suite in suites
    ]


def _is_eval_file(file: str) -> bool:
    return os.path.isfile(file) and loader_for(Path(file)) is not None


def check_loadable(run: RunRecord, *, regraded: bool) -> None:
    """Refuse to load the suites of a run again that were in no file."""
    paths = run.plan["paths"]
    made = [path.removeprefix(MADE) for path in paths if not path or path.startswith(MADE)]
    if made:
        names = ", ".join(map(repr, made))
        way = f"assay.regrade({run.id!r}, suites)" if regraded else "assay.run(suites, ...)"
        told = f"suites of the run {run.id} were made in Python ({names})"
        raise UsageError(f"{told}, and can only be given again there: {way}")


def _unique(name: str, taken: Mapping[str, Any]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def _suite_problems(suite: Suite) -> Iterator[str]:
    name = suite.name
    if not isinstance(name, str) or not (suite.file or (name.strip() and name.isprintable())):
        yield f"a suite is called {name!r}: a name is printable text, and not empty"
    where = f"the suite {suite.name!r}"
    if not isinstance(suite.file, str):
        yield f"{where}: 'file' is {kind_of(suite.file)}, not text; '' when it is in no file"
    cases = suite.cases
    if isinstance(cases, (str, bytes)) or not isinstance(cases, Sequence):
        # Of an iterator nothing would be left for a second run, nor for the second look of this.
        yield f"{where}: 'cases' is {kind_of(cases)}, not a list or a tuple of EvalCase"
    elif not suite.streamed and not cases:
        yield f"{where} has no case"


def _case_problems(suite: Suite, ids: set[str], *, defaults: bool) -> Iterator[str]:
    """What is wrong with the cases; `ids` are those that its file has already."""
    if suite.streamed or getattr(suite.cases, "checked", False):
        return
    where = f"the suite {suite.name!r}"
    for index, case in enumerate(suite.cases):
        if not isinstance(case, EvalCase):
            yield f"{where}: cases[{index}] is {kind_of(case)}, not an EvalCase"
            continue
        if _is_loaded(case):
            found = []
        else:
            found = [*_id_problems(case), *_content_problems(case, defaults=defaults)]
        if isinstance(case.id, str) and case.id in ids:
            found.append("another case has this id; ids are unique in a suite")
        elif isinstance(case.id, str):
            ids.add(case.id)
        yield from (f"{where}, case {case.id!r}: {problem}" for problem in found)


def _is_loaded(case: EvalCase) -> bool:
    """Is it as a loader made it, as far as can be seen at a glance? Then it was checked there."""
    judged = bool(case.evaluators) or case.skip is not None
    return case.locate is not None and judged and type(case.input_messages) is tuple


def _id_problems(case: EvalCase) -> Iterator[str]:
    if not isinstance(case.id, str):
        yield f"the id is {kind_of(case.id)}, not text"
    elif not case.id or case.id != case.id.strip():
        yield "the id is empty or has space around it"
    # What a file may have in its ids is the business of its loader.
    elif case.locate is None and not case.id.isprintable():
        yield "the id has characters that cannot be printed"


def _content_problems(case: EvalCase, *, defaults: bool) -> Iterator[str]:
    for name in ("input_messages", "expected_messages"):
        yield from _foreign(name, getattr(case, name), Message, "Message('user', 'What is ...?')")
    yield from _foreign("evaluators", case.evaluators, EvaluatorSpec, "an evaluator")
    if case.skip is not None:
        return
    if not case.input_messages:
        yield "it has no input_messages, and nothing could be asked; or give a reason to skip it"
    if not case.evaluators and not (defaults and case.has_default_evaluators):
        yield "it has no evaluators, and nothing could fail; or give a reason to skip it"


def _foreign(name: str, given: Any, kind: type, example: str) -> Iterator[str]:
    """What is wrong with a field that is to be a tuple of our records."""
    if not isinstance(given, (tuple, list)):
        yield f"{name} is {kind_of(given)}, not a tuple of {kind.__name__}: ({example},)"
        return
    for index, each in enumerate(given):
        if not isinstance(each, kind):
            yield f"{name}[{index}] is {kind_of(each)}, not {example}"
