"""A group in words: which targets are best, and never more than the numbers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from assay.model.group import GroupCell, GroupComparison
from assay.reporters.group_words import (
    PAIR_HEADS,
    TARGET_HEADS,
    cell_kind,
    cell_words,
    counts_of,
    differing_note,
    facts,
    headline,
    named,
    outcome_of_group,
    pair_cells,
    pair_words,
    run_words,
    significant,
    standing,
    target_rows,
    used_columns,
)
from unit.sample_groups import sample_group


def compared(targets: Mapping[str, str | Sequence[str]], **more: float) -> GroupComparison:
    return sample_group(targets, **more).comparison


ALL, NONE = "P" * 20, "F" * 20


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ({"a": ALL, "b": NONE}, "Best: a, significantly better than b"),
        (
            {"a": ALL, "b": NONE, "c": NONE},
            "Best: a, significantly better than each of the other 2",
        ),
        (
            {"a": ALL, "b": ALL, "c": NONE},
            "Best: a and b, which cannot be told apart",
        ),
        (
            {"a": ALL, "b": ALL[:-1] + "F"},
            "Cannot tell: neither target is significantly better than the other",
        ),
        (
            {"a": ALL, "b": ALL, "c": ALL},
            "Cannot tell: none of the 3 targets is significantly better than another",
        ),
        (
            {
                "a": "P" * 20 + "E" * 20 + "F" * 20,
                "b": "F" * 20 + "P" * 20 + "E" * 20,
                "c": "E" * 20 + "F" * 20 + "P" * 20,
            },
            "Cannot tell: each target is significantly worse than another one, over different"
            " cases",
        ),
        ({"a": ALL, "b": "E" * 20}, "Cannot tell: only a has judged cases"),
        ({"a": "E", "b": "S"}, "Cannot tell: no case was judged"),
    ],
)
def test_the_headline_says_no_more_than_the_tests(targets: Mapping[str, str], said: str) -> None:
    assert headline(compared(targets)) == said


def test_a_target_that_has_not_beaten_all_others_itself_is_not_said_to_be_better() -> None:
    found = compared({"a": ALL, "b": NONE, "c": NONE})
    pairs = tuple(
        replace(pair, better=None) if (pair.a, pair.b) == ("a", "c") else pair
        for pair in found.pairs
    )
    said = standing(replace(found, pairs=pairs)).sentence
    assert said == "a, the only target that no other one is significantly better than"


def test_every_number_of_a_row_has_its_denominator() -> None:
    rows = target_rows(compared({"a": "PPPF", "b": "PFES"}, cost_usd=0.01))
    assert rows[0].cells[:5] == ("a", "75 % (30.1 to 95.4)", "3 of 4", "4 of 4", "$0.0400")
    assert rows[1].cells[2:4] == ("1 of 2", "2 of 3")
    assert rows[0].cells[6:8] == ("250 ms", "385 ms")
    assert [row.target for row in rows] == ["a", "b"]


def test_a_row_says_whom_the_target_is_worse_than() -> None:
    rows = target_rows(compared({"a": ALL, "b": ALL, "c": NONE, "d": "E"}))
    assert [row.cells[-1] for row in rows] == ["yes", "yes", "no, worse than a and b", "not judged"]
    assert [row.best for row in rows] == [True, True, False, False]


def test_columns_without_values_are_left_out() -> None:
    rows = target_rows(compared({"a": ALL, "b": NONE}))
    assert [TARGET_HEADS[n] for n in used_columns(rows)] == [
        *("Target", "Pass rate", "Passed", "Judged", "p50", "p95", "Best set"),
    ]


def test_pairs_have_their_interval_and_the_p_value_for_all_pairs() -> None:
    found = compared({"a": ALL, "b": ALL, "c": NONE})
    same, worse, _ = (pair_words(pair, 3) for pair in found.pairs)
    assert same == (
        "b against a: +0.0 points (-16.1 to +16.1) in 20 cases, p = 1 allowing for all 3 pairs;"
        " that may be chance"
    )
    assert worse.startswith("c against a: -100.0 points (-100.0 to ")
    assert worse.endswith(" allowing for all 3 pairs; a is better")
    assert significant(found) == [worse, pair_words(found.pairs[2], 3)]


def test_a_pair_without_common_cases_says_so() -> None:
    (pair,) = compared({"a": ALL, "b": "E" * 20}).pairs
    assert pair_words(pair, 1) == "b against a: no case to compare"
    assert pair_cells(pair) == ("b against a", "0", "no difference", "", "nothing to compare")
    assert len(pair_cells(pair)) == len(PAIR_HEADS)


@pytest.mark.parametrize(
    ("cell", "words", "kind"),
    [
        (GroupCell("passed", 1, 1, 1.0), "passed", "passed"),
        (GroupCell("failed", 0, 1, 0.0), "failed", "failed"),
        (GroupCell("failed", 3, 5, 0.6), "3 of 5 passed", "flaky"),
        (GroupCell("passed", 5, 5, 1.0), "5 of 5 passed", "passed"),
        (GroupCell("errored", 0, 0, None), "errored", "errored"),
        (None, "not asked", "skipped"),
    ],
)
def test_a_cell_is_an_outcome_or_how_often_it_passed(
    cell: GroupCell | None, words: str, kind: str
) -> None:
    assert (cell_words(cell), cell_kind(cell)) == (words, kind)


def test_lists_say_how_many_there_are() -> None:
    found = compared({"a": "PPPP", "b": "PPFF"}, cost_usd=0.5)
    assert counts_of(found) == "4 cases, 4 of them judged for every target; the targets differ on 2"
    one = replace(found, cases=1, compared=1, differing_count=0)
    assert counts_of(one) == "1 case, judged for every target; the targets differ on 0"
    assert "1 case, not judged for every" in counts_of(replace(one, compared=0))
    assert differing_note(found, 2) == "2 cases on which the targets differ"
    assert differing_note(found, 1) == (
        "the case on which the targets differ most, of 2 on which they differ"
    )
    assert dict(facts(found))["Cost"] == "$4.00 for 2 targets"
    assert named(list("abcdef")) == "a, b, c, d and 2 more"
    assert (named(["a"]), named(["a", "b"])) == ("a", "a and b")


def test_runs_keep_the_words_of_their_own_reports() -> None:
    group = sample_group({"a": "PP", "b": "PF"})
    assert [run_words(run)[2:] for run in group.runs] == [
        ("passed", "better", "2 of 2 judged cases passed"),
        ("failed", "worse", "1 case failed"),
    ]
    assert outcome_of_group(group.exit_code, 2) == "failed (exit code 1), the worst of 2 runs"
    assert outcome_of_group(0, 1) == "passed (exit code 0), the worst of 1 run"
