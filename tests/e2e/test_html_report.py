"""`assay compare -o`: a report of the candidate, with the answers of the base."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.projects import Project

SUITE = """\
cases:
  - {id: paris, input: The capital of France?, evaluators: [{type: contains, value: Paris}]}
  - {id: city, input: A city?, evaluators: [{type: contains, value: o}]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with two runs: one case got worse, one better."""
    project = Project(tmp_path)
    project.write("evals/capitals.eval.yaml", SUITE)
    for name in ("Paris", "Rome & Oslo"):
        project.write("agent.py", f"def answer(question):\n    return {name!r}\n")
        project.run("run", "evals/", "--target", "python:agent:answer", code=1)
    project.run("baseline", "set", "main", project.runs()[0][0])
    return project


def test_a_report_of_a_comparison_is_about_the_candidate(project: Project) -> None:
    arguments = ("-o", "x.html", "-o", "x.md", "--margin", "0.3", "--gate", "strict")
    done = project.run("compare", "main", "latest", *arguments, code=1)
    assert done.stderr == "wrote x.html\nwrote x.md\n"
    page = (project.root / "x.html").read_text("utf-8")
    (base, _), _ = project.runs()
    assert f"1 of 2 judged cases passed; against main ({base[:13]}): 1 lost" in page
    assert "What moved" in page
    assert "margin ±30" in page
    assert page.count('<details class="failure">') == 1
    # The answer of the base is beside that of the candidate.
    assert f'<span>main ({base[:13]})</span><div class="wrap">Paris</div>' in page
    assert '<div class="wrap">Rome &amp; Oslo</div>' in page
    assert "against main" in (project.root / "x.md").read_text("utf-8")


def test_a_report_of_a_comparison_needs_a_recorded_candidate(project: Project) -> None:
    done = project.run("compare", "main", "new.jsonl", "-o", "x.html", code=2)
    assert "new.jsonl" in done.stderr
    assert not (project.root / "x.html").exists()
