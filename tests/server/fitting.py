"""What no schema can say of a request: which names there are, and how values go together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from assay.model.test_case import NewTestCase, TestCase
from assay.ports import Store

#: The project that requests are about: its targets and its suite.
FILES = {
    "assay.yaml": "{targets: [{name: echo, provider: echo}], judge: echo, "
    "defaults: {target: echo}}",
    "a.eval.yaml": "cases: [{id: a, input: x, expected_output: x}]",
}
#: Parts of refusals of what a schema admits: it depends on what there is at that moment, or
#: on how parts of the request go together. All else that is refused, a schema has to refuse.
BEYOND = (
    "there is nothing to cancel here",  # the run has ended meanwhile
    "The store has no finished run",  # `latest` is none
    "runs are under way",  # as many as a server takes
    "has no model that could be",  # the judge of the project
    # Evaluators
    "does not compile",  # a regular expression
    "two evaluators are called",
    "names no member",  # a weight of an aggregator
    "above its maximum",
    "above max",
    "two rubric items have the id",
    "runs backwards",  # a range of scores
    "score_ranges ",  # that overlap, or leave a gap
    "is not in 'args'",  # a path of arguments
)


def beyond(response: Any) -> bool:
    """Was the request refused for what no schema can say?"""
    if response.status_code != 400:
        return False
    message: str = response.json()["error"]["message"]
    return any(part in message for part in BEYOND)


def fit(case: Any, store: Store) -> None:
    """Change a request that fits the schema so that it names what there is."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    change = _CHANGES.get(case.operation.definition.raw["operationId"])
    if change is not None:
        change(case, store)


def _test_case(store: Store) -> TestCase:
    found = store.test_cases.page(1, tag="kept").test_cases
    if found:
        return found[0]
    new = NewTestCase("question", "answer", None, ("kept",))
    return store.test_cases.add(new, datetime.now(UTC)).result()


def _know_test_case(case: Any, store: Store) -> None:
    case.path_parameters["id"] = _test_case(store).id


def _fresh_id(case: Any, store: Store) -> None:
    if "id" in case.body:
        case.body["id"] = str(uuid4())


def _baseline(case: Any, store: Store) -> None:
    name = "".join(filter(str.isprintable, unquote(case.path_parameters["name"])))
    case.path_parameters["name"] = quote(name if name.strip() else "main", safe="")
    case.body["run"] = _finished(store) or case.body["run"]


def _order(case: Any, store: Store) -> None:
    body = case.body
    known = {"suites": ["a.eval.yaml"], "tag": "kept", "target": "echo"}
    body |= {name: value for name, value in known.items() if name in body}
    _test_case(store)
    if "test_cases" in body:
        found = store.test_cases.page(len(body["test_cases"])).test_cases
        body["test_cases"] = [test_case.id for test_case in found]
    if options := body.get("options"):
        _options(options, store)


def _options(options: dict[str, Any], store: Store) -> None:
    if options.get("judge") is not None:
        options["judge"] = "echo"
    if options.get("repeat") is not None:
        options["repeat"] = min(options["repeat"], 2)  # so that runs end soon
    if options.get("shard") is not None:
        first, _, of = options["shard"].partition("/")
        options["shard"] = f"{min(int(first), int(of))}/{of}"
    if options.get("baseline") is not None:
        options["baseline"] = _finished(store)
        if options["baseline"] is None:
            options["stop_when"] = None


def _finished(store: Store) -> str | None:
    """A run that has results."""
    for record in store.runs(20):
        if record.status == "finished" and next(iter(store.trials(record.id)), None) is not None:
            return record.id
    return None


_CHANGES: dict[str, Callable[[Any, Store], None]] = {
    "create_test_case": _fresh_id,
    "get_test_case": _know_test_case,
    "update_test_case": _know_test_case,
    "delete_test_case": _know_test_case,
    "list_versions": _know_test_case,
    "set_baseline": _baseline,
    "start_run": _order,
}
