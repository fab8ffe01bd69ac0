"""Calls and results find each other, and what is left over says so."""

from __future__ import annotations

from typing import Any

from assay.model.message import Message, ToolCall
from assay.observations.pairing import NO_RESULT, USER_SPOKE_LAST
from assay.observations.reading import read
from assay.observations.records import BAD_JSON


def call(name: str, arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"function": function, **more}]}


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **more}


def outputs(*messages: Any) -> list[Any]:
    return [call.output for call in read(list(messages)).tool_calls or ()]


def notes(*messages: Any) -> list[tuple[str, ...]]:
    return [call.notes for call in read(list(messages)).tool_calls or ()]


def test_results_are_paired_by_id_in_any_order() -> None:
    first, second = call("t", id="1"), call("t", id="2")
    results = result("b", tool_call_id="2"), result("a", tool_call_id="1")
    assert outputs(first, second, *results) == ["a", "b"]


def test_an_id_that_is_used_again_pairs_with_the_open_call() -> None:
    once = call("t", id="0"), result("a", tool_call_id="0")
    again = call("t", id="0"), result("b", tool_call_id="0")
    assert outputs(*once, *again) == ["a", "b"]


def test_without_ids_results_are_paired_by_name_and_order() -> None:
    calls = call("t"), call("u"), call("t")
    results = result("1"), result("2", name="t"), result("3", name="u")
    assert outputs(*calls, *results) == ["1", "3", "2"]


def test_a_result_with_an_id_is_not_given_to_a_call_with_another_id() -> None:
    seen = read([call("t", id="1"), result("x", tool_call_id="2")])
    assert seen.notes == ("a result with the id '2' has no matching call",)
    assert [c.notes for c in seen.tool_calls or ()] == [(NO_RESULT,)]


def test_a_result_without_a_call_is_noted_and_kept_as_a_message() -> None:
    seen = read([result("x", name="t"), call("t")])
    assert seen.notes == ("a result of 't' has no matching call",)
    assert seen.messages[0] == Message("tool", "x", name="t")


def test_a_second_result_has_no_matching_call() -> None:
    pair = call("t", id="1"), result("a", tool_call_id="1")
    seen = read([*pair, result("b", tool_call_id="1")])
    assert [c.output for c in seen.tool_calls or ()] == ["a"]
    assert len(seen.notes) == 1


def test_arguments_that_are_not_json_are_kept_as_text_and_noted() -> None:
    done = result("x")
    assert notes(call("t", '{"a": 1'), done) == [(BAD_JSON,)]
    assert notes(call("t", "NaN"), done) == [(BAD_JSON,)]
    assert notes(call("t", "[" * 5000), done) == [(BAD_JSON,)]
    assert notes(call("t", "[" * 200 + "]" * 200), done) == [(BAD_JSON,)]
    [kept] = read([call("t", '{"a": 1'), done]).tool_calls or ()
    assert kept.input == '{"a": 1'


def test_blank_arguments_are_none() -> None:
    seen = read([call("t", ""), call("t", {"a": 1}), result("x"), result("y")])
    assert seen.tool_calls == (ToolCall("t", {}, "x"), ToolCall("t", {"a": 1}, "y"))


def test_results_that_are_objects_or_lists_are_parsed_and_other_texts_are_not() -> None:
    results = [result(text) for text in ('{"a": 1}', " [1]", "42", "{a}", "true")]
    found = outputs(*[call("t") for _ in results], *results)
    assert found == [{"a": 1}, [1], "42", "{a}", "true"]


def test_the_response_is_the_last_text_of_the_assistant() -> None:
    reply = {"role": "assistant", "content": "hello"}
    assert read([reply, call("t"), result("x")]).response == "hello"
    assert read([reply, {"role": "assistant", "content": " \n"}]).response == "hello"
    assert read([reply, {"role": "assistant", "content": {"a": 1}}]).response == '{"a": 1}'


def test_text_before_the_last_question_is_not_the_answer() -> None:
    reply, question = {"role": "assistant", "content": "hello"}, {"role": "user", "content": "bye?"}
    empty = {"role": "assistant", "content": ""}
    assert read([reply, question, empty]).response == ""
    assert read([reply, question, call("t"), result("x")]).response == ""
    assert read([reply, question, {**call("t"), "content": "wait"}, result("x")]).response == "wait"


def test_the_answer_is_the_last_assistant_turn_when_the_user_message_is_last() -> None:
    reply, question = {"role": "assistant", "content": "hello"}, {"role": "user", "content": "bye?"}
    called = {**call("t"), "content": "wait"}
    for messages in ([reply, question], [called, result("x"), reply, question, question]):
        seen = read(messages)
        assert (seen.response, seen.error) == ("hello", None)
        assert USER_SPOKE_LAST in seen.notes
    seen = read({"response": None, "messages": [reply, question]})
    assert (seen.response, seen.notes) == ("hello", (USER_SPOKE_LAST,))
    assert read(seen.to_dict()) == seen
    assert read([reply, question, call("t"), question]).response == ""


def test_a_transcript_without_calls_has_an_empty_list_of_calls() -> None:
    assert read([{"role": "assistant", "content": "hello"}]).tool_calls == ()
    assert read({"messages": []}).tool_calls == ()
