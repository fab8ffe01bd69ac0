"""Agents behind HTTP: what is sent, what is read, and every fault of a server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import ValidationError

from assay.model.message import Message, ToolCall
from assay.model.observation import Usage
from assay.ports import Target
from assay.targets.http import Http, HttpTarget
from unit import provider_server as provider
from unit.provider_server import ProviderServer
from unit.target_calls import answer, answers, fault, request

SECRET = "sk-very-secret-0123456789"


def connected(server: ProviderServer, path: str = "/ask", **settings: Any) -> Target:
    return HttpTarget(url=server.url + path, **settings).connect()


def sent(case: dict[str, Any] | None = None, path: str = "/ask", **settings: Any) -> provider.Asked:
    """What the server was asked."""
    with ProviderServer(provider.sends({"response": "Hello"})) as server:
        answer(connected(server, path, **settings), request(**(case or {})))
    (asked,) = server.asked
    return asked


def reading(reply: Any, **paths: Any) -> Any:
    """The observation in a reply."""
    with ProviderServer(provider.sends(reply)) as server:
        return answer(connected(server, paths=paths), request())


def error_of(reply: Any, **paths: Any) -> str:
    with ProviderServer(provider.sends(reply)) as server:
        return str(fault(connected(server, paths=paths), request()))


# What is sent


def test_without_settings_the_message_is_posted() -> None:
    asked = sent()
    assert (asked.method, asked.path, asked.body) == ("POST", "/ask", {"message": "Hi"})
    assert asked.headers["Content-Type"] == "application/json"


def test_headers_are_sent() -> None:
    assert sent(headers={"X-Key": f"{SECRET}\n"}).headers["X-Key"] == SECRET


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_the_method_may_be_another(method: Any) -> None:
    asked = sent(method=method)
    assert (asked.method, asked.body) == (method, {"message": "Hi"})


def test_places_in_the_body_become_values_of_their_type() -> None:
    body = {
        "q": "{{message}}",
        "history": ["{{messages}}"],
        "who": {"id": "{{ id }}", "n": "{{repeat}}", "meta": "{{metadata}}"},
        "text": "Case {{id}}, {{metadata}}: {{message}}",
        "{{id}}": 5,
        "thread": "{{conversation_id}}",
    }
    messages = (Message("system", "Be kind"), Message("user", "Hi"))
    case = {"messages": messages, "metadata": {"a": [1]}, "repeat": 2}
    assert sent(case, body=body).body == {
        "q": "Hi",
        "history": [[{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]],
        "who": {"id": "one", "n": 2, "meta": {"a": [1]}},
        "text": 'Case one, {"a": [1]}: Hi',
        "{{id}}": 5,
        "thread": None,
    }


@pytest.mark.parametrize(
    "hostile", ['", "admin": true, "x": "', "{{id}}", "line\nbreak\0 \\ \u2028 é", "{{message}}"]
)
def test_a_question_never_changes_the_shape_of_the_body(hostile: str) -> None:
    asked = sent({"text": hostile}, body={"q": "{{message}}", "said": "<{{message}}>"})
    assert asked.body == {"q": hostile, "said": f"<{hostile}>"}


def test_places_in_the_address_are_escaped() -> None:
    asked = sent({"text": "a&b=c /ü?"}, "/ask/{{id}}?q={{message}}&k=1", method="GET")
    assert (asked.method, asked.body) == ("GET", None)
    assert (asked.path, asked.query) == ("/ask/one", {"q": "a&b=c /ü?", "k": "1"})


def test_a_body_of_null_sends_no_body() -> None:
    assert sent(body=None).body is None
    assert sent(method="GET", body={"q": "{{message}}"}).body == {"q": "Hi"}


# What is read


def test_without_settings_the_interchange_form_is_read() -> None:
    call = {"name": "add", "params": {"a": 1}, "success": True, "durationMs": 3, "result": 4}
    usage = {"inputTokens": 10, "outputTokens": 5}
    reply = {"response": "4", "toolCalls": [call], "durationMs": 9, "usage": usage, "costUsd": 0.1}
    seen = reading(reply)
    assert seen.response == "4"
    assert seen.tool_calls == (ToolCall("add", {"a": 1}, 4, duration_ms=3, success=True),)
    assert (seen.duration_ms, seen.usage, seen.cost_usd) == (9, Usage(10, 5), 0.1)
    assert seen.raw == reply


def test_a_text_answer_reports_no_calls_and_is_timed() -> None:
    seen = reading({"response": "Hello"})
    assert (seen.response, seen.tool_calls, seen.usage) == ("Hello", None, None)
    assert seen.duration_ms > 0


PATHS = {
    "text": "data.messages[-1].text",
    "tool_calls": "$.data.steps",
    "tool_name": "tool.id",
    "tool_args": "tool.arguments",
    "tool_result": "out",
    "tool_success": "ok",
    "tool_error": "why",
    "tool_duration_ms": "ms",
    "input_tokens": "meta.in",
    "output_tokens": "meta.out",
    "cost_usd": "meta.cost",
    "duration_ms": "meta.took",
}
DEEP = {
    "data": {
        "messages": [{"text": "first"}, {"text": "last"}],
        "steps": [
            {"tool": {"id": "add", "arguments": '{"a": 1}'}, "out": 4, "ok": True, "ms": 2},
            {"tool": {"id": "div", "arguments": {"by": 0}}, "ok": False, "why": "by zero"},
        ],
    },
    "meta": {"in": 7, "out": 8, "cost": 0.5, "took": 11},
}


def test_paths_lead_into_the_reply() -> None:
    seen = reading(DEEP, **PATHS)
    assert seen.response == "last"
    assert seen.tool_calls == (
        ToolCall("add", {"a": 1}, 4, duration_ms=2, success=True),
        ToolCall("div", {"by": 0}, success=False, error="by zero"),
    )
    assert (seen.usage, seen.cost_usd, seen.duration_ms) == (Usage(7, 8), 0.5, 11)


def test_the_whole_reply_may_be_the_text() -> None:
    assert reading("Hello", text="$").response == "Hello"
    assert reading([{"say": "Hello"}], text="[0].say").response == "Hello"


def test_usage_may_be_in_the_words_of_a_provider() -> None:
    reply = {"response": "x", "tokens": {"prompt_tokens": 3, "completion_tokens": 4}}
    assert reading(reply, usage="tokens").usage == Usage(3, 4)


@pytest.mark.parametrize(
    ("reply", "paths", "words"),
    [
        ({"answer": "x"}, {}, "the reply has no text at 'response': its keys are 'answer'"),
        ({"answer": "x"}, {}, "(set 'paths: {text: ...}' of the target to where it is)"),
        ({"response": "x"}, {"text": "data[0].text"}, "the reply has no text at 'data[0].text'"),
        ({"data": []}, {"text": "data[0]"}, "the reply has no text at 'data[0]'"),
        ({"data": ["x"]}, {"text": "data.--1"}, "the reply has no text at 'data.--1'"),
        ([], {}, "it is an empty list"),
        ({"error": "out of tokens"}, {}, "the agent reported an error: out of tokens"),
        ({"response": "", "error": {"message": "no"}}, {}, "the agent reported an error: no"),
        ({"response": "x", "toolCalls": 5}, {}, "the reply cannot be used"),
        ({"response": "x", "toolCalls": [{}]}, {}, "'toolCalls[0]' has no 'name'"),
        ({"response": "x", "durationMs": "fast"}, {}, "'durationMs' is 'fast', not a number"),
    ],
)
def test_a_reply_without_an_answer_is_an_error(
    reply: Any, paths: dict[str, str], words: str
) -> None:
    assert words in error_of(reply, **paths)


def path_faults(*replies: Any, paths: dict[str, str], cached: Any = ()) -> list[str]:
    """What the paths are said to be, after these replies and answers that others were given."""
    with ProviderServer(*map(provider.sends, replies)) as server:
        target = Http(HttpTarget(url=server.url, paths=paths))
        assert target.faults([]) == []
        seen = answers(target, *[request()] * len(replies)) if replies else []
    return target.faults([*(answer.to_dict() for answer in seen), *cached])


def test_paths_that_found_nothing_in_any_reply_are_reported() -> None:
    replies = [{"response": "x", "steps": [{"name": "t"}]}, {"response": "y", "cost": 1}]
    paths = {"tool_calls": "steps", "cost_usd": "cost", "tool_args": "input", "usage": "meta.usage"}
    assert path_faults(*replies, paths=paths | {"duration_ms": "took", "input_tokens": "in"}) == [
        "'paths.tool_args': nothing was found at 'input' in any of 1 tool calls",
        "'paths.usage': nothing was found at 'meta.usage' in any of 2 replies",
        "'paths.input_tokens': nothing was found at 'in' in any of 2 replies",
        "'paths.duration_ms': nothing was found at 'took' in any of 2 replies",
    ]


def test_paths_that_found_something_before_are_not_reported() -> None:
    call = {"name": "t", "params": {}, "result": 1, "success": True, "durationMs": 1}
    before = {"response": "x", "toolCalls": [call], "usage": {"inputTokens": 1}, "costUsd": 1}
    names = ["usage", "input_tokens", "cost_usd", "tool_calls", "tool_name", "tool_args"]
    names += ["tool_result", "tool_success", "tool_duration_ms"]
    paths = dict.fromkeys(names, "elsewhere")
    assert path_faults({"response": "y"}, paths=paths, cached=[before]) == []
    assert len(path_faults({"response": "y"}, paths=paths)) == 4


def test_stored_answers_do_not_show_that_a_path_found_nothing() -> None:
    paths = {"duration_ms": "took", "cost_usd": "cost", "tool_calls": "steps"}
    before = {"response": "x", "durationMs": 1}
    assert path_faults(paths=paths, cached=[before]) == []
    own: dict[str, Any] = {"response": "y", "cost": None, "steps": []}
    assert path_faults(own, paths=paths, cached=[before]) == []


def test_optional_paths_are_not_reported() -> None:
    assert path_faults({"response": "x"}, paths={}) == []
    calls = [{"name": "t", "success": True}]
    assert path_faults({"response": "x", "toolCalls": calls}, paths={"tool_error": "problem"}) == []


# Faults of servers


@pytest.mark.parametrize(
    ("bad", "words", "retryable"),
    [
        (provider.reset, "no answer from http://127.0.0.1", True),
        (provider.cut, "no answer from http://127.0.0.1", True),
        (provider.half_json(), "is not JSON", False),
        (provider.raw(b"Hello", "text/plain"), "is not JSON", False),
        (provider.raw(b'{"response": NaN}'), "is not JSON", False),
        (provider.raw(b"[" * 100_000), "is not JSON", False),
        (provider.invalid_utf8(), "is not UTF-8", False),
        (provider.huge(announced=True), "is larger than 20 MB", False),
        (provider.huge(announced=False), "is larger than 20 MB", False),
        (provider.status(404), "answered 404 Not Found: it went wrong", False),
        (provider.status(500), "answered 500 Internal Server Error", True),
    ],
)
def test_an_error_status_is_reported(bad: Any, words: str, retryable: bool) -> None:
    with ProviderServer(bad) as server:
        error = fault(connected(server), request())
    assert words in str(error)
    assert error.retryable is retryable


def test_too_many_requests_are_retried_after_the_given_time() -> None:
    with ProviderServer(provider.status(429, Retry_After="7")) as server:
        error = fault(connected(server), request())
    assert (error.retryable, error.retry_after) == (True, 7.0)


def test_a_server_that_cannot_be_reached_is_reported() -> None:
    error = fault(HttpTarget(url=provider.gone()).connect(), request())
    assert error.retryable
    assert "no answer from http://127.0.0.1" in str(error)


def test_a_server_that_hangs_is_left() -> None:
    with ProviderServer(provider.hang) as server:
        error = fault(connected(server, timeout_seconds=0.05), request())
    assert "did not answer within 0.05 s" in str(error)
    assert not error.retryable


def test_one_target_serves_many_at_once() -> None:
    async def run(target: Target) -> list[str]:
        try:
            seen = await asyncio.gather(*(target.ask(request(str(i))) for i in range(50)))
            return [each.response for each in seen]
        finally:
            await target.close()

    async def echo(asked: Any) -> Any:
        return await provider.sends({"response": (await asked.json())["message"]})(asked)

    with ProviderServer(echo) as server:
        assert asyncio.run(run(connected(server))) == [str(i) for i in range(50)]


# Settings and secrets


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": "ftp://host/x"}, "is not an address"),
        ({"url": "http://"}, "is not an address"),
        ({"url": "http://me:pass@host/x"}, "put them in headers"),
        ({"url": "http://{{id}}.example/x"}, "a case must not choose the host"),
        ({"url": "http://host/{{massage}}"}, "did you mean 'message'?"),
        ({"body": {"a": [{"b": "{{massage}}"}]}}, "did you mean 'message'?"),
        ({"body": "{{env}}"}, "known: message, messages"),
        ({"method": "DELETE"}, "method"),
        ({"paths": {"text": "a..b"}}, "not a path into a reply"),
        ({"paths": {"text": "a[x]"}}, "not a path into a reply"),
        ({"paths": {"txt": "a"}}, "txt"),
        ({"headers": {"X": "a\nb"}}, "no HTTP header"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        HttpTarget(**{"url": "http://host/x", **settings})
    assert words in str(caught.value) or words in json.dumps(caught.value.errors(), default=str)


def test_secrets_are_in_no_message_name_or_identity() -> None:
    with ProviderServer(provider.status(401, f"bad key {SECRET}")) as server:
        spec = HttpTarget(
            url=f"{server.url}/ask?key=also-secret", headers={"Authorization": f"Bearer {SECRET}"}
        )
        said = str(fault(spec.connect(), request()))
    for text in (said, spec.label, spec.identity, repr(spec.headers)):
        assert SECRET not in text
        assert "also-secret" not in text


def test_the_identity_depends_on_the_settings() -> None:
    def identity(**settings: Any) -> str:
        return HttpTarget(**{"url": "http://host/x?a=1", **settings}).identity

    assert identity() == identity(headers={"X": "y"}, name="other")
    different = [identity(), identity(url="http://host/x?a=2"), identity(body={"q": 1})]
    assert len(set(different)) == 3
