"""Reports about several targets, in every format."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from msgspec.structs import replace

from assay.errors import UsageError
from assay.model.group_result import GroupResult
from assay.registry import reporters
from assay.reporters.group_text import write_comparison
from assay.reporters.page import Page
from assay.reporters.terminal import Terminal
from assay.service.report import report
from assay.text import columns
from unit.sample_groups import TARGETS, run_id, sample_group
from unit.service.test_report_formats import EVIL

JUNIT = xmlschema.XMLSchema(str(Path(__file__).parents[1] / "junit.xsd"))
GOLDEN = Path(__file__).parents[1] / "goldens" / "group.txt"


def written(name: str, group: GroupResult, **options: Any) -> str:
    out = io.StringIO()
    report(group, name, out, **options)
    return out.getvalue()


def test_the_report_for_people() -> None:
    text = written("text", sample_group(TARGETS | {"other": "P" * 10 + "EE"}, cost_usd=0.001))
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_quiet_is_one_line_and_verbose_has_each_run_and_all_pairs() -> None:
    group = sample_group()
    quiet = written("text", group, detail="verdict")
    assert quiet.splitlines()[0].startswith("Best: gpt and claude, which cannot be told apart; ")
    assert "failed (exit code 1), the worst of 3 runs" in " ".join(quiet.split())
    full = written("text", group, detail="answers")
    assert full.count("against") == 3
    assert "the interval may exclude 0 although p is large" in " ".join(full.split())
    for target, answer in (("claude", "claude says case-11"), ("mini", "mini says case-5")):
        assert f"--- {target}\n" in full
        assert answer in full


@pytest.mark.parametrize("text", EVIL)
def test_hostile_names_of_targets_and_cases_stay_text(text: str) -> None:
    group = sample_group({f"{text}1": "PPF", f"{text}2": "FPP"}, case_ids=[text, f"{text}b", "c"])
    shown = written("text", group)
    assert not any(line.startswith(("::", "##[")) for line in shown.splitlines())
    assert "\x1b" not in shown
    assert "\x07" not in shown
    JUNIT.validate(written("xml", group))
    for line in written("github", group).splitlines():
        assert line.startswith(("::notice title=Assay::", "::error ", "::warning "))
    markdown = written("md", group)
    assert "<script>" not in markdown
    assert "<img" not in markdown
    before = csv.field_size_limit(10_000_000)
    rows = list(csv.DictReader(io.StringIO(written("csv", group), newline="")))
    csv.field_size_limit(before)
    assert len(rows) == 6
    assert not any(row["target"].startswith("=") for row in rows)


def test_json_has_the_document_of_each_run_and_the_comparison() -> None:
    group = sample_group()
    document = json.loads(written("json", group))
    assert document == group.to_dict()
    assert [run["runId"] for run in document["runs"]] == [run_id(place) for place in range(3)]


def test_rows_of_all_runs_are_in_one_file_with_one_head() -> None:
    group = sample_group()
    rows = list(csv.DictReader(io.StringIO(written("csv", group), newline="")))
    lines = [json.loads(line) for line in written("jsonl", group).splitlines()]
    for found in (rows, lines):
        assert Counter((row["runId"], row["target"]) for row in found) == {
            (run_id(place), target): 12 for place, target in enumerate(TARGETS)
        }


def test_junit_has_a_suite_for_each_target_and_no_two_tests_of_one_name() -> None:
    text = written("xml", sample_group())
    JUNIT.validate(text)
    tree = ElementTree.fromstring(text)
    assert [suite.get("name") for suite in tree] == [f"weather [{target}]" for target in TARGETS]
    assert tree.attrib["tests"] == "36"
    assert tree.attrib["failures"] == str(len(tree.findall(".//failure"))) == "12"
    names = [(case.get("classname"), case.get("name")) for case in tree.iter("testcase")]
    assert len(set(names)) == 36


def test_markdown_has_a_column_for_each_target() -> None:
    lines = written("md", sample_group()).splitlines()
    assert "| Case | <code>gpt</code> | <code>claude</code> | <code>mini</code> |" in lines
    (row,) = (line for line in lines if line.startswith("| <code>") and "case-11<" in line)
    assert row.endswith("| ✓ passed | ✕ failed | ✕ failed |")
    assert any(
        line.startswith("| <code>gpt</code> | 100 % (75.7 to 100) | 12 of 12") for line in lines
    )


def test_annotations_name_the_target_in_their_titles() -> None:
    lines = written("github", sample_group()).splitlines()
    assert lines[0] == ("::notice title=Assay::Best: gpt and claude, which cannot be told apart")
    assert any(line.endswith("title=Assay%3A failed [claude]::1 case failed") for line in lines)
    assert any("title=failed%3A case-11 [claude]::" in line for line in lines)


def test_a_reporter_that_knows_no_groups_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = SimpleNamespace(write=lambda run, out: None)
    monkeypatch.setattr(type(reporters), "get", lambda self, name: stranger)
    with pytest.raises(UsageError, match="has no write_group"):
        written("odd", sample_group())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_report_fits_the_terminal(width: int) -> None:
    found = sample_group({"a target with a long name " * 3: "P" * 10, "b": "F" * 10}).comparison
    out = io.StringIO()
    write_comparison(Page(out, Terminal(width=width)), found, all_pairs=True)
    assert max(map(columns, out.getvalue().splitlines())) <= max(width, 70)


def test_a_group_of_one_run_is_a_report_too() -> None:
    group = sample_group({"a": "PF"})
    assert written("text", group).startswith("CANNOT TELL: only a has judged cases\n")
    for name in ("md", "xml", "json", "csv", "jsonl", "github"):
        assert written(name, replace(group, runs=group.runs[:1]))
