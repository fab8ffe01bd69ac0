"""Every file in `formats` is a record as its provider documents it: it is read right or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assay.errors import ObservationError
from assay.model.message import ToolCall
from assay.model.observation import Usage
from assay.observations.pairing import (
    ENDS_WITH_RESULT,
    NO_CONTENT,
    NO_REPLY,
    NO_RESULT,
    REFUSED,
    USER_SPOKE_LAST,
)
from assay.observations.reading import FORMATS, read

HERE = Path(__file__).parent / "formats"
CUT = "the answer was cut off at the token limit"
HIDDEN = "the spans have no messages (was content capture switched off?)"


class Known(msgspec.Struct, frozen=True):
    """What must be read from a file."""

    response: str = ""
    calls: tuple[ToolCall, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage | None = None
    llm_calls: int | None = 1
    cost_usd: float | None = None
    duration_ms: float | None = None
    #: Why the answer is unknown.
    unknown: str = ""


ROME = ToolCall("getWeather", {"city": "Rome"}, {"sky": "sunny"}, "call_r")
ADD = ToolCall("add", {"a": 2, "b": 3}, "5", "call_1")
RESPONSE = Usage(52, 18)
SPOKEN = "It is 23 °C in Lisbon."
KNOWN = {
    # OpenAI
    "responses_whole": Known(
        "Order A100 has shipped.",
        (ToolCall("lookup_order", {"order": "A100"}, id="call_9", notes=(NO_RESULT,)),),
        usage=RESPONSE,
    ),
    "responses_code_interpreter": Known(
        "17 times 23 is 391.",
        (
            ToolCall(
                "code_interpreter",
                {"code": "print(17 * 23)"},
                [{"type": "logs", "logs": "391\n"}],
                "ci_1",
                success=True,
            ),
        ),
        usage=RESPONSE,
    ),
    "responses_file_search": Known(
        "You have 30 days.",
        (
            ToolCall(
                "file_search",
                {"queries": ["return window"]},
                [
                    {
                        "file_id": "file-1",
                        "filename": "returns.md",
                        "score": 0.91,
                        "text": "Returns are free for 30 days.",
                        "attributes": {},
                    }
                ],
                "fs_1",
                success=True,
            ),
        ),
        usage=RESPONSE,
    ),
    "responses_incomplete": Known("The three laws are: first,", notes=(CUT,), usage=RESPONSE),
    "responses_refusal": Known("I cannot help with that.", notes=(REFUSED,), usage=RESPONSE),
    "responses_in_progress": Known(
        unknown="the status of the response is 'in_progress'", llm_calls=0
    ),
    "responses_patch": Known(
        "There is no notes.txt.",
        (
            ToolCall(
                "apply_patch",
                {"type": "update_file", "path": "notes.txt", "diff": "-teh\n+the"},
                "notes.txt does not exist",
                "call_3",
                success=False,
                error="notes.txt does not exist",
            ),
        ),
        llm_calls=2,
    ),
    "openai_audio": Known(SPOKEN),
    "openai_audio_unwritten": Known(
        notes=("a message has no content that can be read, only 'content', 'audio'",),
        unknown=f"{NO_CONTENT}; a message has no content that can be read, only 'content', 'audio'",
    ),
    "openai_realtime_items": Known(SPOKEN),
    "openai_realtime_unwritten": Known(
        notes=("audio without a transcript was left out",),
        unknown=f"{NO_CONTENT}; audio without a transcript was left out",
    ),
    "openai_assistants_message": Known(SPOKEN),
    "openai_refusal": Known("I can't assist with that.", notes=(REFUSED,), usage=Usage(30, 9)),
    "openai_text_completion": Known(" and they lived happily", notes=(CUT,), usage=Usage(5, 4)),
    "spaced_ids": Known(
        "Done.",
        (
            ToolCall("search", {"q": "a"}, "first", "call_1"),
            ToolCall("search", {"q": "b"}, "second", "call_2"),
        ),
        llm_calls=2,
    ),
    # Anthropic, Bedrock and Gemini
    "anthropic_cut": Known("First, check the", notes=(CUT,), usage=Usage(120, 8)),
    "anthropic_web_search": Known(
        "I will search. It is the Burj Khalifa.",
        (
            ToolCall(
                "web_search",
                {"query": "tallest tower"},
                [
                    {
                        "type": "web_search_result",
                        "url": "https://example.com/towers",
                        "title": "Towers",
                        "encrypted_content": "eA==",
                        "page_age": None,
                    }
                ],
                "srvtoolu_1",
            ),
        ),
        usage=Usage(90, 40),
    ),
    "bedrock_converse": Known(
        "It is Elemental Hotel.",
        (
            ToolCall(
                "top_song",
                {"sign": "WZPZ"},
                {"song": "Elemental Hotel"},
                "tooluse_1",
                success=True,
            ),
        ),
        llm_calls=2,
    ),
    "gemini_contents": Known(
        "The hall is dark.",
        (ToolCall("set_light", {"room": "hall", "on": False}, {"ok": True}),),
        llm_calls=2,
    ),
    # OpenTelemetry
    "otel_content_off": Known(
        calls=(ToolCall("lookup_order", id="call_1", duration_ms=500, notes=(NO_RESULT,)),),
        usage=Usage(470, 45),
        llm_calls=2,
        duration_ms=2500,
        unknown=HIDDEN,
    ),
    "otel_choice_without_content": Known(duration_ms=1000, unknown=HIDDEN),
    "otel_openllmetry": Known(
        "A100 is in transit.",
        (ToolCall("lookup_order", {"order": "A100"}, {"state": "in transit"}, "call_1"),),
        usage=Usage(150, 23),
        llm_calls=2,
        duration_ms=1500,
    ),
    "otel_content_events": Known(
        "The capital of Peru is Lima.", usage=Usage(11, 6), duration_ms=1500
    ),
    # Frameworks and benchmarks
    "ai_sdk_tool_invocations": Known("It is sunny in Rome.", (ROME,)),
    "ai_sdk_4_parts": Known("It is sunny in Rome.", (ROME,), llm_calls=2),
    "ai_sdk_5_parts": Known(
        "Rome is sunny, Oslo is unknown.",
        (
            ROME.replace(success=True),
            ToolCall("getSnow", {"city": "Oslo"}, id="call_o", success=False, error="no sensor"),
        ),
        llm_calls=2,
    ),
    "ai_sdk_model_messages": Known(
        "It is sunny in Rome.", (ROME.replace(success=True),), llm_calls=2
    ),
    "langchain_roles": Known(
        "2 and 3 make 5.", (ADD, ToolCall("log", {"text": "adding"}, "ok", "call_2")), llm_calls=2
    ),
    "langchain_types": Known(
        "2 and 3 make 5.",
        (ADD.replace(id="toolu_1", success=True),),
        usage=Usage(100, 21),
        llm_calls=2,
    ),
    "langchain_serialised": Known(
        "The tool failed.",
        (ADD.replace(output="overflow", success=False, error="overflow"),),
        llm_calls=2,
    ),
    "inspect_sample": Known(
        "There are 3 files.",
        (
            ToolCall("bash", {"cmd": "ls | wc -l"}, "3", "call_f"),
            ToolCall(
                "python",
                {"code": "1/0"},
                "",
                "call_g",
                success=False,
                error="Command timed out",
            ),
        ),
        llm_calls=3,
    ),
    "tau_bench": Known(
        "EHGLP3 is cancelled. Anything else?",
        (
            ToolCall(
                "cancel_reservation",
                {"reservation_id": "EHGLP3"},
                {"status": "cancelled"},
                "call_7",
            ),
        ),
        notes=(USER_SPOKE_LAST,),
        llm_calls=2,
    ),
    "tau2_bench": Known(
        "Please switch roaming on.",
        (ToolCall("get_line", {"line": "L1"}, {"roaming": False}, "call_a", success=True),),
        notes=("calls of the role 'user' are not the agent's", USER_SPOKE_LAST),
        usage=Usage(850, 30),
        llm_calls=3,
    ),
    "agentv_output_as_messages": Known("Checked.", (ToolCall("check", {"n": 1}, "fine"),)),
    # Agents
    "atif": Known(
        "hello.txt has been created.",
        (
            ToolCall("bash", {"command": "echo hi > hello.txt"}, "", "call_w"),
            ToolCall("bash", {"command": "cat hello.txt"}, "hi", "call_c"),
        ),
        usage=Usage(1060, 52),
        llm_calls=2,
        cost_usd=0.03,
    ),
    "atif_parts": Known("A cat.", usage=Usage(700, 5), cost_usd=0.004),
    "claude_code_session": Known(
        "The edit was refused; read calc.py first.",
        (
            ToolCall("Grep", {"pattern": "def add"}, "calc.py:1", "toolu_1"),
            ToolCall(
                "Edit",
                {"file_path": "calc.py", "old_string": "add", "new_string": "plus"},
                "File has not been read yet.",
                "toolu_2",
                success=False,
                error="File has not been read yet.",
            ),
        ),
        usage=Usage(3012, 90),
        llm_calls=3,
        duration_ms=10_000,
    ),
    "claude_code_stream": Known(
        "There is one file, calc.py.",
        (ToolCall("Bash", {"command": "ls"}, "calc.py", "toolu_1", success=True),),
        usage=Usage(2008, 60),
        llm_calls=2,
        cost_usd=0.05,
        duration_ms=4200,
    ),
    # Nothing that can be read
    "question_only": Known(unknown=NO_REPLY, llm_calls=0),
    "unread_reply": Known(
        notes=("a message has no content that can be read, only 'segments'",),
        unknown=f"{NO_CONTENT}; a message has no content that can be read, only 'segments'",
    ),
}


def load(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


RECORDS = {file.stem: load(file) for file in sorted(HERE.iterdir())}


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_documented_shape_is_read_completely(name: str) -> None:
    seen, known = read(RECORDS[name]), KNOWN[name]
    assert seen.response == known.response
    assert (seen.tool_calls or ()) == known.calls
    assert seen.notes == known.notes
    assert (seen.usage, seen.llm_calls) == (known.usage, known.llm_calls)
    assert (seen.cost_usd, seen.duration_ms) == (known.cost_usd, known.duration_ms)
    assert (seen.error or "").removeprefix("the answer is not in the record: ") == known.unknown
    assert read(json.loads(json.dumps(seen.to_dict()))) == seen


def test_every_shape_has_a_sample() -> None:
    assert sorted(RECORDS) == sorted(KNOWN)
    assert len(RECORDS) >= 20


@pytest.mark.parametrize("name", ["claude_code_session", "responses_patch", "ai_sdk_5_parts"])
def test_a_list_may_be_under_messages_with_the_id_of_its_case(name: str) -> None:
    assert read({"id": "a", "messages": RECORDS[name]}) == read(RECORDS[name])


# Unknown answers


def unknown(record: Any) -> str:
    return read(record).error or ""


@pytest.mark.parametrize(
    "record",
    [
        {"toolCalls": [{"name": "t"}]},
        {"output_messages": []},
        {"output_messages": [{"role": "user", "content": "hi"}]},
        {"text": None},
        {"choices": []},
        {"choices": [{"message": {"role": "assistant"}}]},
        {"output": []},
        {"output": [{"type": "reasoning", "summary": []}]},
        {"messages": []},
        [{"role": "assistant", "content": [{"type": "hologram", "light": 1}]}],
        [{"role": "assistant", "content": None, "parts": [{"type": "hologram", "light": 1}]}],
        [{"role": "assistant", "parts": []}],
        {"schema_version": "ATIF-v1.4", "steps": [{"source": "user", "message": "hi"}]},
        {"response": None, "messages": [{"role": "user", "content": "hi"}]},
    ],
)
def test_an_answer_that_is_not_recorded_is_unknown(record: Any) -> None:
    assert unknown(record).startswith("the answer is not in the record: ")


@pytest.mark.parametrize(
    "record",
    [
        {"response": ""},
        {"response": None},
        {"text": ""},
        [{"role": "assistant", "content": ""}],
        [{"role": "assistant", "content": None}],
        [{"role": "assistant", "content": []}],
        [{"role": "assistant", "tool_calls": [{"function": {"name": "t"}}]}],
        {"choices": [{"message": {"content": None}, "finish_reason": "length"}]},
        [{"role": "assistant", "content": None, "finish_reason": "length"}],
        {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"},
        {"object": "response", "status": "incomplete", "output": [{"type": "reasoning"}]},
    ],
)
def test_an_answer_that_is_recorded_as_empty_is_empty(record: Any) -> None:
    seen = read(record)
    assert (seen.response, seen.error) == ("", None)


def test_a_reply_that_cannot_be_read_is_not_replaced_by_an_earlier_text() -> None:
    said, odd = {"role": "assistant", "content": "One moment."}, {"role": "assistant", "body": "-4"}
    seen = read([{"role": "user", "content": "cold?"}, said, odd])
    assert seen.response == ""
    assert "only 'body'" in (seen.error or "")


def test_the_last_model_span_without_messages_hides_the_answer() -> None:
    chat = {"gen_ai.operation.name": "chat"}
    first = {**chat, "gen_ai.output.messages": [{"role": "assistant", "content": "One moment."}]}
    spans: list[Any] = [
        {"spanId": "1", "endTimeUnixNano": 1, "attributes": first},
        {"spanId": "2", "endTimeUnixNano": 2, "attributes": chat},
    ]
    assert HIDDEN in unknown(spans)
    failed = {**spans[1], "status": {"code": 2, "message": "busy"}, "parentSpanId": "1"}
    assert read([spans[0], failed]).response == "One moment."
    agent = {"gen_ai.operation.name": "invoke_agent"}
    agent["gen_ai.output.messages"] = '[{"role": "assistant", "content": "-4"}]'
    spans.append({"spanId": "3", "endTimeUnixNano": 3, "attributes": agent})
    assert (read(spans).response, read(spans).error) == ("-4", None)


def test_a_record_that_ends_with_a_result_has_no_answer_unless_it_has_text() -> None:
    use = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
    back = {"type": "tool_result", "tool_use_id": "1", "content": "x"}
    result, text = {"role": "user", "content": [back]}, {"type": "text", "text": "Wait."}
    assert ENDS_WITH_RESULT in unknown([{"role": "assistant", "content": [use]}, result])
    seen = read([{"role": "assistant", "content": [text, use]}, result])
    assert (seen.response, seen.error, seen.notes) == ("Wait.", None, (ENDS_WITH_RESULT,))
    answer = {"role": "assistant", "content": "Done."}
    seen = read([{"role": "assistant", "content": [use]}, result, answer])
    assert (seen.response, seen.error, seen.notes) == ("Done.", None, ())


def test_a_trajectory_step_without_text_is_an_empty_answer() -> None:
    call = {"tool_call_id": "1", "function_name": "submit", "arguments": {}}
    step: dict[str, Any] = {"source": "agent", "message": "", "tool_calls": [call]}
    step["observation"] = {"results": [{"source_call_id": "1", "content": "ok"}]}
    seen = read({"schema_version": "ATIF-v1.4", "steps": [step]})
    assert (seen.response, seen.error) == ("", None)


@pytest.mark.parametrize(
    ("reason", "note"),
    [
        ("content_filter", "content filter"),
        ("odd", "incomplete: 'odd'"),
        (None, "incomplete: null"),
    ],
)
def test_an_incomplete_response_is_noted(reason: Any, note: str) -> None:
    response = {"output": [], "status": "incomplete", "incomplete_details": {"reason": reason}}
    assert note in " ".join(read(response).notes)
    item = {"type": "function_call", "name": "t", "arguments": "{", "status": "incomplete"}
    assert "the response is incomplete" in read([item]).notes


@pytest.mark.parametrize("text", ["hi back", '{"total": 3}', "[1, 2]", "{not json"])
@pytest.mark.parametrize("name", ["gen_ai.completion", "gen_ai.content.completion"])
def test_the_completion_of_a_span_may_be_one_text(name: str, text: str) -> None:
    span = {"spanId": "1", "attributes": {"gen_ai.request.model": "m", name: text}}
    assert (read([span]).response, read([span]).error) == (text, None)
    span = {"spanId": "1", "attributes": {"gen_ai.request.model": "m"}}
    event = {"name": "gen_ai.content.completion", "attributes": {name: text}}
    assert read([{**span, "events": [event]}]).response == text


def test_arguments_under_an_unknown_key_are_noted() -> None:
    call = {"name": "t", "id": "1", "kwargs": {"a": 1}}
    [seen] = read([{"role": "assistant", "tool_calls": [call]}]).tool_calls or ()
    assert seen.input is None
    assert "no arguments were found: the call has 'kwargs'" in seen.notes[0]


def test_an_error_of_claude_code_is_the_error() -> None:
    base = {"type": "assistant", "isApiErrorMessage": True}
    content = [{"type": "text", "text": "API Error: 529 overloaded"}]
    question = {"type": "user", "message": {"role": "user", "content": "hi"}}
    lines: list[Any] = [question, {**base, "message": {"role": "assistant", "content": content}}]
    assert read(lines).error == "API Error: 529 overloaded"
    end = {"type": "result", "subtype": "error_max_turns", "is_error": True}
    assert read([question, end]).error == "error_max_turns"


# Records of no known shape


@pytest.mark.parametrize(
    ("value", "first"),
    [
        ({"steps": []}, "ATIF 1 of 2 ('schema_version': 'ATIF-...')"),
        ([{"type": "user", "text": "hi"}], "Claude Code 1 of 2 ('message')"),
        ({"spanId": "1"}, "OpenTelemetry 1 of 2 ('attributes')"),
        ({"messages": [{"body": "hi"}]}, "chat messages 1 of 2 ('role')"),
    ],
)
def test_an_unknown_record_is_rejected_with_the_missing_keys_of_near_formats(
    value: Any, first: str
) -> None:
    with pytest.raises(ObservationError) as caught:
        read(value)
    assert f"what is missing: {first}" in str(caught.value)
    assert str(caught.value).endswith("; or give a mapping with 'response' or 'toolCalls'")


@pytest.mark.parametrize(("value", "found"), [({"x": 1}, "a mapping with 'x'"), (42, "42")])
def test_a_record_that_is_near_no_format_is_rejected_with_what_is_expected(
    value: Any, found: str
) -> None:
    with pytest.raises(ObservationError) as caught:
        read(value)
    expected = "expected a mapping with 'response' or 'toolCalls', or a transcript of "
    start, formats = str(caught.value).split(expected)
    assert start == f"{found} is not a known record; "
    assert formats.split(", ") == [shape.name for shape in FORMATS[:-1] if shape.name != "Assay"]
