"""Requests that are no requests, over a real connection."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from assay.server import bodies, protocol
from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import PATIENCE
from server.live import live


@pytest.fixture
def port(settings: Settings) -> Iterator[int]:
    with live(create_app(settings, MemoryStore())) as url:
        yield int(url.rpartition(":")[2])


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        yield connection


def answer(connection: socket.socket) -> tuple[bytes, bytes]:
    """Head and body of what comes until the server hangs up."""
    received = b""
    while piece := connection.recv(65536):
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body


HEAD = b"POST /api/test-cases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_what_is_no_http_is_refused_in_the_envelope(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GARBAGE\r\n\r\n")
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "INVALID_INPUT"


@pytest.mark.parametrize("method", ["FOO", "GETT", "get"])
def test_a_method_that_nobody_knows_is_not_allowed(port: int, method: str) -> None:
    with connected(port) as connection:
        connection.sendall(
            method.encode() + b" /api/test-cases HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 405 Method Not Allowed\r\nallow: ")
    error = json.loads(body)["error"]
    assert error["code"] == "METHOD_NOT_ALLOWED"
    assert (
        error["message"]
        == f"{method} is not allowed here; allowed are DELETE, GET, HEAD, POST, PUT"
    )


def test_these_are_the_methods_of_all_paths(settings: Settings) -> None:
    routes = create_app(settings, MemoryStore()).router.routes
    methods = {method for route in routes for method in getattr(route, "methods", ())}
    assert ", ".join(sorted(methods)) == protocol.METHODS


def test_another_protocol_is_not_spoken(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with connected(port) as connection:
        connection.sendall(
            b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade, close\r\n\r\n"
        )
        head, _ = answer(connection)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert not caplog.records  # with advice that helps nobody


def test_an_endless_head_is_refused(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"X-Padding: " + b"x" * protocol.MAX_HEAD)
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "larger than 65536 bytes" in json.loads(body)["error"]["message"]


def test_many_requests_at_once_are_all_answered(port: int) -> None:
    request = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nX-Padding: " + b"x" * 3000
    last = b"\r\nConnection: close\r\n\r\n"
    with connected(port) as connection:
        connection.sendall((request + b"\r\n\r\n") * 59 + request + last)
        head, body = answer(connection)
    assert (head + body).count(b"HTTP/1.1 200 ") == 60


@pytest.mark.parametrize("begun", [b"", b"GET /api/test-cases HTTP/1.1\r\nHost: lo"])
def test_a_head_that_does_not_come_is_not_waited_for(
    port: int, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    with connected(port) as connection:
        connection.sendall(begun)
        assert answer(connection) == (b"", b"")


def test_a_second_head_that_does_not_come_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.5)
    with connected(port) as connection:
        connection.sendall(b"GET /api/test-cases HTTP/1.1\r\nHost: localhost\r\n\r\nGET /")
        head, _ = answer(connection)
    assert head.startswith(b"HTTP/1.1 200 ")


def test_a_body_that_does_not_come_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.05)
    with connected(port) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "did not arrive" in json.loads(body)["error"]["message"]


def test_the_sender_of_a_large_body_sees_the_refusal(port: int) -> None:
    size = 8 * 1024 * 1024
    with connected(port) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size)
        for _ in range(size // 65536):
            connection.sendall(b" " * 65536)
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert json.loads(body)["error"]["code"] == "PAYLOAD_TOO_LARGE"


def test_a_body_that_nobody_reads_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.1)
    received = b""
    with connected(port) as connection, suppress(ConnectionError):
        connection.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\n")
        connection.sendall(b"Content-Length: 1000\r\n\r\n")
        connection.settimeout(0.01)
        for _ in range(999):  # the next byte always comes soon
            connection.sendall(b" ")
            with suppress(TimeoutError):
                piece = connection.recv(65536)
                received += piece
                if not piece:
                    break
        else:
            pytest.fail("the server waited for all of it")
    assert received.startswith(b"HTTP/1.1 404 ")
