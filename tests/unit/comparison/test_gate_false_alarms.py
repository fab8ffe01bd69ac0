"""The gate in simulated worlds; benchmarks/false_alarms.py looks at more of them, more often."""

from __future__ import annotations

from typing import Any

import pytest

from unit.simulations import load

simulation = load("false_alarms")
FEW = [
    simulation.World(20, 0.0),
    simulation.World(20, 0.2, "uniform"),
    simulation.World(100, 0.1, "Beta(2,2)"),
    simulation.World(200, 0.1, "Beta(4,1)"),
]


@pytest.mark.parametrize("world", FEW, ids=lambda world: world.name)
def test_the_limits_of_the_gate_hold(world: Any) -> None:
    assert list(simulation.limits(world, simulation.simulate(world, 25))) == []


@pytest.mark.full
@pytest.mark.parametrize("world", list(simulation.all_worlds()), ids=lambda world: world.name)
def test_the_limits_of_the_gate_hold_in_every_world(world: Any) -> None:
    assert list(simulation.limits(world, simulation.simulate(world, 200))) == []


def test_an_agent_that_repeats_itself_and_breaks_one_case_always_fails() -> None:
    found = simulation.simulate(simulation.World(20, 0.0), 10)
    assert (found.dead_1, found.dead_3, found.dead_5) == (10, 10, 10)
    assert (found.alarms, found.inconclusive, found.updated_alarms) == (0, 0, 0)


def test_the_simulation_can_fail() -> None:
    """Critical cases that are flaky raise alarms, so no limit is set for them."""
    world = simulation.World(100, 0.2, critical=True)
    assert simulation.simulate(world, 10).alarms > 5
