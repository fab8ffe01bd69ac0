"""What becomes of a case depends on no other case, on no order and on no thread."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.engine.grading import Preparation
from assay.model.case import EvalCase
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.ports import Resources
from unit.evaluator_calls import spec_of

STEP = {"tool": "search", "args": {"q": {"regex": "^l"}}}
SPECS: list[dict[str, Any]] = [
    {"type": "expect", "toolsCalled": ["search"], "responseMatches": ["a(?=b)|Lisbon"]},
    {"type": "equals", "value": {"city": "Lisbon"}},
    {"type": "equals"},
    {"type": "contains", "values": ["Lisbon", "23"]},
    {"type": "contains_any", "values": ["Lisbon", "Rome"]},
    {"type": "icontains_any", "values": ["LISBON", "ROME"]},
    {"type": "contains_all", "values": ["Lisbon", "{"], "negate": True},
    {"type": "icontains", "value": "LISBON"},
    {"type": "starts_with", "value": "{"},
    {"type": "ends_with", "value": "}"},
    {"type": "regex", "value": "L(?=i)"},
    {"type": "is_json"},
    {"type": "json_schema", "value": {"required": ["city"], "properties": {"city": {"const": 1}}}},
    {"type": "similarity", "value": "Lisbon"},
    {"type": "tool_trajectory", "expected": [STEP, STEP, {"tool": "read", "optional": True}]},
    {"type": "tool_trajectory", "mode": "any_order", "expected": [STEP], "forbidden": ["drop"]},
    {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "search"}]},
    {"type": "field_accuracy", "fields": [{"path": "city", "match": "exact"}]},
    {"type": "latency", "threshold": 10},
    {"type": "cost", "budget": 0.1},
    {"type": "token_usage", "max_total": 10},
    {"type": "execution_metrics", "max_tool_calls": 1},
    {
        "type": "composite",
        "evaluators": (
            spec_of("is_json", name="json"),
            spec_of("contains", name="city", value="Lisbon"),
        ),
        "aggregator": {"type": "min"},
    },
]
ASKING = {"llm_judge", "rubric", "code_judge", "python"}

CALLS = st.sampled_from(["search", "read", "drop"]).flatmap(
    lambda tool: st.sampled_from(["lisbon", "rome", 1, None]).map(
        lambda q: ToolCall(tool, {"q": q}, success=True)
    )
)
SEEN = st.builds(
    Observation,
    response=st.sampled_from(['{"city": "Lisbon"}', '{"city": 1}', "Lisbon, 23", "", "abc"]),
    tool_calls=st.none() | st.lists(CALLS, max_size=3).map(tuple),
    usage=st.none() | st.just(Usage(5, 5)) | st.just(Usage(50, 5)),
    cost_usd=st.none() | st.sampled_from([0.1, 0.2]),
    duration_ms=st.none() | st.sampled_from([10.0, 11.0]),
)
Trial = tuple[EvalCase, Observation]


def test_every_evaluator_without_a_judge_is_covered() -> None:
    ours = {e.name for e in entry_points(group="assay.evaluators") if e.module.startswith("assay.")}
    assert {spec["type"] for spec in SPECS} == ours - ASKING


def cases() -> list[EvalCase]:
    """Each evaluator alone, and all of them in one case; all share the specs."""
    specs = [spec_of(**{"kind": e["type"], "name": e["type"], **e}) for e in SPECS]
    expected = (Message("assistant", {"city": "Lisbon"}),)
    groups = [*[(spec,) for spec in specs], tuple(specs)]
    return [
        EvalCase(f"c{n}", (Message("user", "q"),), group, expected_messages=expected)
        for n, group in enumerate(groups)
    ]


def graded(preparation: Preparation, trial: Trial) -> Any:
    case, seen = trial
    return json.loads(asyncio.run(preparation.grader(case).graded(seen)).to_json())


@settings(max_examples=10)
@given(st.lists(SEEN, min_size=2, max_size=3), st.randoms())
def test_a_result_depends_on_no_neighbour_no_order_and_no_thread(
    observations: list[Observation], random: Any
) -> None:
    alone = {
        (case.id, place): graded(Preparation(Resources()), (case, seen))
        for case in cases()
        for place, seen in enumerate(observations)
    }
    shared = Preparation(Resources())
    trials = [(case, place) for case in cases() for place in range(len(observations))]
    random.shuffle(trials)
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda t: graded(shared, (t[0], observations[t[1]])), trials)
        found = {(c.id, place): r for (c, place), r in zip(trials, results, strict=True)}
    assert found == alone
