"""Objects of other packages as answers: stand-ins with their public methods and shapes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict

import assay

CASE = assay.Case("a", "How warm is Oslo?", evaluators=[assay.contains("-4")])


def seen(answer: Any) -> dict[str, Any]:
    """What was recorded of an agent that returned this."""
    run = assay.run(CASE, target=lambda question: answer, store="memory:")
    assert run.passed, run.report()
    (line,) = run.observations()
    record: dict[str, Any] = msgspec.json.decode(line)
    return record


def refused(answer: Any) -> str:
    run = assay.run(CASE, target=lambda question: answer, store="memory:", max_retries=0)
    (case,) = run.suites[0].cases
    assert case.outcome == "errored"
    return " ".join(str(case.error).split())


class SdkModel(BaseModel):
    """As the base of the models of both SDKs: unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class Function(SdkModel):
    name: str
    arguments: str


class ChatCall(SdkModel):
    id: str
    function: Function
    type: str = "function"


class ChatMessage(SdkModel):
    content: str | None = None
    refusal: str | None = None
    role: str = "assistant"
    annotations: list[Any] | None = None
    audio: Any = None
    function_call: Any = None
    tool_calls: list[ChatCall] | None = None


class Choice(SdkModel):
    message: ChatMessage
    finish_reason: str = "stop"
    index: int = 0
    logprobs: Any = None


class ChatCompletion(SdkModel):
    choices: list[Choice]
    id: str = "chatcmpl-1"
    created: int = 1
    model: str = "m"
    object: str = "chat.completion"
    service_tier: Any = None
    system_fingerprint: Any = None
    usage: Any = None


def test_a_chat_completion() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    call = ChatCall(id="1", function=Function(name="get", arguments='{"city": "Oslo"}'))
    message = ChatMessage(content="It is -4.", tool_calls=[call])
    record = seen(ChatCompletion(choices=[Choice(message=message)], usage=usage))
    assert record["response"] == "It is -4."
    assert (record["toolCalls"][0]["name"], record["toolCalls"][0]["params"]) == (
        "get",
        {"city": "Oslo"},
    )


def test_a_response_of_openai() -> None:
    class Response(SdkModel):
        output: list[Any]
        id: str = "resp_1"
        object: str = "response"
        status: str = "completed"
        error: Any = None

    text = {"type": "output_text", "text": "It is -4.", "annotations": []}
    message = {"type": "message", "role": "assistant", "content": [text], "status": "completed"}
    call = {"type": "function_call", "name": "get", "arguments": "{}", "call_id": "c"}
    record = seen(Response(output=[call, message]))
    assert [each["name"] for each in record["toolCalls"]] == ["get"]


def test_a_message_of_anthropic() -> None:
    class Block(SdkModel):
        type: str

    class AnthropicMessage(SdkModel):
        content: list[Block]
        id: str = "msg_1"
        model: str = "m"
        role: str = "assistant"
        stop_reason: str = "end_turn"
        stop_sequence: Any = None
        type: str = "message"
        usage: Any = None

    use: Any = {"type": "tool_use", "id": "t", "name": "get", "input": {"city": "Oslo"}}
    text: Any = {"type": "text", "text": "It is -4.", "citations": None}
    record = seen(AnthropicMessage(content=[Block(**use), Block(**text)]))
    assert record["response"] == "It is -4."
    assert [each["params"] for each in record["toolCalls"]] == [{"city": "Oslo"}]
    assert seen(AnthropicMessage(content=[Block(**text)]))["response"] == "It is -4."


class LangChainMessage(SdkModel):
    content: Any
    type: str
    additional_kwargs: dict[str, Any] = {}
    response_metadata: dict[str, Any] = {}
    name: str | None = None
    id: str | None = None


class AIMessage(LangChainMessage):
    type: str = "ai"
    tool_calls: list[Any] = []
    invalid_tool_calls: list[Any] = []
    usage_metadata: Any = None


class ToolMessage(LangChainMessage):
    type: str = "tool"
    tool_call_id: str
    artifact: Any = None
    status: str = "success"


def test_results_of_langchain() -> None:
    assert seen(AIMessage(content="It is -4."))["response"] == "It is -4."
    call = {"name": "get", "args": {"city": "Oslo"}, "id": "c", "type": "tool_call"}
    state = {
        "messages": [
            LangChainMessage(content="How warm?", type="human"),
            AIMessage(content="", tool_calls=[call]),
            ToolMessage(content="-4", tool_call_id="c"),
            AIMessage(content="It is -4."),
        ]
    }
    record = seen(state)
    assert record["response"] == "It is -4."
    assert [each["name"] for each in record["toolCalls"]] == ["get"]


def test_the_result_of_an_agent_executor() -> None:
    class AgentAction(SdkModel):
        tool: str
        tool_input: Any
        log: str = ""

    steps = [(AgentAction(tool="get", tool_input="Oslo"), "-4")]
    record = seen({"input": "How warm?", "output": "It is -4.", "intermediate_steps": steps})
    assert record["response"] == "It is -4."
    assert record["toolCalls"][0]["params"] == {"input": "Oslo"}


@dataclass
class Tokens:
    input_tokens: int = 7
    output_tokens: int = 3


@dataclass
class Wrapper:
    usage: Tokens = field(default_factory=Tokens)
    context: Any = None


@dataclass
class RunResult:
    """As of the OpenAI Agents SDK: its other fields hold agents and functions."""

    new_items: list[Any]
    final_output: Any
    last_agent: Any = print
    context_wrapper: Wrapper = field(default_factory=Wrapper)

    def to_input_list(self) -> list[Any]:
        return [{"role": "user", "content": "How warm?"}, *self.new_items]


def test_a_run_of_the_openai_agents_sdk() -> None:
    text = {"type": "output_text", "text": "It is -4.", "annotations": []}
    items = [
        {"type": "function_call", "name": "get", "arguments": '{"city": "Oslo"}', "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "-4"},
        {"type": "message", "role": "assistant", "content": [text]},
    ]
    record = seen(RunResult(items, "It is -4."))
    assert record["response"] == "It is -4."
    assert [(each["name"], each["result"]) for each in record["toolCalls"]] == [("get", "-4")]


def test_other_objects_with_a_public_way_to_a_mapping() -> None:
    class Old:
        def dict(self) -> dict[str, Any]:
            return {"response": "It is -4."}

    class Struct(msgspec.Struct):
        response: str

    assert seen(Old())["response"] == "It is -4."
    assert seen(Struct("It is -4."))["response"] == "It is -4."


@dataclass
class Reply:
    answer: str


def test_what_is_not_understood_is_an_error_with_its_type_and_what_is() -> None:
    told = refused(object())
    assert "cannot be converted to JSON: an object" in told
    assert "; it can return text, a mapping, an Observation, a dataclass, a pydantic model" in told
    assert "returned None; it can return text, a mapping" in refused(None)
    assert "returned a Reply, an invalid observation: a mapping with 'answer'" in refused(
        Reply("x")
    )


def test_an_object_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def to_dict(self) -> Any:
            raise RuntimeError("lost")

    assert "a Broken (RuntimeError: lost)" in refused(Broken())
