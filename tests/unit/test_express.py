"""The express lane gives what the usual way gives, byte for byte, or leaves the case to it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import assay
from assay.engine import express
from assay.engine.express import Express
from assay.engine.plan import Plan
from assay.errors import EvalFileErrors
from assay.evaluators.text import ContainsEvaluator
from assay.executors.local import Local
from assay.model.run import TrialRecord
from assay.registry import executors
from assay.service import eval_files
from assay.service.project import project as find_project
from assay.service.store import open_store
from unit.conftest import Project

TEXTS = ["yes", 'say "yes": 1', "back\\slash", "é😀", "a\u2028b", "{{seed:a}}", "sk-" + "a1" * 12]
ENTRIES: list[dict[str, Any]] = [
    *({"type": "contains", "value": text} for text in TEXTS),
    {"type": "icontains", "value": "YES"},
    {"type": "not_contains", "value": "never"},
    {"type": "not-contains", "value": "never"},
    {"type": "starts_with", "value": "yes"},
    {"type": "regex", "value": "y.s"},
    {"type": "regex", "value": "(?=y)yes"},
    {"type": "not_regex", "value": "^n"},
    {"type": "contains", "value": "yes", "weight": 2},
    {"type": "contains", "value": "yes", "weight": 0},
    {"type": "contains", "value": "yes", "required": True},
    {"type": "contains", "value": "yes", "name": "own"},
    {"type": "contains", "value": "e", "name": "own"},
    {"type": "regex", "value": "y.s", "name": "contains"},
    {"type": "not_contains", "value": "never", "name": 'a: "b"'},
    {"type": "contains", "value": "yes", "negate": True},
    {"type": "contains", "values": ["yes", "e"]},
    {"type": "contains_any", "values": ["yes", "no"]},
    {"type": "equals", "value": "yes"},
    {"type": "latency", "threshold": 5},
]
SAID = ["yes", "yes and " + " ".join(TEXTS[1:5]), "no", "", "Yes", TEXTS[-1] + " yes"]
MORE: list[dict[str, Any]] = [
    {},
    {"description": 'what "it" says'},
    {"threshold": 0.4, "tags": ["t"], "metadata": {"a": 1}},
    {"input": [{"role": "system", "content": "be"}, {"role": "user", "content": "x"}]},
    {"cluster": "k"},
    {"repeat": 2},
]
SEEN: list[dict[str, Any]] = [
    {},
    {"durationMs": 3, "usage": {"inputTokens": 1, "outputTokens": 2}, "costUsd": 0.25},
    {"toolCalls": []},
    {"toolCalls": [{"name": "t", "params": {"a": "b"}}, {"name": "u", "params": '{"a": 1}'}]},
    {"notes": ["odd"]},
    {"error": "broke"},
]


@st.composite
def lines(draw: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        entries = draw(st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=3))
        case = {"id": f"c{number}", "input": "ask", "evaluators": entries}
        answer = {"id": f"c{number}", "response": draw(st.sampled_from(SAID))}
        found.append((case | draw(st.sampled_from(MORE)), answer | draw(st.sampled_from(SEEN))))
    return found


@pytest.fixture
def streamed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose files are all streams, graded in this process."""
    project.write("assay.yaml")
    monkeypatch.setattr(eval_files, "STREAMED_BYTES", 0)
    monkeypatch.setattr(executors, "get", lambda name: Local)
    return project


def trials(project: Project, found: list[Any], *, ascii_only: bool = False) -> list[TrialRecord]:
    """The records of a run over cases and their answers, as the store has them."""
    for file, part in (("a.eval.jsonl", 0), ("seen.jsonl", 1)):
        texts = [json.dumps(pair[part], ensure_ascii=ascii_only) for pair in found]
        project.write(file, "".join(f"{text}\n" for text in texts))
    run = assay.run("a.eval.jsonl", target="replay:seen.jsonl")
    store = open_store(find_project(), None)
    try:
        return [msgspec.structs.replace(t, run_id="") for t in store.trials(run.id)]
    finally:
        store.close()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(found=lines(), ascii_only=st.booleans())
@example(
    found=[
        ({"id": f"c{n}", "input": "ask", "evaluators": [entry]}, {"id": f"c{n}", "response": "yes"})
        for n, entry in enumerate([*ENTRIES, *ENTRIES])
    ],
    ascii_only=False,
)
def test_both_lanes_record_the_same(streamed: Project, found: list[Any], ascii_only: bool) -> None:
    fast = trials(streamed, found, ascii_only=ascii_only)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "is_unfiltered", property(lambda plan: False))
        assert trials(streamed, found, ascii_only=ascii_only) == fast


WRONG = [
    '{"type": "contains", "value": "yes", "name": ""}',
    '{"type": "contains", "value": "yes", "name": null}',
    '{"type": "contains", "value": ""}',
    '{"type": "contains", "value": 1}',
    '{"type": "contains", "value": "a", "value": "b"}',
    '{"type": "contains", "value": "a", "valu\\u0065": "b"}',
    '{"type": "contains", "value": "a", "name": "n", "name": "m"}',
    '{"type": "contains", "value": "\\u0000"}',
    '{"type": "contains", "value": "\\ud800"}',
    '{"type": "contains"}',
    '{"type": "contain", "value": "yes"}',
    '{"type": "regex", "value": "("}',
    '{"type": "contains", "value": "yes", "wieght": 2}',
    '{"type": "contains", "value": "a", "name": "n"}, {"type": "regex", "value": "a", "name": "n"}',
]


@pytest.mark.parametrize("entries", WRONG)
def test_both_lanes_refuse_the_same(streamed: Project, entries: str) -> None:
    found = alike(4)
    lines = [json.dumps(case) for case, _ in found]
    lines[2] = '{"id": "c2", "input": "ask", "evaluators": [' + entries + "]}"
    streamed.write("a.eval.jsonl", "".join(f"{line}\n" for line in lines))
    streamed.write("seen.jsonl", "".join(json.dumps(answer) + "\n" for _, answer in found))

    def problems() -> Any:
        with pytest.raises(EvalFileErrors) as caught:
            assay.run("a.eval.jsonl", target="replay:seen.jsonl")
        return caught.value.problems

    fast = problems()
    assert {problem.line for problem in fast} == {3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "is_unfiltered", property(lambda plan: False))
        assert problems() == fast


def taken(project: Project, found: list[Any]) -> list[str]:
    """The ids of the cases that took the express lane."""
    ids: list[str] = []
    keep = Express.take

    def noted(self: Express, number: int, line: Any) -> bool:
        is_taken = keep(self, number, line)
        ids.extend([line.id] * is_taken)
        return is_taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(express.Express, "take", noted)
        trials(project, found)
    return ids


def alike(count: int, **more: Any) -> list[Any]:
    """Cases that differ in their texts alone, each with an answer that passes."""
    cases = []
    for n in range(count):
        checks = [{"type": "contains", "value": f"it is {n}"}, {"type": "regex", "value": "i[st]"}]
        case = {"id": f"c{n}", "input": f"what is {n}?", "evaluators": checks} | more
        cases.append((case, {"id": f"c{n}", "response": f"it is {n}"}))
    return cases


def test_cases_that_are_judged_by_their_text_take_it(streamed: Project) -> None:
    found = alike(8)
    found[5][1]["response"] = "no"
    assert taken(streamed, found) == [f"c{n}" for n in range(8)]


@pytest.mark.parametrize("more", [{"repeat": 2}, {"critical": True}, {"skip": "later"}])
def test_cases_with_more_to_them_do_not(streamed: Project, more: dict[str, Any]) -> None:
    assert taken(streamed, alike(4, **more)) == []


def test_names_make_no_difference(streamed: Project) -> None:
    found = alike(4)
    for case, _ in found:
        case["evaluators"][0]["name"] = "says so"
    assert taken(streamed, found) == [f"c{n}" for n in range(4)]


def test_what_is_learned_of_entries_is_little(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many names there are."""
    monkeypatch.setattr(express, "MAX_KINDS", 9)
    found = alike(20)
    for number, (case, _) in enumerate(found):
        case["evaluators"][0]["name"] = f"of case {number}"
    assert taken(streamed, found) == [f"c{n}" for n in range(4)]


def test_a_class_that_judges_in_its_own_way_is_no_check_of_a_text() -> None:
    class Own(ContainsEvaluator):
        def prepare(self, resources: Any) -> Any:
            return super().prepare(resources)

    entry = {"type": "contains", "value": "x"}
    assert express._Template.of(ContainsEvaluator.model_validate(entry)) is not None
    assert express._Template.of(Own.model_validate(entry)) is None


def test_bytes_that_are_no_text_are_told_with_their_place(streamed: Project) -> None:
    """Also in an evaluator, of which the lane alone reads the text."""
    cases = [json.dumps(case).encode() for case, _ in alike(8)]
    cases[6] = cases[6].replace(b"it is 6", b"it is \xff")
    streamed.write("a.eval.jsonl", b"\n".join(cases))
    streamed.write("seen.jsonl", "".join(json.dumps(answer) + "\n" for _, answer in alike(8)))
    with pytest.raises(EvalFileErrors) as caught:
        assay.run("a.eval.jsonl", target="replay:seen.jsonl")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("encoding", 7)


@pytest.mark.parametrize("key", ["durationMs", "costUsd"])
def test_whole_numbers_of_more_than_64_bits_can_be_stored(streamed: Project, key: str) -> None:
    found = alike(4)
    found[2][1][key] = 10**20
    trial = trials(streamed, found)[2]
    assert 1e20 in (trial.duration_ms, trial.cost_usd)
