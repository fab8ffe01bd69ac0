"""How a notebook shows a run."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import assay
from assay.errors import UsageError
from assay.service import notebooks

EVIL = "<script>alert(1)</script>"


def made(count: int = 2) -> assay.Run:
    cases = [assay.Case(f"c{i}", f"Hi {i}", expected_output=f"Hi {i}") for i in range(count)]
    cases.append(assay.Case("evil", EVIL, expected_output=EVIL + "!"))
    cases.append(assay.Case("later", "Hi", expected_output="x", skip="not yet"))
    suite = assay.Suite(f"s{EVIL}", cases)
    return assay.run(suite, target=lambda question: question, store="memory:")


def test_a_run_is_a_table_with_intervals_and_failures() -> None:
    page = made()._repr_html_()
    assert "<td>66.7 %</td><td>20.8 % to 93.9 %</td>" in page
    assert "<td>evil</td><td>failed</td><td>0.00</td>" in page
    assert "<td>later</td>" not in page
    assert "<b>failed</b>" in page


def test_texts_of_models_and_users_are_escaped() -> None:
    page = made()._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_only_the_first_failures_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebooks, "MAX_SHOWN", 1)
    cases = [assay.Case(f"c{i}", "Hi", expected_output="x") for i in range(3)]
    page = assay.run(cases, target=lambda question: question, store="memory:")._repr_html_()
    assert page.count("<td>failed</td>") == 1
    assert "Only the first 1 are shown" in page


def test_several_suites_have_a_line_for_all() -> None:
    suites = [assay.Suite(name, [assay.Case("a", "Hi", expected_output="Hi")]) for name in "pq"]
    page = assay.run(suites, target=lambda question: question, store="memory:")._repr_html_()
    assert "<tr><td>All</td><td>2</td>" in page
    assert "<b>passed</b>" in page


def test_the_cases_of_all_suites() -> None:
    assert [case.id for case in made().cases()] == ["c0", "c1", "evil", "later"]


def test_a_data_frame_has_a_row_for_each_case(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas: Any = ModuleType("pandas")
    pandas.DataFrame = list
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    rows = made().to_pandas()
    assert [row["outcome"] for row in rows] == ["passed", "passed", "failed", "skipped"]
    assert rows[0]["id"] == "c0"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas is not installed"):
        made().to_pandas()
