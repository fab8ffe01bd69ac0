"""The algorithms of alignment, compared with an exhaustive search."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from assay.evaluators.alignment import Pairs, assign, in_order, in_place

COLUMNS = 4
ROWS = st.lists(
    st.dictionaries(st.integers(0, COLUMNS - 1), st.integers(1, 9), max_size=COLUMNS), max_size=4
)


def all_pairs(rows: int, columns: int) -> Iterator[Pairs]:
    """Every way to give some rows a column each."""
    if rows == 0:
        yield {}
        return
    for pairs in all_pairs(rows - 1, columns):
        yield pairs
        for column in set(range(columns)).difference(pairs.values()):
            yield {**pairs, rows - 1: column}


def worth(weights: list[dict[int, int]], pairs: Pairs) -> int:
    """What the pairs are worth; below 0 when a row may not have its column."""
    if any(column not in weights[row] for row, column in pairs.items()):
        return -1
    return sum(weights[row][column] for row, column in pairs.items())


def keeps_order(pairs: Pairs) -> bool:
    columns = [pairs[row] for row in sorted(pairs)]
    return columns == sorted(columns)


@given(ROWS)
def test_assign_finds_an_optimum(weights: list[dict[int, int]]) -> None:
    found = assign(weights)
    assert len(set(found.values())) == len(found)
    best = max(worth(weights, pairs) for pairs in all_pairs(len(weights), COLUMNS))
    assert worth(weights, found) == best


@given(ROWS)
def test_in_order_finds_an_optimum(weights: list[dict[int, int]]) -> None:
    found = in_order(weights, COLUMNS)
    assert keeps_order(found)
    possible = filter(keeps_order, all_pairs(len(weights), COLUMNS))
    assert worth(weights, found) == max(worth(weights, pairs) for pairs in possible)


def subsets(optional: list[bool]) -> Iterator[list[int]]:
    """Every choice of the rows to keep."""
    chosen: list[list[int]] = [[]]
    for row, may_go in enumerate(optional):
        staying = [[*rows, row] for rows in chosen]
        chosen = staying + chosen if may_go else staying
    yield from chosen


@given(ROWS, st.lists(st.booleans(), min_size=4, max_size=4), st.integers(0, 9))
def test_in_place_finds_an_optimum(
    weights: list[dict[int, int]], flags: list[bool], charge: int
) -> None:
    def value(rows: list[int]) -> int:
        had = sum(weights[row].get(place, 0) for place, row in enumerate(rows))
        return had - charge * max(len(rows), COLUMNS)

    optional = flags[: len(weights)]
    found = in_place(weights, optional, COLUMNS, charge)
    assert found in list(subsets(optional))
    assert value(found) == max(map(value, subsets(optional)))


def test_a_row_gives_its_column_to_one_that_has_no_other() -> None:
    assert assign([{0: 1, 1: 1}, {0: 1}]) == {0: 1, 1: 0}


def test_a_row_that_is_worth_less_is_left_without_a_column() -> None:
    assert assign([{0: 1}, {0: 2}]) == {1: 0}


def test_a_row_is_left_out_when_that_leaves_room_for_two() -> None:
    assert in_order([{2: 1}, {0: 1}, {1: 1}], 3) == {1: 0, 2: 1}
