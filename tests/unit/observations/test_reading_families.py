"""What only one family of records has."""

from __future__ import annotations

from typing import Any

import pytest

from assay.model.message import ContentPart, Message, ToolCall
from assay.model.observation import Usage
from assay.observations.pairing import NO_RESULT, REFUSED
from assay.observations.reading import read
from assay.observations.records import PLAIN_TEXT


def calls(value: Any) -> tuple[ToolCall, ...]:
    return read(value).tool_calls or ()


# AgentV


def test_the_text_of_a_file_is_the_answer_when_its_messages_have_none() -> None:
    called = {"role": "assistant", "tool_calls": [{"tool": "t", "output": 1}]}
    reply = {"role": "assistant", "content": "from the messages"}
    assert read({"text": "x", "output_messages": [called]}).response == "x"
    assert read({"text": "x", "output_messages": [called, reply]}).response == "from the messages"


def test_calls_are_unknown_in_a_file_with_text_alone() -> None:
    seen = read({"text": "x", "cost_usd": 0.25, "token_usage": {"input": 3, "output": 4}})
    assert (seen.response, seen.tool_calls, seen.llm_calls) == ("x", None, None)
    assert (seen.cost_usd, seen.usage) == (0.25, Usage(3, 4))


def test_cached_tokens_of_agentv_are_added_to_the_others() -> None:
    seen = read({"text": "x", "token_usage": {"input": 3, "output": 4, "cached": 50}})
    assert seen.usage == Usage(53, 4)


def test_content_of_agentv_may_be_parts_or_data() -> None:
    parts = [{"type": "text", "value": "a"}, "b"]
    seen = read({"output_messages": [{"role": "assistant", "content": parts}]})
    content = (ContentPart("text", "a"), ContentPart("text", "b"))
    assert (seen.messages, seen.response) == ((Message("assistant", content),), "a\nb")
    seen = read({"output_messages": [{"role": "assistant", "content": {"total": 3}}]})
    assert seen.response == '{"total": 3}'


def test_a_tool_message_of_agentv_is_the_result_of_an_open_call() -> None:
    messages = [
        {"role": "assistant", "tool_calls": [{"tool": "t", "input": 1}]},
        {"role": "tool", "name": "t", "content": "2"},
    ]
    assert calls({"output_messages": messages}) == (ToolCall("t", 1, "2"),)


# OpenAI chat


def test_a_refusal_is_the_answer() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I cannot."}
    assert read({"choices": [{"message": message}]}).response == "I cannot."
    assert read([{**message, "content": ""}]).response == "I cannot."
    assert read([message]).notes == (REFUSED,)
    blocks = [{"type": "refusal", "refusal": "No."}]
    assert read([{"role": "assistant", "content": blocks}]).response == "No."


def test_a_custom_tool_takes_text() -> None:
    call = {"id": "1", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    seen = calls([{"role": "assistant", "tool_calls": [call]}])
    assert seen == (ToolCall("shell", "ls", id="1", notes=(PLAIN_TEXT, NO_RESULT)),)


def test_usages_of_replies_in_the_list_are_added_up() -> None:
    replies = [
        {
            "role": "assistant",
            "content": "a",
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        },
        {"role": "assistant", "content": "b", "usage": {"prompt_tokens": 10}},
    ]
    assert read(replies).usage == Usage(11, 2)


def test_content_without_text_is_kept_unchanged() -> None:
    image = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
    assert read([{"role": "user", "content": image}]).messages[0].content == image


# OpenAI Responses


def test_tools_that_the_provider_runs_need_no_result() -> None:
    search = {
        "type": "web_search_call",
        "id": "ws",
        "status": "completed",
        "action": {"query": "q"},
    }
    remote = {
        "type": "mcp_call",
        "id": "m",
        "name": "roll",
        "arguments": '{"n": 2}',
        "output": "7",
        "error": None,
    }
    failed = {**remote, "output": None, "error": "no dice"}
    assert calls({"output": [search, remote, failed]}) == (
        ToolCall("web_search", {"action": {"query": "q"}}, id="ws", success=True),
        ToolCall("roll", {"n": 2}, "7", id="m"),
        ToolCall("roll", {"n": 2}, id="m", success=False, error="no dice"),
    )


def test_tools_of_any_kind_that_the_caller_runs_are_paired() -> None:
    items = [
        {"type": "custom_tool_call", "call_id": "1", "name": "shell", "input": "ls"},
        {"type": "local_shell_call", "call_id": "2", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": "2", "output": "b"},
        {"type": "custom_tool_call_output", "call_id": "1", "output": "a"},
    ]
    assert calls(items) == (
        ToolCall("shell", "ls", "a", "1", notes=(PLAIN_TEXT,)),
        ToolCall("local_shell", {"command": ["ls"]}, "b", "2"),
    )


def test_two_texts_of_one_reply_are_two_messages_and_one_model_call() -> None:
    texts = [{"type": "output_text", "text": "a"}], [{"type": "output_text", "text": "b"}]
    items = [{"type": "message", "role": "assistant", "content": text} for text in texts]
    seen = read({"object": "response", "output": items})
    assert ([m.content for m in seen.messages], seen.llm_calls) == (["a", "b"], 1)


def test_a_failed_response_has_its_error() -> None:
    body = {"object": "response", "status": "failed", "output": [], "error": {"message": "broke"}}
    assert read(body).error == "broke"


# Anthropic


def test_a_result_with_is_error_failed_and_one_that_denies_it_succeeded() -> None:
    uses = [{"type": "tool_use", "id": i, "name": "t", "input": {}} for i in "abcd"]
    results: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": "a", "content": "no such city", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": "23.5", "is_error": False},
        {"type": "tool_result", "tool_use_id": "c", "content": "23.5"},
        {"type": "tool_result", "tool_use_id": "d", "is_error": True},
    ]
    seen = calls([{"role": "assistant", "content": uses}, {"role": "user", "content": results}])
    assert [(call.success, call.error, call.output) for call in seen] == [
        (False, "no such city", "no such city"),
        (True, None, "23.5"),
        (None, None, "23.5"),
        (False, "the tool failed", None),
    ]


def test_text_next_to_results_is_a_message_of_the_user() -> None:
    use = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
    back = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
    reply = {"type": "text", "text": "hurry"}
    seen = read(
        [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back, reply]}]
    )
    assert seen.messages[1:] == (Message("user", "hurry"),)


def test_server_tools_are_calls_too() -> None:
    content = [
        {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {"query": "q"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "a",
            "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
        },
    ]
    [call] = calls({"type": "message", "role": "assistant", "content": content})
    assert (call.tool, call.success, call.error) == ("web_search", False, "unavailable")


def test_a_system_prompt_outside_the_messages_comes_first() -> None:
    thought = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]
    seen = read({"system": "Be kind.", "messages": [{"role": "assistant", "content": thought}]})
    assert seen.messages == (Message("system", "Be kind."), Message("assistant", "hi"))


# OpenTelemetry


def span(name: str, start: int, end: int, /, **more: Any) -> dict[str, Any]:
    attributes = {f"gen_ai.{key}": value for key, value in more.pop("gen_ai").items()}
    times = {"startTimeUnixNano": start * 1_000_000, "endTimeUnixNano": end * 1_000_000}
    return {"name": name, "spanId": name, "attributes": attributes, **times, **more}


def tool_span(name: str, start: int, end: int, /, **more: Any) -> dict[str, Any]:
    attributes = {"operation.name": "execute_tool", "tool.name": name, **more.pop("gen_ai", {})}
    return span(name, start, end, gen_ai=attributes, **more)


CHAT = {"operation.name": "chat"}


@pytest.mark.parametrize(
    ("status", "success"),
    [
        ({"code": 2}, False),
        ({"code": "STATUS_CODE_ERROR"}, False),
        ({"status_code": "ERROR"}, False),
        ({"code": 1}, True),
        ({"status_code": "OK"}, True),
        ({"code": 0}, None),
        ({}, None),
    ],
)
def test_the_status_of_a_tool_span_is_the_success_of_the_call(status: Any, success: Any) -> None:
    [call] = calls([tool_span("t", 0, 1, status=status)])
    assert call.success is success
    assert (call.error is not None) == (success is False)


def test_the_error_of_a_span_is_its_message_or_its_type() -> None:
    attributes = tool_span("t", 0, 1, status={"code": 2, "message": "timed out"})
    typed = tool_span("t", 1, 2, status={"code": 2})
    typed["attributes"]["error.type"] = "TimeoutError"
    assert [call.error for call in calls([attributes, typed])] == ["timed out", "TimeoutError"]


def test_tool_spans_without_messages_are_the_calls() -> None:
    spans = [
        span("chat", 0, 10, gen_ai=CHAT),
        tool_span(
            "b", 20, 25, gen_ai={"tool.call.arguments": '{"x": 1}', "tool.call.result": "ok"}
        ),
        tool_span("a", 10, 13),
    ]
    seen = read(spans)
    assert seen.tool_calls == (
        ToolCall("a", duration_ms=3, notes=(NO_RESULT,)),
        ToolCall("b", {"x": 1}, "ok", duration_ms=5),
    )
    assert (seen.llm_calls, seen.duration_ms) == (1, 25)


def test_calls_are_unknown_if_model_spans_hide_their_messages() -> None:
    seen = read([span("chat", 0, 10, gen_ai={**CHAT, "usage.input_tokens": 5})])
    assert (seen.tool_calls, seen.usage) == (None, Usage(5, None))


def test_tool_spans_without_ids_belong_to_calls_of_the_same_name_in_order() -> None:
    parts = [
        {"type": "tool_call", "name": name, "arguments": {"n": i}} for i, name in enumerate("tut")
    ]
    asked = span(
        "chat", 0, 1, gen_ai={**CHAT, "output.messages": [{"role": "assistant", "parts": parts}]}
    )
    ran = [tool_span("t", 1, 2), tool_span("t", 2, 4), tool_span("u", 4, 7)]
    assert [call.duration_ms for call in calls([asked, *ran])] == [1, 3, 2]


@pytest.mark.parametrize("answered", [True, False])
def test_a_differently_worded_question_of_the_agent_span_is_not_added(answered: bool) -> None:
    asked, worded = ({"role": "user", "content": text} for text in ("Q: cold?", "cold?"))
    answer = [{"role": "assistant", "content": "-4"}]
    model = {**CHAT, "input.messages": [asked], "output.messages": answer}
    agent = {"operation.name": "invoke_agent", "input.messages": [worded]}
    agent |= {"output.messages": answer} if answered else {}
    seen = read([span("chat", 1, 2, gen_ai=model), span("agent", 0, 9, gen_ai=agent)])
    assert seen.response == "-4"
    assert [message.text for message in seen.messages] == ["Q: cold?", "-4"]


def test_calls_of_an_agent_span_are_not_duplicated() -> None:
    part = {"type": "tool_call", "id": "1", "name": "t", "arguments": "{}"}
    back = {"type": "tool_call_response", "id": "1", "response": "ok"}
    messages = [{"role": "assistant", "parts": [part]}, {"role": "tool", "parts": [back]}]
    agent = {"operation.name": "invoke_agent", "output.messages": messages}
    ran = tool_span("t", 1, 2, gen_ai={"tool.call.id": "1", "tool.call.result": "ok"})
    seen = read([span("agent", 0, 9, gen_ai=agent), ran])
    assert [call.output for call in seen.tool_calls or ()] == ["ok"]
    assert (seen.notes, seen.llm_calls) == ((), None)


def test_a_message_that_occurs_twice_is_kept_twice() -> None:
    yes = {"role": "user", "parts": [{"type": "text", "content": "yes"}]}
    reply = {"role": "assistant", "parts": [{"type": "text", "content": "Sure?"}]}
    spans = [
        span("1", 0, 1, gen_ai={**CHAT, "input.messages": [yes], "output.messages": [reply]}),
        span(
            "2",
            1,
            2,
            gen_ai={**CHAT, "input.messages": [yes, reply, yes], "output.messages": [reply]},
        ),
    ]
    assert [message.text for message in read(spans).messages] == ["yes", "Sure?", "yes", "Sure?"]


@pytest.mark.parametrize(
    ("digits", "number"),
    [
        *(("-7", -7), ("7", 7), ("-9223372036854775808", -(2**63))),
        *(("--7", "--7"), ("-", "-"), ("\u0663", "\u0663")),
    ],
)
def test_an_invalid_integer_of_otlp_stays_text(digits: str, number: Any) -> None:
    arguments = {"kvlistValue": {"values": [{"key": "n", "value": {"intValue": digits}}]}}
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.call.arguments", "value": arguments},
    ]
    (call,) = read({"spanId": "1", "attributes": attributes}).tool_calls or ()
    assert call.input == {"n": number}


def test_a_failed_root_span_is_the_error() -> None:
    broke = {"code": 2, "message": "gave up"}
    agent = span("agent", 0, 9, gen_ai={"operation.name": "invoke_agent"}, status=broke)
    retried = span(
        "chat", 0, 1, gen_ai=CHAT, status={"code": 2, "message": "busy"}, parentSpanId="agent"
    )
    assert read([agent, retried]).error == "gave up"
    agent["attributes"]["gen_ai.output.messages"] = [{"role": "assistant", "content": "hi"}]
    assert read([{**agent, "status": {}}, retried]).error is None


def test_system_instructions_and_choices_of_older_events_are_read() -> None:
    events = [
        {
            "name": "gen_ai.system.message",
            "attributes": {"gen_ai.event.content": '{"content": "Be kind."}'},
        },
        {"name": "gen_ai.choice", "body": {"index": 1, "message": {"content": "other"}}},
        {"name": "gen_ai.choice", "body": {"index": 0, "message": {"content": "hi"}}},
    ]
    seen = read([span("chat", 0, 1, gen_ai=CHAT, events=events)])
    assert seen.messages == (Message("system", "Be kind."), Message("assistant", "hi"))
    attributes = {**CHAT, "system_instructions": '[{"type": "text", "content": "Be kind."}]'}
    assert read([span("chat", 0, 1, gen_ai=attributes)]).messages == (
        Message("system", "Be kind."),
    )
