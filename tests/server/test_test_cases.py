"""`/api/test-cases`, rule by rule."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from assay.model.test_case import TestCase, TestCaseChanges
from assay.ports import Store
from server.conftest import Clock

URL = "/api/test-cases"
ID = "550e8400-e29b-41d4-a716-446655440001"
PARIS = {"input": "What is the capital of France?", "expected_output": "Paris"}


def create(client: TestClient, **more: Any) -> dict[str, Any]:
    response = client.post(URL, json={**PARIS, **more})
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()["data"]
    return made


def refused(response: Any, status: int, code: str) -> str:
    """The message of an error, which is in the envelope and says nothing else."""
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"success", "data", "error"}
    assert (body["success"], body["data"]) == (False, None)
    assert set(body["error"]) == {"code", "message"}
    assert body["error"]["code"] == code
    message: str = body["error"]["message"]
    return message


def test_creating_returns_the_whole_test_case(client: TestClient) -> None:
    response = client.post(URL, json=PARIS | {"description": "Basic", "tags": ["geography"]})
    body = response.json()
    identity = body["data"].pop("id")
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-.{12}", identity)
    time = "2026-01-15T10:30:00.000000Z"
    stamps = {"created_at": time, "modified_at": time}
    more = {"description": "Basic", "tags": ["geography"]}
    assert body == {"success": True, "data": {**PARIS, **more, **stamps}, "error": None}


def test_omitted_fields_are_null_or_empty(client: TestClient) -> None:
    made = create(client)
    assert (made["description"], made["tags"]) == (None, [])
    assert client.get(f"{URL}/{made['id']}").json()["data"] == made


def test_an_id_may_be_given_once(client: TestClient) -> None:
    assert create(client, id=ID.upper())["id"] == ID
    again = client.post(URL, json=PARIS | {"id": ID})
    assert ID in refused(again, 400, "DUPLICATE_ID")
    client.delete(f"{URL}/{ID}")
    refused(client.post(URL, json=PARIS | {"id": ID}), 400, "DUPLICATE_ID")


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "MISSING_FIELD", "Field 'input' is required"),
    ({"input": "x"}, "MISSING_FIELD", "Field 'expected_output' is required"),
    ({"input": "", "expected_output": "x"}, "INVALID_LENGTH", "Input must be 1-10000 chars"),
    (PARIS | {"input": "x" * 10_001}, "INVALID_LENGTH", "Input must be 1-10000 chars"),
    (
        PARIS | {"expected_output": "x" * 10_001},
        "INVALID_LENGTH",
        "Field 'expected_output' must be 1-10000 chars",
    ),
    (
        PARIS | {"description": "x" * 501},
        "INVALID_LENGTH",
        "Field 'description' must be at most 500 chars",
    ),
    (PARIS | {"tags": ["x"] * 11}, "INVALID_LENGTH", "Field 'tags' must have at most 10 items"),
    (PARIS | {"tags": ["x", ""]}, "INVALID_LENGTH", "Field 'tags[1]' must be 1-50 chars"),
    (PARIS | {"tags": ["x" * 51]}, "INVALID_LENGTH", "Field 'tags[0]' must be 1-50 chars"),
    (PARIS | {"input": None}, "INVALID_INPUT", "Input is null; it must be text"),
    (PARIS | {"input": 5}, "INVALID_INPUT", "Input is a number; it must be text"),
    (PARIS | {"input": ["x"]}, "INVALID_INPUT", "Input is an array; it must be text"),
    (PARIS | {"tags": None}, "INVALID_INPUT", "Field 'tags' is null; it must be an array of texts"),
    (PARIS | {"tags": "x"}, "INVALID_INPUT", "Field 'tags' is text; it must be an array of texts"),
    (PARIS | {"tags": [True]}, "INVALID_INPUT", "'tags[0]' is true or false; it must be text"),
    (PARIS | {"description": {}}, "INVALID_INPUT", "'description' is an object; it must be text"),
    (PARIS | {"input": "a\0b"}, "INVALID_INPUT", "Input has a NUL"),
    (PARIS | {"tags": ["\0"]}, "INVALID_INPUT", "Field 'tags[0]' has a NUL"),
    (PARIS | {"id": "5"}, "INVALID_INPUT", "Field 'id' must be a UUID"),
    (PARIS | {"id": None}, "INVALID_INPUT", "Field 'id' must be a UUID"),
    (PARIS | {"id": "{" + ID + "}"}, "INVALID_INPUT", "Field 'id' must be a UUID"),
    (PARIS | {"tag": []}, "INVALID_INPUT", "Field 'tag' is not known; did you mean 'tags'?"),
    (PARIS | {"created_at": "now"}, "INVALID_INPUT", "Field 'created_at' is not known"),
    # The first problem in the order of the fields decides, in whatever order they are sent.
    ({"tags": 5, "expected_output": ""}, "MISSING_FIELD", "Field 'input' is required"),
    ({"unknown": 1}, "MISSING_FIELD", "Field 'input' is required"),
    ({"tags": 5, **PARIS, "description": "x" * 501}, "INVALID_LENGTH", "description"),
    ({"zzz": 5, **PARIS, "tags": [""]}, "INVALID_LENGTH", "tags[0]"),
    ({"expected_output": "", "input": None}, "INVALID_INPUT", "Input is null"),
]


@pytest.mark.parametrize(("body", "code", "message"), WRONG)
def test_a_wrong_body_is_refused(
    client: TestClient, body: dict[str, Any], code: str, message: str
) -> None:
    assert message in refused(client.post(URL, json=body), 400, code)
    assert client.get(URL).json()["data"]["total"] == 0


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "Malformed JSON"),
        (b"{", "Malformed JSON"),
        (b"[]", "The body is an array; it must be an object"),
        (b"null", "The body is null; it must be an object"),
        (b'{"input": NaN}', "NaN"),
        (b'{"input": 1e999}', "1e999"),
        (b'{"tags": [-1E+400]}', "-1E+400"),
        (b'{"input": ' + b"[" * 100 + b"]" * 100 + b"}", "nested deeper than 100 levels"),
        (b'{"input": "\xff"}', "not UTF-8"),
        (b'\xef\xbb\xbf{"input": "x"}', "Malformed JSON: line 1, column 1"),
        (b'{"input": "\n"}', "Malformed JSON: line 1, column 12: invalid control character"),
        (b'{"input": "x", "input": "y"}', "line 1, column 16: the key 'input' appears twice"),
        (b"[" * 200_000, "nested deeper than 100 levels"),
        (b'{"input": ' + b"9" * 5000 + b"}", "that fits 64 bits"),
        (b'{"input": "\\ud800", "expected_output": "x"}', "half of a surrogate pair"),
        (b'{"\\ud800": 1, "input": "x", "expected_output": "x"}', "is not known"),
    ],
)
def test_a_body_that_is_not_json_is_refused(client: TestClient, raw: bytes, message: str) -> None:
    response = client.post(URL, content=raw, headers={"content-type": "application/json"})
    assert message in refused(response, 400, "INVALID_INPUT")


def test_lengths_are_counted_in_code_points(client: TestClient) -> None:
    made = create(client, input="\U0001f600" * 10_000, tags=["\u00e9" * 50])
    assert len(made["input"]) == 10_000
    assert client.get(f"{URL}/{made['id']}").json()["data"] == made
    refused(client.post(URL, json=PARIS | {"input": "\U0001f600" * 10_001}), 400, "INVALID_LENGTH")


def test_an_empty_description_is_kept(client: TestClient) -> None:
    assert create(client, description="")["description"] == ""


@pytest.mark.parametrize(
    "identity", ["0d9a3f62-5b1e-4c7a-9f10-2f4f6d1c8b3e", "no-uuid", "5", "%00", "a%2Fb"]
)
def test_an_unknown_test_case_is_not_found(client: TestClient, identity: str) -> None:
    path = f"{URL}/{identity}"
    for response in (client.get(path), client.delete(path), client.get(f"{path}/versions")):
        assert response.status_code == 404
        refused(response, 404, "NOT_FOUND")
    wrong = client.put(path, json={"input": ""})
    refused(wrong, 404, "NOT_FOUND")


def test_a_missing_test_case_has_the_error_of_the_contract(client: TestClient) -> None:
    assert refused(client.get(f"{URL}/{ID}"), 404, "NOT_FOUND") == "Test case not found"


def test_an_id_may_be_written_in_upper_case(client: TestClient) -> None:
    made = create(client)
    assert client.get(f"{URL}/{made['id'].upper()}").json()["data"] == made


def test_a_list_has_the_newest_last(client: TestClient) -> None:
    made = [create(client, input=f"{number}") for number in range(5)]
    assert client.get(URL).json()["data"] == {"test_cases": made, "count": 5, "total": 5}
    page = client.get(f"{URL}?limit=2&skip=3").json()["data"]
    assert page == {"test_cases": made[3:], "count": 2, "total": 5}
    assert client.get(f"{URL}?skip=99").json()["data"] == {
        "test_cases": [],
        "count": 0,
        "total": 5,
    }


def test_a_list_has_a_hundred_entries_by_default(client: TestClient) -> None:
    for number in range(101):
        create(client, input=f"{number}")
    data = client.get(URL).json()["data"]
    assert (data["count"], data["total"]) == (100, 101)


def test_a_list_is_filtered_by_a_part_of_a_tag(client: TestClient) -> None:
    geography = create(client, tags=["Geography", "x"])
    percent = create(client, tags=["100%"])
    create(client)

    def tagged(tag: str) -> list[Any]:
        data = client.get(URL, params={"tag": tag}).json()["data"]
        assert data["count"] == data["total"]
        found: list[Any] = data["test_cases"]
        return found

    assert tagged("geo") == tagged("GRAPH") == [geography]
    assert tagged("%") == [percent]
    assert tagged("_") == tagged("Geography x") == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", "Query parameter 'limit' must be a whole number from 1 to 1000"),
        ("limit=1001", "from 1 to 1000"),
        ("limit=-1", "from 1 to 1000"),
        ("limit=ten", "from 1 to 1000"),
        ("limit=", "from 1 to 1000"),
        ("limit=1.0", "from 1 to 1000"),
        ("limit=%201", "from 1 to 1000"),
        ("limit=" + "9" * 5000, "from 1 to 1000"),
        ("limit=1&skip=1&limit=2", "Query parameter 'limit' is given twice"),
        ("skip=-1", "'skip' must be a whole number of at least 0"),
        ("offset=1", "Query parameter 'offset' is not known"),
        ("tags=x", "Query parameter 'tags' is not known; did you mean 'tag'?"),
        ("tag=%ff", "not UTF-8"),
        ("tag=%00", "Query parameter 'tag' has a NUL"),
    ],
)
def test_a_wrong_query_is_refused(client: TestClient, query: str, message: str) -> None:
    assert message in refused(client.get(f"{URL}?{query}"), 400, "INVALID_INPUT")


def test_an_update_changes_only_given_fields(client: TestClient, clock: Clock) -> None:
    made = create(client, description="Basic", tags=["a"])
    clock.move(minutes=5)
    response = client.put(f"{URL}/{made['id']}", json={"tags": ["b"]})
    later = {"tags": ["b"], "modified_at": "2026-01-15T10:35:00.000000Z"}
    assert response.status_code == 200
    assert response.json() == {"success": True, "data": made | later, "error": None}


def test_a_description_can_be_cleared(client: TestClient) -> None:
    made = create(client, description="Basic")
    changed = client.put(f"{URL}/{made['id']}", json={"description": None}).json()["data"]
    assert changed["description"] is None


def test_the_time_of_a_change_grows_though_the_clock_does_not(
    client: TestClient, clock: Clock
) -> None:
    made = create(client)
    times = [made["modified_at"]]
    for step in (0, -3600, 0):
        clock.move(seconds=step)
        changed = client.put(f"{URL}/{made['id']}", json={}).json()["data"]
        times.append(changed.pop("modified_at"))
        assert changed == {name: made[name] for name in changed}
    assert times == sorted(set(times))


def test_the_body_of_a_get_can_be_put_back(client: TestClient, clock: Clock) -> None:
    made = create(client, tags=["a"])
    clock.move(seconds=1)
    changed = client.put(f"{URL}/{made['id']}", json=made | {"input": "other"}).json()["data"]
    assert changed == made | {"input": "other", "modified_at": "2026-01-15T10:30:01.000000Z"}


def test_an_id_that_is_put_back_may_be_in_upper_case(client: TestClient) -> None:
    path = f"{URL}/{create(client, id=ID)['id']}"
    assert client.put(path, json={"id": ID.upper()}).json()["data"]["id"] == ID


def test_a_change_that_came_in_between_is_not_lost(
    client: TestClient, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, read = create(client), store.test_cases.get

    def get(case_id: str) -> TestCase:
        patched.undo()
        found, theirs = read(case_id), TestCaseChanges(input="theirs")
        store.test_cases.change(case_id, theirs, clock()).result()
        return found

    path = f"{URL}/{made['id']}"
    with monkeypatch.context() as patched:
        patched.setattr(store.test_cases, "get", get)
        response = client.put(path, json=made | {"input": "ours"})
    now = client.get(path).json()["data"]
    message = refused(response, 400, "INVALID_INPUT")
    assert message == f"Field 'modified_at' cannot be changed; it is {now['modified_at']}"
    assert now["input"] == "theirs"


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"x", "text/plain", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (b"x" * 1_100_000, "application/json", 413, "PAYLOAD_TOO_LARGE"),
        (b"x", "application/json", 404, "NOT_FOUND"),
    ],
)
def test_a_body_is_received_before_and_read_after_its_resource_is_found(
    client: TestClient, content: bytes, kind: str, status: int, code: str
) -> None:
    headers = {"content-type": kind}
    for identity in (ID, "no-uuid"):
        response = client.put(f"{URL}/{identity}", content=content, headers=headers)
        refused(response, status, code)
    response = client.post(f"/api/runs/{ID}/cancel", content=content, headers=headers)
    refused(response, status, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"id": str(uuid4())}, "INVALID_INPUT"),
        ({"created_at": "2026-01-15T10:30:00Z"}, "INVALID_INPUT"),
        ({"modified_at": None}, "INVALID_INPUT"),
        ({"modified_at": "2026-01-15T10:30:00Z"}, "INVALID_INPUT"),
        ({"version": 1}, "INVALID_INPUT"),
        ({"input": None}, "INVALID_INPUT"),
        ({"input": ""}, "INVALID_LENGTH"),
        ({"expected_output": "x" * 10_001}, "INVALID_LENGTH"),
        ({"tags": [""]}, "INVALID_LENGTH"),
        ({"tags": ["a"] * 11}, "INVALID_LENGTH"),
        ({"description": "x" * 501}, "INVALID_LENGTH"),
    ],
)
def test_a_wrong_update_is_refused_and_changes_nothing(
    client: TestClient, body: dict[str, Any], code: str
) -> None:
    made = create(client)
    refused(client.put(f"{URL}/{made['id']}", json=body), 400, code)
    assert client.get(f"{URL}/{made['id']}").json()["data"] == made


def test_a_deleted_test_case_is_gone(client: TestClient) -> None:
    made, other = create(client), create(client)
    path = f"{URL}/{made['id']}"
    response = client.delete(path)
    assert (response.status_code, response.content) == (204, b"")
    assert client.get(URL).json()["data"]["test_cases"] == [other]
    for again in (client.get(path), client.delete(path), client.put(path, json={})):
        refused(again, 404, "NOT_FOUND")


def test_versions_stay(client: TestClient, clock: Clock) -> None:
    made = create(client)
    clock.move(seconds=1)
    changed = client.put(f"{URL}/{made['id']}", json={"input": "other"}).json()["data"]
    client.delete(f"{URL}/{made['id']}")
    path = f"{URL}/{made['id']}/versions"
    versions = [made | {"version": 1}, changed | {"version": 2}]
    assert client.get(path).json()["data"] == {"versions": versions, "count": 2, "total": 2}
    page = client.get(f"{path}?limit=1&skip=1").json()["data"]
    assert page == {"versions": versions[1:], "count": 1, "total": 2}


def test_an_answer_is_json_of_utf_8(client: TestClient) -> None:
    made = create(client, input="Zürich?")
    response = client.get(f"{URL}/{made['id']}")
    assert response.headers["content-type"] == "application/json"
    assert json.loads(response.content.decode())["data"]["input"] == "Zürich?"
