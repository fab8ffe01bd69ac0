"""Names are the same however their accents are encoded."""

from __future__ import annotations

import json
from unicodedata import normalize

import pytest

from assay.model.names import same_name
from unit.conftest import Project, invoke

NFC, NFD = "caf\u00e9", "cafe\u0301"


@pytest.fixture
def recorded(project: Project) -> Project:
    """A project with a recorded run; its names are in NFD, as macOS writes file names."""
    project.write(
        "assay.yaml",
        f"targets: [{{name: {NFD}, provider: echo}}]\ndefaults: {{target: {NFC}}}\n",
    )
    project.write(
        f"{NFD}.eval.yaml",
        f"cases: [{{id: {NFD}, input: x, expected_output: y, tags: [{NFD}]}},"
        " {id: other, input: x, expected_output: x}]\n",
    )
    done(1, "run", ".")
    return project


def done(code: int, *arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_both_spellings_are_one_name() -> None:
    assert NFC != NFD == normalize("NFD", NFC)
    assert same_name(NFC, NFD)
    assert not same_name(NFC, "cafe")
    assert not same_name(None, NFC)


def test_a_baseline_is_found_by_both_spellings(recorded: Project) -> None:
    done(0, "baseline", "set", NFD)
    done(0, "baseline", "set", NFC)
    assert len(json.loads(done(0, "baseline", "list", "--json"))) == 1
    for name in (NFC, NFD):
        done(0, "compare", name, "latest")
        done(0, "runs", "show", name)
    done(0, "baseline", "rm", NFD)
    assert json.loads(done(0, "baseline", "list", "--json")) == []


@pytest.mark.parametrize("options", [["--filter", NFC], ["--tag", NFC], ["--target", NFC]])
def test_cases_tags_and_targets_are_found_by_both_spellings(
    recorded: Project, options: list[str]
) -> None:
    assert f'"id":"{NFD}"' in done(1, "run", ".", *options, "--json")


def test_results_and_suites_are_found_by_both_spellings(recorded: Project) -> None:
    done(0, "trend", "--suite", f"{NFC}.eval.yaml")
    added = ["--bug", "X-1", "--tool", "t", "--contains", "y"]
    done(0, "regression", "add", "--from", f"latest/{NFC}", *added)
