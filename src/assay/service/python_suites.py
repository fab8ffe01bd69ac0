"""Suites made in Python: what `run` accepts, and the checks that loaders do for files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from assay.engine.plan import DefaultEvaluators
from assay.engine.run_spec import project_path
from assay.errors import UsageError
from assay.model.case import EvalCase, EvalSuite, SourceLine
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message
from assay.model.run import PYTHON_SUITE, RunRecord
from assay.model.unchecked import unchecked_expectations
from assay.problems import Problem
from assay.seed_manifest import Seeds
from assay.settings import Settings
from assay.suites.discovery import loader_for
from assay.wire.validation_errors import kind_of

_HINT = "give a Suite, a list of cases, or paths of eval files"
#: The name of a list of cases.
_LIST = "cases"
#: At most this many problems are reported: a mistake in a loop makes one per case.
_MAX_PROBLEMS = 100


def listed(cases: Any) -> list[Any]:
    """A suite, a path, or several of either, as a list; a case or several become a suite."""
    if isinstance(cases, (EvalSuite, str, os.PathLike)):
        return [cases]
    if isinstance(cases, EvalCase):
        return [EvalSuite(_LIST, (cases,))]
    if not isinstance(cases, Iterable) or isinstance(cases, (bytes, Mapping)):
        raise UsageError(f"{kind_of(cases)} cannot be run: {_HINT}")
    given = list(cases)
    if given and isinstance(given[0], EvalCase):
        return [EvalSuite(_LIST, given)]
    for each in given:
        if not isinstance(each, (EvalSuite, str, os.PathLike)):
            raise UsageError(f"a list with {kind_of(each)} cannot be run: {_HINT}")
    if 0 < sum(isinstance(each, EvalSuite) for each in given) < len(given):
        raise UsageError("suites and paths are given together: `assay.load` makes suites of paths")
    return given


def checked(suites: Sequence[EvalSuite], *, defaults: bool = False) -> list[EvalSuite]:
    """The suites, each with a file or a substitute for it; raises a UsageError with all problems.

    `defaults` says whether the options have evaluators for cases without any.
    """
    ids_by_file: dict[str, set[str]] = {}
    valid: list[EvalSuite] = []
    problems: list[str] = []
    for suite in suites:
        if found := list(_suite_problems(suite)):
            problems += found
            continue
        file = suite.file or _unique(f"{PYTHON_SUITE}{suite.name}", ids_by_file)
        ids = ids_by_file.setdefault(file, set())
        problems += islice(_case_problems(suite, ids, defaults=defaults), _MAX_PROBLEMS + 1)
        valid.append(replace(suite, file=file))
    if problems:
        more = ["and more"] if len(problems) > _MAX_PROBLEMS else []
        lines = ["these suites cannot be run:", *problems[:_MAX_PROBLEMS], *more]
        raise UsageError("\n  ".join(lines))
    return valid


def unchecked(
    suites: Iterable[EvalSuite], defaults: DefaultEvaluators, seeds: Seeds
) -> Iterator[Problem]:
    """Warnings about expectations that no evaluator reads, one of a kind for each suite.

    Only about suites made in Python, and cases that get other default evaluators: loaders have
    warned about all others. Also about seed tokens without a value in cases made in Python.
    """
    for suite in suites:
        found: dict[str, list[Problem]] = {}
        # A large file was read by its loader, which is not repeated without a reason.
        known = suite.streamed or (getattr(suite.cases, "checked", False) and not defaults)
        for case in () if known else suite.cases:
            given, made = defaults.applied(case), _is_made_in_python(case)
            if made:
                yield from seeds.problems(given)
            if given is not case or made:
                for problem in unchecked_expectations(given):
                    found.setdefault(problem.hint, []).append(problem)
        for first, *others in found.values():
            more = f" (and {len(others):,} more of the suite)" if others else ""
            place = first.file or suite.file
            yield replace(first, file=place, message=first.message + more)


def _is_made_in_python(case: EvalCase) -> bool:
    return case.locate is None or isinstance(case.locate, SourceLine)


def paths_of(suites: Iterable[EvalSuite], settings: Settings) -> list[str]:
    """The files of the suites as a run records them, from which they can be loaded again."""
    return [
        project_path(suite.file, settings)
        if _is_eval_file(suite.file)
        else f"{PYTHON_SUITE}{suite.file.removeprefix(PYTHON_SUITE)}"
        for suite in suites
    ]


def _is_eval_file(file: str) -> bool:
    return os.path.isfile(file) and loader_for(Path(file)) is not None


def check_loadable(run: RunRecord, *, regraded: bool) -> None:
    """Raise a UsageError if suites of a run were in no file, and so cannot be loaded again."""
    paths = run.plan["paths"]
    made = [
        path.removeprefix(PYTHON_SUITE)
        for path in paths
        if not path or path.startswith(PYTHON_SUITE)
    ]
    if made:
        names = ", ".join(map(repr, made))
        way = f"assay.regrade({run.id!r}, suites)" if regraded else "assay.run(suites, ...)"
        message = f"suites of the run {run.id} were made in Python ({names})"
        raise UsageError(f"{message}, and can only be given again there: {way}")


def _unique(name: str, taken: Mapping[str, Any]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def _suite_problems(suite: EvalSuite) -> Iterator[str]:
    name = suite.name
    if not isinstance(name, str) or not (suite.file or (name.strip() and name.isprintable())):
        yield f"a suite is called {name!r}: a name is printable text, and not empty"
    where = f"the suite {suite.name!r}"
    if not isinstance(suite.file, str):
        yield f"{where}: 'file' is {kind_of(suite.file)}, not text; '' when it is in no file"
    cases = suite.cases
    if isinstance(cases, (str, bytes)) or not isinstance(cases, Sequence):
        # An iterator would be used up after the first pass, and a run needs more than one.
        yield f"{where}: 'cases' is {kind_of(cases)}, not a list or a tuple of EvalCase"
    elif not suite.streamed and not cases:
        yield f"{where} has no case"


def _case_problems(suite: EvalSuite, ids: set[str], *, defaults: bool) -> Iterator[str]:
    """The problems of the cases; `ids` are those that its file has already."""
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
        place = "" if case.locate is None else f" ({case.origin.place})"
        yield from (f"{where}, case {case.id!r}{place}: {problem}" for problem in found)


def _is_loaded(case: EvalCase) -> bool:
    """Does it look as if a loader made it? Then it has been validated."""
    judged = bool(case.evaluators) or case.skip is not None
    return case.locate is not None and judged and type(case.input_messages) is tuple


def _id_problems(case: EvalCase) -> Iterator[str]:
    if not isinstance(case.id, str):
        yield f"the id is {kind_of(case.id)}, not text"
    elif not case.id or case.id != case.id.strip():
        yield "the id is empty or has space around it"
    # For ids in files, loaders decide which characters are allowed.
    elif case.locate is None and not case.id.isprintable():
        yield "the id has characters that cannot be printed"


def _content_problems(case: EvalCase, *, defaults: bool) -> Iterator[str]:
    for name in ("input_messages", "expected_messages"):
        example = "Message('user', 'What is ...?')"
        yield from _tuple_problems(name, getattr(case, name), Message, example)
    yield from _tuple_problems("evaluators", case.evaluators, EvaluatorSpec, "an evaluator")
    if case.skip is not None:
        return
    if not case.input_messages:
        yield "it has no input_messages, and nothing could be asked; or give a reason to skip it"
    if not case.evaluators and not (defaults and case.has_default_evaluators):
        yield "it has no evaluators, and nothing could fail; or give a reason to skip it"


def _tuple_problems(name: str, given: Any, kind: type, example: str) -> Iterator[str]:
    """The problems of a field that must be a tuple of `kind`."""
    if not isinstance(given, (tuple, list)):
        yield f"{name} is {kind_of(given)}, not a tuple of {kind.__name__}: ({example},)"
        return
    for index, each in enumerate(given):
        if not isinstance(each, kind):
            yield f"{name}[{index}] is {kind_of(each)}, not {example}"
