"""What no schema can say of a request: which names there are, and how values go together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen
from uuid import uuid4

from assay.model.test_case import NewTestCase, TestCase
from assay.ports import Store
from assay.service.runs import RunRequest, execute_in
from assay.settings import Settings
from assay.testing.labels import make_label
from timeouts import WAIT_SECONDS

#: The project that requests are about: its targets and its suite.
FILES = {
    "assay.yaml": "{targets: [{name: echo, provider: echo}], judge: echo, "
    "defaults: {target: echo}}",
    "a.eval.yaml": "cases: [{id: a, input: x, expected_output: x}]",
}
JSON = {"content-type": "application/json"}
#: Parts of refusals of what a schema admits: it depends on what there is at that moment, or
#: on how parts of the request go together. All else that is refused, a schema has to refuse.
BEYOND = (
    "there is nothing to cancel",  # the run has ended since
    "there is nothing to resume",  # the run has ended, or is still in progress
    "runs are in progress",  # as many as a server takes
    "has no model that could be",  # the judge of the project
    "a finite number that fits 64 bits",  # 1e20 does, and is the same to a schema as its digits
    # Evaluators
    "does not compile",  # a regular expression
    "two evaluators have the name",
    "is not the name of a member",  # a weight of an aggregator
    "above its maximum",
    "above max",
    "two rubric items have the id",
    "runs backwards",  # a range of scores
    "score_ranges ",  # that overlap, or leave a gap
    "is not in 'args'",  # a path of arguments
    "is in 'ignore' too",  # a forbidden tool
    "no evaluator of the case reads",  # with --strict
    # Lists of cases
    "Filter, column",
    "filter, column",  # of the option `select`
    "needs results",  # a filter of a run without `of`
    "has no effect: give --select",  # `of` without a filter
    "is not a cursor of a page",
    # Baselines
    "is refused as the baseline",
)


def beyond(response: Any) -> bool:
    """Was the request refused for what no schema can say?"""
    if response.status_code != 400:
        return False
    message: str = response.json()["error"]["message"]
    return any(part in message for part in BEYOND)


def fit(case: Any, store: Store, run: str) -> None:
    """Change a request that fits the schema so that it names what there is."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    change = _CHANGES.get(case.operation.definition.raw["operationId"])
    if change is not None:
        change(case, store, run)


def prepare(store: Store, root: Path) -> str:
    """Put what requests name into an empty store; the id of a run that has ended."""
    _test_case(store)
    order = RunRequest(cases=[root / "a.eval.yaml"], target="echo", stream=False)
    return asyncio.run(execute_in(Settings.find(root), store, order, {})).record.id


def _test_case(store: Store) -> TestCase:
    found = store.test_cases.page(1, tag="kept").test_cases
    if found:
        return found[0]
    new = NewTestCase("question", "answer", None, ("kept",))
    return store.test_cases.add(new, datetime.now(UTC)).result()


def _know_test_case(case: Any, store: Store, run: str) -> None:
    case.path_parameters["id"] = _test_case(store).id


def _change(case: Any, store: Store, run: str) -> None:
    known = _test_case(store)
    case.path_parameters["id"] = known.id
    kept = ("id", "created_at", "modified_at")
    case.body |= {name: getattr(known, name) for name in kept if name in case.body}


def _know_run(case: Any, store: Store, run: str) -> None:
    case.path_parameters["id"] = run


def _know_case(case: Any, store: Store, run: str) -> None:
    case.path_parameters |= {"id": run, "position": "0"}


def _label(case: Any, store: Store, run: str) -> None:
    _know_case(case, store, run)
    if "repeat" in case.body:
        case.body["repeat"] = 0


def _labelled(case: Any, store: Store, run: str) -> None:
    _know_case(case, store, run)
    given = case.query | {"repeat": 0}
    texts = {name: str(given.get(name, "")) for name in ("evaluator", "criterion", "author")}
    case.query["repeat"] = 0
    store.labels.put(make_label(run_id=run, suite="a.eval.yaml", case_id="a", **texts))


def _know_names(case: Any, store: Store, run: str) -> None:
    case.query |= {"base": run, "candidate": run}


def _fresh_id(case: Any, store: Store, run: str) -> None:
    if "id" in case.body:
        case.body["id"] = str(uuid4())


def _baseline(case: Any, store: Store, run: str) -> None:
    name = "".join(filter(str.isprintable, unquote(case.path_parameters["name"])))
    case.path_parameters["name"] = quote(name if name.strip() else "main", safe="")
    case.body["run"] = run


def _order(case: Any, store: Store, run: str) -> None:
    body = case.body
    known = {"suites": ["a.eval.yaml"], "tag": "kept", "target": "echo"}
    body |= {name: value for name, value in known.items() if name in body}
    _test_case(store)
    if "test_cases" in body:
        found = store.test_cases.page(len(body["test_cases"])).test_cases
        body["test_cases"] = [test_case.id for test_case in found]
    _name_judges(body.get("evaluators"))
    if options := body.get("options"):
        _options(options, run)


def _order_group(case: Any, store: Store, run: str) -> None:
    _order(case, store, run)
    case.body["target"] = ["echo"]


def _name_judges(evaluators: Any) -> None:
    """Let every judge be the configured target, also those of members."""
    for entry in evaluators if isinstance(evaluators, list) else ():
        if isinstance(entry, dict):
            if entry.get("target") is not None:
                entry["target"] = "echo"
            for value in entry.values():
                _name_judges(value)


def _options(options: dict[str, Any], run: str) -> None:
    if options.get("judge") is not None:
        options["judge"] = "echo"
    if options.get("shard") is not None:
        first, _, of = options["shard"].partition("/")
        options["shard"] = f"{min(int(first), int(of))}/{of}"
    for name in ("baseline", "of"):
        if options.get(name) is not None:
            options[name] = run


def end(case: Any, response: Any, url: str) -> None:
    """Let a run end at once, so that the next request meets none, and the store can be closed."""
    starts = ("start_run", "start_group", "resume_run")
    begun = case.operation.definition.raw["operationId"] in starts and response.status_code == 202
    data = response.json()["data"] if begun else {}
    for run in data.get("runs", [data] if begun else []):
        place = f"{url}/api/runs/{run['runId']}"
        for _ in range(2):
            with suppress(HTTPError):  # it has ended before
                urlopen(Request(f"{place}/cancel", b"{}", JSON), timeout=WAIT_SECONDS).close()
        with urlopen(f"{place}/events", timeout=WAIT_SECONDS) as events:
            events.read()  # they end with the run


_CHANGES: dict[str, Callable[[Any, Store, str], None]] = {
    "create_test_case": _fresh_id,
    "get_test_case": _know_test_case,
    "update_test_case": _change,
    "delete_test_case": _know_test_case,
    "list_versions": _know_test_case,
    "get_run": _know_run,
    "list_results": _know_run,
    "list_cases": _know_run,
    "get_case": _know_case,
    "list_labels": _know_run,
    "put_label": _label,
    "remove_label": _labelled,
    "cancel_run": _know_run,
    "compare": _know_names,
    "set_baseline": _baseline,
    "start_run": _order,
    "start_group": _order_group,
}
