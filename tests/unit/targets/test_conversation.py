"""Tools of chat models: what is sent about them, and the loop that answers from stubs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from assay.model.message import ContentPart, Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.observations.pairing import NO_RESULT
from assay.observations.reading import read
from assay.ports import Request, Target
from assay.targets.anthropic import AnthropicTarget
from assay.targets.openai import OpenAITarget
from unit import provider_server as provider
from unit.provider_server import Answer, ProviderServer
from unit.target_calls import answer, answers, fault, request

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Tells it.", "parameters": CITY}
ANYTHING = {"type": "object", "properties": {}, "additionalProperties": True}
STUBS = {"get_weather": {"temp": 23.5, "où": "Oslo"}, "get_time": "12:00"}


def openai(server: ProviderServer, **settings: Any) -> Target:
    return OpenAITarget(**{"model": "gpt-6-sol", "base_url": server.openai, **settings}).connect()


def claude(server: ProviderServer, **settings: Any) -> Target:
    return AnthropicTarget(
        **{"model": "claude-sonnet-5", "base_url": server.url, **settings}
    ).connect()


PROVIDERS = pytest.mark.parametrize("provided", [openai, claude])


def calls(*made: tuple[str, Any], text: str = "", ids: bool = True, **more: Any) -> Answer:
    """A reply that calls these tools with these arguments, of the provider that was asked."""

    async def answer(asked: Any) -> Any:
        numbered = [
            (name, given, f"id{n}" if ids else None) for n, (name, given) in enumerate(made)
        ]
        if asked.path.endswith("/messages"):
            blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
            blocks += [
                {"type": "tool_use", "name": name, "input": given, **({"id": i} if i else {})}
                for name, given, i in numbered
            ]
            return await provider.sends(provider.anthropic(blocks, "tool_use"))(asked)
        entries = [
            {
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
                **({"id": i} if i else {}),
                **more,
            }
            for name, given, i in numbered
        ]
        message = {"content": text or None, "tool_calls": entries}
        return await provider.sends(provider.openai(message, "tool_calls"))(asked)

    return answer


def run(provided: Any, *replies: Answer, **case: Any) -> tuple[Observation, list[Any]]:
    """The answer of a model that replies like this, and all that it was sent."""
    settings = {key: case.pop(key) for key in ("tools", "extra_body") if key in case}
    with ProviderServer(*replies) as server:
        seen = answer(provided(server, **settings), request(**case))
    return seen, server.bodies


# What is sent about tools


def test_definitions_are_sent_in_the_form_of_the_provider() -> None:
    tools = [WEATHER, {"name": "get_time"}]
    _, (sent,) = run(openai, provider.says("Hello"), tools=tools)
    assert sent["tools"] == [
        {"type": "function", "function": WEATHER},
        {"type": "function", "function": {"name": "get_time", "parameters": ANYTHING}},
    ]
    _, (sent,) = run(claude, provider.says("Hello"), tools=tools)
    assert sent["tools"] == [
        {"name": "get_weather", "description": "Tells it.", "input_schema": CITY},
        {"name": "get_time", "input_schema": ANYTHING},
    ]


@PROVIDERS
def test_without_definitions_and_stubs_nothing_is_sent(provided: Any) -> None:
    _, (sent,) = run(provided, provider.says("Hello"))
    assert "tools" not in sent


def test_a_stub_makes_a_definition_that_takes_anything() -> None:
    _, (sent,) = run(openai, provider.says("Hello"), tools=[WEATHER], stubs=STUBS)
    assert [tool["function"] for tool in sent["tools"]] == [
        WEATHER,
        {"name": "get_time", "parameters": ANYTHING},
    ]
    _, (sent,) = run(claude, provider.says("Hello"), stubs=STUBS)
    assert [tool["name"] for tool in sent["tools"]] == ["get_weather", "get_time"]


@PROVIDERS
def test_a_judge_is_sent_no_tools_of_its_own(provided: Any) -> None:
    with ProviderServer(provider.says("{}")) as server:
        asked = Request((Message("user", "Judge"),), reply_schema={"type": "object"})
        answer(provided(server, tools=[WEATHER]), asked)
    assert "get_weather" not in json.dumps(server.bodies)


@pytest.mark.parametrize(
    ("tools", "place", "words"),
    [
        ([{"description": "x"}], ("tools", 0, "name"), "required"),
        ([{"name": "x", "params": {}}], ("tools", 0, "params"), "Extra"),
        ([{"name": "x", "parameters": {"type": "objekt"}}], ("tools", 0, "parameters"), "Schema"),
        ([{"name": "x"}, {"name": "x"}], ("tools", 1, "name"), "'x' is defined twice"),
    ],
)
def test_wrong_definitions_are_refused_at_their_place(tools: Any, place: Any, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        OpenAITarget(model="m", tools=tools)
    (found,) = caught.value.errors()
    assert found["loc"] == place
    assert words in found["msg"]


def test_tools_are_part_of_the_identity() -> None:
    def identity(**settings: Any) -> str:
        return OpenAITarget(model="m", **settings).identity

    assert identity() != identity(tools=[WEATHER])
    assert identity() == identity(workers=3, requests_per_minute=5, tokens_per_minute=5)


# The loop


@PROVIDERS
def test_calls_are_answered_until_there_is_an_answer(provided: Any) -> None:
    first = calls(("get_weather", {"city": "Oslo"}), ("get_time", {}), text="Let me see.")
    again = calls(("get_weather", {"city": "Rome"}))
    seen, sent = run(provided, first, again, provider.says("It is 23.5."), stubs=STUBS)
    assert seen.response == "It is 23.5."
    weather = STUBS["get_weather"]
    assert seen.tool_calls == (
        ToolCall("get_weather", {"city": "Oslo"}, weather, "id0", success=True),
        ToolCall("get_time", {}, "12:00", "id1", success=True),
        ToolCall("get_weather", {"city": "Rome"}, weather, "id0", success=True),
    )
    assert [(m.role, m.content, len(m.tool_calls)) for m in seen.messages] == [
        ("assistant", "Let me see.", 2),
        ("assistant", None, 1),
        ("assistant", "It is 23.5.", 0),
    ]
    assert [len(body["messages"]) for body in sent] == (
        [1, 3, 5] if provided is claude else [1, 4, 6]
    )
    assert all(body["tools"] == sent[0]["tools"] for body in sent)


@PROVIDERS
def test_measures_are_summed_over_turns(provided: Any) -> None:
    replies = (calls(("get_time", {})), provider.says("Noon"))
    one, _ = run(provided, provider.says("Noon"))
    seen, _ = run(provided, *replies, stubs=STUBS)
    assert seen.usage == Usage(20, 10)
    assert one.cost_usd
    assert seen.cost_usd == pytest.approx(2 * one.cost_usd)
    assert (seen.llm_calls, seen.notes) == (2, ())
    assert len(seen.raw) == 2
    assert (seen.duration_ms or 0) > 0
    with ProviderServer() as server:
        assert provided(server).requests(seen) == 2


def test_a_note_about_several_turns_is_reported_once() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "get_time", "input": {}}
    cut = provider.sends(provider.anthropic([call], "max_tokens"))
    seen, _ = run(claude, cut, cut, provider.says("Noon"), stubs=STUBS)
    assert seen.notes == ("the answer was cut off at the token limit",)


def test_the_cost_is_unknown_when_that_of_a_turn_is() -> None:
    untold = provider.openai({"content": "Noon"}) | {"usage": None}
    seen, _ = run(openai, calls(("get_time", {})), provider.sends(untold), stubs=STUBS)
    assert (seen.usage, seen.cost_usd) == (Usage(10, 5), None)


def test_results_are_sent_to_openai_as_messages() -> None:
    made = calls(("get_weather", {"city": "Oslo"}), ("get_time", {}), index=0)
    _, (_, sent) = run(openai, made, provider.says("Noon"), stubs=STUBS)
    said, first, second = sent["messages"][1:]
    assert said == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "id0",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
                "index": 0,
            },
            {
                "id": "id1",
                "type": "function",
                "function": {"name": "get_time", "arguments": "{}"},
                "index": 0,
            },
        ],
    }
    told = '{"temp": 23.5, "où": "Oslo"}'
    assert first == {"role": "tool", "tool_call_id": "id0", "content": told}
    assert second == {"role": "tool", "tool_call_id": "id1", "content": "12:00"}


def test_results_are_sent_to_claude_as_blocks_and_its_own_blocks_unchanged() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "abc"},
        {"type": "tool_use", "id": "t1", "name": "get_time", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "unknown", "input": {"a": 1}},
    ]
    first = provider.sends(provider.anthropic(blocks, "tool_use"))
    _, (_, sent) = run(claude, first, provider.says("Noon"), stubs=STUBS)
    error = "Error: there is no stub for the tool 'unknown'"
    assert sent["messages"][1:] == [
        {"role": "assistant", "content": blocks},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "12:00"},
                {"type": "tool_result", "tool_use_id": "t2", "content": error, "is_error": True},
            ],
        },
    ]


@PROVIDERS
def test_a_tool_without_a_stub_returns_an_error_to_the_model(provided: Any) -> None:
    made = calls(("get_wether", {"city": "Oslo"}))
    seen, (_, sent) = run(provided, made, provider.says("Sorry"), stubs=STUBS)
    error = "there is no stub for the tool 'get_wether'"
    expected = ToolCall("get_wether", {"city": "Oslo"}, id="id0", success=False, error=error)
    assert seen.tool_calls == (expected,)
    assert error in json.dumps(sent["messages"][-1])


@PROVIDERS
def test_a_stub_of_null_is_a_result(provided: Any) -> None:
    seen, (_, sent) = run(
        provided, calls(("save", {})), provider.says("Done"), stubs={"save": None}
    )
    assert seen.tool_calls == (ToolCall("save", {}, id="id0", success=True),)
    assert '"content": "null"' in json.dumps(sent["messages"][-1])


@PROVIDERS
@pytest.mark.parametrize(("case", "turns"), [({}, 5), ({"max_turns": 2}, 2), ({"max_turns": 1}, 1)])
def test_the_loop_ends_after_max_turns(provided: Any, case: Any, turns: int) -> None:
    seen, sent = run(provided, calls(("get_time", {}), text="Hm."), stubs=STUBS, **case)
    assert len(sent) == seen.llm_calls == turns
    many = "1 turn" if turns == 1 else f"{turns} turns"
    assert seen.notes == (f"stopped after {many}: the model still called tools",)
    assert seen.tool_calls == (ToolCall("get_time", {}, "12:00", "id0", success=True),) * turns
    assert seen.response == "Hm."


@PROVIDERS
def test_without_stubs_a_call_is_recorded_and_the_trial_is_errored(provided: Any) -> None:
    tools = [{"name": "get_time"}, {"name": "get_weather"}]
    seen, sent = run(provided, calls(("get_time", {}), text="Hm."), tools=tools)
    assert seen.tool_calls == (ToolCall("get_time", {}, id="id0", notes=(NO_RESULT,)),)
    assert len(sent) == seen.llm_calls == 1
    assert seen.error == (
        "the model called the tool 'get_time', whose results nothing provides. "
        "Give the case a stub, or the target a Python function, for each tool"
    )


@PROVIDERS
@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([{"name": "get_time"}, {"name": "save"}], "the tools are get_time, save (did you mean"),
        ([], "it was offered no tools. Give"),
    ],
)
def test_a_call_of_an_unknown_tool_names_the_tools(provided: Any, tools: Any, words: str) -> None:
    seen, _ = run(provided, calls(("get_tme", {})), tools=tools)
    assert (seen.error or "").startswith("the model called 'get_tme', which is not one of its")
    assert words in (seen.error or "")


@PROVIDERS
def test_results_are_chosen_by_arguments(provided: Any) -> None:
    stub = [
        {"args": {"city": "Oslo"}, "result": 4},
        {"args": {"city": {"regex": "^R"}, "days": {"gte": 2}}, "result": [20, 21]},
    ]
    made = calls(
        ("get_weather", {"city": "Rome", "days": 2, "unit": "C"}),
        ("get_weather", {"city": "Oslo"}),
        ("get_weather", {"city": "Rome", "days": 1}),
    )
    seen, (_, sent) = run(provided, made, provider.says("Done"), stubs={"get_weather": stub})
    assert seen.tool_calls is not None
    assert [call.output for call in seen.tool_calls] == [[20, 21], 4, None]
    error = "no stub of the tool 'get_weather' takes this call"
    assert [call.error for call in seen.tool_calls] == [None, None, error]
    assert error in json.dumps(sent["messages"])


@PROVIDERS
def test_an_entry_answers_some_calls_and_then_the_next_one_does(provided: Any) -> None:
    stub = [{"error": "offline", "times": 2, "delay_ms": 1}, {"result": "12:00"}]
    made = calls(("get_time", {}), ("get_time", {}), ("get_time", {}))
    with ProviderServer(made, provider.says("A"), made, provider.says("B")) as server:
        both = answers(provided(server), *[request(stubs={"get_time": stub})] * 2)
    for seen in both:  # a trial begins anew
        assert seen.tool_calls is not None
        assert [(c.error, c.output, c.success) for c in seen.tool_calls] == [
            *[("offline", None, False)] * 2,
            (None, "12:00", True),
        ]
        assert [c.duration_ms for c in seen.tool_calls] == [1, 1, None]
    assert "Error: offline" in json.dumps(server.bodies[1])


def test_the_delay_of_a_stub_is_part_of_the_time() -> None:
    stub = [{"result": 1, "delay_ms": 40}]
    seen, _ = run(openai, calls(("a", {})), provider.says("Done"), stubs={"a": stub})
    assert (seen.duration_ms or 0) > 40


@PROVIDERS
def test_calls_without_ids_get_one(provided: Any) -> None:
    made = calls(("get_time", {}), ("get_weather", {}), ids=False)
    seen, (_, sent) = run(provided, made, provider.says("Noon"), stubs=STUBS)
    assert seen.tool_calls is not None
    ids = [call.id for call in seen.tool_calls]
    assert len({*ids, None}) == 3
    text = json.dumps(sent["messages"])
    assert [text.count(f'"{each}"') for each in ids] == [2, 2]


def test_two_calls_with_one_id_are_both_answered() -> None:
    entry = {"id": "same", "function": {"name": "get_time", "arguments": "{}"}}
    other = {"id": "same", "function": {"name": "get_weather", "arguments": "{city"}}
    message = {"tool_calls": [entry, other]}
    first = provider.sends(provider.openai(message))
    seen, (_, sent) = run(openai, first, provider.says("Noon"), stubs=STUBS)
    assert seen.tool_calls is not None
    assert [call.output for call in seen.tool_calls] == ["12:00", STUBS["get_weather"]]
    assert sent["messages"][1]["tool_calls"][1]["function"]["arguments"] == "{city"


def test_a_call_in_the_old_form_is_answered_in_the_new_one() -> None:
    message = {"content": None, "function_call": {"name": "get_time", "arguments": "{}"}}
    first = provider.sends(provider.openai(message))
    seen, (_, sent) = run(openai, first, provider.says("Noon"), stubs=STUBS)
    assert seen.tool_calls == (ToolCall("get_time", {}, "12:00", "call_1_0", success=True),)
    (entry,) = sent["messages"][1]["tool_calls"]
    assert (entry["id"], entry["function"]["name"]) == ("call_1_0", "get_time")


def test_a_custom_call_is_sent_back_unchanged() -> None:
    entry = {"id": "c1", "type": "custom", "custom": {"name": "get_time", "input": "now"}}
    first = provider.sends(provider.openai({"tool_calls": [entry]}))
    _, (_, sent) = run(openai, first, provider.says("Noon"), stubs=STUBS)
    assert sent["messages"][1]["tool_calls"] == [entry]


def test_a_tool_that_the_provider_runs_is_not_answered() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": "found"},
        {"type": "text", "text": "Noon"},
    ]
    seen, sent = run(claude, provider.sends(provider.anthropic(blocks)), stubs=STUBS)
    assert len(sent) == 1
    assert seen.tool_calls == (ToolCall("web_search", {}, "found", "s1"),)
    assert seen.response == "Noon"


@pytest.mark.parametrize("stubs", [STUBS, {}])
def test_a_reply_without_content_is_an_unknown_answer(stubs: Any) -> None:
    first = [calls(("get_time", {}))] if stubs else []
    seen, _ = run(openai, *first, provider.sends({"choices": [{"message": {}}]}), stubs=stubs)
    assert (seen.error or "").startswith("the answer is not in the record")


@PROVIDERS
def test_a_failed_turn_fails_the_request(provided: Any) -> None:
    with ProviderServer(calls(("get_time", {})), provider.status(500)) as server:
        error = fault(provided(server), request(stubs=STUBS))
    assert error.retryable
    assert "answered 500" in str(error)


@PROVIDERS
def test_the_observation_can_be_written_and_read_again(provided: Any) -> None:
    made = calls(("get_time", {}), ("other", {}), text="Wait.")
    seen, _ = run(provided, made, provider.says("Noon"), stubs=STUBS)
    assert read(json.loads(json.dumps(seen.to_dict()))) == seen


# Calls in the input


TALK = (
    Message("user", "Weather and time?"),
    Message(
        "assistant",
        "Wait.",
        (ToolCall("get_weather", {"city": "Oslo"}), ToolCall("get_time", id="mine", output=12)),
    ),
    Message("tool", {"temp": 23.5}, name="get_weather"),
    Message("user", "Well?"),
)


def test_calls_and_results_of_the_input_are_sent_to_openai() -> None:
    _, (sent,) = run(openai, provider.says("Hello"), messages=TALK)
    _, said, *rest = sent["messages"]
    assert said["content"] == "Wait."
    first, second = said["tool_calls"]
    assert first["function"] == {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    assert second == {
        "id": "mine",
        "type": "function",
        "function": {"name": "get_time", "arguments": "{}"},
    }
    assert rest == [
        {"role": "tool", "tool_call_id": first["id"], "content": '{"temp": 23.5}'},
        {"role": "tool", "tool_call_id": "mine", "content": "12"},
        {"role": "user", "content": "Well?"},
    ]
    assert "tools" not in sent


def test_calls_and_results_of_the_input_are_sent_to_claude() -> None:
    _, (sent,) = run(claude, provider.says("Hello"), messages=TALK)
    _, said, results, last = sent["messages"]
    text, first, second = said["content"]
    assert text == {"type": "text", "text": "Wait."}
    assert (first["name"], first["input"]) == ("get_weather", {"city": "Oslo"})
    assert second == {"type": "tool_use", "id": "mine", "name": "get_time", "input": {}}
    assert results == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": first["id"], "content": '{"temp": 23.5}'},
            {"type": "tool_result", "tool_use_id": "mine", "content": "12"},
        ],
    }
    assert last == {"role": "user", "content": "Well?"}
    assert [tool["name"] for tool in sent["tools"]] == ["get_weather", "get_time"]


@PROVIDERS
def test_results_go_to_the_calls_in_order_unless_they_name_a_tool(provided: Any) -> None:
    asked = tuple(ToolCall(name, 5) for name in ("a", "b", "a"))
    results = (Message("tool", "b1", name="b"), Message("tool", "a1"))
    parts = (ContentPart("text", "a"), ContentPart("text", "2"))
    talk = (Message("user", "?"), Message("assistant", None, asked), *results)
    _, (sent,) = run(
        provided, provider.says("Hello"), messages=(*talk, Message("tool", parts), TALK[-1])
    )
    text = json.dumps(sent["messages"])
    places = [text.index(json.dumps(told)) for told in ("a1", "b1", "a\n\n2")]
    assert places == sorted(places)


@PROVIDERS
@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ((Message("tool", "x"),), "a result in the input belongs to no call before it"),
        ((TALK[1], TALK[2], TALK[2]), "a result of 'get_weather' in the input belongs to no call"),
        ((TALK[1], Message("tool", "x", name="y")), "a result of 'y' in the input belongs to no"),
        (TALK[:2], "the call of 'get_weather' in the input has no result: give it an 'output'"),
    ],
)
def test_calls_that_cannot_be_paired_are_errors(provided: Any, messages: Any, words: str) -> None:
    with ProviderServer(provider.says("Hello")) as server:
        assert words in str(fault(provided(server), request(messages=messages)))
    assert server.asked == []


def test_arguments_that_are_not_objects_are_sent_in_the_form_of_each_provider() -> None:
    made = (ToolCall("a", "text", 1), ToolCall("b", [5], 2))
    talk = (Message("user", "?"), Message("assistant", None, made), TALK[-1])
    _, (sent,) = run(openai, provider.says("Hello"), messages=talk)
    arguments = [call["function"]["arguments"] for call in sent["messages"][1]["tool_calls"]]
    assert arguments == ['"text"', "[5]"]
    _, (sent,) = run(claude, provider.says("Hello"), messages=talk)
    inputs = [block["input"] for block in sent["messages"][1]["content"]]
    assert inputs == [{"input": "text"}, {"input": [5]}]


def test_ids_that_are_given_to_calls_are_those_of_no_other() -> None:
    made = (ToolCall("a", output=1), ToolCall("b", id="call_2", output=2), ToolCall("c", output=3))
    talk = (Message("user", "?"), Message("assistant", None, made), TALK[-1])
    _, (sent,) = run(openai, provider.says("Hello"), messages=talk)
    ids = [call["id"] for call in sent["messages"][1]["tool_calls"]]
    assert len(set(ids)) == 3
    assert ids[1] == "call_2"
