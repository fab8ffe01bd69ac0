"""The examples of the contract for test cases, as they stand there."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

client: Any = None


@pytest.fixture(autouse=True)
def _client(client: TestClient) -> None:
    """The examples name the client as if it were a global."""
    globals()["client"] = client


# fmt: off
def test_create_test_case_success():
    response = client.post("/api/test-cases", json={
        "input": "test input",
        "expected_output": "expected",
        "description": "desc",
        "tags": ["tag1"]
    })
    assert response.status_code == 201
    data = response.json()
    assert data["success"] is True
    assert data["data"]["id"]
    assert data["data"]["input"] == "test input"
    assert data["data"]["expected_output"] == "expected"


def test_create_test_case_missing_input():
    response = client.post("/api/test-cases", json={
        "expected_output": "expected"
    })
    assert response.status_code == 400
    data = response.json()
    assert data["success"] is False
    assert data["error"]["code"] == "MISSING_FIELD"


def test_list_test_cases_pagination():
    # Create 5 test cases first
    for i in range(5):
        client.post("/api/test-cases", json={
            "input": f"input {i}",
            "expected_output": f"output {i}"
        })

    # Get first 2
    response = client.get("/api/test-cases?limit=2&skip=0")
    assert response.status_code == 200
    data = response.json()
    assert len(data["data"]["test_cases"]) == 2
    assert data["data"]["total"] == 5


def test_update_test_case():
    # Create
    create_response = client.post("/api/test-cases", json={
        "input": "original input",
        "expected_output": "original output"
    })
    test_case_id = create_response.json()["data"]["id"]

    # Update
    update_response = client.put(f"/api/test-cases/{test_case_id}", json={
        "input": "updated input"
    })
    assert update_response.status_code == 200
    data = update_response.json()
    assert data["data"]["input"] == "updated input"
    assert data["data"]["expected_output"] == "original output"  # Unchanged


def test_delete_test_case():
    # Create
    create_response = client.post("/api/test-cases", json={
        "input": "test",
        "expected_output": "test"
    })
    test_case_id = create_response.json()["data"]["id"]

    # Delete
    delete_response = client.delete(f"/api/test-cases/{test_case_id}")
    assert delete_response.status_code == 204

    # Verify deleted
    get_response = client.get(f"/api/test-cases/{test_case_id}")
    assert get_response.status_code == 404
