"""How often the gate is wrong, in simulated worlds.

    python benchmarks/false_alarms.py [--worlds 1000]

Each case has its own probability to pass, the same in both runs unless the agent got worse:
85 of 100 cases are stable (Beta(60, 1), 98 % on average), 10 are flaky (Beta(2, 2), anything
from never to always), and 5 hardly ever pass (Beta(1, 30)).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from assay.comparison.decision import Rules
from assay.comparison.tally import compare
from assay.model.comparison import CaseOutcome, CaseRef, Comparison

#: Alpha and beta of the probability to pass, with the share of such cases.
KINDS = (((60, 1), 0.85), ((2, 2), 0.10), ((1, 30), 0.05))
CONFIRM = 2
LEVEL = 0.05
POWER = 0.8

#: A world: the probability of each case to pass, for both agents.
Chances = Sequence[float]
World = Callable[[Random], tuple[Chances, Chances]]


@dataclass(frozen=True)
class Scenario:
    """What is simulated, and the share of worlds in which the gate may, or must, fail."""

    name: str
    world: World
    repeats: int = 1
    critical: bool = False
    live: bool = False
    most: float | None = None
    least: float | None = None

    def holds(self, share: float) -> bool:
        return (self.most is None or share <= self.most) and (
            self.least is None or share >= self.least
        )


def chances(count: int, random: Random) -> list[float]:
    kinds = random.choices([kind for kind, _ in KINDS], [share for _, share in KINDS], k=count)
    return [random.betavariate(*kind) for kind in kinds]


def identical(count: int) -> World:
    def world(random: Random) -> tuple[Chances, Chances]:
        same = chances(count, random)
        return same, same

    return world


def some_break(count: int, drop: float) -> World:
    """Some cases no longer pass at all, so that the expected pass rate falls by `drop`."""

    def world(random: Random) -> tuple[Chances, Chances]:
        before = chances(count, random)
        now, left = list(before), drop * count
        for index in random.sample(range(count), count):
            lost = min(before[index], left)
            now[index] -= lost
            left -= lost
        return before, now

    return world


def all_worse(count: int, drop: float) -> World:
    """Every case passes less often, by the same factor."""

    def world(random: Random) -> tuple[Chances, Chances]:
        before = chances(count, random)
        factor = 1 - drop * count / sum(before)
        return before, [chance * factor for chance in before]

    return world


def critical_tier(count: int) -> World:
    return lambda random: ([0.99] * count, [0.99] * count)


SCENARIOS = (
    Scenario("the same agent twice, 50 cases", identical(50), most=LEVEL),
    Scenario("the same agent twice, 200 cases", identical(200), most=LEVEL),
    Scenario("the same agent twice, 1,000 cases", identical(1000), most=LEVEL),
    Scenario("the same agent twice, 200 cases, 2 repeats", identical(200), repeats=2, most=LEVEL),
    Scenario("the same agent twice, 200 cases, 3 repeats", identical(200), repeats=3, most=LEVEL),
    Scenario("the same agent twice, 200 cases, 5 repeats", identical(200), repeats=5, most=LEVEL),
    Scenario("10 points worse, some of 200 cases broke", some_break(200, 0.1), least=POWER),
    Scenario("10 points worse, all of 200 cases suffer", all_worse(200, 0.1), least=POWER),
    Scenario(
        "50 critical cases at 99 %, live, asked twice more",
        critical_tier(50),
        critical=True,
        live=True,
        most=LEVEL,
    ),
    Scenario("50 critical cases at 99 %, never asked again", critical_tier(50), critical=True),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--worlds", type=int, default=1000)
    options = parser.parse_args()
    print(f"| In {options.worlds:,} worlds | The gate fails | Wanted |\n|---|---|---|")
    for scenario in SCENARIOS:
        share = failing(scenario, options.worlds)
        print(f"| {scenario.name} | {100 * share:.1f} % | {wanted(scenario)} |", flush=True)
        assert scenario.holds(share), f"{scenario.name}: {share}"


def wanted(scenario: Scenario) -> str:
    if scenario.most is not None:
        return f"at most {100 * scenario.most:.0f} %"
    return "-" if scenario.least is None else f"at least {100 * scenario.least:.0f} %"


def failing(scenario: Scenario, worlds: int) -> float:
    """The share of the worlds in which the default gate fails."""
    random = Random(scenario.name)
    return sum(bool(gated(scenario, random).gate_failures) for _ in range(worlds)) / worlds


def gated(scenario: Scenario, random: Random) -> Comparison:
    before, now = scenario.world(random)
    base, candidate = (run(chance, scenario, random) for chance in (before, now))
    found = compare(base, candidate)
    if not (scenario.live and found.critical_regressions):
        return found
    again = {
        ref
        for ref in found.critical_regressions
        if all(random.random() >= now[int(ref.id)] for _ in range(CONFIRM))
    }
    return compare(base, candidate, Rules(confirmed=again))


def run(chance: Chances, scenario: Scenario, random: Random) -> list[CaseOutcome]:
    """Simulate a run; a repeated case passes if all of its trials do, as by default."""
    found = []
    for index, share in enumerate(chance):
        passes = sum(random.random() < share for _ in range(scenario.repeats))
        outcome = "passed" if passes == scenario.repeats else "failed"
        ref = CaseRef("evals/simulated.yaml", str(index))
        judged = scenario.repeats
        found.append(
            CaseOutcome(ref, outcome, passes, judged, None, "k", scenario.critical)  # type: ignore[arg-type]
        )
    return found


if __name__ == "__main__":
    main()
