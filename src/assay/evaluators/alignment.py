"""Which expected step goes with which call: the best choice, never the first one.

Steps are rows and calls are columns. A row of weights maps the columns that the row may have
to what that is worth, a whole number above 0; the other columns it may not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeVar

T = TypeVar("T")
Weights = Sequence[Mapping[int, int]]
#: Row -> column.
Pairs = dict[int, int]


def highest_share(
    solve: Callable[[int, int], T], share: Callable[[T], tuple[int, int]], *, fixed: bool
) -> T:
    """The solution whose share (satisfied, all) is the highest.

    `solve(p, q)` finds the one with the most q * satisfied - p * all. For p / q the highest
    share that is 0, so each solution leads to a better one until it is found (Dinkelbach).
    `fixed` says that `all` is the same for every solution: then the first one is the best.
    """
    best = solve(1, 1)
    satisfied, out_of = share(best)
    while satisfied < out_of and not fixed:
        best = solve(satisfied, out_of)
        before = satisfied, out_of
        satisfied, out_of = share(best)
        if satisfied * before[1] == before[0] * out_of:
            break
    return best


def in_order(weights: Weights, columns: int) -> Pairs:
    """The best pairs that keep the order of rows and columns."""
    # tables[i][j]: the most that the rows from i on can have of the columns from j on
    tables = [[0] * (columns + 1)]
    for row in reversed(weights):
        tables.append(_with_row(row, tables[-1], columns) if row else tables[-1])
    tables.reverse()
    pairs, column = {}, 0
    for index, row in enumerate(weights):
        here, below = tables[index], tables[index + 1]
        while here[column] != below[column]:  # this row has one of the columns to come
            if here[column] == row.get(column, 0) + below[column + 1]:
                pairs[index] = column
                column += 1
                break
            column += 1
    return pairs


def _with_row(row: Mapping[int, int], below: list[int], columns: int) -> list[int]:
    best = 0
    table = below.copy()
    for column in range(columns - 1, -1, -1):
        weight = row.get(column)
        if weight is not None and (paired := weight + below[column + 1]) > best:
            best = paired
        if table[column] < best:
            table[column] = best
        else:
            best = table[column]
    return table


def assign(weights: Weights) -> Pairs:
    """The best pairs in whatever order."""
    assignment = _Assignment(weights)
    for row in range(len(weights)):
        assignment.enter(row)
    return assignment.pairs


class _Assignment:
    """Rows enter one after the other, and the pairs are the best for the rows so far.

    A new row takes the cheapest way to a free column, on which other rows may change theirs,
    or to a row that is better left without one: a shortest augmenting path. Prices of rows
    and columns keep the cost of every move at 0 or above, and that of every pair at 0.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.pairs: Pairs = {}
        self.owners: dict[int, int] = {}
        self.row_price = [0] * len(weights)
        self.column_price: dict[int, int] = {}

    def enter(self, new: int) -> None:
        price = self.column_price
        costs = (-weight - price.get(column, 0) for column, weight in self.weights[new].items())
        self.row_price[new] = min(0, min(costs, default=0))
        via: dict[int, int] = {}
        reached, total, row, column = self._cheapest_way(new, via)
        for other, cost in reached.items():
            self.row_price[other] += total - cost
            if other != new:
                given = self.pairs[other]
                price[given] = price.get(given, 0) - (total - cost)
        self._shift(new, row, column, via)

    def _cheapest_way(
        self, new: int, via: dict[int, int]
    ) -> tuple[dict[int, int], int, int, int | None]:
        """The rows reached with their costs; what the way costs, its last row and its end.

        `via` is filled: the row from which each column is reached.
        """
        price = self.column_price.get
        row, reached = new, {new: 0}
        nearest: dict[int, int] = {}
        queue: list[tuple[int, int]] = []
        end: tuple[int, int, int | None] = (-self.row_price[new], new, None)
        while True:
            start = reached[row] - self.row_price[row]
            if start < end[0]:
                end = (start, row, None)
            limit = end[0]
            for column, weight in self.weights[row].items():
                cost = start - weight - price(column, 0)
                if cost >= limit:
                    continue
                if column not in self.owners:
                    limit, end = cost, (cost, row, column)
                elif cost < nearest.get(column, limit):
                    nearest[column], via[column] = cost, row
                    heappush(queue, (cost, column))
            while queue and queue[0][0] > nearest[queue[0][1]]:
                heappop(queue)
            if not queue or queue[0][0] >= limit:
                return reached, *end
            cost, column = heappop(queue)
            row = self.owners[column]
            reached[row] = cost

    def _shift(self, new: int, row: int, column: int | None, via: dict[int, int]) -> None:
        """Every row on the way gives its column to the row before it."""
        while True:
            given = self.pairs.pop(row, None)
            if column is not None:
                self.pairs[row], self.owners[column] = column, row
            if row == new:
                return
            assert given is not None, "only the new row had no column"
            row, column = via[given], given


def in_place(weights: Weights, optional: Sequence[bool], columns: int, charge: int) -> list[int]:
    """The rows that stay when optional ones may be left out: each has its place as its column.

    Each place costs the charge, whether a row or only a column stands there.
    """
    # best[k]: the most that is had with k rows staying so far
    best: list[int | None] = [0]
    kept: list[list[bool]] = []
    for row, may_go in zip(weights, optional, strict=True):
        after: list[int | None] = [value if may_go else None for value in best] + [None]
        keeps = [False] * len(after)
        for place, value in enumerate(best):
            if value is None:
                continue
            value += row.get(place, 0)
            other = after[place + 1]
            if other is None or value > other:
                after[place + 1], keeps[place + 1] = value, True
        best = after
        kept.append(keeps)
    totals = [(v - charge * max(k, columns), -k) for k, v in enumerate(best) if v is not None]
    count = -max(totals)[1]
    stay = []
    for index in range(len(kept) - 1, -1, -1):
        if kept[index][count]:
            stay.append(index)
            count -= 1
    return stay[::-1]
