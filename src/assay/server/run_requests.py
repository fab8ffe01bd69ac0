"""Requests for runs: which cases, targets, evaluators and options they may name.

Permission to start runs is not permission to run programs or to read files on the server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay import registry
from assay.comparison.outcomes import find_run, names_file
from assay.errors import NotInStore
from assay.model.evaluator import TYPE_ALIASES
from assay.model.options import options_where
from assay.model.test_case import TestCase
from assay.ports import Store
from assay.server.envelope import ApiError, invalid
from assay.server.requests import quoted
from assay.server.schemas import NewGroup, NewRun
from assay.server.state import State
from assay.service.groups import find_group
from assay.service.options import options_of
from assay.suites import test_cases

#: More workers or repeats do not help, and take memory before the first trial.
MAX_WORKERS, MAX_REPEATS = 1000, 1000
#: The names under `options` of a request.
OPTIONS = options_where(lambda option: "request" in option.interfaces)
#: The keys under which an evaluator has others.
_MEMBERS = ("evaluators", "assert", "assertions")
#: A prompt that ends like this may be taken for a file name.
_FILE_NAME = re.compile(r"\.[A-Za-z0-9]+\s*$")


def parse_run_request(body: NewRun, state: State) -> tuple[list[str | Path], dict[str, Any]]:
    """The cases to run, and the options as in RunOptions."""
    given = body.model_dump(exclude_unset=True)
    options = {**given.get("options", {})}
    for name in ("target", "evaluators", "evaluator"):
        if name in options:
            raise invalid(f"Option {name!r} is a field of the request itself")
    if "evaluators" in given:
        options["evaluators"] = given["evaluators"]
    if "target" in given and not isinstance(body, NewGroup):  # a group has one for each run
        options["target"] = given["target"]
    _check_options(options, state)
    return _cases(given, state), options


def _cases(given: Mapping[str, Any], state: State) -> list[str | Path]:
    ways = [name for name in ("test_cases", "tag", "suites") if name in given]
    if not ways:
        message = "Field 'test_cases' is required, or 'tag', or 'suites'"
        raise ApiError("MISSING_FIELD", message)
    if len(ways) > 1:
        raise invalid(f"Fields {' and '.join(map(repr, ways))} exclude each other")
    if "suites" in given:
        return [path_below(state.run_manager.root, path) for path in given["suites"]]
    if "tag" in given:
        cases = test_cases.all_cases(state.store, given["tag"])
        if not cases:
            raise invalid(f"No test case has the tag {given['tag']!r}")
    else:
        cases = _cases_by_id(given["test_cases"], state.store)
    return [test_cases.pinned(cases, state.store)]


def _cases_by_id(ids: list[str], store: Store) -> list[TestCase]:
    found = store.test_cases.find(ids)
    cases = []
    for case_id in ids:
        case = found.get(case_id)
        if case is None:
            raise invalid(f"Field 'test_cases' names {case_id}, which is not a test case")
        cases.append(case)
    return cases


def path_below(root: Path, given: str) -> Path:
    """The path below the served root; it must not lead outside, not even by symbolic links."""
    parts = Path(given).parts
    path = Path(os.path.realpath(root / given))
    if os.path.isabs(given) or ".." in parts or not path.is_relative_to(root):
        raise invalid(f"Path {quoted(given)} leads out of the served root")
    # Unlike `Path.exists`, this never raises: a path that is too long does not exist either.
    if not os.path.exists(path):
        raise invalid(f"Path {quoted(given)} does not exist below the served root")
    return root / given


def _check_options(options: dict[str, Any], state: State) -> None:
    """Refuse what only the configuration may set. Options are checked as a run parses them."""
    for entry in options.get("evaluators", ()):
        _check_evaluator(entry)
    configured = options_of({}, state.settings, None)
    given = options_of(options, state.settings, None)
    for name, most in (("workers", MAX_WORKERS), ("repeat", MAX_REPEATS)):
        value = getattr(given, name)
        if value not in (None, getattr(configured, name)) and value > most:
            raise invalid(f"Option '{name}' is {value}; at most {most} is allowed here")
    if given.of is not None and _may_be_file(given.of, state.store):
        raise invalid("Option 'of' must be the id of a run, or the name of a baseline")
    baseline = None if given.baseline == configured.baseline else given.baseline
    if baseline is not None and _may_be_file(baseline, state.store):
        raise invalid("Option 'baseline' must be the id of a run, or the name of a baseline")


def _may_be_file(reference: str, store: Store) -> bool:
    """Would a run look for a file of this name? It does if the store has no such run."""
    if names_file(reference):
        return True
    if find_group(reference, store) is not None:
        return False
    try:
        find_run(reference, store)
    except NotInStore:
        return True
    return False


def allowed_evaluators() -> set[str]:
    """The types of the evaluators that a request may contain."""
    usable = registry.evaluators.usable()
    return {name for name, cls in usable.items() if cls.allowed_in_requests}


def _check_evaluator(entry: Any) -> None:
    """Refuse an evaluator that would run a program or read a file."""
    if isinstance(entry, str):
        entry = {"type": entry}
    if not isinstance(entry, dict):
        raise invalid("Field 'evaluators' must be an array of types, or of objects with a 'type'")
    kind = str(entry.get("type")).replace("-", "_").removeprefix("not_")
    kind = TYPE_ALIASES.get(kind, kind)
    if kind not in (allowed := allowed_evaluators()):
        known = ", ".join(sorted(allowed))
        raise invalid(f"Evaluator {quoted(kind)} cannot be given in a request; known: {known}")
    _check_prompt(entry, ("prompt", "value") if kind == "llm_judge" else ("prompt",))
    for key in _MEMBERS:
        members = entry.get(key, ())
        for member in members if isinstance(members, list) else ():
            _check_evaluator(member)
    aggregator = entry.get("aggregator")
    if isinstance(aggregator, dict):
        if "script" in aggregator or "path" in aggregator:
            raise invalid("An aggregator of a request cannot run a program")
        _check_prompt(aggregator)


def _check_prompt(entry: Mapping[str, Any], keys: tuple[str, ...] = ("prompt",)) -> None:
    if any(_FILE_NAME.search(str(entry.get(key, ""))) for key in keys):
        raise invalid("A prompt of a request cannot be a file, and must not end like one")
