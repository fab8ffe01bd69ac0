"""Cells that a spreadsheet would run are neutralised, and come back unchanged."""

from __future__ import annotations

import csv
import io
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.test_case import NewTestCase
from assay.service import labels
from assay.service.store import open_store
from assay.settings import Settings
from assay.wire.csv_formulas import neutralised, restored
from unit.conftest import Project, invoke

#: The last five are full-width, and small.
SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe66")
BEFORE = ("", " ", "  ", "\xa0", "\u3000", "\ufeff", "\u200b", "\x00", "'", "''", " \t")
DANGEROUS = [before + sign for before in BEFORE for sign in SIGNS]
DANGEROUS += [before + space for before in ("", "'", "''") for space in "\t\r\n"]


@pytest.mark.parametrize("start", DANGEROUS, ids=ascii)
def test_a_text_that_looks_like_a_formula_gets_an_apostrophe(start: str) -> None:
    text = f"{start}cmd|' /C calc'!A0"
    assert neutralised(text) == "'" + text
    assert restored("'" + text) == text


@pytest.mark.parametrize(
    "text", ["", "a=1", "1-2", "'tis so", "'", " plain ", "[-1]", "\u22121", "\xbd"]
)
def test_other_texts_stay_the_same(text: str) -> None:
    assert neutralised(text) == restored(text) == text


@given(st.text(st.sampled_from("'=\uff1d+@- \t\r\na"), max_size=8) | st.text(max_size=20))
def test_every_text_is_restored(text: str) -> None:
    assert restored(neutralised(text)) == text


def exported(project: Project, *options: str) -> list[list[str]]:
    done = invoke("export", "--test-cases", "-o", "o.csv", *options)
    assert done.exit_code == 0, done.output
    text = (project.root / "o.csv").read_bytes().decode()
    return list(csv.reader(io.StringIO(text, newline="")))[1:]


@pytest.fixture
def added(project: Project) -> list[NewTestCase]:
    """Test cases that a REST client may have written, in the store of the project."""
    texts = [start + "1" for start in DANGEROUS if "\x00" not in start]
    cases = [NewTestCase(t, t, t, (t.strip() or "x", "tag")) for t in texts]
    with closing(open_store(Settings.find(project.root), None)) as store:
        for case in cases:
            store.test_cases.add(case, datetime.now(UTC)).result()
    return cases


def test_exported_test_cases_have_no_formula_and_are_imported_unchanged(
    project: Project, added: list[NewTestCase]
) -> None:
    rows = exported(project)
    assert len(rows) == len(added)
    assert all(cell.startswith("'") for row in rows for cell in row[1:4])
    unchanged = f"test cases: 0 added, 0 changed, {len(added)} as before, 0 refused\n"
    assert invoke("import", "o.csv").output == unchanged
    exported(project, "--raw")
    assert invoke("import", "o.csv", "--raw").output == unchanged


def test_raw_writes_texts_unchanged(project: Project, added: list[NewTestCase]) -> None:
    rows = exported(project, "--raw")
    assert {row[1] for row in rows} == {case.input for case in added}


def test_raw_needs_test_cases(project: Project) -> None:
    done = invoke("export", "latest", "--raw", "-o", "o.csv")
    assert done.exit_code == 2
    assert "--raw is an option of --test-cases" in done.stderr


def test_a_neutralised_file_is_run_as_it_was_exported(project: Project) -> None:
    project.write("a.eval.csv", "id,input,expected_output\n'-1,'=1+1,'-2\n")
    project.write("assay.yaml", "targets: [{name: echo, provider: echo}]\n")
    done = invoke("run", "a.eval.csv", "--target", "echo", "--json")
    assert '"id":"-1"' in done.output
    assert "found '=1+1'" in done.output


def test_labels_have_no_formula(project: Project) -> None:
    file = project.root / "labels.csv"
    labels.append(file, labels.Label("=suite", "-case", True))
    assert "'=suite,'-case,pass" in file.read_text()
    assert [(label.suite, label.id) for label in labels.read(file)] == [("=suite", "-case")]
