"""Requests for runs: which cases, targets, evaluators and options they may name.

Permission to start runs is not permission to run programs or to read files on the server.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.comparison.outcomes import find_run, names_file
from assay.errors import NotInStore
from assay.model.evaluator import TYPE_ALIASES
from assay.model.options import options_where
from assay.model.test_case import MAX_TAG, TestCase
from assay.ports import Store
from assay.server import bodies
from assay.server.bodies import Parser, parse_fields
from assay.server.envelope import ApiError, invalid
from assay.server.state import State
from assay.service.options import options_of
from assay.suites import test_cases

#: More workers or repeats do not help, and take memory before the first trial.
MAX_WORKERS, MAX_REPEATS = 1000, 1000
MAX_IDS, MAX_PATHS, MAX_EVALUATORS = 20_000, 1000, 1000
#: The longest path and the longest name of a target, in code points.
MAX_PATH, MAX_TARGET = 1000, 500
#: Evaluators that only compare, or ask a judge of the server's own configuration.
SAFE_EVALUATORS = frozenset(
    (
        *("expect", "equals", "contains", "contains_any", "contains_all", "icontains"),
        "icontains_any",
        *("starts_with", "ends_with", "regex", "is_json", "json_schema", "similarity"),
        *("tool_trajectory", "rubric", "llm_judge", "composite", "field_accuracy"),
        *("latency", "cost", "token_usage", "execution_metrics"),
    )
)
#: The keys under which an evaluator has others.
_MEMBERS = ("evaluators", "assert", "assertions")
#: A prompt that ends like this may be taken for a file name.
_FILE_NAME = re.compile(r"\.[A-Za-z0-9]+\s*$")


def parse_run_request(
    body: Mapping[str, Any], state: State
) -> tuple[list[str | Path], dict[str, Any]]:
    """The cases to run, and the options as in RunOptions."""
    given = parse_fields(body, FIELDS)
    options = {**given.get("options", {})}
    for name in ("target", "evaluators"):
        if name in given:
            options[name] = given[name]
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
        return [path_below(state.jobs.root, path) for path in given["suites"]]
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
            raise invalid(f"Field 'test_cases' names {case_id}, which is no test case")
        cases.append(case)
    return cases


def path_below(root: Path, given: str) -> Path:
    """The path below the served root; it must not lead outside, not even by symbolic links."""
    parts = Path(given).parts
    path = Path(os.path.realpath(root / given))
    if os.path.isabs(given) or ".." in parts or not path.is_relative_to(root):
        raise invalid(f"Path {bodies.quoted(given)} leads out of the served root")
    # Unlike `Path.exists`, this never raises: a path that is too long does not exist either.
    if not os.path.exists(path):
        raise invalid(f"Path {bodies.quoted(given)} does not exist below the served root")
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
    baseline = None if given.baseline == configured.baseline else given.baseline
    if baseline is not None and _may_be_file(baseline, state.store):
        raise invalid("Option 'baseline' must be the id of a run, or the name of a baseline")


def _may_be_file(reference: str, store: Store) -> bool:
    """Would a run look for a file of this name? It does if the store has no such run."""
    if names_file(reference):
        return True
    try:
        find_run(reference, store)
    except NotInStore:
        return True
    return False


def _check_evaluator(entry: Any) -> None:
    """Refuse an evaluator that would run a program or read a file."""
    if isinstance(entry, str):
        entry = {"type": entry}
    if not isinstance(entry, dict):
        raise invalid("Field 'evaluators' must be an array of types, or of objects with a 'type'")
    kind = str(entry.get("type")).replace("-", "_").removeprefix("not_")
    kind = TYPE_ALIASES.get(kind, kind)
    if kind not in SAFE_EVALUATORS:
        known = ", ".join(sorted(SAFE_EVALUATORS))
        raise invalid(
            f"Evaluator {bodies.quoted(kind)} cannot be given in a request; known: {known}"
        )
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


def _paths(value: Any) -> tuple[str, ...]:
    paths: tuple[str, ...] = bodies.texts("suites", MAX_PATHS, (1, MAX_PATH))(value)
    if not paths:
        raise ApiError("INVALID_LENGTH", "Field 'suites' must name at least one path")
    return paths


def _ids(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise invalid("Field 'test_cases' must be an array of ids")
    if not 1 <= len(value) <= MAX_IDS:
        raise ApiError("INVALID_LENGTH", f"Field 'test_cases' must have 1-{MAX_IDS} items")
    read = bodies.uuid("An item of field 'test_cases'")
    ids = [read(one) for one in value]
    if len(set(ids)) != len(ids):
        raise invalid("Field 'test_cases' names a test case twice")
    return ids


def _evaluators(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise invalid("Field 'evaluators' must be an array")
    if len(value) > MAX_EVALUATORS:
        message = f"Field 'evaluators' must have at most {MAX_EVALUATORS} items"
        raise ApiError("INVALID_LENGTH", message)
    _check_encodable("evaluators", value)
    return value


def _options(value: Any) -> dict[str, Any]:
    """The fields of RunOptions that are not fields of the request itself."""
    if not isinstance(value, dict):
        raise invalid("Field 'options' must be an object")
    for name in ("target", "evaluators", "evaluator"):
        if name in value:
            raise invalid(f"Option {name!r} is a field of the request itself")
    _check_encodable("options", value)
    return value


def _check_encodable(name: str, value: Any) -> None:
    """Refuse lone surrogates anywhere in a value: no store can keep them."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = f"Field '{name}' has half of a surrogate pair, which cannot be stored"
        raise invalid(message) from None


FIELDS: dict[str, Parser] = {
    "test_cases": _ids,
    "tag": bodies.text("Field 'tag'", 1, MAX_TAG),
    "suites": _paths,
    "target": bodies.text("Field 'target'", 1, MAX_TARGET),
    "evaluators": _evaluators,
    "options": _options,
}
#: The names under `options` of a request.
OPTIONS = options_where(lambda option: "request" in option.doors)
