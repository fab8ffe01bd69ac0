"""Matches expected steps with calls: the best matching, not the first one found.

Steps are rows and calls are columns. A row of weights maps each column that the row may be paired
with to the worth of that pair, an integer above 0; it cannot have any other column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeVar

from assay.deadlines import check_deadline

T = TypeVar("T")
Weights = Sequence[Mapping[int, int]]
#: Row -> column.
Pairs = dict[int, int]


def highest_share(
    solve: Callable[[int, int], T], share: Callable[[T], tuple[int, int]], *, fixed: bool
) -> T:
    """The solution with the highest share (satisfied, total).

    `solve(p, q)` maximises q * satisfied - p * total. That maximum is 0 if p / q is the highest
    share, so each solution gives the p / q of a better one until there is none (Dinkelbach).
    With `fixed`, `total` is the same for every solution, so the first one is the best.
    """
    best = solve(1, 1)
    satisfied, total = share(best)
    while satisfied < total and not fixed:
        best = solve(satisfied, total)
        before = satisfied, total
        satisfied, total = share(best)
        if satisfied * before[1] == before[0] * total:
            break
    return best


def in_order(weights: Weights, columns: int) -> Pairs:
    """The best pairs that keep the order of rows and columns."""
    # tables[i][j]: the most that rows i onwards can get from columns j onwards
    tables = [[0] * (columns + 1)]
    for row in reversed(weights):
        tables.append(_with_row(row, tables[-1], columns) if row else tables[-1])
    tables.reverse()
    pairs, column = {}, 0
    for index, row in enumerate(weights):
        here, below = tables[index], tables[index + 1]
        while here[column] != below[column]:  # this row is paired with this column or a later one
            if here[column] == row.get(column, 0) + below[column + 1]:
                pairs[index] = column
                column += 1
                break
            column += 1
    return pairs


def _with_row(row: Mapping[int, int], below: list[int], columns: int) -> list[int]:
    check_deadline()
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
    """The best pairs in any order."""
    assignment = _Assignment(weights)
    for row in range(len(weights)):
        assignment.add(row)
    return assignment.pairs


class _Assignment:
    """Rows are added one by one; the pairs are always the best for the rows so far.

    Each new row takes a shortest augmenting path: the cheapest way to a free column, or to a row
    that is better left without one, with the rows on the path changing columns. Row and column
    prices (potentials) keep the cost of every move at 0 or above, and that of every pair at 0.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.pairs: Pairs = {}
        self.owners: dict[int, int] = {}
        self.row_price = [0] * len(weights)
        self.column_price: dict[int, int] = {}

    def add(self, new: int) -> None:
        price = self.column_price
        costs = (-weight - price.get(column, 0) for column, weight in self.weights[new].items())
        self.row_price[new] = min(0, min(costs, default=0))
        via: dict[int, int] = {}
        reached, total, row, column = self._cheapest_path(new, via)
        for other, cost in reached.items():
            self.row_price[other] += total - cost
            if other != new:
                given = self.pairs[other]
                price[given] = price.get(given, 0) - (total - cost)
        self._shift(new, row, column, via)

    def _cheapest_path(
        self, new: int, via: dict[int, int]
    ) -> tuple[dict[int, int], int, int, int | None]:
        """The rows reached with their costs; the cost of the path, its last row and column.

        Fills `via` with the row from which each column is reached.
        """
        price = self.column_price.get
        row, reached = new, {new: 0}
        nearest: dict[int, int] = {}
        queue: list[tuple[int, int]] = []
        end: tuple[int, int, int | None] = (-self.row_price[new], new, None)
        while True:
            check_deadline()
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
        """Pass each row's column to the row before it on the path."""
        while True:
            given = self.pairs.pop(row, None)
            if column is not None:
                self.pairs[row], self.owners[column] = column, row
            if row == new:
                return
            assert given is not None, "only the new row had no column"
            row, column = via[given], given


def in_place(weights: Weights, optional: Sequence[bool], columns: int, charge: int) -> list[int]:
    """The rows to keep when optional ones may be left out; the k-th kept row has column k.

    Each place costs the charge, whether it has a row and a column or only one of them.
    """
    # best[k]: the most that can be had if k of the rows so far are kept
    best: list[int | None] = [0]
    kept: list[list[bool]] = []
    for row, droppable in zip(weights, optional, strict=True):
        check_deadline()
        after: list[int | None] = [value if droppable else None for value in best] + [None]
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
    rows = []
    for index in range(len(kept) - 1, -1, -1):
        if kept[index][count]:
            rows.append(index)
            count -= 1
    return rows[::-1]
