"""What a request for a run may ask for: cases, targets and evaluators that are safe to give.

Whoever may start runs is not for that allowed to run programs or to read files of the server.
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
from assay.model.options import RunOptions
from assay.model.test_case import MAX_TAG, TestCase
from assay.ports import Store
from assay.server import bodies
from assay.server.bodies import Read, read_fields
from assay.server.envelope import ApiError, invalid
from assay.server.state import State
from assay.service.options import options_of
from assay.suites import test_cases

#: More lanes or repeats than that help nobody, and take memory before the first question.
MOST_WORKERS, MOST_REPEATS = 1000, 1000
MOST_IDS, MOST_PATHS, MOST_CHARS, MOST_NAME = 20_000, 1000, 1000, 500
MOST_EVALUATORS = 1000
#: Evaluators that only compare, or ask a judge of the server's own configuration.
SAFE = frozenset(
    (
        *("expect", "equals", "contains", "contains_any", "contains_all", "icontains"),
        *("starts_with", "ends_with", "regex", "is_json", "json_schema", "similarity"),
        *("tool_trajectory", "rubric", "llm_judge", "composite", "field_accuracy"),
        *("latency", "cost", "token_usage", "execution_metrics"),
    )
)
_MEMBERS = ("evaluators", "assert", "assertions")
#: A prompt that ends so may be meant as the name of a file.
_FILE_NAME = re.compile(r"\.[A-Za-z0-9]+\s*$")


def order_of(body: Mapping[str, Any], state: State) -> tuple[list[str | Path], dict[str, Any]]:
    """What is to be run, and the options of RunOptions."""
    given = read_fields(body, FIELDS)
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
        return [confined(path, state.jobs.root) for path in given["suites"]]
    if "tag" in given:
        cases = test_cases.all_cases(state.store, given["tag"])
        if not cases:
            raise invalid(f"No test case has the tag {given['tag']!r}")
    else:
        cases = _named(given["test_cases"], state.store)
    return [test_cases.pinned(cases, state.store)]


def _named(ids: list[str], store: Store) -> list[TestCase]:
    found = store.test_cases.find(ids)
    cases = []
    for identity in ids:
        case = found.get(identity)
        if case is None:
            raise invalid(f"Field 'test_cases' names {identity}, which is no test case")
        cases.append(case)
    return cases


def confined(written: str, root: Path) -> Path:
    """The path below the served root; refused when it leads elsewhere, by links too."""
    parts = Path(written).parts
    path = Path(os.path.realpath(root / written))
    if os.path.isabs(written) or ".." in parts or not path.is_relative_to(root):
        raise invalid(f"Path {bodies.shown(written)} leads out of the served root")
    # Whatever the system has against a path, such as its length: nothing is there.
    if not os.path.exists(path):
        raise invalid(f"Path {bodies.shown(written)} does not exist below the served root")
    return root / written


def _check_options(options: dict[str, Any], state: State) -> None:
    """Refuse what only the configuration may say. Options are looked at as a run reads them."""
    for entry in options.get("evaluators", ()):
        _check_evaluator(entry)
    configured = options_of({}, state.settings, None)
    given = options_of(options, state.settings, None)
    for name, most in (("workers", MOST_WORKERS), ("repeat", MOST_REPEATS)):
        value = getattr(given, name)
        if value not in (None, getattr(configured, name)) and value > most:
            raise invalid(f"Option '{name}' is {value}; at most {most} is allowed here")
    baseline = given.baseline
    if baseline is not None and baseline != configured.baseline and _is_file(baseline, state.store):
        raise invalid("Option 'baseline' must be the id of a run, or the name of a baseline")


def _is_file(reference: str, store: Store) -> bool:
    """Would a run look for a file of this name? It does when the store has no such run."""
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
    if kind not in SAFE:
        known = ", ".join(sorted(SAFE))
        raise invalid(f"Evaluator {kind[:50]!r} cannot be given in a request; known: {known}")
    _check_prompt(entry)
    for key in _MEMBERS:
        members = entry.get(key, ())
        for member in members if isinstance(members, list) else ():
            _check_evaluator(member)
    aggregator = entry.get("aggregator")
    if isinstance(aggregator, dict):
        if "script" in aggregator or "path" in aggregator:
            raise invalid("An aggregator of a request cannot run a program")
        _check_prompt(aggregator)


def _check_prompt(entry: Mapping[str, Any]) -> None:
    if _FILE_NAME.search(str(entry.get("prompt", ""))):
        raise invalid("A prompt of a request cannot be a file, and must not end like one")


def _paths(value: Any) -> tuple[str, ...]:
    paths: tuple[str, ...] = bodies.texts("suites", MOST_PATHS, (1, MOST_CHARS))(value)
    if not paths:
        raise ApiError("INVALID_LENGTH", "Field 'suites' must name at least one path")
    return paths


def _ids(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise invalid("Field 'test_cases' must be an array of ids")
    if not 1 <= len(value) <= MOST_IDS:
        raise ApiError("INVALID_LENGTH", f"Field 'test_cases' must have 1-{MOST_IDS} items")
    read = bodies.uuid("An item of field 'test_cases'")
    ids = [read(one) for one in value]
    if len(set(ids)) != len(ids):
        raise invalid("Field 'test_cases' names a test case twice")
    return ids


def _evaluators(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise invalid("Field 'evaluators' must be an array")
    if len(value) > MOST_EVALUATORS:
        message = f"Field 'evaluators' must have at most {MOST_EVALUATORS} items"
        raise ApiError("INVALID_LENGTH", message)
    _check_texts("evaluators", value)
    return value


def _options(value: Any) -> dict[str, Any]:
    """Any field of RunOptions that has no field of its own in a request."""
    if not isinstance(value, dict):
        raise invalid("Field 'options' must be an object")
    for name in ("target", "evaluators", "evaluator"):
        if name in value:
            raise invalid(f"Option {name!r} is a field of the request itself")
    _check_texts("options", value)
    return value


def _check_texts(name: str, value: Any) -> None:
    """Refuse half of a surrogate pair wherever it is: no store can keep it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = f"Field '{name}' has half of a surrogate pair, which cannot be stored"
        raise invalid(message) from None


FIELDS: dict[str, Read] = {
    "test_cases": _ids,
    "tag": bodies.text("Field 'tag'", 1, MAX_TAG),
    "suites": _paths,
    "target": bodies.text("Field 'target'", 1, MOST_NAME),
    "evaluators": _evaluators,
    "options": _options,
}
#: The options that a request can have.
OPTIONS = tuple(name for name in RunOptions.model_fields if name not in ("target", "evaluators"))
