"""How often the gate is wrong, in simulated worlds.

    python benchmarks/false_alarms.py [--worlds 1000] [--cases 20 100 200]

In a world, a share of the cases is flaky: each passes with a chance of its own, drawn from a beta
distribution. The others always pass. The same agent is asked again, with a baseline that is fresh
or was updated twelve times; then an agent in which some cases are dead, and one in which every case
passes less often, so that the pass rate falls by ten points.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from assay.comparison.tally import compare
from assay.engine.losses import MAX_CASES
from assay.model.comparison import CaseOutcome, CaseRef, Comparison, Reasks
from assay.model.options import CONFIRM

SUITE = "evals/simulated.yaml"
#: Alpha and beta of the chance that a flaky case passes.
KINDS = {"Beta(4,1)": (4, 1), "Beta(2,2)": (2, 2), "uniform": (1, 1)}
SHARES = (0.0, 0.05, 0.1, 0.2)
CASES = (20, 100, 200)
UPDATES = 12
#: The share of false alarms that is allowed, with a fresh baseline and with one that was updated.
FRESH_LIMIT, UPDATED_LIMIT = 0.05, 0.08
#: The share of worlds in which five dead cases, and ten points in 200 cases, must be caught.
POWER = 0.8

#: The chance of each case to pass.
Chances = Sequence[float]


@dataclass(frozen=True)
class World:
    """So many cases, of which a share is flaky."""

    cases: int
    share: float
    kind: str = "Beta(2,2)"
    critical: bool = False

    @property
    def name(self) -> str:
        flaky = f"{100 * self.share:.0f} % {self.kind}" if self.share else "none"
        return f"{self.cases} | {flaky}{', critical' if self.critical else ''}"

    def chances(self, random: Random) -> list[float]:
        flaky = round(self.share * self.cases)
        drawn = [random.betavariate(*KINDS[self.kind]) for _ in range(flaky)]
        return [*drawn, *[1.0] * (self.cases - flaky)]

    def ask(self, chances: Chances, random: Random) -> list[CaseOutcome]:
        """A run: every case is asked once."""
        return [self._case(i, random.random() < chance) for i, chance in enumerate(chances)]

    def _case(self, index: int, passes: bool) -> CaseOutcome:
        outcome = "passed" if passes else "failed"
        ref = CaseRef(SUITE, str(index))
        return CaseOutcome(ref, outcome, int(passes), 1, None, "k", self.critical)  # type: ignore[arg-type]

    def gate(self, base: list[CaseOutcome], chances: Chances, random: Random) -> Gated:
        """Ask, compare, ask the losses again, and compare again, as `assay run` does."""
        run = self.ask(chances, random)
        found = compare(base, run)
        if not found.is_worse:
            for loss in found.losses[:MAX_CASES]:
                index = int(loss.ref.id)
                run[index] = run[index]._replace(
                    reasks=asked_again(chances[index], self.critical, random)
                )
            found = compare(base, run)
        return Gated(run, found)


@dataclass(frozen=True)
class Gated:
    """A run and its comparison with the baseline."""

    run: list[CaseOutcome]
    comparison: Comparison


def asked_again(chance: float, critical: bool, random: Random) -> Reasks:
    made = Reasks()
    for _ in range(CONFIRM):
        if made.settle(CONFIRM, critical=critical):
            break
        passes = random.random() < chance
        made = replace(made, passed=made.passed + passes, failed=made.failed + (not passes))
    return made


def with_dead(chances: Chances, dead: int) -> list[float]:
    """Some of the stable cases, which are last, never pass any more."""
    return [*chances[: len(chances) - dead], *[0.0] * dead]


def ten_points_less(chances: Chances) -> list[float]:
    """Every case passes less often, by the same factor."""
    factor = 1 - 0.1 * len(chances) / sum(chances)
    return [chance * factor for chance in chances]


@dataclass
class Shares:
    """How often something was seen, in so many worlds."""

    worlds: int
    alarms: int = 0
    inconclusive: int = 0
    updated_alarms: int = 0
    dead_1: int = 0
    dead_3: int = 0
    dead_5: int = 0
    ten_points: int = 0

    def of(self, name: str) -> float:
        return int(getattr(self, name)) / self.worlds

    def row(self) -> str:
        return " | ".join(f"{100 * self.of(name):.1f} %" for name in COLUMNS)


COLUMNS = {
    "alarms": "false alarms",
    "inconclusive": "inconclusive",
    "updated_alarms": "false alarms, updated",
    "dead_1": "1 dead",
    "dead_3": "3 dead",
    "dead_5": "5 dead",
    "ten_points": "10 points",
}


def simulate(world: World, worlds: int) -> Shares:
    """The shares for one kind of world."""
    random, found = Random(world.name), Shares(worlds)
    for _ in range(worlds):
        chances = world.chances(random)
        base = world.ask(chances, random)
        same = world.gate(base, chances, random).comparison
        found.alarms += same.verdict == "failed"
        found.inconclusive += same.verdict == "inconclusive"
        moved = updated(world, base, chances, random)
        found.updated_alarms += fails(world, moved, chances, random)
        for dead in (1, 3, 5):
            caught = fails(world, base, with_dead(chances, dead), random)
            setattr(found, f"dead_{dead}", getattr(found, f"dead_{dead}") + caught)
        found.ten_points += fails(world, base, ten_points_less(chances), random)
    return found


def fails(world: World, base: list[CaseOutcome], chances: Chances, random: Random) -> bool:
    return world.gate(base, chances, random).comparison.verdict == "failed"


def updated(
    world: World, base: list[CaseOutcome], chances: Chances, random: Random
) -> list[CaseOutcome]:
    """The baseline after twelve runs of the same agent, each followed by `baseline update`."""
    for _ in range(UPDATES):
        gated = world.gate(base, chances, random)
        if gated.comparison.verdict == "passed":
            base = gated.run
    return base


def limits(world: World, found: Shares) -> Iterator[str]:
    """The limits that these shares break, allowing for the error of the simulation."""
    if world.critical:
        return
    for name, most in (("alarms", FRESH_LIMIT), ("updated_alarms", UPDATED_LIMIT)):
        if found.of(name) > most + error(most, found.worlds):
            yield f"{world.name}: {COLUMNS[name]} {found.of(name):.3f}, at most {most}"
    if not world.share and min(found.dead_1, found.dead_3, found.dead_5) < found.worlds:
        yield f"{world.name}: a dead case was not caught, though no case is flaky"
    required = ["dead_5"] + (["ten_points"] if world.cases >= 200 else [])
    for name in required:
        if found.of(name) < POWER - error(POWER, found.worlds):
            yield f"{world.name}: {COLUMNS[name]} {found.of(name):.3f}, at least {POWER}"


def error(share: float, worlds: int) -> float:
    """Three standard errors of a simulated share."""
    return 3 * math.sqrt(share * (1 - share) / worlds)


def all_worlds(cases: Sequence[int] = CASES) -> Iterator[World]:
    for count in cases:
        for share in SHARES:
            kinds = list(KINDS) if share else ["Beta(2,2)"]
            yield from (World(count, share, kind) for kind in kinds)
        yield World(count, 0.05, critical=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--cases", type=int, nargs="+", default=CASES)
    options = parser.parse_args()
    print(f"Cases | flaky | {' | '.join(COLUMNS.values())}".join(("| ", " |")))
    print("|---|---|" + "--:|" * len(COLUMNS))
    broken: list[str] = []
    for world in all_worlds(options.cases):
        found = simulate(world, options.worlds)
        print(f"| {world.name} | {found.row()} |", flush=True)
        broken += limits(world, found)
    if broken:
        raise SystemExit("\n".join(["limits that do not hold:", *broken]))


if __name__ == "__main__":
    main()
