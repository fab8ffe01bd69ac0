"""Attempts to get in, and faults that must not tell too much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.errors import StoreError, UsageError
from assay.server.app import create_app
from assay.server.security import Access, is_loopback
from assay.server.tokens import Token, tokens_of
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS
from server.test_test_cases import PARIS, URL, refused


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_remote_clients_need_a_token(host: str) -> None:
    with pytest.raises(UsageError, match="ASSAY_API_TOKENS"):
        Access.of(host, ())
    assert Access.of(host, tokens_of("secret")).tokens == (Token("secret"),)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost", "127.9.9.9"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    assert Access.of(host, ()).tokens == ()


def test_an_unknown_name_is_nowhere() -> None:
    with pytest.raises(UsageError, match="neither an address nor a name"):
        Access.of("no-such-host.invalid", tokens_of("secret"))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8321", "127.0.0.1:1", "[::1]:8321", "localhost.", "127.0.0.2"]
)
def test_the_server_is_known_by_its_names(client: TestClient, host: str) -> None:
    assert client.get(URL, headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8321",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "",
        "[x",
        "localhost:80@evil.example",
        "localhost@evil.example",
        "localhost:[",
        "[::1]evil.example",
    ],
)
def test_a_page_that_was_rebound_is_refused(client: TestClient, host: str) -> None:
    message = refused(client.get(URL, headers={"host": host}), 400, "INVALID_INPUT")
    assert "Host header" in message
    write = client.post(URL, json=PARIS, headers={"host": host})
    refused(write, 400, "INVALID_INPUT")
    assert client.get(URL).json()["data"]["total"] == 0


def test_a_loopback_server_refuses_addresses_of_other_machines(
    client: TestClient,
) -> None:
    refused(client.get(URL, headers={"host": "192.0.2.7"}), 400, "INVALID_INPUT")


def test_a_server_for_others_answers_to_its_addresses_and_the_names_it_is_given() -> None:
    access = Access.of("0.0.0.0", tokens_of("secret"), ["Evals.Example"])
    assert all(map(access.allows_host, ("192.0.2.7:80", "[2001:db8::1]", "evals.example:80")))
    assert not access.allows_host("evil.example")


def test_a_name_may_be_given_as_clients_write_it() -> None:
    access = Access.of("127.0.0.1", (), ["Evals.Example.:8321"])
    assert access.allows_host("evals.example:8321")


@pytest.mark.parametrize("name", ["", " ", "http://evals.example", "[", "a@b"])
def test_an_invalid_host_name_is_refused(name: str) -> None:
    """Else a header that names no host at all would be taken for it."""
    with pytest.raises(UsageError, match="not a name of a host"):
        Access.of("127.0.0.1", (), [name])


@pytest.fixture
def guarded(settings: Settings) -> Iterator[TestClient]:
    access = Access(tokens=tokens_of("one-token,other-token"))
    with TestClient(create_app(settings, MemoryStore(), access), ADDRESS) as client:
        yield client


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer one-toke",
        "Bearer one-token2",
        "Bearer one-token other-token",
        "Basic one-token",
        "one-token",
        "Bearer ONE-TOKEN",
    ],
)
def test_a_request_without_a_token_is_refused(guarded: TestClient, header: str) -> None:
    headers = {"authorization": header} if header else {}
    for path in (URL, "/openapi.json", "/api/nothing", "/"):
        response = guarded.get(path, headers=headers)
        refused(response, 401, "UNAUTHORIZED")
        assert response.headers["www-authenticate"] == "Bearer"
    refused(guarded.post(URL, json=PARIS, headers=headers), 401, "UNAUTHORIZED")


@pytest.mark.parametrize("header", ["Bearer one-token", "bearer other-token"])
def test_a_token_grants_access(guarded: TestClient, header: str) -> None:
    assert guarded.get(URL, headers={"authorization": header}).status_code == 200


def test_a_token_may_have_any_letters(settings: Settings) -> None:
    app = create_app(settings, MemoryStore(), Access(tokens=tokens_of("gehëim-ключ")))
    with TestClient(app, ADDRESS) as client:
        for sent, status in (("utf-8", 200), ("utf-16", 401)):
            header = b"Bearer " + "gehëim-ключ".encode(sent)
            response = client.get(URL, headers={b"authorization": header})
            assert response.status_code == status


def test_two_host_headers_are_refused(client: TestClient) -> None:
    for other in ("evil.example", "localhost"):
        headers = [("host", "localhost"), ("host", other)]
        response = client.get(URL, headers=headers)
        assert "Host header" in refused(response, 400, "INVALID_INPUT")


@pytest.mark.parametrize("name", ["%ff", "a%ED%A0%80", "%C3"])
def test_a_path_that_is_not_text_is_not_found(client: TestClient, name: str) -> None:
    for path in (f"/api/baselines/{name}", f"/{name}", f"{URL}/{name}"):
        response = client.put(path, json={"run": "latest"}, headers={"origin": ADDRESS})
        assert refused(response, 404, "NOT_FOUND") == f"There is no route {path}"


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
        "application/jsonp",
        "application/json; charset=utf-16",
        "application/json; x=y; charset=latin-1",
        "text/plain; application/json",
    ],
)
def test_a_form_of_a_foreign_page_writes_nothing(client: TestClient, kind: str) -> None:
    headers = {"content-type": kind} if kind else {}
    body = b'{"input": "x", "expected_output": "x"}'
    response = client.post(URL, content=body, headers=headers)
    assert "application/json" in refused(response, 415, "UNSUPPORTED_MEDIA_TYPE")
    assert client.get(URL).json()["data"]["total"] == 0


@pytest.mark.parametrize("more", ['; charset="UTF-8"', ";charset=utf8; x=y", "; profile=a", ";"])
def test_a_content_type_may_name_its_charset(client: TestClient, more: str) -> None:
    headers = {"content-type": f"Application/JSON{more}"}
    body = b'{"input": "x", "expected_output": "x"}'
    assert client.post(URL, content=body, headers=headers).status_code == 201


@pytest.mark.parametrize(("coding", "status"), [("gzip", 415), ("br", 415), ("Identity", 201)])
def test_a_compressed_body_is_refused_as_such(client: TestClient, coding: str, status: int) -> None:
    headers = {"content-type": "application/json", "content-encoding": coding}
    body = b'{"input": "x", "expected_output": "x"}'
    response = client.post(URL, content=body, headers=headers)
    assert response.status_code == status
    if status == 415:
        assert coding in refused(response, 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 8 * 1024 * 1024, 9 * 1024 * 1024])
def test_a_large_body_is_refused(client: TestClient, size: int) -> None:
    headers = {"content-type": "application/json"}
    for content in (b"x" * size, iter([b"x" * 65536] * (size // 65536 + 1))):
        response = client.post(URL, content=content, headers=headers)
        assert "1048576 bytes" in refused(response, 413, "PAYLOAD_TOO_LARGE")


def test_a_body_of_the_limit_is_read(client: TestClient) -> None:
    body = b'{"input": "x", "expected_output": "x"' + b" " * (1024 * 1024 - 38) + b"}"
    assert len(body) == 1024 * 1024
    headers = {"content-type": "application/json"}
    assert client.post(URL, content=body, headers=headers).status_code == 201


def test_headers_restrict_browsers(client: TestClient) -> None:
    paths = (URL, "/api/nothing", "/openapi.json", f"{URL}?limit=0")
    for response in map(client.get, paths):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("path", ["/api%2Ftest-cases", f"{URL}/x%2fversions", "/%2f"])
def test_an_encoded_slash_is_not_a_slash(client: TestClient, path: str) -> None:
    assert refused(client.get(path), 404, "NOT_FOUND") == f"There is no route {path}"


def test_unknown_routes_and_methods_are_in_the_envelope(client: TestClient) -> None:
    refused(client.get("/nothing"), 404, "NOT_FOUND")
    refused(client.get(f"{URL}/"), 404, "NOT_FOUND")
    response = client.patch(URL, json={})
    message = refused(response, 405, "METHOD_NOT_ALLOWED")
    assert message == "PATCH is not allowed here; allowed are GET, HEAD, POST"
    assert response.headers["allow"] == "GET, HEAD, POST"
    refused(client.options(URL), 405, "METHOD_NOT_ALLOWED")
    one = client.post(f"{URL}/550e8400-e29b-41d4-a716-446655440001")
    refused(one, 405, "METHOD_NOT_ALLOWED")
    assert one.headers["allow"] == "DELETE, GET, HEAD, PUT"


class Broken(MemoryStore):
    """A store whose test cases cannot be read."""

    fault: Exception = RuntimeError("secret detail")

    @property
    def test_cases(self) -> Any:
        raise self.fault

    @test_cases.setter
    def test_cases(self, value: Any) -> None:
        pass


@pytest.mark.parametrize("fault", [RuntimeError("secret detail"), StoreError("secret detail")])
def test_an_internal_error_reveals_nothing(
    settings: Settings, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store = Broken()
    store.fault = fault
    with TestClient(create_app(settings, store), ADDRESS) as client:
        response = client.get(URL)
    message = refused(response, 500, "INTERNAL_ERROR")
    assert message == "Unexpected error; the server's log has the details"
    assert "secret" not in response.text
    assert "secret detail" in caplog.text
