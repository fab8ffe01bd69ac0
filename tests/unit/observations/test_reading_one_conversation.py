"""One conversation in every shape is one observation."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from assay.errors import ObservationError
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.observations.reading import read

HERE = Path(__file__).parent
SAMPLES: dict[str, Any] = {
    file.stem: json.loads(file.read_text(encoding="utf-8")) for file in HERE.glob("*.json")
}
WHOLE = (
    *("agentv", "openai_chat", "openai_responses", "anthropic"),
    *("otel_otlp", "otel_events"),
)
TIMED = ("assay", "agentv", "otel_otlp", "otel_events")

ASKED = "How warm is it in Lisbon and in Oslo? In Fahrenheit, please."
ANSWER = "Lisbon has 74.3 °F, Oslo has 24.8 °F."
LISBON = ToolCall(
    "get_weather", {"city": "Lisbon"}, {"temperature": 23.5, "sky": "clear"}, "call_1"
)
OSLO = ToolCall(
    "get_weather",
    {"city": "Oslo", "unit": "celsius"},
    {"temperature": -4, "sky": "snow"},
    "call_2",
)
CONVERTED = ToolCall("to_fahrenheit", {"celsius": [23.5, -4]}, "74.3 and 24.8", "call_3")
NORMAL = Observation(
    response=ANSWER,
    tool_calls=(LISBON, OSLO, CONVERTED),
    messages=(
        Message("user", ASKED),
        Message("assistant", "I will look it up.", (LISBON, OSLO)),
        Message("assistant", None, (CONVERTED,)),
        Message("assistant", ANSWER),
    ),
    usage=Usage(410, 85),
    duration_ms=1500,
    llm_calls=3,
)


def untimed(seen: Observation) -> Observation:
    """The observation without the durations of calls, which some shapes cannot tell."""

    def plain(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        return tuple(replace(call, duration_ms=None) for call in calls)

    messages = (replace(message, tool_calls=plain(message.tool_calls)) for message in seen.messages)
    return replace(seen, tool_calls=plain(seen.tool_calls or ()), messages=tuple(messages))


@pytest.mark.parametrize("name", WHOLE)
def test_the_same_conversation_gives_the_same_normal_form(name: str) -> None:
    assert untimed(read(SAMPLES[name])) == NORMAL


def test_our_own_form_is_the_same_without_messages() -> None:
    assert untimed(read(SAMPLES["assay"])) == replace(NORMAL, messages=())


@pytest.mark.parametrize("name", TIMED)
def test_reported_durations_of_calls_are_kept(name: str) -> None:
    assert [call.duration_ms for call in read(SAMPLES[name]).tool_calls or ()] == [120, 90, 5]


@pytest.mark.parametrize("name", ["openai_chat", "anthropic"])
def test_a_bare_list_of_messages_is_read_like_the_mapping_around_it(name: str) -> None:
    seen = read(SAMPLES[name]["messages"])
    assert seen == replace(NORMAL, usage=None, duration_ms=None)


def test_the_messages_of_agentv_are_known_by_their_calls() -> None:
    seen = read({"id": "a", "messages": SAMPLES["agentv"]["output_messages"]})
    assert untimed(seen) == replace(NORMAL, usage=None, duration_ms=None)


def test_a_bare_list_of_items_is_read_like_the_response_around_it() -> None:
    sample = SAMPLES["openai_responses"]
    seen = read([*sample["input"], *sample["output"]])
    assert seen == replace(NORMAL, usage=None, duration_ms=None)


def test_spans_are_read_without_their_wrapping() -> None:
    spans = SAMPLES["otel_otlp"]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert untimed(read(spans)) == NORMAL
    assert untimed(read({"spans": spans[::-1]})) == NORMAL


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_interchange_form_is_read_back_as_the_same_observation(name: str) -> None:
    seen = read(SAMPLES[name])
    written = json.loads(json.dumps(seen.to_dict()))
    assert read(written) == seen


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_raw_record_is_kept(name: str) -> None:
    assert read(SAMPLES[name]).raw is SAMPLES[name]


def test_an_observation_is_returned_unchanged() -> None:
    assert read(NORMAL) is NORMAL


def test_a_text_is_an_answer_with_unknown_calls() -> None:
    assert read("23.5") == Observation("23.5", tool_calls=None)
    assert read('{"response": 1}').response == '{"response": 1}'


def test_an_openai_call_without_a_result_is_noted() -> None:
    seen = read(SAMPLES["openai_completion"])
    call = ToolCall(
        *("get_weather", {"city": "Lisbon"}, None, "call_1"),
        notes=("no result is recorded for this call",),
    )
    assert (seen.response, seen.tool_calls) == ("", (call,))
    assert (seen.usage, seen.llm_calls) == (Usage(80, 20), 1)


def test_a_reply_of_anthropic_has_its_text_and_its_call() -> None:
    seen = read(SAMPLES["anthropic_reply"])
    assert seen.response == "I will look it up."
    assert [call.tool for call in seen.tool_calls or ()] == ["get_weather"]
    assert (seen.usage, seen.llm_calls) == (Usage(80, 20), 1)


def test_a_legacy_function_is_paired_by_its_name() -> None:
    [call] = read(SAMPLES["openai_legacy"]).tool_calls or ()
    assert call == replace(LISBON, id=None)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "null"),
        (3, "3"),
        (True, "true"),
        ([], "an empty list"),
        ({}, "an empty mapping"),
        ([1, 2], "a list that starts with 1"),
        ({"anwser": "x", "id": 1}, "a mapping with 'anwser', 'id'"),
        ({str(n): n for n in range(20)}, "and 12 more"),
    ],
)
def test_an_unknown_record_names_what_was_found_and_what_is_expected(
    value: Any, found: str
) -> None:
    with pytest.raises(ObservationError) as caught:
        read(value)
    assert found in str(caught.value)
    assert "a mapping with 'response' or 'toolCalls'" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"response": "x", "toolCalls": "none"}, "'toolCalls' is 'none', not a list"),
        ({"response": "x", "toolCalls": [{"params": {}}]}, "'toolCalls[0]' has no 'name'"),
        ({"response": "x", "toolCalls": ["a"]}, "'toolCalls[0]' is 'a', not a mapping"),
        ({"response": "x", "durationMs": "3s"}, "'durationMs' is '3s', not a number >= 0"),
        ({"response": "x", "durationMs": -1}, "'durationMs' is -1, not a number >= 0"),
        ({"response": "x", "costUsd": True}, "'costUsd' is true, not a number >= 0"),
        ({"response": "x", "llmCalls": 1.5}, "'llmCalls' is 1.5, not a whole number"),
        ({"response": "x", "usage": 30}, "'usage' is 30, not a mapping"),
        ({"response": "x", "notes": [1]}, "'notes' is not a list of texts"),
        ({"messages": [{"role": "admin"}]}, "'messages[0].role' is 'admin'; known: system,"),
        ({"messages": [3, {"role": "user"}]}, "'messages[0]' is 3, not a mapping"),
        ({"choices": [{"index": 0}]}, "'choices[0]' has no 'message'"),
        (
            {"response": "x", "messages": [{"role": "assistant", "tool_calls": [{"function": 1}]}]},
            "'messages[0].tool_calls[0]' is an OpenAI call",
        ),
        (
            [{"role": "user", "content": [{"type": "tool_use", "name": "t", "input": {}}]}],
            "'messages[0].content' has a 'tool_use' of the role 'user'",
        ),
        (
            {"spans": [{"attributes": {"http.method": "GET"}}]},
            "none of a model, an agent or a tool",
        ),
        (
            [{"attributes": {"gen_ai.output.messages": "[{"}, "spanId": "1"}],
            "'spans[0].gen_ai.output.messages' is not valid JSON",
        ),
        ([{"attributes": {}, "start_time": "noon"}], "'spans[0].start_time' is 'noon', not a time"),
    ],
)
def test_a_broken_record_is_reported_with_the_path(value: Any, words: str) -> None:
    with pytest.raises(ObservationError) as caught:
        read(value)
    assert words in str(caught.value)
    assert (caught.value.slug, caught.value.exit_code) == ("bad-observation", 2)


def test_a_record_nested_too_deeply_is_rejected() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ObservationError, match="deeper than 100 levels"):
        read({"response": "x", "toolCalls": [{"name": "t", "params": deep}]})


def mappings(data: Any) -> list[dict[Any, Any]]:
    """Every mapping in a record."""
    if isinstance(data, list):
        return [found for item in data for found in mappings(item)]
    if not isinstance(data, dict):
        return []
    return [data, *(found for value in data.values() for found in mappings(value))]


# An attribute of a span has one key, so that there another one is a fault.
@pytest.mark.parametrize("name", [name for name in SAMPLES if not name.startswith("otel")])
@pytest.mark.parametrize("key", [1, None, (1, 2), True, b"x"])
def test_keys_that_are_not_text_are_ignored(name: str, key: Any) -> None:
    for place in range(len(mappings(SAMPLES[name]))):
        odd = copy.deepcopy(SAMPLES[name])
        mappings(odd)[place][key] = 2
        assert read(odd).response == read(SAMPLES[name]).response
