"""`@assay.evaluator`, `plugins:` and `python:`: functions that judge."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay import registry
from assay.errors import PluginError, UsageError
from assay.evaluators.python import CONTEXT, score_of, spec_class
from assay.model.score import EvaluationScore
from assay.service import eval_files
from assay.service.project import plugins

CASE = """\
cases:
  - id: a
    input: How warm is it?
    expected_output: 23 degrees
    metadata: {{unit: C}}
    evaluators: [{entry}]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project to write modules in; what they register is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before, added, loaded = (
        set(sys.modules),
        dict(registry.evaluators._added),
        dict(registry.evaluators._loaded),
    )
    (tmp_path / "assay.yaml").write_text("{}\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(
            sys.modules[name].__file__
        ):
            del sys.modules[name]
    registry.evaluators._added, registry.evaluators._loaded = added, loaded


def graded(project: Path, entry: str, answer: Any = "It is 23 degrees") -> EvaluationScore:
    (project / "a.eval.yaml").write_text(CASE.format(entry=entry))
    case = assay.load("a.eval.yaml")[0].cases[0]
    return assay.evaluate(case, answer).evaluators[0].score


def plugin(project: Path, body: str, name: str = "my_checks") -> None:
    (project / f"{name}.py").write_text("from __future__ import annotations\nimport assay\n" + body)
    (project / "assay.yaml").write_text(f"plugins: [{name}]\n")


# What a function may return


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no words")


def endless() -> dict[str, Any]:
    details: dict[str, Any] = {}
    details["itself"] = details
    return details


@pytest.mark.parametrize(
    ("details", "why"), [(endless(), "RecursionError"), ({"x": Unspeakable()}, "no words")]
)
def test_a_score_that_cannot_be_written_is_errored(details: dict[str, Any], why: str) -> None:
    score = score_of(EvaluationScore(1.0, details=details))
    assert score.error.startswith("its score cannot be written as JSON: ")
    assert why in score.error


def test_details_that_are_no_json_are_kept_as_they_are() -> None:
    assert score_of(EvaluationScore(1.0, details={"x": {1, 2}})).details == {"x": {1, 2}}


@pytest.mark.parametrize(
    ("said", "score", "verdict"),
    [
        (True, 1.0, "pass"),
        (False, 0.0, "fail"),
        (1, 1.0, "pass"),
        (0.7, 0.7, "borderline"),
        ("pass", 1.0, "pass"),
        ("borderline", 0.6, "borderline"),
        ("fail", 0.0, "fail"),
        (EvaluationScore(0.9), 0.9, "pass"),
        ([True, False], 0.5, "fail"),
        ([True, 0.8, "pass", EvaluationScore(1.0)], 0.95, "pass"),
    ],
)
def test_what_a_function_returns_is_a_score(said: Any, score: float, verdict: str) -> None:
    found = score_of(said)
    assert found.score == pytest.approx(score)
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (None, "NoneType"),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        ("great", "none of pass, borderline, fail"),
        ([], "an empty list"),
        ([True, None], "item 2"),
        ({"score": 1}, "dict"),
    ],
)
def test_anything_else_is_errored_and_says_what_it_was(said: Any, words: str) -> None:
    found = score_of(said)
    assert found.score is None
    assert words in found.error


def test_a_list_is_several_checks() -> None:
    found = score_of([True, EvaluationScore(0.0, misses=("no unit",)), False])
    assert found.hits == ("item 1: score 1",)
    assert found.misses == ("item 2: no unit", "item 3: score 0")


def test_items_of_a_list_are_named_with_their_reasons() -> None:
    polite = EvaluationScore(1.0, reasoning="polite")
    short = EvaluationScore(0.6, misses=("one word",), reasoning="too short")
    found = score_of([polite, short, [True, 0.7]])
    assert found.hits == ("item 1: polite", "item 3: item 1: score 1")
    assert found.misses == ("item 2: one word", "item 3: item 2: score 0.7")
    assert found.reasoning == "item 2: too short"


# Parameters


def test_parameters_are_given_what_their_names_ask_for(project: Path) -> None:
    plugin(
        project,
        """
@assay.evaluator
def sees(context, case, observation, response, tool_calls, question, expected, metadata) -> bool:
    return (
        context.case is case and context.observation is observation
        and (response, tool_calls) == ("It is 23 degrees", None)
        and (question, expected, metadata) == ("How warm is it?", "23 degrees", {"unit": "C"})
    )
""",
    )
    assert graded(project, "{type: sees}").score == 1.0
    assert set(CONTEXT) <= {"context", "case", "observation", "response", "tool_calls"} | {
        "question",
        "expected",
        "metadata",
    }


def test_other_parameters_are_keys(project: Path) -> None:
    plugin(
        project,
        """
@assay.evaluator
def mentions(response: str, words: list[str], all_of_them: bool = False) -> list[bool] | bool:
    found = [word in response for word in words]
    return found if all_of_them else any(found)
""",
    )
    assert graded(project, "{type: mentions, words: [rain, '23']}").score == 1.0
    entry = "{type: mentions, words: [rain, '23'], all_of_them: true}"
    assert graded(project, entry).score == 0.5


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("{type: mentions}", "missing-key"),
        ("{type: mentions, word: [a]}", "unknown-key"),
        ("{type: mentions, words: a}", "wrong-type"),
    ],
)
def test_its_keys_are_checked_when_a_file_is_loaded(project: Path, entry: str, code: str) -> None:
    plugin(project, "@assay.evaluator\ndef mentions(response, words: list[str]): return True\n")
    (project / "a.eval.yaml").write_text(CASE.format(entry=entry))
    assert code in [problem.code for problem in eval_files.validate("a.eval.yaml").problems]


def test_what_a_function_changes_nobody_else_sees(project: Path) -> None:
    plugin(
        project,
        """
@assay.evaluator
def greedy(context, observation, tool_calls, metadata, words: list[str]) -> bool:
    whole = [metadata, tool_calls[0].input["at"], observation.raw["toolCalls"]] == [
        {"unit": "C"}, ["Lisbon"], [{"name": "f", "params": {"at": ["Lisbon"]}}]
    ]
    for changed in (metadata, tool_calls[0].input["at"], observation.raw, words):
        changed.clear()
    return whole and context.case.metadata == {}
""",
    )
    seen = {"response": "ok", "toolCalls": [{"name": "f", "params": {"at": ["Lisbon"]}}]}
    entry = "{type: greedy, words: [a]}, {type: greedy, words: [b]}"
    (project / "a.eval.yaml").write_text(CASE.format(entry=entry))
    case = assay.load("a.eval.yaml")[0].cases[0]
    assert assay.evaluate(case, seen).score == assay.evaluate(case, seen).score == 1.0
    assert seen["toolCalls"] == [{"name": "f", "params": {"at": ["Lisbon"]}}]
    assert case.metadata == {"unit": "C"}
    assert [getattr(spec, "words") for spec in case.evaluators] == [["a"], ["b"]]  # noqa: B009


@pytest.mark.parametrize(
    ("annotation", "written", "right"),
    [
        ("int", "1", True),
        ("int", "'1'", False),
        ("int", "true", False),
        ("int", "1.0", False),
        ("float", "1", True),
        ("float", "'1'", False),
        ("float", "true", False),
        ("bool", "true", True),
        ("bool", "1", False),
        ("bool", "'yes'", False),
        ("int | None", "null", True),
        ("int | None", "'1'", False),
        ("Optional[int]", "'1'", False),
        ("int | str", "'1'", True),
        ("Annotated[int, Field(ge=1)]", "1", True),
        ("Annotated[int, Field(ge=1)]", "0", False),
        ("Annotated[int, Field(ge=1)]", "true", False),
        ("list[int]", "[1]", True),
        ("list[int]", "['1']", False),
        ("tuple[int, ...]", "[1, 2]", True),
        ("Sequence[int]", "[true]", False),
        ("dict[str, float]", "{a: 1}", True),
        ("dict[str, float]", "{a: '1'}", False),
        ("Literal['a', 'b']", "a", True),
    ],
)
def test_keys_are_not_converted(project: Path, annotation: str, written: str, right: bool) -> None:
    plugin(
        project,
        "from collections.abc import Sequence\n"
        "from typing import Annotated, Literal, Optional\n"
        "from pydantic import Field\n"
        f"@assay.evaluator\ndef takes(response, n: {annotation}): return True\n",
    )
    (project / "a.eval.yaml").write_text(CASE.format(entry=f"{{type: takes, n: {written}}}"))
    assert (eval_files.validate("a.eval.yaml").errors == ()) is right


def test_an_async_function_is_waited_for(project: Path) -> None:
    plugin(project, "@assay.evaluator\nasync def later(response): return 'degrees' in response\n")
    assert graded(project, "{type: later}").score == 1.0


def test_a_function_may_be_called_as_before(project: Path) -> None:
    def doubled(response: str) -> bool:
        return response == response * 2

    assert spec_class(doubled).function is doubled


def test_another_name(project: Path) -> None:
    plugin(project, "@assay.evaluator(name='is_warm')\ndef f(response): return True\n")
    assert graded(project, "{type: is_warm}").score == 1.0


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("my-check", "my-check"),
        ("my-check", "my_check"),
        ("my_check", "my-check"),
        ("not_rude", "not_rude"),
        ("not-rude", "not-rude"),
    ],
)
def test_any_name_can_be_used(project: Path, name: str, written: str) -> None:
    plugin(project, f"@assay.evaluator(name={name!r})\ndef f(response): return True\n")
    assert graded(project, f"{{type: {written}}}").score == 1.0


@pytest.mark.parametrize("parameter", ["name", "weight", "type", "required"])
def test_a_parameter_may_not_take_a_common_key(parameter: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def bad(response, {parameter}): return True", scope)
    with pytest.raises(PluginError, match=f"{parameter!r} of bad is taken"):
        spec_class(scope["bad"])


def test_a_crash_is_errored(project: Path) -> None:
    plugin(project, "@assay.evaluator\ndef crash(response): return 1 / 0\n")
    assert "ZeroDivisionError" in graded(project, "{type: crash}").error


# Plugins


@pytest.mark.parametrize(
    ("error", "fault"),
    [("RuntimeError('boom')", "RuntimeError: boom"), ("SystemExit", "SystemExit")],
)
def test_a_plugin_that_cannot_be_imported_is_told(project: Path, error: str, fault: str) -> None:
    plugin(project, f"raise {error}\n")
    cases = "- {id: a, input: x, evaluators: [{type: tone}]}\n- {id: b}\n"
    (project / "s.eval.yaml").write_text(cases)
    first, *others = eval_files.validate(".").problems
    assert (first.file, first.line, first.code) == ("assay.yaml", 1, "plugin-failed")
    assert first.message == f"the plugin 'my_checks' could not be imported: {fault}"
    assert {(p.file, p.line) for p in others} == {("s.eval.yaml", 2)}  # 'tone' may be a plugin's
    faults = [entry.fault for entry in plugins() if entry.kind == "plugin"]
    assert faults == [fault]


def test_a_function_cannot_take_the_name_of_a_built_in(project: Path) -> None:
    plugin(project, "@assay.evaluator\ndef contains(response): return True\n")
    assert (
        "'contains' of my_checks:contains is already registered"
        in eval_files.validate(".").errors[0].message
    )


def test_two_functions_cannot_have_one_name(project: Path) -> None:
    plugin(
        project,
        "@assay.evaluator(name='same')\ndef a(response): return True\n"
        "@assay.evaluator(name='same')\ndef b(response): return True\n",
    )
    (problem,) = eval_files.validate("assay.yaml").errors
    assert "already registered: my_checks:a" in problem.message


def test_only_functions_are_decorated(project: Path) -> None:
    warm = "def warm(response, least): return least <= 23\nfrom functools import partial\n"
    plugin(project, f"{warm}assay.evaluator(name='hot')(partial(warm, least=30))\n")
    (problem,) = eval_files.validate("assay.yaml").errors
    assert "assay.evaluator decorates functions; this is of the type partial" in problem.message


# Inline


def test_a_function_named_inline(project: Path) -> None:
    (project / "checks.py").write_text("def warm(response, least: int = 20): return least <= 23\n")
    assert graded(project, "{type: 'python:checks:warm'}").score == 1.0
    assert graded(project, "{type: 'python:checks:warm', least: 30}").score == 0.0


def test_a_callable_object_named_inline(project: Path) -> None:
    (project / "checks.py").write_text(
        "from functools import partial\n"
        "class Warm:\n"
        "    def __call__(self, response, least: int = 20): return least <= 23\n"
        "warm = Warm()\n"
        "hot = partial(warm, least=30)\n"
    )
    assert graded(project, "{type: 'python:checks:warm'}").score == 1.0
    assert graded(project, "{type: 'python:checks:warm', least: 30}").score == 0.0
    assert graded(project, "{type: 'python:checks:hot'}").score == 0.0


def test_loading_runs_no_code_of_the_project(project: Path) -> None:
    (project / "checks.py").write_text("raise RuntimeError('ran')\n")
    (project / "a.eval.yaml").write_text(CASE.format(entry="{type: 'python:checks:warm'}"))
    assert eval_files.validate("a.eval.yaml").problems == ()


@pytest.mark.parametrize(
    ("entry", "error", "words"),
    [
        ("{type: 'python:nowhere:warm'}", PluginError, "there is no module 'nowhere'"),
        ("{type: 'python:checks:cold'}", PluginError, "cold"),
        ("{type: 'python:leaves:warm'}", PluginError, "imported: SystemExit: 7"),
        ("{type: 'python:checks:NUMBER'}", PluginError, "is int, not a function"),
        ("{type: 'python:checks:warm', most: 1}", UsageError, "most"),
        ("{type: 'python:checks:warm', least: many}", UsageError, "least"),
        ("{type: 'python:checks:warm', least: '1'}", UsageError, "least"),
    ],
)
def test_a_wrong_reference_is_told_before_anything_is_graded(
    project: Path, entry: str, error: type[Exception], words: str
) -> None:
    (project / "checks.py").write_text(
        "NUMBER = 1\ndef warm(response, least: int = 1): return True\n"
    )
    (project / "leaves.py").write_text("import sys\nsys.exit(7)\n")
    with pytest.raises(error, match=words):
        graded(project, entry)
