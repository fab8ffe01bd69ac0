"""The best set in simulated worlds; benchmarks/best_targets.py looks at more of them."""

from __future__ import annotations

from typing import Any

import pytest

from unit.simulations import load

simulation = load("best_targets", "false_alarms")
FEW = [
    simulation.World(20, 0.2, "uniform"),
    simulation.World(100, 0.1),
    simulation.DEFAULT,
]


@pytest.mark.parametrize("world", FEW, ids=lambda world: world.name)
def test_identical_targets_stay_in_the_best_set_and_a_worse_one_does_not(world: Any) -> None:
    assert list(simulation.limits(world, simulation.simulate(world, 25))) == []


@pytest.mark.full
@pytest.mark.parametrize("world", list(simulation.all_worlds()), ids=lambda world: world.name)
def test_the_limits_of_the_best_set_hold_in_every_world(world: Any) -> None:
    assert list(simulation.limits(world, simulation.simulate(world, 200))) == []


def test_the_highest_rate_is_too_high_and_the_shrunken_one_is_not() -> None:
    found = simulation.simulate(simulation.World(100, 0.2), 60)
    assert found.highest / found.worlds > 0.015
    assert abs(found.shrunken / found.worlds) < 0.01


def test_the_simulation_can_fail() -> None:
    """Without the correction for the number of pairs, identical targets would be excluded."""
    world = simulation.World(200, 0.2)
    found = simulation.simulate(world, 40)
    assert found.uncorrected > 4
    found.excluded = found.uncorrected
    assert list(simulation.limits(world, found)) != []
