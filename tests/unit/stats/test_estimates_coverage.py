"""Intervals hold the truth as often as they say, and the sequential test is as honest."""

from __future__ import annotations

import math
from random import Random

import pytest

from assay.stats.paired import mcnemar
from assay.stats.sequential import Side
from unit.stats import simulations as sim

FULL = pytest.mark.full
runs = pytest.mark.parametrize("runs", [100, pytest.param(2000, marks=FULL)])
few_runs = pytest.mark.parametrize("runs", [200, pytest.param(2000, marks=FULL)])


def noise(count: int) -> float:
    """How far a share near 0.95 deviates at most in this many runs."""
    return 3.5 * math.sqrt(0.05 * 0.95 / count)


@runs
@pytest.mark.parametrize(
    ("world", "least", "most"),
    [case[1:] for case in sim.COVERED],
    ids=[case[0] for case in sim.COVERED],
)
def test_coverage(world: sim.World, least: float, most: float, runs: int) -> None:
    covered = sim.share(world, runs)
    assert least - noise(runs) <= covered <= most + noise(runs)


@few_runs
def test_the_corrected_rate_covers_where_the_naive_one_does_not(runs: int) -> None:
    assert 0.93 <= sim.share(sim.corrected(0.9, 200, 50), runs) <= 0.98
    assert sim.share(sim.uncorrected(0.9, 200), runs) < 0.3


@few_runs
def test_clusters_that_are_ignored_make_the_interval_too_narrow(runs: int) -> None:
    assert sim.share(sim.ignored_clusters(25), runs) < 0.86


@few_runs
@pytest.mark.parametrize("side", ["both", "lost", "gained"])
def test_looking_after_every_case_gives_few_false_alarms(side: Side, runs: int) -> None:
    assert sim.share(sim.alarm(500, 0.1, 0.1, side), runs) < 0.05


@few_runs
def test_a_real_drop_is_found(runs: int) -> None:
    assert sim.share(sim.alarm(500, 0.15, 0.05, "both"), runs) > 0.9
    assert sim.share(sim.alarm(500, 0.15, 0.05, "gained"), runs) < 0.05


@few_runs
def test_looking_often_at_the_ordinary_test_gives_many(runs: int) -> None:
    def peeking(random: Random) -> bool:
        lost = gained = 0
        for case in range(1, 501):
            draw = random.random()
            lost, gained = lost + (draw < 0.1), gained + (0.1 <= draw < 0.2)
            if case % 10 == 0 and mcnemar(lost, gained).value < 0.05:
                return True
        return False

    assert sim.share(peeking, runs) > 0.12
