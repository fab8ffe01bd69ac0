"""How often the best set of a group of targets is wrong, in the worlds of false_alarms.py.

    python benchmarks/best_targets.py [--worlds 1000] [--cases 20 100 200]

Six targets answer the same cases. First they are identical, so none should be excluded; then the
last one passes every case less often, so that its pass rate falls by ten points. The columns
"highest" say by how many points the highest pass rate is off on average, as it is and shrunken.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from false_alarms import (  # type: ignore[import-not-found]
    CASES,
    POWER,
    SUITE,
    World,
    all_worlds,
    error,
    ten_points_less,
)

from assay.comparison.groups import GroupRun, compare_group
from assay.model.group import GroupComparison
from assay.model.run import TrialFacts

TARGETS = 6
#: The share of worlds in which one of identical targets may be excluded.
LIMIT = 0.05
#: The world in which a target that is ten points worse must be excluded.
DEFAULT = World(200, 0.1)


def trial(place: int, passes: bool) -> TrialFacts:
    """A case, asked once."""
    outcome = "passed" if passes else "failed"
    return TrialFacts(
        position=place,
        repeat=0,
        suite=SUITE,
        case_id=str(place),
        outcome=outcome,  # type: ignore[arg-type]
        score=float(passes),
        duration_ms=1.0,
        cost_usd=None,
        judge_cost_usd=None,
        comparability="k",
        critical=False,
        cluster=None,
        min_pass_rate=1.0,
        skipped_assertions=0,
        confirms=False,
        final=True,
    )


def compared(targets: Sequence[Sequence[float]], random: Random) -> GroupComparison:
    """The comparison of targets, each with the chances of its cases, asked once."""
    runs = [
        GroupRun(
            f"run-{index}",
            f"target-{index}",
            [trial(place, random.random() < chance) for place, chance in enumerate(chances)],
        )
        for index, chances in enumerate(targets)
    ]
    return compare_group("group", runs)


@dataclass
class Found:
    """How often something was seen, in so many worlds, and sums of points."""

    worlds: int
    excluded: int = 0
    uncorrected: int = 0
    caught: int = 0
    others_excluded: int = 0
    highest: float = 0.0
    shrunken: float = 0.0

    def row(self) -> str:
        shares = [self.excluded, self.uncorrected, self.caught, self.others_excluded]
        points = [f"{100 * total / self.worlds:+.1f}" for total in (self.highest, self.shrunken)]
        return " | ".join([*(f"{100 * n / self.worlds:.1f} %" for n in shares), *points])


COLUMNS = (
    "one excluded",
    "a pair with p < 0.05",
    "10 points excluded",
    "another one excluded",
    "highest",
    "highest, shrunken",
)


def simulate(world: World, worlds: int, targets: int = TARGETS) -> Found:
    """The shares for one kind of world."""
    random, found = Random(f"best {world.name}"), Found(worlds)
    for _ in range(worlds):
        chances = world.chances(random)
        same = compared([chances] * targets, random)
        found.excluded += len(same.best) < targets
        found.uncorrected += any((pair.p_value or 1) < 0.05 for pair in same.pairs)
        highest = max(same.targets, key=lambda target: target.rate.estimate if target.rate else 0)
        truth = sum(chances) / len(chances)
        found.highest += (highest.rate.estimate if highest.rate else 0) - truth
        found.shrunken += (highest.shrunken or 0) - truth
        worse = compared([*[chances] * (targets - 1), ten_points_less(chances)], random)
        found.caught += not worse.targets[-1].best
        found.others_excluded += not all(target.best for target in worse.targets[:-1])
    return found


def limits(world: World, found: Found) -> Iterator[str]:
    """The limits that these shares break, allowing for the error of the simulation."""
    if found.excluded / found.worlds > LIMIT + error(LIMIT, found.worlds):
        yield f"{world.name}: one excluded {found.excluded / found.worlds:.3f}, at most {LIMIT}"
    caught = found.caught / found.worlds
    if world == DEFAULT and caught < POWER - error(POWER, found.worlds):
        yield f"{world.name}: 10 points excluded {caught:.3f}, at least {POWER}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--cases", type=int, nargs="+", default=CASES)
    options = parser.parse_args()
    print(f"Cases | flaky | {' | '.join(COLUMNS)}".join(("| ", " |")))
    print("|---|---|" + "--:|" * len(COLUMNS))
    broken: list[str] = []
    for world in all_worlds(options.cases):
        if not world.critical:  # a best set does not depend on that
            found = simulate(world, options.worlds)
            print(f"| {world.name} | {found.row()} |", flush=True)
            broken += limits(world, found)
    if broken:
        raise SystemExit("\n".join(["limits that do not hold:", *broken]))


if __name__ == "__main__":
    main()
