"""Servers and programs of every bad kind, through everything that stands before a target.

Each ends in an answer or in a TargetError with words, soon, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tracemalloc
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from assay.errors import TargetError
from assay.model.observation import Observation
from assay.ports import Target
from assay.process import watchdog
from assay.targets.anthropic import AnthropicTarget
from assay.targets.command import CommandTarget
from assay.targets.http import HttpTarget
from assay.targets.openai import OpenAITarget
from assay.targets.pool.rate_limits import RateLimiter
from assay.targets.pool.retries import Effort, RetryingTarget, RetryPolicy, SystemClock
from timeouts import WAIT_SECONDS
from unit import provider_server as provider
from unit.process.test_child import all_die
from unit.provider_server import MEGABYTE, Answer, ProviderServer
from unit.target_calls import answers, request
from unit.targets.pool.test_retries import FakeClock, Highest

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")

GOOD = provider.openai({"content": "Hello"}) | {
    "response": "Hello",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "Hello"}],
}
FINE = provider.sends(GOOD)


def http(url: str, **settings: Any) -> Target:
    return HttpTarget(url=f"{url}/ask", **settings).connect()


def openai(url: str, **settings: Any) -> Target:
    return OpenAITarget(model="gpt-6-sol", base_url=f"{url}/v1", **settings).connect()


def claude(url: str, **settings: Any) -> Target:
    return AnthropicTarget(model="claude-opus-5", base_url=url, **settings).connect()


PROVIDERS = pytest.mark.parametrize("provided", [http, openai, claude])


@pytest.fixture(autouse=True)
def _no_socket_is_left() -> Iterator[None]:
    watchdog.mark()  # the first child would start the watchdog, which has a pipe
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) <= before


def asked_again(
    target: Target, clock: FakeClock, times: int = 1, **policy: Any
) -> list[Observation]:
    gate = RateLimiter(clock, 4)
    asking = RetryingTarget(target, RetryPolicy(**policy), clock, Highest(), limiter=gate)
    try:
        return answers(asking, *[request()] * times)
    finally:
        assert gate.in_flight == 0


def fault(provided: Any, *replies: Answer, **settings: Any) -> tuple[TargetError, int]:
    """The error in the end, and how many requests arrived."""
    with ProviderServer(*replies) as server, pytest.raises(TargetError) as caught:
        asked_again(provided(server.url, **settings), FakeClock())
    return caught.value, len(server.asked)


@PROVIDERS
@pytest.mark.parametrize(
    ("bad", "words", "attempts", "unreachable"),
    [
        (provider.reset, "no answer from http://127.0.0.1", 4, False),
        (provider.close, "no answer from http://127.0.0.1", 4, False),
        (provider.cut, "no answer from http://127.0.0.1", 4, False),
        (provider.status(500), "answered 500 Internal Server Error: it went wrong", 4, False),
        (provider.status(429), "answered 429 Too Many Requests", 4, False),
        (provider.status(401), "answered 401 Unauthorized", 1, False),
        (provider.status(404), "answered 404 Not Found", 1, False),
        (provider.half_json(), "is not JSON", 1, False),
        (provider.invalid_utf8(), "is not UTF-8", 1, False),
        (provider.huge(announced=True), "is larger than 20 MB", 1, False),
        (provider.huge(announced=False), "is larger than 20 MB", 1, False),
        (provider.hang, "did not answer within 0.2 s", 1, True),
        (provider.stall, "did not answer within 0.2 s", 1, True),
    ],
)
def test_every_server_error_has_a_message(
    provided: Any, bad: Answer, words: str, attempts: int, unreachable: bool
) -> None:
    hangs = bad in (provider.hang, provider.stall)
    settings = {"timeout_seconds": 0.2 if hangs else float(WAIT_SECONDS)}
    error, arrived = fault(provided, bad, **settings)
    assert words in str(error)
    assert ("gave up after 4 attempts" in str(error)) is (attempts > 1)
    assert arrived == attempts
    assert error.unreachable is unreachable


@PROVIDERS
def test_a_server_that_refuses_connections_is_unreachable(provided: Any) -> None:
    with pytest.raises(TargetError, match="no answer from http://127") as caught:
        asked_again(provided(provider.gone()), FakeClock())
    assert (caught.value.unreachable, caught.value.overloaded) == (True, False)
    assert "gave up after 4 attempts" in str(caught.value)


def test_a_server_without_tls_is_unreachable_and_not_retried() -> None:
    with ProviderServer(FINE) as server, pytest.raises(TargetError) as caught:
        asked_again(http(server.url.replace("http:", "https:")), FakeClock())
    assert (caught.value.unreachable, caught.value.retryable) == (True, False)


@PROVIDERS
@pytest.mark.parametrize("status", [429, 503, 529])
def test_too_many_requests_count_as_overload(provided: Any, status: int) -> None:
    assert fault(provided, provider.status(status))[0].overloaded
    assert not fault(provided, provider.status(500))[0].overloaded


def _date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@PROVIDERS
@pytest.mark.parametrize(
    ("headers", "slept"),
    [
        ({}, 1),
        ({"Retry_After": "7"}, 7),
        ({"Retry_After": "0"}, 1),
        ({"Retry_After": "soon"}, 1),
        ({"Retry_After": _date(5000)}, 300),
        ({"Retry_After": _date(-5000)}, 1),
    ],
)
def test_a_server_is_retried_after_the_time_it_gives(
    provided: Any, headers: Any, slept: float
) -> None:
    clock = FakeClock()
    with ProviderServer(provider.status(429, **headers), FINE) as server:
        (seen,) = asked_again(provided(server.url), clock)
    assert seen.response == "Hello"
    assert clock.slept == [slept]


@PROVIDERS
@pytest.mark.parametrize("bad", [provider.status(500), provider.reset, provider.cut])
def test_a_server_that_recovers_gives_its_answer(provided: Any, bad: Answer) -> None:
    with ProviderServer(bad, bad, bad, FINE) as server:
        (seen,) = asked_again(provided(server.url), FakeClock())
    assert seen.response == "Hello"
    assert seen.duration_ms is not None


@PROVIDERS
def test_a_connection_that_was_idle_for_too_long_costs_one_attempt(provided: Any) -> None:
    clock = FakeClock()
    with ProviderServer(FINE, provider.close, FINE) as server:
        seen = asked_again(provided(server.url), clock, times=2)
    assert [each.response for each in seen] == ["Hello", "Hello"]
    assert (len(server.asked), len(clock.slept)) == (3, 1)


@PROVIDERS
def test_a_server_that_closes_after_each_answer_answers_all(provided: Any) -> None:
    with ProviderServer(provider.then_closes(GOOD)) as server:
        seen = asked_again(provided(server.url), FakeClock(), times=5)
    assert [each.response for each in seen] == ["Hello"] * 5


def test_of_a_huge_reply_little_is_held() -> None:
    with ProviderServer(provider.huge(100, announced=False)) as server:
        tracemalloc.start()
        with pytest.raises(TargetError, match="is larger than 20 MB"):
            asked_again(openai(server.url), FakeClock())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 70 * MEGABYTE


# The time limit of a question, in real time


def left(target: Target, **policy: Any) -> str:
    """The words when a real clock ends the question."""
    effort = Effort()

    async def run() -> None:
        asking = RetryingTarget(target, RetryPolicy(**policy), SystemClock())
        try:
            await asking.ask(request(), effort)
        finally:
            await asking.close()

    with pytest.raises(TargetError) as caught:
        asyncio.run(asyncio.wait_for(run(), WAIT_SECONDS))
    assert caught.value.unreachable
    assert effort.attempts == 1
    return str(caught.value)


@PROVIDERS
@pytest.mark.parametrize("bad", [provider.hang, provider.stall])
def test_a_hanging_server_is_left_at_the_limit(provided: Any, bad: Answer) -> None:
    with ProviderServer(bad) as server:
        assert left(provided(server.url), timeout=0.2) == "no answer within 0.2 s"


def program(code: str, *arguments: str, **settings: Any) -> Target:
    command = [sys.executable, "-I", "-S", "-c", dedent(code), *arguments]
    return CommandTarget(command=command, **settings).connect()


STUBBORN = """
    import os, signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.fork()
    while True: signal.pause()
"""
FLOOD = "import os\nwhile True: os.write({fd}, b'x' * 65536)"


@pytest.mark.parametrize("code", [STUBBORN, FLOOD.format(fd=2)], ids=["stubborn", "stderr"])
def test_a_program_is_ended_at_the_limit_with_all_it_started(code: str) -> None:
    marker = uuid.uuid4().hex
    assert left(program(code, marker), timeout=0.3) == "no answer within 0.3 s"
    assert all_die(marker)


def test_a_program_that_takes_too_long_or_is_not_there_is_unreachable(tmp_path: Path) -> None:
    pause = "import signal\nsignal.pause()"
    health = ["no-such-program-anywhere"]
    for target in (
        program(pause, timeout_seconds=0.2),
        CommandTarget(command=["no-such-program-anywhere"]).connect(),
        program("pass", cwd=str(tmp_path / "missing")),
        program("pass", healthcheck=health),
    ):
        with pytest.raises(TargetError) as caught:
            asked_again(target, FakeClock())
        assert (caught.value.unreachable, caught.value.retryable) == (True, False)


def test_only_the_caller_limits_targets_without_a_timeout() -> None:
    for provided in (http, openai, claude):
        client: Any = provided("http://127.0.0.1:1")
        assert client._http._timeout is None
    command: Any = program("pass", healthcheck=["true"])
    limits = (command._limits.timeout_seconds, command._healthcheck_timeout)
    assert limits == (None, 120)


@pytest.mark.parametrize("code", ["raise SystemExit(1)", FLOOD.format(fd=1)])
def test_a_program_that_fails_was_reached(code: str) -> None:
    marker = uuid.uuid4().hex
    with pytest.raises(TargetError) as caught:
        asked_again(program(code, marker, max_output_mb=0.1), FakeClock())
    assert not caught.value.unreachable
    assert all_die(marker)
