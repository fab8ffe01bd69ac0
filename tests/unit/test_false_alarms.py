"""The gate in simulated worlds; benchmarks/false_alarms.py looks at more of them."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "false_alarms.py"


def load() -> ModuleType:
    spec = spec_from_file_location("false_alarms", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


simulation = load()
BOUND = [s for s in simulation.SCENARIOS if s.holds(0.5) is False and "1,000" not in s.name]


@pytest.mark.parametrize("worlds", [20, pytest.param(60, marks=pytest.mark.full)])
@pytest.mark.parametrize("scenario", BOUND, ids=lambda scenario: scenario.name)
def test_the_gate_is_seldom_wrong(scenario: object, worlds: int) -> None:
    share = simulation.failing(scenario, worlds)
    assert simulation.Scenario.holds(scenario, share), share


def test_the_simulation_can_tell() -> None:
    """Critical cases that are never asked again do raise false alarms."""
    (careless,) = (s for s in simulation.SCENARIOS if "never asked again" in s.name)
    assert simulation.failing(careless, 60) > 0.2
