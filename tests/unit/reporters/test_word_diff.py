"""The word diff of two answers."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from assay.reporters.word_diff import word_diff

TEXTS = st.text("ab c\n.,", max_size=60)


def test_changed_words_are_marked_and_neighbours_are_joined() -> None:
    assert word_diff("It is 23 degrees in Lisbon.", "It is 74 units, in Lisbon.") == [
        ("=", "It is "),
        ("-", "23 degrees"),
        ("+", "74 units,"),
        ("=", " in Lisbon."),
    ]


def test_texts_with_little_in_common_are_not_mixed() -> None:
    before, now = "Yes: ice, until 18:00.", "It is cold in Oslo; the sky: light snow."
    assert word_diff(before, now) == [("-", before), ("+", now)]


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_from_the_parts(before: str, now: str) -> None:
    parts = word_diff(before, now)
    assert "".join(text for sign, text in parts if sign != "+") == before
    assert "".join(text for sign, text in parts if sign != "-") == now


def test_huge_answers_are_compared_in_part() -> None:
    parts = word_diff("a " * 500_000, "b " * 500_000)
    assert sum(len(text) for _, text in parts) < 50_000


def test_words_that_repeat_in_another_pattern_take_no_time() -> None:
    before = time.process_time()
    old, new = "a " * 650, "b " + "a b " * 325 + "c"
    parts = word_diff(old, new)
    assert time.process_time() - before < 5
    assert "".join(text for sign, text in parts if sign != "+") == old
    assert "".join(text for sign, text in parts if sign != "-") == new
