"""How often tokens can be guessed."""

from __future__ import annotations

import pytest

from assay.server.throttle import MAX_FAILURES, MAX_FAILURES_IN_ALL, Throttle
from server.conftest import Clock


def fail(throttle: Throttle, client: str, times: int = MAX_FAILURES) -> None:
    for _ in range(times):
        assert throttle.wait_seconds(client) == 0
        throttle.note_failure(client)


def test_a_client_waits_after_five_failures_within_a_minute(clock: Clock) -> None:
    throttle = Throttle(clock)
    fail(throttle, "192.0.2.1", MAX_FAILURES - 1)
    clock.move(seconds=20)
    fail(throttle, "192.0.2.1", 1)
    assert throttle.wait_seconds("192.0.2.1") == 40
    assert throttle.wait_seconds("192.0.2.2") == 0
    clock.move(seconds=39)
    assert throttle.wait_seconds("192.0.2.1") == 1
    clock.move(seconds=1)
    fail(throttle, "192.0.2.1", MAX_FAILURES - 1)
    assert throttle.wait_seconds("192.0.2.1") == 20


def test_many_clients_together_are_throttled_too(clock: Clock) -> None:
    throttle = Throttle(clock)
    for number in range(MAX_FAILURES_IN_ALL):
        fail(throttle, f"192.0.2.{number}", 1)
    assert throttle.wait_seconds("198.51.100.1") == 60
    clock.move(minutes=1)
    assert throttle.wait_seconds("198.51.100.1") == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("not an address", "another one", True),
    ],
)
def test_a_client_is_its_network(clock: Clock, one: str, other: str, same: bool) -> None:
    throttle = Throttle(clock)
    fail(throttle, one)
    assert (throttle.wait_seconds(other) > 0) is same
