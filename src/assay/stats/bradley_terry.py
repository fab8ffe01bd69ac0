"""The Bradley-Terry model: how strong each of several targets is, from comparisons of two.

The log-odds that one target wins against another are the difference of their strengths. A tie
counts as half a win for each. Half a win and half a loss are added to those of each target, spread
over its opponents: little among many comparisons, but the strength of a target that wins all or
none stays finite.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from assay.stats.distributions import t_quantile
from assay.stats.estimates import Estimate

#: What is added to the wins of each target.
PRIOR = 0.5
_PRECISION = 1e-12
#: Near the best strengths, likelihoods differ by less than they are rounded.
_ROUNDING = 1e-13
_MAX_STEPS = 100

Matrix = list[list[float]]


class Game(NamedTuple):
    """A comparison of two targets; `score` is 1 if `a` wins, 0.5 for a tie and 0 if `b` wins.

    Games of the same `unit` are not independent, such as all those about one case.
    """

    a: int
    b: int
    score: float
    unit: Hashable


def bradley_terry(
    games: Sequence[Game], targets: int, level: float = 0.95
) -> list[Estimate | None]:
    """Each target's chance to win against an average one, with its interval.

    The average is that of all strengths. The intervals are those of a sandwich estimate over
    units, which holds even if the model does not fit. None for a target without a game.
    """
    wins = _wins(games, targets)
    found = strengths(wins)
    units = len({game.unit for game in games})
    reach = t_quantile((1 + level) / 2, units - 1) if units > 1 else math.inf
    played = {player for game in games for player in (game.a, game.b)}
    errors = _errors(games, wins, found)
    return [
        _estimate(strength, reach * error, level) if index in played else None
        for index, (strength, error) in enumerate(zip(found, errors, strict=True))
    ]


def _estimate(strength: float, half: float, level: float) -> Estimate:
    low, high = _chance(strength - half), _chance(strength + half)
    return Estimate(_chance(strength), low, high, level, "bradley-terry")


def _wins(games: Iterable[Game], targets: int) -> Matrix:
    """How often each target won against each other."""
    each = _added(targets)
    wins = [[0.0 if a == b else each for b in range(targets)] for a in range(targets)]
    for game in games:
        wins[game.a][game.b] += game.score
        wins[game.b][game.a] += 1 - game.score
    return wins


def _added(targets: int) -> float:
    """What is added to the wins of a target against each other."""
    return PRIOR / max(targets - 1, 1)


def strengths(wins: Matrix) -> list[float]:
    """The strengths of the highest likelihood, by Newton's method; their sum is zero."""
    found = [0.0] * len(wins)
    best = _log_likelihood(wins, found)
    for _ in range(_MAX_STEPS):
        step = [_dot(row, _slope(wins, found)) for row in _inverted_information(wins, found)]
        size = 1.0
        while True:
            moved = [s + size * d for s, d in zip(found, step, strict=True)]
            likelihood = _log_likelihood(wins, moved)
            if likelihood >= best + _ROUNDING * best or size < _PRECISION:  # it is negative
                break
            size /= 2
        found, best = moved, likelihood
        if size * max(map(abs, step), default=0.0) < _PRECISION:
            break
    return found


def _slope(wins: Matrix, found: Sequence[float]) -> list[float]:
    """How fast the likelihood rises with each strength."""
    return [
        math.fsum(
            wins[a][b] - (wins[a][b] + wins[b][a]) * _chance(own - other)
            for b, other in enumerate(found)
        )
        for a, own in enumerate(found)
    ]


def _errors(games: Iterable[Game], wins: Matrix, found: Sequence[float]) -> list[float]:
    """The standard errors: what each unit adds to the slope, spread by the inverted information.

    The wins that were added count like wins of as many games, or targets that always tie would have
    no error at all.
    """
    targets = range(len(found))
    slopes: dict[Hashable, list[float]] = {}
    for game in games:
        slope = slopes.setdefault(game.unit, [0.0 for _ in targets])
        surprise = game.score - _chance(found[game.a] - found[game.b])
        slope[game.a] += surprise
        slope[game.b] -= surprise
    factor = len(slopes) / (len(slopes) - 1) if len(slopes) > 1 else 1.0
    inverse = _inverted_information(wins, found)
    squares = [
        factor * math.fsum(_dot(row, slope) ** 2 for slope in slopes.values()) for row in inverse
    ]
    for a in targets:
        for b in targets:
            surprise = 1 - _chance(found[a] - found[b])
            for i in targets:
                reach = (inverse[i][a] - inverse[i][b]) * surprise
                squares[i] += _added(len(targets)) * reach**2
    return [math.sqrt(square) for square in squares]


def _inverted_information(wins: Matrix, found: Sequence[float]) -> Matrix:
    """The inverse of the information, on the found whose sum is zero."""
    # Only differences matter, so the information is singular: all found together are free.
    share = 1.0 / max(len(found), 1)
    matrix = [[share for _ in found] for _ in found]
    for a, own in enumerate(found):
        for b, other in enumerate(found):
            weight = wins[a][b] * _chance(own - other) * _chance(other - own)
            for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
                matrix[i][j] += sign * weight
    return [[value - share for value in row] for row in _inverted(matrix)]


def _inverted(matrix: Matrix) -> Matrix:
    """The inverse of a matrix, by Gauss-Jordan elimination with pivots."""
    size = len(matrix)
    rows = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = rows[column][column]
        rows[column] = [value / scale for value in rows[column]]
        for i in range(size):
            if i != column and (factor := rows[i][column]):
                pairs = zip(rows[i], rows[column], strict=True)
                rows[i] = [value - factor * top for value, top in pairs]
    return [row[size:] for row in rows]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(map(float.__mul__, one, other))


def _log_likelihood(wins: Matrix, found: Sequence[float]) -> float:
    return -math.fsum(
        wins[a][b] * _softplus(other - own)
        for a, own in enumerate(found)
        for b, other in enumerate(found)
    )


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _chance(difference: float) -> float:
    """The chance to win with this difference of found."""
    if difference >= 0:
        return 1 / (1 + math.exp(-difference))
    odds = math.exp(difference)
    return odds / (1 + odds)
