"""Cases are paired as a dictionary would, in whatever order they come."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from assay.comparison.pairs import Pair, pair
from assay.model.comparison import CaseOutcome
from unit.case_outcomes import SUITE, case


def naive(base: Sequence[CaseOutcome], candidate: Sequence[CaseOutcome]) -> list[Pair]:
    """What `pair` does, with a dictionary of queues."""
    by_id = bool(base and candidate) and not (base[0].ref.suite and candidate[0].ref.suite)
    waiting: dict[object, deque[int]] = defaultdict(deque)
    for index, old in enumerate(base):
        waiting[old.ref.id if by_id else old.ref].append(index)
    taken: set[int] = set()
    pairs: list[Pair] = []
    for new in candidate:
        queue = waiting[new.ref.id if by_id else new.ref]
        index = queue.popleft() if queue else -1
        taken.add(index)
        pairs.append((base[index] if index >= 0 else None, new))
    return pairs + [(old, None) for index, old in enumerate(base) if index not in taken]


texts = st.one_of(st.sampled_from(["a", "b", "c", "ä", "0"]), st.text(max_size=3))
outcomes = st.sampled_from(["passed", "failed", "errored", "skipped"])
cases = st.builds(
    case,
    texts,
    outcomes,
    suite=st.sampled_from(["one.yaml", "two.yaml"]),
    score=st.one_of(st.none(), st.floats(0, 1)),
    critical=st.booleans(),
    cluster=st.one_of(st.none(), texts),
)
runs = st.lists(cases, max_size=30)


@given(runs, runs)
def test_pairs_are_those_of_a_dictionary(
    base: list[CaseOutcome], candidate: list[CaseOutcome]
) -> None:
    assert list(pair(base, candidate)) == naive(base, candidate)


@given(runs, runs)
def test_without_suites_the_id_alone_decides(
    base: list[CaseOutcome], candidate: list[CaseOutcome]
) -> None:
    bare = [old._replace(ref=old.ref._replace(suite="")) for old in base]
    assert list(pair(bare, candidate)) == naive(bare, candidate)
    assert list(pair(candidate, bare)) == naive(candidate, bare)


@given(st.permutations(range(40)))
def test_the_order_does_not_matter(order: list[int]) -> None:
    base = [case(str(i)) for i in range(40)]
    candidate = [case(str(i), "failed") for i in order]
    found = list(pair(base, candidate))
    assert [(old.ref, new.ref) for old, new in found if old and new] == [
        (new.ref, new.ref) for new in candidate
    ]
    assert len(found) == 40


def test_a_case_in_the_middle_is_added_and_one_removed() -> None:
    base = [case("a"), case("b"), case("c")]
    candidate = [case("a"), case("new"), case("c")]
    assert list(pair(base, candidate)) == [
        (base[0], candidate[0]),
        (None, candidate[1]),
        (base[2], candidate[2]),
        (base[1], None),
    ]


def test_equal_ids_of_two_suites_are_two_cases() -> None:
    one, two = case("a", suite="one.yaml"), case("a", suite="two.yaml")
    assert list(pair([one, two], [two, one])) == [(two, two), (one, one)]


def test_many_cases_of_one_id_take_no_longer() -> None:
    """A chain of equal keys is taken from its start: else this would be 10**9 steps."""
    base = [case("a", suite=f"{i}.yaml") for i in range(30_000)]
    candidate = [case("b", suite=""), *(case("a", suite="") for _ in range(30_000))]
    found = list(pair(base, candidate))
    assert [old for old, _ in found[1:]] == base


def test_every_case_is_read_once() -> None:
    base, candidate = iter([case("a", suite=SUITE)]), iter([case("b")])
    assert len(list(pair(base, candidate))) == 2
