"""Ids of runs: UUIDs of version 7 that sort by time, whatever the clock does."""

from __future__ import annotations

import random
import secrets
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from assay.model import run
from assay.model.run import id_time_ms, new_run_id


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no id had been made yet."""
    monkeypatch.setattr(run, "_last", 0)


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    # The example of RFC 9562, appendix A.6.
    bits = 0xCC3 << 62 | 0x18C4DC0C0C07398F
    made = new_run_id(0x017F22E279B0, lambda count: bits)
    assert made == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    assert UUID(made).version == 7
    assert UUID(made).variant == "specified in RFC 4122"


def test_later_ids_sort_after_earlier_ones_even_if_the_clock_stops_or_jumps_back() -> None:
    clock = [1_000, 1_000, 1_000, 5_000, 2, 4_999, 5_000, 6_000]
    draw = random.Random(7).getrandbits
    ids = [new_run_id(now, draw) for now in clock]
    assert ids == sorted(set(ids))


def test_the_time_of_an_id_is_known() -> None:
    assert id_time_ms("017f22e2-79b0-7cc3-98c4-dc0c0c07398f") == 0x017F22E279B0
    assert id_time_ms("550e8400-e29b-41d4-a716-446655440001") is None
    assert id_time_ms("a-run-of-another-store") is None


def test_the_largest_random_number_is_followed_by_a_greater_id() -> None:
    first, second = (new_run_id(1_000, lambda count: (1 << count) - 1) for _ in range(2))
    assert first < second
    assert UUID(second).version == 7


def test_threads_never_get_the_same_id() -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: new_run_id(1_000, secrets.randbits), range(2_000)))
    assert len(set(ids)) == 2_000
