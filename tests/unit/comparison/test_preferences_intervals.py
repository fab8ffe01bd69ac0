"""Intervals of preferences in simulated worlds, from benchmarks/preference_intervals.py."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from unit.simulations import load

simulation = load("preference_intervals", "false_alarms")
BY_NAME = {world.name: world for world in simulation.WORLDS}
FEW = ["3 targets", "4 targets, judge goes by the order", "2 targets, mostly ties"]


@pytest.mark.parametrize("name", FEW)
def test_intervals_contain_the_truth_as_often_as_they_should(name: str) -> None:
    world = BY_NAME[name]
    assert list(simulation.limits(world, simulation.simulate(world, 60))) == []


@pytest.mark.full
@pytest.mark.parametrize("world", simulation.WORLDS, ids=lambda world: world.name)
def test_the_limits_hold_in_every_world(world: Any) -> None:
    assert list(simulation.limits(world, simulation.simulate(world, 200))) == []


def test_the_simulation_can_fail() -> None:
    """Cases of a cluster that are taken for independent give intervals that are too narrow."""
    world = BY_NAME["4 targets, clusters of 4 cases"]
    found = simulation.simulate(world, 60, clusters_known=False)
    assert list(simulation.limits(world, found)) != []


def test_the_truth_is_that_of_many_simulated_cases() -> None:
    world = BY_NAME["4 targets, judge goes by the order"]
    random, total, cases = Random(1), 0.0, 20_000
    for _ in range(cases):
        (answers,) = simulation.World("", world.qualities, 1, spread=world.spread).answers(random)
        one = world.says(answers[0], answers[3], random)
        agreed = one if one == -world.says(answers[3], answers[0], random) else 0
        total += (1 + agreed) / 2
    assert total / cases == pytest.approx(world.rate(0, 3), abs=3 * 0.5 / math.sqrt(cases))


def test_the_true_strengths_are_those_of_the_model_where_it_holds() -> None:
    """Two targets: the odds are those of the win rate."""
    world = BY_NAME["2 targets"]
    one, other = world.strengths()
    odds = world.rate(0, 1) / world.rate(1, 0)
    assert one + other == pytest.approx(1)
    assert (one / other) ** 2 == pytest.approx(odds)
