"""The report of several targets in one file: strict HTML without a script, and its size is kept."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from html import unescape

import pytest
from msgspec.structs import replace

from assay.model.group_result import GroupResult
from assay.reporters import html
from assay.reporters.group_html import MAX_DETAILS
from assay.reporters.preference_words import details_of, result_of
from strict_html import assert_strict
from unit.reporters.test_html import HOSTILE
from unit.reporters.test_preference import FOUND
from unit.sample_groups import GROUP, TARGETS, sample_group


def report(group: GroupResult, html_size: float = 20) -> str:
    out = io.StringIO()
    html.write_group(group, out, html_size)
    page = out.getvalue()
    assert_strict(page, alone=True)
    return page


def read(page: str) -> str:
    text = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_its_policy_allows_its_style_and_nothing_else() -> None:
    page = report(sample_group())
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert f"style-src &#39;sha256-{digest}&#39;" in policy
    assert "script-src" not in policy
    assert "<script" not in page


def test_it_has_the_answers_of_all_targets_where_they_differ() -> None:
    page = report(sample_group(cost_usd=0.001))
    text = read(page)
    assert "Best: gpt and claude, which cannot be told apart" in text
    assert "Answers of each target 11 cases on which they differ" in text
    for target in TARGETS:
        assert f"{target} says case-11" in text
    assert "gpt says case-0" not in text
    assert "Why cases of mini did not pass 11 of 12 cases" in text
    links = re.findall(r'href="#(case-\d+)"', page)
    assert len(links) == len(set(links)) == 11
    assert all(f'id="{link}"' in page for link in links)
    assert f"Group {GROUP}" in text


def test_details_are_left_out_to_stay_within_the_size() -> None:
    group = sample_group({"a": "P" * 40, "b": "F" * 40})
    small = report(group, 0.004)
    shown = small.count('<details class="failure">')
    assert 0 < shown < 40
    assert f"the first {shown} of 40 cases on which they differ" in read(small)
    assert len(re.findall(r'href="#case-', small)) == shown
    assert read(small).count("✕ failed") == 40 + shown + 1
    assert '<details class="failure">' not in report(group, 0)


def test_only_so_many_cases_have_details() -> None:
    many = MAX_DETAILS + 50
    page = report(sample_group({"a": "P" * many, "b": "F" * many}))
    assert page.count('<details class="failure">') == MAX_DETAILS
    assert f"the first {MAX_DETAILS} of {many} cases on which they differ" in read(page)


def test_targets_that_do_not_differ_have_no_details() -> None:
    text = read(report(sample_group({"a": "PP", "b": "PP"})))
    assert "No case: all targets pass the same ones equally often." in text
    assert "Answers of each target" not in text


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_only_text(name: str) -> None:
    group = sample_group({f"{name}1": "PF", f"{name}2": "FP"}, case_ids=[name, f"{name}b"])
    page = report(group)
    assert "<svg onload" not in page
    assert "<img" not in page
    assert page.count('<details class="failure">') == 2


def test_a_preference_is_part_of_the_report() -> None:
    text = read(report(replace(sample_group(), preference=FOUND)))
    assert "Whose answers are better judge, 20 calls" in text
    (pair,) = FOUND.pairs
    assert f"<b>new against old: {result_of(pair)}" in text
    for part in (*details_of(pair), "3 pairs of answers not judged", "the budget is spent"):
        assert part in text
    assert "old: not known" in text
