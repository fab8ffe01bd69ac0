"""Every way a request can go wrong becomes a TargetError with words."""

from __future__ import annotations

import asyncio
import traceback
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from assay.errors import TargetError
from assay.targets.http_client import HttpClient, retry_after
from timeouts import WAIT_SECONDS
from unit import provider_server as provider
from unit.provider_server import Answer, ProviderServer

KEY = "sk-very-secret-0123456789"
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def fetch(url: str, timeout: float = 60.0, **options: Any) -> dict[str, Any]:
    """The document that a POST to this address brings."""

    async def ask() -> dict[str, Any]:
        client = HttpClient(
            {"Authorization": f"Bearer {KEY}"},
            timeout=timeout,
            secrets=[KEY],
            now=lambda: NOW,
            **options,
        )
        try:
            return client.document(await client.post(f"{url}/ask", {"question": "é"}))
        finally:
            await client.close()

    return asyncio.run(ask())


def fault(answer: Answer, **options: Any) -> TargetError:
    """The error that this answer leads to."""
    with ProviderServer(answer) as server, pytest.raises(TargetError) as caught:
        fetch(server.url, **options)
    return caught.value


def test_a_good_reply_is_its_json_and_the_request_is_json_with_our_headers() -> None:
    with ProviderServer(provider.sends({"a": ["é"]})) as server:
        assert fetch(server.url) == {"a": ["é"]}
    (asked,) = server.asked
    assert asked.body == {"question": "é"}
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_retryable_statuses(status: int) -> None:
    error = fault(provider.status(status, "come back later"))
    assert error.retryable
    assert f"answered {status}" in str(error)
    assert "come back later" in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_statuses_that_are_not_retryable(status: int) -> None:
    error = fault(provider.status(status, "no", Retry_After="3"))
    assert not error.retryable
    assert error.retry_after is None


def test_a_refused_key_is_reported_with_a_hint() -> None:
    error = fault(provider.status(401, "Incorrect API key"))
    assert "/ask answered 401 Unauthorized: Incorrect API key (check the API key)" in str(error)


def test_retry_after_is_read_from_seconds_and_from_a_date() -> None:
    assert fault(provider.status(429, Retry_After="2.5")).retry_after == 2.5
    date = "Sun, 01 Mar 2026 12:00:30 GMT"
    assert fault(provider.status(503, Retry_After=date)).retry_after == 30
    assert fault(provider.status(429)).retry_after is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("-5", 0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2026 12:01:00 -0000", 60),
        ("soon", None),
        ("1_000", None),
        ("1e3", None),
        ("Fri, 31 Dec 9999 23:59:59 -9959", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_odd_values_of_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


def test_a_refused_connection_is_retryable() -> None:
    url = provider.gone()
    with pytest.raises(TargetError) as caught:
        fetch(url)
    assert str(caught.value) == f"no answer from {url}/ask: Connection refused"
    assert caught.value.retryable


def test_a_reset_connection_is_retryable() -> None:
    error = fault(provider.reset)
    assert error.retryable
    assert "no answer from" in str(error)


def test_a_body_cut_by_the_network_is_retryable() -> None:
    assert fault(provider.cut).retryable


def test_a_timeout_is_reported_and_not_retryable() -> None:
    error = fault(provider.hang, timeout=0.05)
    assert "did not answer within 0.05 s" in str(error)
    assert not error.retryable


@pytest.mark.parametrize("announced", [True, False])
def test_a_reply_over_the_limit_is_not_read_to_its_end(announced: bool) -> None:
    error = fault(provider.huge(100, announced=announced))
    assert "is larger than 20 MB" in str(error)
    assert not error.retryable


def test_a_reply_as_large_as_the_limit_is_read() -> None:
    with ProviderServer(provider.raw(b'{"a": 1}')) as server:
        assert fetch(server.url, max_bytes=8) == {"a": 1}
        with pytest.raises(TargetError, match="larger than"):
            fetch(server.url, max_bytes=7)


def test_truncated_json_is_quoted() -> None:
    error = fault(provider.half_json())
    assert "is not JSON" in str(error)
    assert "chatcmpl-1" in str(error)
    assert not error.retryable


def test_invalid_utf8_is_reported_with_its_place() -> None:
    error = fault(provider.invalid_utf8())
    assert "is not UTF-8: invalid start byte at byte 13" in str(error)
    assert not error.retryable


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is empty; it should be JSON"),
        (b"[1]", "is a list, not a mapping"),
        (b"<html>Sign in</html>", "Sign in"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"a": NaN}', "NaN is not JSON"),
    ],
)
def test_a_reply_that_is_not_a_json_object_is_an_error(body: bytes, words: str) -> None:
    assert words in str(fault(provider.raw(body)))


async def _nonsense(request: web.Request) -> web.StreamResponse:
    """Bytes that are no HTTP, and nothing else."""
    assert request.transport is not None
    request.transport.write(b"hello there\r\n\r\n")
    request.transport.close()
    return web.Response()


def test_an_invalid_http_response_is_reported_without_a_made_up_status() -> None:
    error = fault(_nonsense)
    _, found, why = str(error).partition("/ask sent an invalid HTTP response: ")
    assert found
    assert "400" not in why  # the port of the server may have these digits
    assert not error.retryable


def test_a_redirect_is_not_followed() -> None:
    error = fault(provider.sends({}, 307, Location="/elsewhere"))
    assert "answered 307 Temporary Redirect" in str(error)
    assert "set the final address" in str(error)


def test_an_impossible_address_is_an_error() -> None:
    with pytest.raises(TargetError, match="cannot be called") as caught:
        fetch("http://127.0.0.1:99999")
    assert not caught.value.retryable


def test_a_server_without_tls_is_an_error() -> None:
    with ProviderServer(provider.says("Hi")) as server, pytest.raises(TargetError) as caught:
        fetch(server.url.replace("http:", "https:"))
    assert not caught.value.retryable


def test_quotes_are_one_line_of_at_most_300_characters() -> None:
    message = str(fault(provider.status(500, "\x1b[31m line\n" * 1000)))
    assert message.isprintable()
    assert len(message) < 400
    assert " ... " in message
    assert message.endswith("line")


def test_the_key_is_hidden_wherever_the_server_repeats_it() -> None:
    for said in (f"bad key {KEY}", "x" * 280 + KEY):
        error = fault(provider.status(401, said))
        shown = "".join(traceback.format_exception(error)) + repr(error)
        assert KEY not in shown
        assert KEY[:12] not in shown
    assert "bad key [redacted]" in str(fault(provider.status(401, f"bad key {KEY}")))
    assert KEY not in str(fault(provider.raw(f"not JSON {KEY}".encode())))


def test_the_name_and_password_of_an_address_are_not_shown() -> None:
    url = provider.gone().replace("http://", "http://user:password@")
    with pytest.raises(TargetError) as caught:
        fetch(url)
    assert "password" not in str(caught.value)


def test_one_client_serves_one_loop_after_the_other_and_opens_again_after_close() -> None:
    client = HttpClient({}, timeout=WAIT_SECONDS)

    async def ask(url: str) -> int:
        statuses = [(await client.post(url, {})).status]
        await client.close()
        statuses.append((await client.post(url, {})).status)
        await client.close()
        await client.close()
        return sum(statuses)

    with ProviderServer(provider.says("Hi")) as server:
        assert [asyncio.run(ask(server.url)) for _ in range(2)] == [400, 400]


def test_requests_run_at_the_same_time_however_many() -> None:
    client, many, all_here = HttpClient({}, timeout=WAIT_SECONDS), 150, asyncio.Event()

    async def when_all_are_here(request: web.Request) -> web.StreamResponse:
        if len(server.asked) == many:
            all_here.set()
        await all_here.wait()
        return web.Response()

    async def ask(url: str) -> list[int]:
        replies = await asyncio.gather(*(client.post(url, {}) for _ in range(many)))
        await client.close()
        return [reply.status for reply in replies]

    with ProviderServer(when_all_are_here) as server:
        assert asyncio.run(ask(server.url)) == [200] * many


def test_cookies_are_not_kept() -> None:
    client = HttpClient({}, timeout=WAIT_SECONDS)

    async def ask(url: str) -> None:
        await client.post(url, {})
        await client.post(url, {})
        await client.close()

    with ProviderServer(provider.sends({}, Set_Cookie="who=me")) as server:
        asyncio.run(ask(server.url.replace("127.0.0.1", "localhost")))
    assert ["Cookie" in asked.headers for asked in server.asked] == [False, False]
