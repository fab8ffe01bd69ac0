"""Targets: what they send, what they make of the reply, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assay.errors import TargetError
from assay.model.case import EvalCase
from assay.model.message import ContentPart, Message, ToolCall
from assay.model.observation import Observation, Usage
from assay.observations.pairing import NO_RESULT
from assay.observations.reading import read
from assay.observations.records import BAD_JSON
from assay.ports import Request, Target
from assay.targets.anthropic import AnthropicTarget
from assay.targets.chat import ChatTarget
from assay.targets.echo import EchoTarget
from assay.targets.openai import OpenAITarget
from assay.targets.pool.retries import RetryingTarget, RetryPolicy
from assay.targets.scripted import ScriptedTarget
from unit import provider_server as provider
from unit.provider_server import ProviderServer
from unit.targets.pool.test_retries import FakeClock

KEY = "sk-very-secret-0123456789"
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
HI = Request((Message("user", "Hi"),))
JUDGE = Request((Message("user", "Judge this"),), reply_schema=SCHEMA)


def ask(target: Target, *requests: Request) -> list[Observation]:
    """The answers to these requests, one after the other; the target is closed."""

    async def run() -> list[Observation]:
        try:
            return [await target.ask(request) for request in requests]
        finally:
            await target.close()

    return asyncio.run(run())


def error_of(target: Target, request: Request = HI) -> str:
    with pytest.raises(TargetError) as caught:
        ask(target, request)
    return str(caught.value)


def openai(server: ProviderServer, **settings: Any) -> Target:
    return OpenAITarget(
        **{"model": "gpt-6-sol", "base_url": server.openai, "api_key": KEY, **settings}
    ).connect()


def claude(server: ProviderServer, **settings: Any) -> Target:
    return AnthropicTarget(
        **{"model": "claude-sonnet-5", "base_url": server.url, "api_key": KEY, **settings}
    ).connect()


def file_part(path: Path, value: str) -> ContentPart:
    """A file part as a loader leaves it."""
    return ContentPart("file", value, path)


def test_openai_sends_the_messages_and_only_given_settings() -> None:
    with ProviderServer(provider.says("Hello")) as server:
        messages = (Message("system", "Be kind"), Message("user", "Hi", name="me"))
        ask(openai(server), Request(messages))
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "gpt-6-sol",
        "messages": [
            {"role": "system", "content": "Be kind"},
            {"role": "user", "content": "Hi", "name": "me"},
        ],
    }


def test_openai_sends_settings_headers_and_extra_keys() -> None:
    settings = {"temperature": 0.0, "max_tokens": 7, "top_p": 0.5, "seed": 3}
    with ProviderServer(provider.says("Hello")) as server:
        target = openai(
            server,
            base_url=server.openai + "/",
            headers={"X-Team": "evals"},
            extra_body={"user": "me", "top_p": 0.9},
            **settings,
        )
        ask(target, HI)
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["X-Team"] == "evals"
    sent = {k: v for k, v in asked.body.items() if k not in ("model", "messages")}
    assert sent == {**settings, "user": "me", "top_p": 0.9}


def test_without_a_key_no_authorization_is_sent() -> None:
    with ProviderServer(provider.says("Hello")) as server:
        ask(openai(server, api_key=None), HI)
        ask(openai(server, api_key=""), HI)
        ask(claude(server, api_key=None), HI)
    for asked in server.asked:
        assert not {"Authorization", "x-api-key"} & set(asked.headers)


def test_an_openai_reply_becomes_an_observation() -> None:
    with ProviderServer(provider.says("Hello")) as server:
        (seen,) = ask(openai(server), HI)
    assert seen.response == "Hello"
    assert seen.tool_calls == ()
    assert seen.usage == Usage(10, 5)
    assert seen.cost_usd == pytest.approx((10 * 2 + 5 * 10) / 1e6)
    assert seen.duration_ms is not None
    assert 0 < seen.duration_ms < 10_000
    assert seen.llm_calls == 1
    assert seen.raw["id"] == "chatcmpl-1"


def test_tool_calls_of_openai_are_read_and_bad_arguments_are_kept_with_a_note() -> None:
    def call(arguments: Any, **more: Any) -> dict[str, Any]:
        function = {"name": "get_weather", "arguments": arguments}
        return {"type": "function", "function": function, **more}

    calls = [call('{"city": "Oslo"}', id="c1"), call("{city"), call(""), call({"a": 1})]
    with ProviderServer(provider.sends(provider.openai({"tool_calls": calls}))) as server:
        (seen,) = ask(openai(server), HI)
    assert seen.response == ""
    assert seen.tool_calls is not None
    first, second, third, fourth = seen.tool_calls
    assert first == ToolCall("get_weather", {"city": "Oslo"}, id="c1", notes=(NO_RESULT,))
    assert second.input == "{city"
    assert second.notes == (BAD_JSON, NO_RESULT)
    assert (third.input, fourth.input) == ({}, {"a": 1})


def test_a_list_of_parts_is_a_text_and_a_cut_answer_has_a_note() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    document = provider.openai({"content": parts}, "length")
    with ProviderServer(provider.sends(document)) as server:
        (seen,) = ask(openai(server), HI)
    assert seen.response == "Hello"
    assert seen.notes == ("the answer was cut at the limit of tokens",)


def test_usage_that_makes_no_sense_is_not_reported() -> None:
    document = provider.openai({"content": "x"}) | {"usage": {"prompt_tokens": True}}
    with ProviderServer(provider.sends(document)) as server:
        (seen,) = ask(openai(server), HI)
    assert (seen.response, seen.usage, seen.cost_usd) == ("x", None, None)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (provider.openai({"tool_calls": [{}]}), "tool_calls[0]' has no 'name'"),
        (provider.openai({"tool_calls": "x"}), "tool_calls' is 'x', not a list"),
        ({"choices": []}, "no 'choices'"),
        ({"choices": [1]}, "'choices[0]' is 1, not a mapping"),
        ({"choices": [{}]}, "'choices[0]' has no 'message'"),
        ({"error": {"message": "no credit"}}, "no credit"),
    ],
)
def test_an_odd_openai_reply_is_an_error_with_words(document: Any, words: str) -> None:
    with ProviderServer(provider.sends(document)) as server:
        assert words in error_of(openai(server))


def test_openai_is_sent_the_schema() -> None:
    with ProviderServer(provider.says('{"score": 1}')) as server:
        ask(openai(server), JUDGE)
    (body,) = server.bodies
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
    }


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_schemas_is_sent_none_from_then_on(status: int) -> None:
    refusal = provider.status(status, "response_format is not supported")
    with ProviderServer(refusal, provider.says("{}")) as server:
        answers = ask(openai(server), JUDGE, JUDGE)
    assert [answer.response for answer in answers] == ["{}", "{}"]
    assert [answer.llm_calls for answer in answers] == [1, 1]
    assert ["response_format" in body for body in server.bodies] == [True, False, False]


def test_a_request_that_fails_without_the_schema_too_says_nothing_about_schemas() -> None:
    refusal = provider.status(400, "bad response_format")
    with ProviderServer(refusal, provider.status(400, "bad model"), provider.says("{}")) as server:
        target = openai(server)

        async def run() -> None:
            with pytest.raises(TargetError, match="bad model"):
                await target.ask(JUDGE)
            await target.ask(JUDGE)
            await target.close()

        asyncio.run(run())
    assert ["response_format" in body for body in server.bodies] == [True, False, True]


def test_another_bad_request_is_not_retried() -> None:
    with ProviderServer(provider.status(400, "the prompt is too long")) as server:
        assert "the prompt is too long" in error_of(openai(server), JUDGE)
    assert len(server.asked) == 1


def test_claude_is_sent_the_system_apart_and_a_limit_of_tokens() -> None:
    with ProviderServer(provider.says("Hello")) as server:
        system = (Message("system", "Be kind"), Message("system", "Be brief"))
        turns = (Message("user", "Hi"), Message("assistant", "Ho"), Message("user", "Well?"))
        (seen,) = ask(claude(server, temperature=0.5), Request(system + turns))
    (asked,) = server.asked
    assert asked.path == "/v1/messages"
    assert asked.headers["x-api-key"] == KEY
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert asked.body == {
        "model": "claude-sonnet-5",
        "max_tokens": 1024,
        "temperature": 0.5,
        "system": "Be kind\n\nBe brief",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Ho"},
            {"role": "user", "content": "Well?"},
        ],
    }
    assert seen.response == "Hello"
    assert seen.tool_calls == ()
    assert seen.usage == Usage(10, 5)
    assert seen.cost_usd == pytest.approx((10 * 2 + 5 * 10) / 1e6)
    assert seen.llm_calls == 1


def test_blocks_of_claude_are_text_and_calls() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "t1", "name": "reply", "input": {"city": "Oslo"}},
    ]
    with ProviderServer(provider.sends(provider.anthropic(blocks, "max_tokens"))) as server:
        (seen,) = ask(claude(server), HI)
    assert seen.response == "Let me see."
    assert seen.tool_calls == (ToolCall("reply", {"city": "Oslo"}, id="t1", notes=(NO_RESULT,)),)
    assert seen.notes == ("the answer was cut at the limit of tokens",)


def test_claude_must_call_a_tool_with_the_schema_and_its_input_is_the_answer() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "reply", "input": {"score": 0.5, "é": 1}}
    with ProviderServer(provider.sends(provider.anthropic([block], "tool_use"))) as server:
        (seen,) = ask(claude(server), JUDGE)
    (body,) = server.bodies
    assert body["tools"][0]["name"] == "reply"
    assert body["tools"][0]["input_schema"] == SCHEMA
    assert body["tool_choice"] == {"type": "tool", "name": "reply"}
    assert json.loads(seen.response) == {"score": 0.5, "é": 1}
    assert "é" in seen.response
    assert seen.tool_calls == ()


def test_a_text_answer_of_claude_to_a_schema_is_accepted() -> None:
    with ProviderServer(provider.says('{"score": 1}')) as server:
        (seen,) = ask(claude(server), JUDGE)
    assert seen.response == '{"score": 1}'


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"content": [5]}, "content[0]' is 5, not a mapping"),
        (provider.anthropic([{"type": "tool_use"}]), "content[0]' has no 'name'"),
        ({"type": "message"}, "'content' is null, not a list"),
    ],
)
def test_an_odd_reply_of_claude_is_an_error_with_words(document: Any, words: str) -> None:
    with ProviderServer(provider.sends(document)) as server:
        assert words in error_of(claude(server))


CACHED = {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}}


@pytest.mark.parametrize(
    ("provided", "document", "response", "note"),
    [
        (openai, provider.openai({"refusal": "I cannot"}), "I cannot", "the model refused"),
        (openai, provider.openai({"content": "x"}, "content_filter"), "x", "content filter"),
        (openai, provider.openai({"content": ""}, "length"), "", "cut at the limit of tokens"),
        (openai, provider.openai({"content": None}), "", ""),
        (claude, provider.anthropic([], "refusal"), "", "the model refused"),
        (claude, provider.anthropic([], "max_tokens"), "", "cut at the limit of tokens"),
        (claude, provider.anthropic([]), "", ""),
        (claude, provider.anthropic([{"type": "text", "text": "x"}]) | CACHED, "x", ""),
    ],
)
def test_a_reply_means_the_same_when_it_arrives_and_when_it_is_read_from_a_file(
    provided: Any, document: Any, response: str, note: str
) -> None:
    with ProviderServer(provider.sends(document)) as server:
        (seen,) = ask(provided(server), HI)
    assert seen.response == response
    assert note in "".join(seen.notes)
    assert seen.replace(cost_usd=None, duration_ms=None) == read(document)


def test_cached_tokens_of_claude_are_input_tokens() -> None:
    document = provider.anthropic([{"type": "text", "text": "x"}]) | CACHED
    with ProviderServer(provider.sends(document)) as server:
        (seen,) = ask(claude(server), HI)
    assert seen.usage == Usage(100, 5)


def test_claude_needs_a_question() -> None:
    target = AnthropicTarget(model="claude-opus-5").connect()
    assert "system messages only" in error_of(target, Request((Message("system", "Be kind"),)))


@pytest.mark.parametrize("provided", [openai, claude])
def test_files_are_sent_as_text_under_a_heading(provided: Any, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("calm, é", "utf-8")
    parts = (ContentPart("text", "Read:"), file_part(tmp_path / "log.txt", "files/log.txt"))
    with ProviderServer(provider.says("Hello")) as server:
        ask(provided(server), Request((Message("user", parts),)))
    assert server.bodies[0]["messages"][0]["content"] == "Read:\n\nFile files/log.txt:\ncalm, é"


def test_files_that_cannot_be_sent_are_named(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\xff")
    target = OpenAITarget(model="gpt-6-sol").connect()
    for part, words in [
        (file_part(tmp_path / "photo.png", "photo.png"), "'photo.png' of the input is not UTF-8"),
        (
            file_part(tmp_path / "none.txt", "none.txt"),
            "'none.txt' of the input cannot be read: No",
        ),
        (ContentPart("file", "lost.txt"), "'lost.txt' of the input was not looked up"),
    ]:
        assert words in error_of(target, Request((Message("user", (part,)),)))


@pytest.mark.parametrize("provided", [openai, claude])
def test_a_provider_that_recovers_is_retried(provided: Any) -> None:
    clock = FakeClock()
    faults = (provider.status(500), provider.status(429, Retry_After="7"), provider.reset)
    with ProviderServer(*faults, provider.says("Hello")) as server:
        (seen,) = ask(RetryingTarget(provided(server), RetryPolicy(), clock), HI)
    assert seen.response == "Hello"
    assert len(server.asked) == 4
    assert clock.slept[1] == 7


@pytest.mark.parametrize("provided", [openai, claude])
def test_a_refused_key_is_not_tried_again_and_not_shown(provided: Any) -> None:
    clock = FakeClock()
    with ProviderServer(provider.status(401, f"bad key: {KEY}")) as server:
        message = error_of(RetryingTarget(provided(server), RetryPolicy(), clock))
    assert "401 Unauthorized: bad key: [redacted] (check the API key)" in message
    assert len(server.asked) == 1


def test_a_hanging_provider_is_given_up() -> None:
    with ProviderServer(provider.hang) as server:
        assert "did not answer within 0.05 s" in error_of(openai(server, timeout_seconds=0.05))


@pytest.mark.parametrize("spec", [OpenAITarget, AnthropicTarget])
def test_secrets_are_in_no_repr(spec: type[ChatTarget]) -> None:
    settings = spec(model="m", api_key=KEY, headers={"Authorization": f"Basic {KEY}"})  # type: ignore[call-arg]
    assert KEY not in repr(settings) + str(settings) + settings.model_dump_json()
    assert KEY not in repr(settings.connect())  # type: ignore[attr-defined]


def test_secrets_in_headers_are_hidden_in_errors_too() -> None:
    token = "token-0123456789"
    with ProviderServer(provider.status(403, f"not for {token}")) as server:
        message = error_of(openai(server, headers={"Authorization": f"Bearer {token}"}))
    assert server.asked[0].headers["Authorization"] == f"Bearer {token}"
    assert "not for [redacted]" in message


def test_a_key_with_a_line_break_at_its_end_is_sent_without() -> None:
    with ProviderServer(provider.says("Hello")) as server:
        ask(openai(server, api_key=f"{KEY}\n"), HI)
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": "one\ntwo"},
        {"headers": {"X-Team": "a\r\nX-Other: b"}},
        {"base_url": "api.example.com/v1"},
        {"base_url": "ftp://example.com"},
        {"base_url": "http://example.com:99999"},
        {"base_url": "http://[::1"},
        {"timeout_seconds": 0},
        {"max_tokens": 0},
        {"temprature": 1},
        {"model": ""},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OpenAITarget.model_validate({"model": "gpt-6-sol", **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": f"http://me:{KEY}@example.com:99999/v1"},
        {"base_url": f"me:{KEY}@example.com"},
        {"base_url": f"ftp://example.com/v1?key={KEY}"},
        {"api_key": f"{KEY}\n{KEY}"},
    ],
)
def test_refused_settings_show_no_secrets(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        OpenAITarget.model_validate({"model": "gpt-6-sol", **settings})
    assert KEY not in str(caught.value)
    if "base_url" in settings:
        assert "example.com" in str(caught.value)


def test_a_header_name_that_cannot_be_sent_is_an_error_with_words() -> None:
    with ProviderServer(provider.says("Hello")) as server:
        message = error_of(openai(server, headers={"X Team\n": "evals"}))
    assert "cannot be called" in message
    assert server.asked == []


def test_targets_are_called_by_name_or_by_provider_and_model() -> None:
    assert OpenAITarget(model="gpt-6-sol").connect().name == "openai:gpt-6-sol"
    assert AnthropicTarget(model="claude-opus-5").connect().name == "anthropic:claude-opus-5"
    assert OpenAITarget(name="judge", model="gpt-6-sol").connect().name == "judge"
    assert EchoTarget().connect().name == "echo"
    assert OpenAITarget.inline_key == "model"


def test_checking_settings_does_not_import_the_http_client() -> None:
    code = (
        "import sys, assay.targets.openai, assay.targets.anthropic; print('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_echo_says_the_last_user_message() -> None:
    messages = (Message("user", "One"), Message("user", "Two"), Message("assistant", "Three"))
    (seen,) = ask(EchoTarget().connect(), Request(messages))
    assert seen == Observation("Two", tool_calls=())
    assert "no user message" in error_of(EchoTarget().connect(), Request(messages[2:]))


def scripted(replies: Any) -> Target:
    return ScriptedTarget.model_validate({"provider": "scripted", "replies": replies}).connect()


def asks(text: str, case_id: str = "", repeat: int = 0) -> Request:
    messages = (Message("user", text),)
    case = EvalCase(case_id, messages, ()) if case_id else None
    return Request(messages, case, repeat)


def test_scripted_replies_come_in_order_and_the_last_one_repeats() -> None:
    seen = ask(scripted(["One", {"response": {"score": 1}}]), HI, HI, HI)
    assert [answer.response for answer in seen] == ["One", '{"score": 1}', '{"score": 1}']
    assert seen[0].tool_calls == ()


def test_a_scripted_reply_has_everything_that_a_replay_line_has() -> None:
    reply = {
        "response": "23.5",
        "toolCalls": [
            {"name": "get_weather", "params": {"city": "Oslo"}, "result": 23.5, "success": True}
        ],
        "usage": {"inputTokens": 3, "outputTokens": 4},
        "costUsd": 0.5,
        "durationMs": 12.0,
        "llmCalls": 2,
    }
    (seen,) = ask(scripted([reply]), HI)
    assert seen.to_dict() == reply
    (untold,) = ask(scripted([{"response": "x", "toolCalls": None}]), HI)
    assert untold.tool_calls is None


@pytest.mark.parametrize("replies", [["One"], {"Oslo": "One"}, {"Oslo": ["One", "Two"]}])
def test_scripted_replies_distinguish_targets_without_a_warning(replies: Any) -> None:
    spec = ScriptedTarget.model_validate({"provider": "scripted", "replies": replies})
    assert "One" in spec.identity


def test_a_scripted_error_is_raised_and_may_be_retryable() -> None:
    assert error_of(scripted([{"error": "out of order"}])) == "out of order"
    flaky = scripted([{"error": "busy", "retryable": True}, "fine"])
    (seen,) = ask(RetryingTarget(flaky, RetryPolicy(), FakeClock()), HI)
    assert seen.response == "fine"


def test_keyed_replies_are_found_by_case_id_then_by_the_question() -> None:
    target = scripted({"Oslo": "by question", "case-1": "by id", "in": "by a later key"})
    requests = [asks("in Oslo?", "case-1"), asks("in Oslo?", "case-2"), asks("in Rome?")]
    answers = ["by id", "by question", "by a later key"]
    assert [seen.response for seen in ask(target, *requests)] == answers
    assert "no scripted reply matches 'Rome?'; the keys are 'Oslo', 'case-1', 'in'" in error_of(
        target, asks("Rome?")
    )


def test_keyed_replies_do_not_depend_on_the_order_of_arrival() -> None:
    target = scripted({"case-1": ["first", "second"]})
    repeats = [2, 0, 1, 0]
    seen = ask(target, *(asks("x", "case-1", repeat) for repeat in repeats))
    assert [answer.response for answer in seen] == ["second", "first", "second", "first"]


@pytest.mark.parametrize(
    ("replies", "place"),
    [
        ([], ("replies",)),
        ({}, ("replies",)),
        ("Hello", ("replies",)),
        ({"a": []}, ("replies", "a")),
        ([{"respnse": "x"}], ("replies", 0, "respnse")),
        ([{"toolCalls": [{"nam": "x"}]}], ("replies", 0, "toolCalls", 0, "name")),
        ({"a": ["x", 5]}, ("replies", "a", 1)),
    ],
)
def test_wrong_scripted_replies_are_refused_at_their_place(replies: Any, place: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        scripted(replies)
    assert caught.value.errors()[0]["loc"] == place


def test_the_schema_of_every_target_can_be_written() -> None:
    for spec in (OpenAITarget, AnthropicTarget, ScriptedTarget, EchoTarget):
        properties = spec.model_json_schema()["properties"]
        assert {"name", "provider"} <= set(properties)
