"""The page of the reports shows what the reporters write, and misses none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pages import Page, code_words, fits

from assay.registry import reporters
from assay.reporters.group_words import TARGET_HEADS
from assay.reporters.rows import COLUMNS
from assay.reporters.words import VERDICTS
from unit.sample_runs import mixed_run, written

ROOT = Path(__file__).resolve().parents[2]
PAGE = Page.read(ROOT / "docs/reports.md", ROOT)
#: The built-in reporters; the tests may have others installed.
OWN = sorted(one.name for one in reporters.listed() if one.source == "assay-evals")


def test_every_reporter_is_listed_and_has_a_section() -> None:
    names = [code_words(row["Name"])[0] for row in PAGE.table("Reports")]
    assert sorted(names) == OWN
    assert set(OWN) <= {heading.title for heading in PAGE.headings}


@pytest.mark.parametrize("name", OWN)
def test_the_example_is_what_the_reporter_writes(name: str) -> None:
    (block,) = [block for block in PAGE.blocks if block.option("report") == name]
    assert block.section == name
    text = written(name, mixed_run())
    if name == "json":
        text = json.dumps(json.loads(text), indent=2)
    assert fits(block.text, text) == ""


def test_columns_are_documented() -> None:
    columns = [code_words(row["Column"])[0] for row in PAGE.table("jsonl")]
    assert columns == list(COLUMNS)


def test_verdicts_are_documented() -> None:
    told = {int(row["Exit code"]): row["Verdict"] for row in PAGE.table("text")}
    assert told == VERDICTS


def test_the_example_of_several_targets_is_the_report_that_is_tested() -> None:
    (block,) = [block for block in PAGE.blocks if block.option("report") == "group"]
    assert block.text == (ROOT / "tests/unit/goldens/group.txt").read_text(encoding="utf-8")


def test_the_columns_and_formats_of_several_targets_are_documented() -> None:
    columns = [name for row in PAGE.table("Several targets") for name in code_words(row["Column"])]
    assert columns == [head for head in TARGET_HEADS if head != "Target"]
    formats = PAGE.table("Several targets in each format")
    assert sorted(name for row in formats for name in code_words(row["Format"])) == OWN
