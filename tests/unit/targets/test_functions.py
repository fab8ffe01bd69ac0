"""Python functions as tools of chat models, against a server that plays the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assay.errors import UsageError
from assay.model.observation import Observation
from assay.ports import Request
from assay.targets.functions import MAX_RESULT
from unit import provider_server as provider
from unit.provider_server import ProviderServer
from unit.target_calls import answer, request
from unit.targets.test_conversation import PROVIDERS, calls, claude, openai

MODULE = '''
import asyncio, threading
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal
from pydantic import Field

@dataclass
class Weather:
    city: str
    day: date

def get_weather(city: str, unit: Literal["C", "F"] = "C"):
    """The weather of a city,
    today.

    Args:
        city: The name of the city,
            in English.
        unit (str): The unit.

    Returns:
        The weather.
    """
    return {"city": city, "unit": unit, "thread": threading.current_thread().name}

def on(day: date, city: Annotated[str, Field(min_length=2)]) -> Weather:
    """Forecast.

    :param day: The day.
    """
    return Weather(city, day)

async def later(seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return "done"

def hang() -> None:
    threading.Event().wait()

def broken() -> None:
    raise LookupError("no such city\\n" + "Berlin")

def odd() -> object:
    return object()

def large(characters: int) -> str:
    return "x" * characters

class Client:
    def fetch(self, path: str) -> str:
        return f"fetched {path}"

client = Client()

def many(*cities: str) -> None: ...

def unknown(city: "Nowhere") -> None: ...
'''

Ask = Callable[..., tuple[Observation, list[Any]]]


@pytest.fixture(params=[openai, claude])
def ask(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Asks a model with a function of a new module as its tool, which it calls with arguments."""
    name = f"tools_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return lambda tool, given=None, **more: asked(request.param, f"{name}:{tool}", given, **more)


def asked(
    provided: Any, reference: str, given: Any, called: str = "", **more: Any
) -> tuple[Observation, list[Any]]:
    """The answer of a model that calls the function once, and what it was sent."""
    case = {key: more.pop(key) for key in ("stubs", "max_turns") if key in more}
    made = calls((called or reference.rpartition(":")[2], {} if given is None else given))
    with ProviderServer(made, provider.says("Done")) as server:
        target = provided(server, tools=[f"python:{reference}"], **more)
        seen = answer(target, _request(**case))
    return seen, server.bodies


def _request(**case: Any) -> Request:
    return request(**case)


def only_call(seen: Observation) -> Any:
    assert seen.tool_calls is not None
    (call,) = seen.tool_calls
    return call


def test_a_function_is_described_called_and_recorded(ask: Ask) -> None:
    seen, (first, second) = ask("get_weather", {"city": "Oslo"})
    assert seen.response == "Done"
    call = only_call(seen)
    assert (call.success, call.output["city"], call.output["unit"]) == (True, "Oslo", "C")
    assert call.output["thread"] != "MainThread"
    assert call.duration_ms is not None
    assert (seen.duration_ms or 0) > call.duration_ms
    (tool,) = first["tools"]
    tool = tool.get("function", tool)
    assert (tool["name"], tool["description"]) == ("get_weather", "The weather of a city,\ntoday.")
    schema = tool.get("parameters") or tool.get("input_schema")
    assert schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "description": "The name of the city, in English."},
            "unit": {
                "type": "string",
                "enum": ["C", "F"],
                "default": "C",
                "description": "The unit.",
            },
        },
    }
    assert "Oslo" in json.dumps(second["messages"][-1])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "wrong arguments: 'city' is a required property"),
        ({"city": 5}, "city: 5 is not of type"),
        ({"city": "Oslo", "unit": "K"}, "unit: "),
        ({"city": "Oslo", "town": 1}, "unexpected: the key 'town'"),
    ],
)
def test_a_wrong_argument_is_an_error_that_the_model_sees(ask: Ask, given: Any, words: str) -> None:
    seen, (_, sent) = ask("get_weather", given)
    call = only_call(seen)
    assert (call.success, call.output, call.duration_ms) == (False, None, None)
    assert words in call.error
    assert "Error: wrong arguments" in json.dumps(sent["messages"][-1])
    assert (seen.response, seen.error) == ("Done", None)


def test_arguments_become_the_types_of_the_parameters(ask: Ask) -> None:
    seen, _ = ask("on", {"day": "2026-01-15", "city": "Oslo"})
    assert only_call(seen).output == {"city": "Oslo", "day": "2026-01-15"}
    seen, _ = ask("on", {"day": "some day", "city": "Oslo"})
    assert only_call(seen).error.startswith("wrong arguments: day: ")


def test_an_async_function_is_awaited(ask: Ask) -> None:
    seen, _ = ask("later")
    assert only_call(seen).output == "done"


@pytest.mark.parametrize(("tool", "given"), [("hang", {}), ("later", {"seconds": 3600})])
def test_a_function_that_hangs_is_an_error_after_its_time(ask: Ask, tool: str, given: Any) -> None:
    seen, _ = ask(tool, given, tool_timeout_seconds=0.01)
    call = only_call(seen)
    assert call.error == f"{tool} returned nothing within 0.01 s"
    assert (call.duration_ms, seen.response) == (10, "Done")


def test_an_exception_is_an_error_with_its_last_line(ask: Ask) -> None:
    seen, (_, sent) = ask("broken")
    call = only_call(seen)
    assert "LookupError" in call.error
    assert "Berlin" in call.error
    assert "Traceback" not in json.dumps(sent)
    assert seen.error is None


def test_a_result_that_is_not_json_is_an_error(ask: Ask) -> None:
    seen, _ = ask("odd")
    assert "cannot be converted to JSON" in only_call(seen).error


def test_a_result_that_is_too_large_is_an_error(ask: Ask) -> None:
    seen, _ = ask("large", {"characters": MAX_RESULT})
    assert only_call(seen).output == "x" * MAX_RESULT
    seen, sent = ask("large", {"characters": MAX_RESULT + 1})
    call = only_call(seen)
    assert (call.success, call.output) == (False, None)
    assert call.error == "large returned 1,000,001 characters; a result may have 1,000,000"
    assert len(json.dumps(sent)) < 10_000


def test_a_method_of_an_object_is_called_without_self(ask: Ask) -> None:
    seen, (first, _) = ask("client.fetch", {"path": "a"}, called="fetch")
    assert only_call(seen).output == "fetched a"
    assert "self" not in json.dumps(first["tools"])


def test_a_stub_takes_the_place_of_the_function(ask: Ask) -> None:
    seen, (sent, _) = ask("hang", stubs={"hang": "from a stub"})
    assert only_call(seen).output == "from a stub"
    assert len(sent["tools"]) == 1


def test_a_call_of_another_tool_is_an_error_of_the_trial(ask: Ask) -> None:
    seen, sent = ask("get_weather", called="get_wether")
    assert len(sent) == 1
    assert seen.error is not None
    assert "the tools are get_weather (did you mean 'get_weather'?)" in seen.error


def test_the_calls_end_after_max_turns(ask: Ask) -> None:
    seen, sent = ask("later", max_turns=1)
    assert len(sent) == 1
    assert seen.notes == ("stopped after 1 turn: the model still called tools",)


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("many", "its parameter '\\*cities: str' cannot be given by name"),
        ("unknown", "cannot be a tool of a model"),
        ("Client.fetch", "it is a method of a class"),
        ("get_wether", "did you mean 'get_weather'"),
    ],
)
def test_a_function_that_cannot_be_a_tool_ends_the_run(ask: Ask, tool: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask(tool)


@PROVIDERS
def test_a_text_that_names_no_function_is_refused_at_its_place(provided: Any) -> None:
    with ProviderServer() as server:
        for wrong in ("get_weather", "python:get_weather"):
            with pytest.raises(ValidationError) as caught:
                provided(server, tools=[{"name": "x"}, wrong])
            (found,) = caught.value.errors()
            assert found["loc"] == ("tools", 1)


def test_a_name_that_is_defined_twice_is_refused() -> None:
    tools = [{"name": "basename"}, "python:os.path:basename"]
    with ProviderServer() as server, pytest.raises(UsageError, match="'basename' is defined twice"):
        openai(server, tools=tools)
