"""A suite that is saved and loaded again has equal cases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import assay
from assay import Case, Message, Suite, contains, equals, rubric
from assay.errors import StoreError, UsageError
from unit.model.test_evaluator_keys import ACCEPTED

FILE = "x.eval.yaml"


def saved(*cases: assay.EvalCase, **keys: Any) -> Suite:
    """The suite of the cases after it was saved."""
    suite = Suite("x", cases, **keys)
    suite.save(FILE)
    (loaded,) = assay.load(FILE)
    assert list(loaded) == list(suite)
    assert (loaded.name, loaded.description, loaded.target, loaded.workers) == (
        suite.name,
        suite.description,
        suite.target,
        suite.workers,
    )
    return loaded


@pytest.mark.parametrize("entry", ACCEPTED, ids=str)
def test_every_evaluator_survives(project: Any, entry: dict[str, Any]) -> None:
    (project.root / "judge.md").write_text("Is {{candidate_answer}} right?")
    pair = [entry, entry, {"type": "composite", "evaluators": [entry, {"type": "equals"}]}]
    saved(Case("a", "Hi", expected_output="x", evaluators=pair))


CASES: dict[str, Any] = {
    "defaults": lambda: Case("a", "Hi", expected_output="x"),
    "structured output": lambda: Case("a", "Hi", expected_output=[1, {"a": None}]),
    "a number": lambda: Case("a", "Hi", expected_output=1e300),
    "an outcome": lambda: Case("a", "Hi", expected_outcome="It is polite."),
    "messages": lambda: Case(
        "a",
        [Message("system", "Be kind."), Message("user", "Hi")],
        expected_messages=[{"role": "assistant", "tool_calls": [{"tool": "t", "input": None}]}],
    ),
    "blank text": lambda: Case("a", [Message("user", " ")], evaluators=[contains("x")]),
    "rubrics": lambda: Case("a", "Hi", rubrics=["polite", {"description": "b", "weight": 2}]),
    "rubrics and output": lambda: Case("a", "Hi", rubrics=["polite"], expected_output="x"),
    "expect": lambda: Case("a", "Hi", expect={"responseContains": ["x"]}),
    "expect and output": lambda: Case(
        "a", "Hi", expect={"responseContains": ["x"]}, expected_output="x"
    ),
    "all of them": lambda: Case(
        "a",
        "Hi",
        rubrics=["polite"],
        expect={"jsonValid": True},
        evaluators=[{"type": "not-contains", "value": "b"}, rubric(["short"])],
        expected_output={"a": 1},
    ),
    "two rubrics": lambda: Case("a", "Hi", rubrics=["a"], evaluators=[rubric(["a"])]),
    "names": lambda: Case("a", "Hi", evaluators=[contains("x", name="contains_2"), contains("y")]),
    "a criterion": lambda: Case("a", "Hi", evaluators=["is polite", contains("x")]),
    "all keys": lambda: Case(
        "a: b",
        "- Hi\n\n  there \n",
        description="no",
        expected_outcome="yes",
        tags=["1", "a, b"],
        metadata={"<<": "x", "1e5": ["0o17", "null", "~", "", "2025-01-01", "a #b"]},
        conversation_id="c",
        execution={"target": "echo", "timeout_seconds": 3},
        threshold=0.5,
        repeat=3,
        min_pass_rate=0.6,
        cluster="k",
        critical=True,
    ),
    "skipped": lambda: Case("a", "Hi", skip="later"),
}


@pytest.mark.parametrize("what", CASES)
def test_every_kind_of_case_survives(project: Any, what: str) -> None:
    saved(CASES[what]())
    saved(CASES[what](), evaluators=[contains("z")], tags=["t"], threshold=0.4, target="echo")


def test_a_loaded_suite_can_be_saved(project: Any) -> None:
    project.write(
        FILE,
        """
        evaluators: [{type: contains, value: a}]
        cases:
          - {id: own, input: Hi, evaluators: []}
          - {id: added, input: Hi, expected_output: b}
          - {id: inherited, input: Hi}
        """.replace("evaluators: []", "evaluators: [], expected_output: q"),
    )
    (loaded,) = assay.load(FILE)
    loaded.save("y.eval.yaml")
    (again,) = assay.load("y.eval.yaml")
    assert list(again) == list(loaded)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | texts | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@example(text="a\x85b\u2028c\u2029", value=None)
@given(text=texts.filter(bool), value=json_values)
def test_any_text_and_value_survive(
    tmp_path_factory: pytest.TempPathFactory, text: str, value: Any
) -> None:
    folder = tmp_path_factory.getbasetemp() / "saved"
    folder.mkdir(exist_ok=True)
    messages = [{"role": "user", "content": text}]
    case = Case("a", messages, metadata={"v": value}, evaluators=[equals(value), contains(text)])
    Suite("x", [case]).save(folder / FILE)
    (loaded,) = assay.load(folder / FILE)
    assert list(loaded) == [case]


def refused(suite: Suite, file: str = FILE) -> str:
    with pytest.raises((UsageError, StoreError)) as caught:
        suite.save(file)
    return str(caught.value)


def test_what_a_file_cannot_hold_is_refused_by_name(project: Any) -> None:
    def polite(response: str) -> bool:
        return "please" in response

    project.write(FILE, "untouched")
    function = Suite("x", [Case("a", "Hi", evaluators=[polite])])
    told = refused(function)
    assert "the case 'a' cannot be saved: its evaluator 'python:" in told
    assert "polite' is a Python function" in told
    assert "is not the name of a YAML file" in refused(function, "x.json")
    assert "has no case to save" in refused(Suite("x", []))
    assert "has nothing that could fail" in refused(Suite("x", [Case("a", "Hi")]))
    assert "cannot be written" in refused(Suite("x", [CASES["skipped"]()]), "no/folder/x.yaml")
    odd = CASES["skipped"]().replace(difficulty="easy")
    assert "is one of a tier file: a suite has no 'difficulty'" in refused(Suite("x", [odd]))
    changed = CASES["defaults"]().replace(has_default_evaluators=True, evaluators=(contains("q"),))
    assert "cannot hold 'evaluators' of the case 'a' unchanged" in refused(Suite("x", [changed]))
    assert Path(FILE).read_text() == "untouched"
    assert [name for name in os.listdir() if name.startswith(".save")] == []


def test_a_file_that_is_another_from_there_is_refused(project: Any) -> None:
    project.write("one/terms.txt", "a")
    project.write("two/terms.txt", "b")
    part = {"type": "file", "value": "terms.txt"}
    text = f"- {{id: a, input: [{{role: user, content: [{part}]}}], expected_output: x}}"
    project.write("one/x.eval.yaml", text)
    (suite,) = assay.load("one/x.eval.yaml")
    suite.save("one/y.eval.yaml")
    assert "refers to a file that is another one" in refused(suite, "two/x.eval.yaml")
