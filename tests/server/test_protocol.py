"""Requests that are no requests, over a real connection."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from assay.model.test_case import NewTestCase
from assay.server import protocol, requests
from assay.server.app import create_app
from assay.server.protocol import LimitedHttpProtocol
from assay.server.run_manager import utc_now
from assay.server.serving import KEEP_ALIVE_SECONDS, listen
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.live_server import live
from timeouts import WAIT_SECONDS


@pytest.fixture
def port(settings: Settings) -> Iterator[int]:
    with live(create_app(settings, MemoryStore())) as url:
        yield int(url.rpartition(":")[2])


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), WAIT_SECONDS) as connection:
        yield connection


def answer(connection: socket.socket) -> tuple[bytes, bytes]:
    """Head and body of what comes until the server hangs up."""
    received = b""
    while piece := connection.recv(65536):
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body


HEAD = b"POST /api/test-cases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_invalid_http_is_refused_in_the_envelope(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GARBAGE\r\n\r\n")
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "INVALID_INPUT"


@pytest.mark.parametrize(
    ("address", "host", "status"),
    [
        ("http://evil.example/api/health", "localhost", 400),
        ("http://localhost/api/health", "evil.example", 400),
        ("http://localhost:1/api/health", "localhost", 400),
        ("https://evil.example?x", "localhost", 400),
        ("http://LOCALHOST/api/health", "localhost", 200),
        ("/api/health", "localhost", 200),
        ("/api/test-cases?tag=http://evil.example/", "localhost", 200),
    ],
)
def test_an_address_with_another_host_is_refused(
    port: int, address: str, host: str, status: int
) -> None:
    with connected(port) as connection:
        request = f"GET {address} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    if status == 400:
        message = json.loads(body)["error"]["message"]
        assert message == "The address names another host than the Host header"


def test_two_content_types_are_refused(port: int) -> None:
    body = b'{"input": "a", "expected_output": "b"}'
    with connected(port) as connection:
        twice = HEAD + b"Content-Type: text/plain\r\nConnection: close\r\n"
        connection.sendall(twice + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        head, answered = answer(connection)
    assert head.startswith(b"HTTP/1.1 415 ")
    assert "one Content-Type header" in json.loads(answered)["error"]["message"]


def test_an_address_that_is_not_ascii_is_refused_with_advice(port: int) -> None:
    with connected(port) as connection:
        connection.sendall("GET /api/test-cases?tag=café HTTP/1.1\r\n\r\n".encode())
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    advice = "The address must be ASCII: write other characters as %XX, in UTF-8"
    assert json.loads(body)["error"] == {"code": "INVALID_INPUT", "message": advice}


@pytest.mark.parametrize("asks", ["h2c", "websocket"])
def test_another_protocol_is_not_spoken(
    port: int, asks: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The request is answered as if it had not asked for one, its body too."""
    body = b'{"input": "a", "expected_output": "b"}'
    asking = f"Upgrade: {asks}\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    with connected(port) as connection:
        connection.sendall(HEAD + asking.encode() + length)
        connection.sendall(body)
        connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n")
        connection.sendall(b"Upgrade: h2c\r\nConnection: close, Upgrade\r\n\r\n")
        received = b"\r\n\r\n".join(answer(connection))
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"201", b"200"]
    assert not caplog.records  # its advice would not help


def test_the_body_of_an_upgrade_request_is_not_a_request(port: int) -> None:
    asking = b"Upgrade: h2c\r\nConnection: Upgrade, close\r\n"
    hidden = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(port) as connection:
        connection.sendall(HEAD + asking + b"Content-Length: %d\r\n\r\n" % len(hidden))
        connection.sendall(hidden)
        head, body = answer(connection)
    assert (head + body).count(b"HTTP/1.1 ") == 1
    assert head.startswith(b"HTTP/1.1 400 ")


def test_many_such_requests_at_once_are_all_answered(port: int) -> None:
    request = (
        b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: %b\r\n\r\n"
    )
    with connected(port) as connection:
        connection.sendall(request % b"Upgrade" * 1999 + request % b"Upgrade, close")
        received = b"".join(answer(connection))
    assert received.count(b"HTTP/1.1 200 ") == 2000


def test_the_server_is_not_a_proxy(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n")
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["message"] == "This server is not a proxy"


def test_a_request_before_invalid_data_is_answered(port: int) -> None:
    body = b'{"input": "a", "expected_output": "b"}'
    with connected(port) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body + b"garbage\r\n")
        head, said = answer(connection)
    assert head.startswith(b"HTTP/1.1 201 ")
    assert json.loads(said)["data"]["input"] == "a"


def test_a_request_before_a_broken_body_is_answered(port: int) -> None:
    health = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(port) as connection:
        connection.sendall(health * 2 + HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n")
        received = b"".join(answer(connection))
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"200", b"200"]


def test_a_refusal_has_the_headers_of_every_answer(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nx-content-type-options: nosniff\r\n" in head
    assert json.loads(body)["success"] is False


def test_an_endless_head_is_refused(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + b"X-Padding: " + b"x" * protocol.MAX_HEAD)
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "larger than 65536 bytes" in json.loads(body)["error"]["message"]


def test_a_head_that_is_too_large_is_refused_although_it_came_at_once(port: int) -> None:
    with connected(port) as connection:
        padding = b"X-Padding: " + b"x" * protocol.MAX_HEAD
        connection.sendall(
            b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n" + padding + b"\r\n\r\n"
        )
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "INVALID_INPUT"


def test_only_a_head_counts_as_one(port: int) -> None:
    """A large body before it, which came with it, does not."""
    body = json.dumps({"suites": ["x"] * 20_000}).encode()
    request = HEAD.replace(b"test-cases", b"runs") + b"Content-Length: %d\r\n\r\n" % len(body)
    with connected(port) as connection:
        connection.sendall(request + body + b"GET /api/health HTTP/1.1\r\nHo")
        connection.sendall(b"st: localhost\r\nConnection: close\r\n\r\n")
        received = b"\r\n\r\n".join(answer(connection))
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"400", b"200"]
    assert b"larger than" not in received


@pytest.mark.parametrize("after_body", [False, True])
def test_too_many_headers_are_refused(port: int, after_body: bool) -> None:
    request = HEAD + b"Transfer-Encoding: chunked\r\n" + b"\r\n0\r\n" * after_body
    with connected(port) as connection:
        connection.sendall(request + b"a:\r\n" * (protocol.MAX_HEADERS + 1))
        head, _ = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")


def test_an_endless_request_is_not_received(port: int) -> None:
    received = b""
    with connected(port) as connection, suppress(ConnectionError):
        connection.sendall(b"POST /api/nowhere HTTP/1.1\r\nHost: localhost\r\n")
        connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n0\r\na: ")
        for _ in range(64):
            connection.sendall(b"x" * 2**20)
        pytest.fail("the server received it all")
    assert received == b""


@pytest.mark.parametrize("times", [1, 4])
def test_a_client_that_stops_reading_is_dropped(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    times: int,
) -> None:
    """Whatever the size of the response; it is not logged as an error of the server."""
    monkeypatch.setattr(protocol, "STALLED_SECONDS", 0.1)
    lost, end = threading.Event(), LimitedHttpProtocol.connection_lost

    def ended(self: LimitedHttpProtocol, error: Exception | None) -> None:
        end(self, error)
        lost.set()

    monkeypatch.setattr(LimitedHttpProtocol, "connection_lost", ended)
    store = MemoryStore()
    for _ in range(300):
        store.test_cases.add(NewTestCase("x" * 10_000, "y" * 10_000), utc_now()).result()
    with live(create_app(settings, store)) as url, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(WAIT_SECONDS)
        connection.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        request = b"GET /api/test-cases?limit=300 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.sendall(request * times)
        assert lost.wait(WAIT_SECONDS)
    assert caplog.records == []


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


def test_line_breaks_after_an_answer_keep_nothing_open(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    with connected(port) as connection:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while not received.endswith(b"}"):
            received += connection.recv(65536)
        connection.sendall(b"\r\n")
        connection.settimeout(KEEP_ALIVE_SECONDS / 2)
        assert answer(connection) == (b"", b"")


def test_a_body_that_does_not_come_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "BODY_SECONDS", 0.05)
    with connected(port) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "did not arrive" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("size", [8 * 1024 * 1024, 8 * 1024 * 1024 + 1])
def test_the_sender_of_a_large_body_sees_the_refusal(port: int, size: int) -> None:
    with connected(port) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size)
        connection.sendall(b" " * size)
        head, body = answer(connection)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert json.loads(body)["error"]["code"] == "PAYLOAD_TOO_LARGE"


def test_an_unread_body_is_not_awaited(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.1)
    received = b""
    with connected(port) as connection, suppress(ConnectionError):
        connection.sendall(b"POST /api/nowhere HTTP/1.1\r\nHost: localhost\r\n")
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


def test_responses_are_sent_without_delay() -> None:
    # Otherwise the body waits for the client's acknowledgement of the head: about 40 ms.
    with (
        listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
