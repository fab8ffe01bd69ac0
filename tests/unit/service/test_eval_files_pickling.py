"""Cases and suites of every loader travel to another process, and still know their places."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import assay
from assay import EvalCase
from assay.errors import (
    AssayError,
    ConfigError,
    EvalFileError,
    EvalFileErrors,
    InvalidText,
    NotInStore,
    TargetError,
    UnknownName,
)
from assay.loaders import jsonl
from assay.problems import Problem
from unit.sample_eval_files import SUITE, TIERS

if TYPE_CHECKING:
    from unit.conftest import Project

LINES = "".join(json.dumps(case) + "\n" for case in SUITE["cases"])
FILES: dict[str, str] = {
    "suite.eval.yaml": json.dumps(SUITE, indent=1),
    "list.eval.yaml": json.dumps(SUITE["cases"], indent=1),
    "one.eval.yaml": "input: x\nexpected_output: y\nexecution: {evaluators: [{type: is_json}]}\n",
    "lines.eval.jsonl": LINES,
    "rows.eval.csv": 'id,input,expected_output,metadata.x,tags\na,"b\nb",c,d,e;f\n',
    **{f"t.{tier}.json": json.dumps(content, indent=1) for tier, content in TIERS.items()},
}


def parts(case: EvalCase) -> Iterator[tuple[str | int, ...]]:
    yield ()
    for key in ("id", "input_messages", "tags", "metadata", "rubrics", "expect", "rubric"):
        yield from ((key,), (key, 0))
    for path, _ in case.walk_evaluators():
        yield from (path, (*path, "value"), (*path, "weight"))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("held", [True, False])
def test_a_copy_is_equal_and_has_the_same_places(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, held: bool
) -> None:
    monkeypatch.setattr(jsonl, "HELD_BYTES", 1_000_000 if held else 0)
    project.write("x", "")
    project.write("lines.eval.yaml", "execution:\n  evaluators: [{type: is_json}]\n")
    suite = project.suite(FILES[name], name)
    copies = [pickle.loads(pickle.dumps(case)) for case in suite]
    assert copies == list(suite)
    for case, copy in zip(suite, copies, strict=True):
        for path in parts(case):
            assert copy.origin_of(path) == case.origin_of(path), (case.id, path)
    assert list(pickle.loads(pickle.dumps(suite))) == copies


def test_a_copy_does_not_carry_the_whole_file(project: Project) -> None:
    case = "- {{id: a{0}, input: x, expected_output: y}}\n"
    sizes = []
    for count in (1, 500):
        project.write("a.yaml", "".join(case.format(i) for i in range(count)))
        sizes.append(len(pickle.dumps(assay.load("a.yaml")[0].cases[0])))
    assert sizes[1] < 1.1 * sizes[0]


PROBLEM = Problem("a.yaml", 3, 1, "error", "wrong-type", "it is wrong")


@pytest.mark.parametrize(
    "error",
    [
        UnknownName("target", "nobdy", ["nobody"]),
        ConfigError([PROBLEM]),
        EvalFileError(PROBLEM),
        EvalFileErrors([PROBLEM]),
        NotInStore("run", "x"),
        InvalidText("name", 0, 1),
        TargetError("gone", retryable=True, retry_after=2.0),
    ],
)
def test_an_error_travels_whole(error: AssayError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.slug) == (str(error), error.slug)
    assert copy.problems == error.problems
    assert copy.__dict__.keys() == error.__dict__.keys()
