"""The OpenAPI document: whole, fresh, and true of what the server does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
import schemathesis
from hypothesis import settings as hypothesis_settings
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.postgres_store import PostgresStore
from assay.stores.sqlite import SqliteStore
from contract.postgres import Server
from server.live_server import live
from server.valid_requests import FILES, beyond, end, fit, prepare
from server.write_openapi import FILE, written

DOCUMENT: dict[str, Any] = json.loads(written())
#: A stream of events ends with its run, and is no JSON.
NOT_JSON = "/api/runs/{id}/events"


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_the_file_is_fresh() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), "call `make docs`"


def test_the_server_serves_the_document(client: TestClient) -> None:
    response = client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == DOCUMENT
    assert DOCUMENT["openapi"] == "3.1.0"


def test_every_operation_is_documented() -> None:
    names = set()
    for path, method, operation in operations():
        place = f"{method} {path}"
        names.add(operation["operationId"])
        assert operation["summary"], place
        assert operation["tags"] == [path.split("/")[2]], place
        in_path = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
        assert in_path == {part[1:-1] for part in path.split("/") if part.startswith("{")}, place
        assert {"400", "401", "500"} <= set(operation["responses"]), place
        if method in ("post", "put"):
            assert {"413", "415"} <= set(operation["responses"]), place
            described = operation["requestBody"]["content"]["application/json"]
            assert named(described["schema"])["examples"], place
    assert len(names) == len(list(operations()))


def named(reference: dict[str, Any]) -> dict[str, Any]:
    """The schema that a reference leads to."""
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][reference["$ref"].split("/")[-1]]
    return found


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"components": DOCUMENT["components"]}


def test_every_example_of_a_body_fits_its_schema() -> None:
    for _, _, operation in operations():
        for described in operation.get("requestBody", {}).get("content", {}).values():
            schema = resolved(described["schema"])
            for example in named(schema)["examples"]:
                Draft202012Validator(schema).validate(example)


def test_the_schema_of_a_get_fits_that_of_a_put(client: TestClient) -> None:
    body = named({"$ref": "#/components/schemas/NewTestCase"})["examples"][0]
    made = client.post("/api/test-cases", json=body).json()["data"]
    schema = resolved({"$ref": "#/components/schemas/TestCaseChanges"})
    Draft202012Validator(schema).validate(
        client.get(f"/api/test-cases/{made['id']}").json()["data"]
    )


def test_responses_about_a_run_match_the_document(running: TestClient) -> None:
    """With cases that passed and failed, and several trials of each."""
    body = SUITES | {"options": {"repeat": 2}}
    run_id = running.post("/api/runs", json=body).json()["data"]["runId"]
    running.get(f"/api/runs/{run_id}/events")
    running.put("/api/baselines/main", json={"run": run_id})
    for path, query in (
        ("/api/runs", {}),
        ("/api/runs/{id}", {}),
        ("/api/runs/{id}/results", {}),
        ("/api/runs/{id}/cases", {"filter": "outcome:passed,failed", "sort": "-score"}),
        ("/api/runs/{id}/cases/{position}", {}),
        ("/api/baselines", {}),
        ("/api/compare", {"base": "main", "candidate": "latest"}),
        ("/api/trend", {}),
    ):
        answer = running.get(path.format(id=run_id, position=0), params=query).json()
        described = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]
        schema = resolved(described["application/json"]["schema"])
        Draft202012Validator(schema).validate(answer)


SUITES = {"suites": ["evals"]}
ORDERS: list[tuple[dict[str, Any], bool]] = [
    (SUITES, True),
    ({"tag": "x", **SUITES}, False),
    ({"tag": "x" * 51}, False),
    ({"tag": "a\0"}, False),
    (SUITES | {"evaluators": ["equals", {"type": "contains", "value": "x"}]}, True),
    (SUITES | {"evaluators": ["contains"]}, False),
    (SUITES | {"evaluators": [{"type": "contains", "value": "x", "values": ["y"]}]}, False),
    (SUITES | {"evaluators": [{"type": "code_judge", "script": "rm"}]}, False),
    (SUITES | {"evaluators": [{"type": "python:os.system"}]}, False),
    (SUITES | {"evaluators": [{"type": "llm_judge", "prompt": "Is it good?"}]}, True),
    (SUITES | {"evaluators": [{"type": "llm_judge", "prompt": "secret.txt"}]}, False),
    (SUITES | {"evaluators": [{"type": "llm_judge", "model": "openai:any"}]}, False),
    (SUITES | {"options": {"repeat": 1000, "shard": "1/4"}}, True),
    (SUITES | {"options": {"repeat": 1001}}, False),
    (SUITES | {"options": {"shard": "0/4"}}, False),
    (SUITES | {"options": {"seed": 2**64}}, False),
    (SUITES | {"options": {"stop_when": "decided"}}, False),
    (SUITES | {"options": {"stop_when": "decided", "baseline": "main"}}, True),
    (SUITES | {"options": {"target": "echo"}}, False),
]
COMPOSITE = {"type": "composite", "evaluators": [{"type": "equals"}]}
for aggregator, known in (({"type": "min"}, True), ({"type": "code_judge", "script": "x"}, False)):
    ORDERS.append((SUITES | {"evaluators": [COMPOSITE | {"aggregator": aggregator}]}, known))


@pytest.mark.parametrize(("body", "fits"), ORDERS)
def test_the_schema_of_a_run_request_accepts_valid_requests(
    body: dict[str, Any], fits: bool
) -> None:
    schema = resolved({"$ref": "#/components/schemas/NewRun"})
    assert Draft202012Validator(schema).is_valid(body) is fits


class Renewed:
    """A store that can be changed for one of its kind with only what requests name."""

    def __init__(self, make: Callable[[], Store], root: Path) -> None:
        self._make, self._root = make, root
        self._begin()

    def _begin(self) -> None:
        self._store = self._make()
        self.run_id = prepare(self._store, self._root)

    def renew(self) -> None:
        self._store.close()  # it is not in use: all runs have ended
        self._begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@contextmanager
def stores(postgres: Server | None, folder: Path) -> Iterator[Renewed]:
    def make() -> Store:
        if postgres is None:
            return SqliteStore(folder / f"{uuid4()}.db")
        return PostgresStore(postgres.new_database())

    with closing(Renewed(make, folder)) as store:
        yield store


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Renewed]]:
    """A server with an echo for a target, over each database."""
    root = tmp_path_factory.mktemp("served")
    for name, content in FILES.items():
        (root / name).write_text(content)
    on_server = request.param == "postgres"
    postgres = request.getfixturevalue("postgres") if on_server else None
    with stores(postgres, root) as store:
        app = create_app(Settings.find(root), cast("Store", store))
        with live(app) as url:
            yield url, store


#: The bounds of all keys of all evaluators are many: a short pass leaves them out.
SHORT = schemathesis.Config.from_dict(
    {
        "operations": [
            {"include-operation-id": name, "phases": {"coverage": {"enabled": False}}}
            for name in ("start_run", "start_group")
        ]
    }
)
BRIEFLY = schemathesis.openapi.from_dict(DOCUMENT, config=SHORT).exclude(path=NOT_JSON)


def validate(case: Any, served: tuple[str, Renewed]) -> None:
    """All checks."""
    url, store = served
    fit(case, cast("Store", store), store.run_id)
    response = case.call(base_url=url)
    end(case, response, url)
    check(case, response)


def check(case: Any, response: Any) -> None:
    excused = [positive_data_acceptance] if beyond(response) else []
    case.validate_response(response, excluded_checks=excused)


@BRIEFLY.parametrize()
@hypothesis_settings(max_examples=8)
def test_answers_are_as_described(case: Any, served: tuple[str, Renewed]) -> None:
    validate(case, served)
