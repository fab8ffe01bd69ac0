"""Any record is read as an observation, or raises an ObservationError with the reason."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from assay.errors import ObservationError
from assay.observations.reading import read
from unit.observations import test_reading_formats, test_reading_one_conversation

SAMPLES = test_reading_one_conversation.SAMPLES | test_reading_formats.RECORDS


def words_of(data: Any) -> set[str]:
    """Every key and every short text of the samples: a vocabulary to be wrong with."""
    if isinstance(data, dict):
        return {*data}.union(*map(words_of, data.values()))
    if isinstance(data, list):
        return set[str]().union(*map(words_of, data))
    return {data} if isinstance(data, str) and len(data) < 30 else set()


WORDS = st.sampled_from(
    sorted(
        words_of(list(SAMPLES.values()))
        | {"tool_calls", "custom", "refusal", "is_error", "tool_result", "mcp_call", "parts"}
        | {"gen_ai.tool.name", "gen_ai.output.messages", "gen_ai.choice", "events", "[{", "{}"}
    )
)
NUMBERS = st.sampled_from([0, 1, -1, 2.5, 1e308, 2**64, 10**400, float("nan"), float("inf")])
LEAVES = st.none() | st.booleans() | NUMBERS | WORDS | st.text(max_size=3)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=15,
)


def attempt(value: Any) -> None:
    before = copy.deepcopy(value)
    try:
        seen = read(value)
    except ObservationError as error:
        words = str(error)
    else:
        words = "it was read"
        assert isinstance(seen.response, str)
        again = read(json.loads(json.dumps(seen.to_dict())))
        assert repr(again) == repr(seen)  # as text, since NaN is not equal to itself
    assert 10 < len(words) < 1000
    assert words.isprintable()
    assert repr(value) == repr(before)


@given(TREES)
@example({"messages": None})
@example({"output": [{"type": "_call"}]})
@example({"role": "assistant", "type": "message"})
@example({"resourceSpans": {"spans": 1}})
def test_any_structure(tree: Any) -> None:
    attempt(tree)


@given(st.lists(st.dictionaries(WORDS, TREES, max_size=5), max_size=4))
def test_any_list_of_records(records: list[Any]) -> None:
    attempt(records)
    attempt({"messages": records})
    attempt({"output": records})
    attempt({"spans": records})


@st.composite
def changed(draw: st.DrawFn) -> Any:
    """A sample with one to three of its parts replaced, removed or renamed."""
    data = copy.deepcopy(SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))])
    for _ in range(draw(st.integers(1, 3))):
        node: Any = data
        depth = draw(st.integers(0, 8))
        while depth and isinstance(node, (dict, list)) and node:
            steps: list[Any] = sorted(node) if isinstance(node, dict) else list(range(len(node)))
            step = draw(st.sampled_from(steps))
            inner = node[step]
            if depth > 1 and isinstance(inner, (dict, list)) and inner:
                node, depth = inner, depth - 1
                continue
            action = draw(st.sampled_from(["replace", "remove", "rename"]))
            if action == "replace" or (action == "rename" and type(node) is list):
                node[step] = draw(TREES)
            else:
                taken: Any = node.pop(step)
                if action == "rename" and isinstance(node, dict):
                    node[draw(WORDS)] = taken
            break
    return data


@given(changed())
def test_changed_samples(data: Any) -> None:
    attempt(data)
