"""Worlds in which the truth is known: each draws one sample and says whether it was covered."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from random import Random

from assay.stats.bradley_terry import Game, bradley_terry, strengths
from assay.stats.calibration import (
    Confusion,
    agreement,
    corrected_rate,
    kappa,
    sensitivity,
    specificity,
)
from assay.stats.estimates import Estimate
from assay.stats.means import bootstrap, clustered_t, score_mean, student_t
from assay.stats.paired import Pairs, newcombe, score_difference
from assay.stats.proportions import clopper_pearson, clustered_rate, wilson, win_rate
from assay.stats.repeats import Attempts, mean_pass_at_k, mean_pass_hat_k
from assay.stats.sequential import Sequential, Side

World = Callable[[Random], bool]


def share(world: World, runs: int, seed: int = 1) -> float:
    """How often it was so, each time with a seed of its own."""
    random = Random(seed)
    return sum(world(Random(random.getrandbits(64))) for _ in range(runs)) / runs


def holds(found: Estimate | None, truth: float) -> bool:
    return found is not None and truth in found.interval


def successes(random: Random, n: int, rate: float) -> int:
    return sum(random.random() < rate for _ in range(n))


def rates(method: Callable[[int, int], Estimate | None], n: int, rate: float) -> World:
    return lambda random: holds(method(successes(random, n, rate), n), rate)


def scores(method: Callable[[list[float]], Estimate | None], n: int) -> World:
    """Skewed scores from 0 to 1, mostly near 1; their mean is 0.8."""
    return lambda random: holds(method([random.betavariate(2, 0.5) for _ in range(n)]), 0.8)


def few_draws(values: list[float]) -> Estimate | None:
    return bootstrap(values, draws=500)


def _clusters(random: Random, groups: int) -> tuple[list[float], list[int]]:
    """Each cluster has a rate of its own, 0.7 on average, and up to nine cases."""
    chances, names = [], []
    for group in range(groups):
        rate = random.betavariate(2.1, 0.9)
        size = random.randint(1, 9)
        chances += [rate] * size
        names += [group] * size
    return chances, names


def clustered_scores(groups: int) -> World:
    def world(random: Random) -> bool:
        chances, names = _clusters(random, groups)
        values = [min(max(random.gauss(c, 0.1), c - 0.3), c + 0.3) for c in chances]
        return holds(clustered_t(values, names), 0.7)

    return world


def clustered_draws(groups: int) -> World:
    def world(random: Random) -> bool:
        chances, names = _clusters(random, groups)
        return holds(bootstrap(chances, clusters=names, draws=500), 0.7)

    return world


def clustered_passes(groups: int) -> World:
    def world(random: Random) -> bool:
        chances, names = _clusters(random, groups)
        return holds(clustered_rate([random.random() < c for c in chances], names), 0.7)

    return world


def ignored_clusters(groups: int) -> World:
    def world(random: Random) -> bool:
        chances, _ = _clusters(random, groups)
        return holds(wilson(sum(random.random() < c for c in chances), len(chances)), 0.7)

    return world


def paired(n: int, lost: float, gained: float, both: float) -> World:
    def world(random: Random) -> bool:
        counts = [0, 0, 0, 0]
        for _ in range(n):
            draw = random.random()
            limits = (lost, lost + gained, lost + gained + both, 1.0)
            counts[next(i for i, limit in enumerate(limits) if draw <= limit)] += 1
        pairs = Pairs(counts[2], counts[0], counts[1], counts[3])
        return holds(newcombe(pairs), gained - lost)

    return world


def differences(n: int) -> World:
    """Differences of scores, 0 for half of the cases; their mean is 0.1."""

    def world(random: Random) -> bool:
        values = [random.uniform(-0.2, 0.6) * (random.random() < 0.5) for _ in range(n)]
        return holds(score_difference(values), 0.1)

    return world


def repeats(n: int, attempts: int, k: int, hat: bool) -> World:
    """Each case passes with a chance of its own, uniform from 0 to 1; so pass^k is 1 / (k + 1)."""

    def world(random: Random) -> bool:
        cases = [Attempts(successes(random, attempts, random.random()), attempts) for _ in range(n)]
        method = mean_pass_hat_k if hat else mean_pass_at_k
        found = method(cases, k, draws=500)
        return holds(found, 1 / (k + 1) if hat else 1 - 1 / (k + 1))

    return world


def judge(random: Random, human: bool, hit: float, refused: float) -> bool:
    return random.random() < (hit if human else 1 - refused)


def corrected(theta: float, n: int, labels: int, hit: float = 0.9, refused: float = 0.85) -> World:
    """A judge with errors, as many labels of passes as of failures; the interval carries both."""

    def world(random: Random) -> bool:
        passed = sum(judge(random, random.random() < theta, hit, refused) for _ in range(n))
        right, wrong = successes(random, labels, hit), successes(random, labels, 1 - refused)
        table = Confusion(right, wrong, labels - right, labels - wrong)
        return holds(corrected_rate(passed, n, table), theta)

    return world


def uncorrected(theta: float, n: int, hit: float = 0.9, refused: float = 0.85) -> World:
    def world(random: Random) -> bool:
        passed = sum(judge(random, random.random() < theta, hit, refused) for _ in range(n))
        return holds(wilson(passed, n), theta)

    return world


def _labels(random: Random, n: int, rate: float, hit: float, refused: float) -> Confusion:
    humans = [random.random() < rate for _ in range(n)]
    return Confusion.of((h, judge(random, h, hit, refused)) for h in humans)


def agreements(kind: Callable[[Confusion], Estimate | None], truth: float, n: int) -> World:
    """Labels of which 0.6 are passes; sensitivity 0.9, specificity 0.8."""
    return lambda random: holds(kind(_labels(random, n, 0.6, 0.9, 0.8)), truth)


def wins(n: int, won: float, lost: float) -> World:
    """Cases that are won, lost, or else tie."""

    def world(random: Random) -> bool:
        draws = [random.random() for _ in range(n)]
        gained = sum(draw < won for draw in draws)
        missed = sum(won <= draw < won + lost for draw in draws)
        return holds(win_rate(gained, missed, n - gained - missed), (1 + won - lost) / 2)

    return world


def ranked(cases: int, powers: list[float], ties: float) -> World:
    """Targets whose answers to a case are as good as their powers, and chance; some pairs tie.

    The pairs of a case share its answers, so they are correlated.
    """
    targets = range(len(powers))
    pairs = list(combinations(targets, 2))
    wins = [[0.0 for _ in targets] for _ in targets]
    for a, b in pairs:
        wins[a][b] = ties / 2 + (1 - ties) / (1 + math.exp(powers[b] - powers[a]))
        wins[b][a] = 1 - wins[a][b]
    truth = [1 / (1 + math.exp(-strength)) for strength in strengths(wins)]

    def world(random: Random) -> bool:
        games = []
        for case in range(cases):
            seen = [power - math.log(-math.log(random.random())) for power in powers]
            for a, b in pairs:
                score = 0.5 if random.random() < ties else float(seen[a] > seen[b])
                games.append(Game(a, b, score, case))
        chosen = random.randrange(len(powers))
        return holds(bradley_terry(games, len(powers))[chosen], truth[chosen])

    return world


def alarm(cases: int, lost: float, gained: float, side: Side) -> World:
    """Looked at after every case: is there ever a verdict?"""

    def world(random: Random) -> bool:
        test = Sequential(side=side)
        for _ in range(cases):
            draw = random.random()
            if draw < lost + gained:
                test = test.after(draw < lost, draw >= lost)
                if test.verdict:
                    return True
        return False

    return world


SEEN = 0.6 * 0.9 + 0.4 * 0.8
JUDGED = 0.6 * 0.9 + 0.4 * 0.2
CHANCE = 0.6 * JUDGED + 0.4 * (1 - JUDGED)

#: Name, world, and between what the share of covered truths may lie.
COVERED: list[tuple[str, World, float, float]] = [
    ("wilson n=10 0.9", rates(wilson, 10, 0.9), 0.92, 0.96),
    ("wilson n=20 0.95", rates(wilson, 20, 0.95), 0.91, 0.96),
    ("wilson n=50 0.9", rates(wilson, 50, 0.9), 0.94, 0.98),
    ("wilson n=100 0.5", rates(wilson, 100, 0.5), 0.93, 0.96),
    ("clopper n=10 0.9", rates(clopper_pearson, 10, 0.9), 0.95, 1.0),
    ("clopper n=50 0.9", rates(clopper_pearson, 50, 0.9), 0.95, 1.0),
    ("student n=50", scores(student_t, 50), 0.92, 0.96),
    ("bootstrap n=8", scores(few_draws, 8), 0.9, 0.97),
    ("bootstrap n=20", scores(few_draws, 20), 0.92, 0.97),
    ("score mean n=40", scores(score_mean, 40), 0.92, 0.96),
    ("clustered scores G=25", clustered_scores(25), 0.92, 0.96),
    ("clustered scores G=8", clustered_scores(8), 0.89, 0.96),
    ("clustered bootstrap G=25", clustered_draws(25), 0.92, 0.97),
    ("clustered passes G=25", clustered_passes(25), 0.92, 0.98),
    ("clustered passes G=8", clustered_passes(8), 0.90, 0.98),
    ("newcombe n=50", paired(50, 0.05, 0.15, 0.6), 0.93, 0.98),
    ("newcombe n=200", paired(200, 0.1, 0.08, 0.7), 0.93, 0.98),
    ("newcombe n=30 nothing lost", paired(30, 0.0, 0.1, 0.85), 0.95, 1.0),
    ("score difference n=40", differences(40), 0.92, 0.97),
    ("pass^3 of 5, 25 cases", repeats(25, 5, 3, True), 0.92, 0.97),
    ("pass@2 of 4, 25 cases", repeats(25, 4, 2, False), 0.92, 0.97),
    ("sensitivity n=60", agreements(sensitivity, 0.9, 60), 0.92, 0.97),
    ("specificity n=60", agreements(specificity, 0.8, 60), 0.92, 0.97),
    ("agreement n=60", agreements(agreement, SEEN, 60), 0.92, 0.97),
    ("kappa n=60", agreements(kappa, (SEEN - CHANCE) / (1 - CHANCE), 60), 0.91, 0.97),
    ("kappa n=200", agreements(kappa, (SEEN - CHANCE) / (1 - CHANCE), 200), 0.93, 0.97),
    ("corrected 0.9", corrected(0.9, 200, 50), 0.93, 0.98),
    ("corrected 0.7", corrected(0.7, 1000, 100), 0.93, 0.98),
    ("win rate n=50 half ties", wins(50, 0.3, 0.2), 0.93, 0.97),
    ("win rate n=100 few ties", wins(100, 0.6, 0.3), 0.93, 0.97),
    ("win rate n=30 nothing lost", wins(30, 0.2, 0), 0.92, 0.99),
    ("win rate n=40 many ties", wins(40, 0.06, 0.06), 0.93, 0.99),
    ("ranking of 3, 20 cases", ranked(20, [0.5, 0, -0.5], 0.2), 0.93, 0.97),
    ("ranking of 5, 50 cases", ranked(50, [1, 0.5, 0, -0.5, -1], 0.3), 0.93, 0.97),
    ("ranking of 5, far apart", ranked(60, [2, 1, 0, -1, -2], 0), 0.93, 0.97),
    ("ranking of 6, all equal", ranked(30, [0.0] * 6, 0.5), 0.93, 0.97),
    ("corrected few labels", corrected(0.5, 100, 20), 0.93, 0.99),
]
