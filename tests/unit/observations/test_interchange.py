"""The interchange form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ObservationError
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.observations.interchange import plain_record
from assay.observations.reading import read, read_json
from assay.observations.records import BAD_JSON, PLAIN_TEXT


def test_missing_calls_are_unknown_and_an_empty_list_means_no_calls() -> None:
    assert read({"response": "x"}).tool_calls is None
    assert read({"response": "x", "toolCalls": None}).tool_calls is None
    assert read({"response": "x", "toolCalls": []}).tool_calls == ()


def test_snake_case_keys_are_read() -> None:
    seen = read(
        {
            "response": "x",
            "tool_calls": [{"tool": "t", "args": 1, "output": 2, "duration_ms": 3}],
            "duration_ms": 4,
            "cost_usd": 0.5,
            "llm_calls": 6,
            "usage": {"input_tokens": 7, "output_tokens": 8},
        }
    )
    call = ToolCall("t", 1, 2, duration_ms=3)
    assert seen == Observation("x", (call,), (), Usage(7, 8), 0.5, 4, 6)


def test_a_call_with_an_error_counts_as_failed_by_default() -> None:
    calls = [
        {"name": "a", "error": "timed out"},
        {"name": "b", "error": {"type": "io", "message": "no disk"}},
        {"name": "c", "error": "slow", "success": True},
        {"name": "d", "error": ""},
        {"name": "e", "result": "ok"},
        {"name": "f", "success": False},
    ]
    seen = read({"response": "", "toolCalls": calls}).tool_calls or ()
    assert [(call.success, call.error) for call in seen] == [
        (False, "timed out"),
        (False, "no disk"),
        (True, "slow"),
        (None, None),
        (None, None),
        (False, None),
    ]


@pytest.mark.parametrize(
    ("response", "text"),
    [("hi", "hi"), (None, ""), ({"a": "ü"}, '{"a": "ü"}'), ([1], "[1]"), (23.5, "23.5")],
)
def test_a_response_that_is_not_text_becomes_json(response: Any, text: str) -> None:
    assert read({"response": response}).response == text


@pytest.mark.parametrize("key", ["params", "input", "args", "arguments"])
@pytest.mark.parametrize(
    ("given", "known", "notes"),
    [
        ({"k": 1}, {"k": 1}, ()),
        ('{"k": 1}', {"k": 1}, ()),
        ('{"k": 1', '{"k": 1', (BAD_JSON,)),
        ('"{}"', "{}", (PLAIN_TEXT,)),
    ],
)
def test_parameters_have_many_names_and_may_be_json_in_a_text(
    key: str, given: Any, known: Any, notes: tuple[str, ...]
) -> None:
    seen = read({"response": "", "toolCalls": [{"name": "t", key: given}]})
    assert seen.tool_calls == (ToolCall("t", known, notes=notes),)
    assert read(seen.to_dict()) == seen
    messages = [{"role": "assistant", "tool_calls": [{"tool": "t", key: given}]}]
    [call] = read(messages).tool_calls or ()
    assert (call.input, call.notes[: len(notes)]) == (known, notes)


def test_a_key_of_a_call_that_is_nearly_known_is_noted_at_the_call() -> None:
    slip = {"name": "t", "argument": 1, "x": 2}
    [call] = read({"response": "", "toolCalls": [slip]}).tool_calls or ()
    assert call.notes == ("the key 'argument' is not known (did you mean 'arguments'?)",)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"id": "a", "error": "it crashed"}, "it crashed"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "later"}}, "later"),
        ({"error": {"code": 42}}, '{"code": 42}'),
    ],
)
def test_a_failure_without_an_answer_is_an_observation_with_an_error(body: Any, error: str) -> None:
    assert read(body) == Observation(error=error)


def test_a_key_that_is_nearly_known_is_noted_and_others_are_the_users_own() -> None:
    seen = read({"response": "x", "toolcalls": [], "session": "s-1"})
    assert seen.notes == ("the key 'toolcalls' is not known (did you mean 'toolCalls'?)",)
    assert read({"response": "x", "session": "s-1"}).notes == ()


def test_messages_have_the_form_of_eval_files() -> None:
    call = {"tool": "t", "input": {}, "success": False, "error": "no", "notes": ["odd"]}
    seen = read({"response": "x", "messages": [{"role": "assistant", "tool_calls": [call]}]})
    known = ToolCall("t", {}, success=False, error="no", notes=("odd",))
    assert seen.messages == (Message("assistant", None, (known,)),)
    assert read(seen.to_dict()) == seen


# Common records are read by a shorter way, which must not show.

ODD = st.sampled_from(
    [None, True, False, 0, 1, 2.5, -1, "", "x", '{"a": 1}', [], [1], {}, {"a": 1}]
)
CALLS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("name", "params", "result", "success", "durationMs"), ODD)
) | st.builds(
    lambda success, params: {"name": "t", "params": params, "success": success, "durationMs": 3},
    st.none() | st.booleans(),
    st.just({"a": 1}) | st.none() | st.just([1]),
)
RECORDS = st.fixed_dictionaries(
    {"response": st.text(max_size=3) | ODD},
    optional={
        "toolCalls": st.lists(CALLS | ODD, max_size=3) | ODD,
        "usage": st.just({"inputTokens": 1, "outputTokens": 2}) | ODD,
        **dict.fromkeys(("id", "durationMs", "costUsd", "llmCalls"), ODD),
    },
)


def attempt(record: Any) -> Any:
    try:
        return read(record)
    except ObservationError as error:
        return str(error)


@given(RECORDS)
def test_bytes_are_read_like_the_value_they_encode(record: dict[str, Any]) -> None:
    data = json.dumps(record).encode()
    try:
        seen: Any = read_json(data)
    except ObservationError as error:
        seen = str(error)
    assert repr(seen) == repr(attempt(record))
    assert not isinstance(seen, Observation) or seen.raw == record


def test_bytes_that_are_nested_too_deeply_are_refused() -> None:
    deep = b'{"response": "", "toolCalls": [{"name": "t", "params": ' + b"[" * 200 + b"]" * 200
    with pytest.raises(ObservationError, match="nested deeper than 100 levels"):
        read_json(deep + b"}]}")


def test_integers_too_large_for_a_store_become_floats() -> None:
    seen = read({"response": "", "durationMs": 2**63, "costUsd": 2**63 - 1})
    assert [type(seen.duration_ms), type(seen.cost_usd)] == [float, int]


@pytest.mark.parametrize("depth", [200, 50_000])
@pytest.mark.parametrize("key", ["params", "result"])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_line_that_is_nested_too_deeply_is_not_plain(
    key: str, opening: bytes, depth: int
) -> None:
    closing = b"]" if opening == b"[" else b"}"
    nested = opening * depth + b"0" + closing * depth
    head = b'{"response":"","toolCalls":[{"name":"t","%b":' % key.encode()
    assert plain_record(head + nested + b"}]}") is None
    assert plain_record(head + opening * 3 + b"0" + closing * 3 + b"}]}") is not None
