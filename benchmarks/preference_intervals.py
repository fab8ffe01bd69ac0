"""How often the intervals of preferences contain the truth, in simulated worlds.

    python benchmarks/preference_intervals.py [--worlds 1000]

Every answer has a quality: that of its target, and chance, the same in all comparisons of the
answer. A judge names the better of two answers, with errors of its own. It may favour the answer
that it reads first, and finds a tie if the answers are close. It is asked in both orders. The truth
is computed without the code under test: win rates by integration, strengths by Zermelo's iteration.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from false_alarms import error  # type: ignore[import-not-found]

from assay.comparison.preferences import preference_pairs, ranking
from assay.model.comparison import CaseRef
from assay.model.preference import JudgedPair, Preferred
from assay.stats.estimates import Estimate

#: The least and the highest share of intervals that may contain the truth.
LIMITS = (0.93, 0.97)
#: What both orders say about two answers: the second one is better, neither, the first one is.
CHOICES: dict[int, Preferred] = {-1: "b", 0: "tie", 1: "a"}
COLUMNS = ("ties", "flips", "strengths", "least covered", "win rate")


@dataclass(frozen=True)
class World:
    """Targets of these qualities, and a judge with these habits."""

    name: str
    qualities: tuple[float, ...]
    cases: int
    tie: float = 0.0
    bias: float = 0.0
    spread: float = 0.5
    in_cluster: int = 1

    @property
    def targets(self) -> list[str]:
        return [str(target) for target in range(len(self.qualities))]

    def answers(self, random: Random) -> Iterator[list[float]]:
        """The qualities of the answers to each case; in a cluster they share most of the chance."""
        shared = math.sqrt(0.8) * self.spread if self.in_cluster > 1 else 0.0
        own = math.sqrt(self.spread**2 - shared**2)
        for case in range(self.cases):
            if case % self.in_cluster == 0:
                means = [quality + random.gauss(0, shared) for quality in self.qualities]
            yield [mean + random.gauss(0, own) for mean in means]

    def says(self, first: float, second: float, random: Random) -> int:
        """1 if the judge names the first answer, -1 if it names the second, 0 for a tie."""
        chance = random.random()
        seen = first - second + self.bias + math.log(chance / (1 - chance))
        return 0 if abs(seen) < self.tie else 1 if seen > 0 else -1

    def win_chances(self, a: int, b: int) -> tuple[float, float]:
        """How often both orders name `a`, and `b`: a sum over the difference of two answers."""
        mean, deviation = self.qualities[a] - self.qualities[b], math.sqrt(2) * self.spread
        wins = losses = total = 0.0
        for step in range(-60, 61):
            weight = math.exp(-((step / 10) ** 2) / 2)
            x = mean + deviation * step / 10
            wins += weight * _sigmoid(x + self.bias - self.tie) * _sigmoid(x - self.bias - self.tie)
            losses += weight * (
                _sigmoid(-x - self.bias - self.tie) * _sigmoid(-x + self.bias - self.tie)
            )
            total += weight
        return wins / total, losses / total

    def rate(self, a: int, b: int) -> float:
        """The true win rate of `a` against `b`, with ties as half wins."""
        wins, losses = self.win_chances(a, b)
        return (1 + wins - losses) / 2

    def strengths(self) -> list[float]:
        """The true chances against an average target, that unlimited cases would show."""
        targets = range(len(self.qualities))
        rates = [[0.0 if a == b else self.rate(a, b) for b in targets] for a in targets]
        odds = [1.0 for _ in targets]
        for _ in range(5000):
            odds = [
                sum(rates[a]) / sum(1 / (odds[a] + odds[b]) for b in targets if b != a)
                for a in targets
            ]
            mean = math.exp(sum(map(math.log, odds)) / len(odds))
            odds = [each / mean for each in odds]
        return [each / (1 + each) for each in odds]


WORLDS = (
    World("3 targets", (0.4, 0.0, -0.4), 20, tie=0.3),
    World("3 targets, few cases", (0.4, 0.0, -0.4), 10),
    World("5 targets", (0.5, 0.2, 0.0, -0.2, -0.5), 50, tie=0.5),
    World("5 targets, far apart", (2.0, 1.0, 0.0, -1.0, -2.0), 60),
    World("6 targets, all equal", (0.0,) * 6, 30, tie=1.0),
    World("6 targets, one ahead", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0), 100, tie=0.3),
    World("4 targets, judge goes by the order", (0.6, 0.2, -0.2, -0.6), 60, tie=0.2, bias=2.0),
    World("4 targets, answers vary a lot", (0.6, 0.2, -0.2, -0.6), 60, tie=0.2, spread=3.0),
    World("4 targets, clusters of 4 cases", (0.6, 0.2, -0.2, -0.6), 160, spread=2.0, in_cluster=4),
    World("2 targets, clusters of 4 cases", (0.3, 0.0), 160, spread=2.0, in_cluster=4),
    World("2 targets, mostly ties", (0.3, 0.0), 100, tie=2.0),
    World("2 targets", (0.3, 0.0), 30, tie=0.3),
)


@dataclass
class Found:
    """How often the truth was in the intervals, in so many worlds."""

    worlds: int
    covered: list[int]
    rate_covered: int = 0
    ties: int = 0
    flips: int = 0
    comparisons: int = 0

    @property
    def coverage(self) -> float:
        """Of the strengths, over all targets."""
        return sum(self.covered) / len(self.covered) / self.worlds

    def row(self) -> str:
        shares = [
            self.ties / self.comparisons,
            self.flips / self.comparisons,
            self.coverage if self.covered else None,
            min(self.covered) / self.worlds if self.covered else None,
            self.rate_covered / self.worlds,
        ]
        return " | ".join("" if share is None else f"{100 * share:.1f} %" for share in shares)


def simulate(world: World, worlds: int, *, clusters_known: bool = True) -> Found:
    """How often the intervals contain the truth in one kind of world."""
    random, targets = Random(f"preferences {world.name}"), world.targets
    found = Found(worlds, [0] * len(targets) if len(targets) > 2 else [])
    strengths, rate = dict(zip(targets, world.strengths(), strict=True)), world.rate(1, 0)
    clusters = {_ref(case): f"{case // world.in_cluster}" for case in range(world.cases)}
    for _ in range(worlds):
        cases = list(_judged(world, random, found))
        known = clusters if world.in_cluster > 1 and clusters_known else {}
        for ranked in ranking(targets, cases, known):
            held = _holds(ranked.strength, strengths[ranked.target])
            found.covered[int(ranked.target)] += held
        first = [case for case in cases if (case.a, case.b) == ("0", "1")]
        (pair,) = preference_pairs(["0", "1"], first, known)
        found.rate_covered += _holds(pair.win_rate, rate)
    return found


def _judged(world: World, random: Random, found: Found) -> Iterator[JudgedPair]:
    for case, answers in enumerate(world.answers(random)):
        for a, b in combinations(range(len(answers)), 2):
            one = world.says(answers[a], answers[b], random)
            other = -world.says(answers[b], answers[a], random)
            agreed = one if one == other else 0
            found.comparisons += 1
            found.ties += agreed == 0
            found.flips += one * other == -1
            yield JudgedPair(*_ref(case), str(a), str(b), CHOICES[agreed])


def _ref(case: int) -> CaseRef:
    return CaseRef("simulated", str(case))


def _holds(interval: Estimate | None, truth: float) -> bool:
    return interval is not None and interval.low <= truth <= interval.high


def limits(world: World, found: Found) -> Iterator[str]:
    """The limits that these shares break, allowing for the error of the simulation."""
    low, high = LIMITS
    shares = {"win rate": found.rate_covered / found.worlds}
    if found.covered:
        shares["strengths"] = found.coverage
    for words, share in shares.items():
        if not low - error(low, found.worlds) <= share <= high + error(high, found.worlds):
            yield f"{world.name}: {words} covered in {share:.3f}, not {low} to {high}"


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def table(worlds: Sequence[World], times: int) -> Iterator[tuple[str, list[str]]]:
    """A row for each world, with the limits that it breaks."""
    for world in worlds:
        found = simulate(world, times)
        yield f"| {world.name} | {world.cases} | {found.row()} |", list(limits(world, found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--worlds", type=int, default=1000)
    options = parser.parse_args()
    print(f"| World | cases | {' | '.join(COLUMNS)} |")
    print("|---|--:|" + "--:|" * len(COLUMNS))
    broken: list[str] = []
    for row, faults in table(WORLDS, options.worlds):
        print(row, flush=True)
        broken += faults
    if broken:
        raise SystemExit("\n".join(["limits that do not hold:", *broken]))


if __name__ == "__main__":
    main()
