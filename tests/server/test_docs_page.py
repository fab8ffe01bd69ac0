"""`/docs`: the OpenAPI document for people, without anything from elsewhere."""

from __future__ import annotations

import re

from starlette.testclient import TestClient

from server.test_openapi import DOCUMENT, operations


def test_the_page_shows_every_operation_and_schema(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    ids = set(re.findall(r'id="([^"]+)"', page.text))
    assert {operation["operationId"] for _, _, operation in operations()} <= ids
    assert set(DOCUMENT["components"]["schemas"]) <= ids
    assert set(re.findall(r'href="#([^"]+)"', page.text)) <= ids
    assert "<code>POST /api/test-cases</code>" in page.text
    assert "<pre>" in page.text
    assert "expected_output" in page.text


def test_the_page_takes_no_query(client: TestClient) -> None:
    assert client.get("/docs?x=1").status_code == 400
