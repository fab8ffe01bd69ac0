"""Sums give what the values themselves give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.estimates import Estimate
from assay.stats.means import score_mean
from assay.stats.proportions import clustered_rate
from assay.stats.sums import Clusters, Moments

SCORES = st.lists(st.floats(0, 1), max_size=60)
CLUSTERED = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(["a", "b", "c", "d", None])), max_size=40
)


def moments(values: Sequence[float]) -> Moments:
    found = Moments()
    for value in values:
        found.add(value)
    return found


def clusters(values: Sequence[tuple[float, str | None]]) -> Clusters:
    named: dict[str, list[float]] = {}
    alone = [value for value, name in values if name is None]
    for value, name in values:
        if name is not None:
            named.setdefault(name, []).append(value)
    units = [(math.fsum(group), len(group)) for group in named.values()]
    return Clusters(units, len(alone), sum(alone), sum(value * value for value in alone))


def same(found: Estimate | None, wanted: Estimate | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    numbers = [(found.estimate, wanted.estimate), (found.low, wanted.low)]
    close = all(one == pytest.approx(other, abs=1e-6) for one, other in numbers)
    return close and found.high == pytest.approx(wanted.high, abs=1e-6)


@given(SCORES)
def test_the_mean_is_that_of_the_values(values: list[float]) -> None:
    found = moments(values).estimate()
    assert same(found, score_mean(values))
    if found is not None:
        assert found.method == ("bootstrap" if len(values) < 30 else "student-t")


@given(SCORES, SCORES)
def test_joined_sums_are_those_of_all_values(one: list[float], other: list[float]) -> None:
    joined = moments(one)
    joined.join(moments(other))
    assert same(joined.estimate(), score_mean(one + other))


def test_many_equal_values_are_added_at_once() -> None:
    assert Moments.of(0.25, 40).estimate() == moments([0.25] * 40).estimate()
    assert moments([0.1] * 50).squares == 0


@given(CLUSTERED)
def test_clusters_are_those_of_the_values(values: list[tuple[float, str | None]]) -> None:
    names = [name or f"alone {index}" for index, (_, name) in enumerate(values)]
    scores = [value for value, _ in values]
    assert same(clusters(values).estimate(), score_mean(scores, clusters=names))
    passed = [value > 0.5 for value in scores]
    rounded = [(float(p), name) for p, (_, name) in zip(passed, values, strict=True)]
    assert same(clusters(rounded).rate(), clustered_rate(passed, names))


def test_five_documents_of_ten_questions() -> None:
    found = Clusters([(10.0, 10)] * 4 + [(0.0, 10)]).rate()
    assert found is not None
    assert (round(found.low, 2), round(found.high, 2)) == (0.22, 0.98)
