"""Functions of the project as agents: what they are given, what they may give back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import ValidationError

from assay import threads
from assay.errors import UsageError
from assay.model.message import Message, ToolCall
from assay.model.observation import Observation
from assay.ports import Request, Target
from assay.targets.python import PythonTarget
from timeouts import WAIT_SECONDS
from unit.target_calls import answer, answers, fault, file_part, request

Write = Callable[[str], None]


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the module `my_agent` of a project."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(code: str) -> None:
        (tmp_path / "my_agent.py").write_text(dedent(code))

    yield write
    sys.modules.pop("my_agent", None)


def connected(name: str = "ask") -> Target:
    return PythonTarget(callable=f"my_agent:{name}").connect()


def refused(name: str = "ask") -> str:
    with pytest.raises(UsageError) as caught:
        connected(name)
    return str(caught.value)


# What a function is given


def test_one_parameter_is_the_text_of_the_question(agent: Write) -> None:
    agent("def ask(anything): return anything.upper()")
    seen = answer(connected(), request("Hi"))
    assert (seen.response, seen.tool_calls) == ("HI", None)


def test_the_text_is_of_all_user_messages_with_their_files(agent: Write, tmp_path: Path) -> None:
    agent("def ask(text): return text")
    (tmp_path / "data.txt").write_text("1, 2")
    parts = (file_part(tmp_path / "data.txt", "data.txt"),)
    messages = (Message("system", "Be kind"), Message("user", "Sum:"), Message("user", parts))
    assert answer(connected(), request(messages=messages)).response == "Sum:\nFile data.txt:\n1, 2"


@pytest.mark.parametrize(
    "signature",
    [
        "case",
        "question: EvalCase",
        "question: 'EvalCase'",
        "question: 'assay.EvalCase'",
        "case, retries=3, *, mood='good'",
    ],
)
def test_a_function_with_a_case_parameter_gets_the_case(agent: Write, signature: str) -> None:
    name = signature.split(":")[0].split(",")[0]
    code = f"from assay import EvalCase\ndef ask({signature}): return {name}.metadata['city']"
    agent(code)
    assert answer(connected(), request(metadata={"city": "Oslo"})).response == "Oslo"


def test_annotations_that_are_not_evaluated_are_understood(agent: Write) -> None:
    agent("""
        from __future__ import annotations
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from assay import EvalCase
        def ask(it: EvalCase): return it.id
    """)
    assert answer(connected(), request()).response == "one"


def test_a_function_with_a_messages_parameter_gets_the_messages(agent: Write) -> None:
    agent("def ask(messages): return ' '.join(m['role'] for m in messages)")
    messages = (Message("system", "Be kind"), Message("user", "Hi"))
    assert answer(connected(), request(messages=messages)).response == "system user"


def test_a_function_that_takes_a_case_cannot_be_a_judge(agent: Write) -> None:
    agent("def ask(case): return case.id")
    assert "takes a case, and this request has none" in str(
        fault(connected(), Request((Message("user", "Hi"),)))
    )


@pytest.mark.parametrize("name", ["Agent().ask", "bound", "Bots.ask", "partial", "built_in", "any"])
def test_any_callable_is_accepted(agent: Write, name: str) -> None:
    agent("""
        from functools import partial as make
        class Agent:
            def ask(self, text): return text
            async def __call__(self, text): return text
        class Bots:
            ask = Agent()
        bound = Agent().ask
        partial = make(lambda mood, text: text, "good")
        built_in = str
        def any(*texts): return texts[0]
    """)
    name = name.replace("Agent().ask", "bound")
    assert answer(connected(name), request("Hi")).response == "Hi"


@pytest.mark.parametrize("parameters", ["", "question, context", "*, question", "*, question, x=1"])
def test_a_function_with_the_wrong_parameters_is_refused(agent: Write, parameters: str) -> None:
    agent(f"def ask({parameters}): ...")
    assert "python:my_agent:ask must take one argument" in refused()


# What it may give back


def test_an_async_function_is_awaited(agent: Write) -> None:
    agent("async def ask(text): return text")
    assert answer(connected(), request("Hi")).response == "Hi"


def test_an_awaitable_return_value_is_awaited(agent: Write) -> None:
    agent("async def soon(text): return text\nask = lambda text: soon(text)")
    assert answer(connected(), request("Hi")).response == "Hi"


def test_any_known_shape_may_be_returned(agent: Write) -> None:
    agent("""
        def own(text):
            return {"response": "4", "toolCalls": [{"name": "add", "params": {"of": (1, 3)}}]}
        def openai(text):
            return [{"role": "assistant", "content": "Hello"}]
    """)
    seen = answer(connected("own"), request())
    assert seen.tool_calls == (ToolCall("add", {"of": [1, 3]}),)
    assert seen.duration_ms is not None
    assert answer(connected("openai"), request()).response == "Hello"


def test_an_observation_may_be_returned(agent: Write) -> None:
    agent("""
        from assay.model.message import ToolCall
        from assay.model.observation import Observation
        def ask(text):
            return Observation("Hello", tool_calls=(ToolCall("wave", {}),), duration_ms=7.0)
    """)
    calls = (ToolCall("wave", {}),)
    assert answer(connected(), request()) == Observation("Hello", calls, duration_ms=7.0)


@pytest.mark.parametrize(
    "returned",
    ["Model(response='Hello', calls=[Call(name='wave')])", "Record('Hello', [Step('wave')])"],
)
def test_models_and_dataclasses_are_read_as_mappings(agent: Write, returned: str) -> None:
    agent(f"""
        import dataclasses
        import datetime
        import pydantic
        class Call(pydantic.BaseModel):
            name: str
            params: dict = {{}}
        class Model(pydantic.BaseModel):
            response: str
            calls: list[Call] = pydantic.Field(serialization_alias="toolCalls")
            def model_dump(self, **how): return super().model_dump(by_alias=True, **how)
        @dataclasses.dataclass
        class Step:
            name: str
            params: dict = dataclasses.field(default_factory=dict)
        @dataclasses.dataclass
        class Record:
            response: str
            toolCalls: list
            at: datetime.date = datetime.date(2026, 1, 31)
        def ask(text): return {returned}
    """)
    seen = answer(connected(), request())
    assert (seen.response, seen.tool_calls) == ("Hello", (ToolCall("wave", {}),))


def test_models_inside_a_mapping_are_read(agent: Write) -> None:
    agent("""
        from dataclasses import dataclass
        @dataclass
        class Step:
            name: str
        def ask(text): return {"response": "Hello", "toolCalls": [Step("wave")]}
    """)
    assert answer(connected(), request()).tool_calls == (ToolCall("wave"),)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("None", "returned None; it can return text, a mapping, an Observation"),
        ("5", "an invalid observation: 5"),
        ("{'answer': 'x'}", "an invalid observation: a mapping with 'answer'"),
        ("{'respnse': 'x'}", "(did you mean 'response'?); expected a mapping with 'response' or"),
        (
            "{'response': 'x', 'toolCalls': [{}]}",
            "ask returned an invalid observation: 'toolCalls[0]' has no 'name'",
        ),
        ("{'response': object()}", "cannot be converted to JSON: an object"),
        ("{'response': 'x', 'costUsd': float('nan')}", "cannot be converted to JSON"),
        ("{'response': 'x', 'usage': {1, 2}}", "cannot be converted to JSON: a set"),
        ("Observation('x', (ToolCall('t', object()),))", "cannot be converted to JSON"),
        ("b'bytes'", "cannot be converted to JSON: a bytes"),
        ("Broken('x')", "JSON: a Broken (KeyError: 'lost')"),
        ("Broken", "JSON: a type"),
        ("Observation('x', notes='hi')", "'notes' is a str, not a tuple: (text,)"),
        ("Observation('x', cost_usd=-1)", "'cost_usd' is -1, not a number >= 0"),
        ("Observation('x', duration_ms=float('nan'))", "'duration_ms' is nan, not a number"),
        ("Observation('x', [{'name': 't'}])", "'tool_calls[0]' is a dict, not ToolCall('search'"),
        ("Observation('x', usage={'inputTokens': 1})", "'usage' is a dict, not Usage(input_tokens"),
        ("Observation('x', messages=['hi'])", "'messages[0]' is a str, not Message('assistant'"),
        ("Observation(3)", "'response' is an int, not text"),
        ("Observation(error=ValueError('x'))", "'error' is a ValueError, not text"),
    ],
)
def test_other_values_are_errors(agent: Write, returned: str, words: str) -> None:
    agent(f"""
        from assay.model.message import ToolCall
        from assay.model.observation import Observation
        class Broken:
            def __init__(self, text): self.text = text
            def model_dump(self, mode): return {{}}["lost"]
        def ask(text): return {returned}
    """)
    error = fault(connected(), request())
    assert "python:my_agent:ask returned " in str(error)
    assert words in str(error)
    assert not error.retryable


def test_changes_after_the_return_have_no_effect(agent: Write) -> None:
    agent("""
        log = {"response": "", "toolCalls": []}
        def ask(text):
            log["response"] = text
            log["toolCalls"].append({"name": text})
            return log
    """)
    first, second = answers(connected(), request("a"), request("b"))
    assert first.raw == {"response": "a", "toolCalls": [{"name": "a"}]}
    assert second.response == "b"


# Faults


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("raised", "words"),
    [
        ("ValueError('no such city')", "raised ValueError: no such city (my_agent.py:1)"),
        ("KeyError('x')", "raised KeyError: 'x'"),
        ("TimeoutError", "raised TimeoutError (my_agent.py:1)"),
        ("StopIteration('x')", "raised"),
        ("SystemExit(3)", "raised SystemExit: 3"),
    ],
)
def test_an_exception_is_an_error_that_is_not_retried(
    agent: Write, kind: str, raised: str, words: str
) -> None:
    agent(f"{kind} ask(text): raise {raised}")
    error = fault(connected(), request())
    assert f"python:my_agent:ask {words}" in str(error)
    assert not error.retryable


def test_a_blocking_function_does_not_block_others(agent: Write) -> None:
    """All of them run at once, more than a pool of threads would let."""
    agent("""
        import threading
        together = threading.Barrier(50)
        def ask(text):
            together.wait(60)
            return text
    """)
    target = connected()

    async def run() -> list[str]:
        seen = await asyncio.gather(*(target.ask(request(str(i))) for i in range(50)))
        return [each.response for each in seen]

    assert asyncio.run(run()) == [str(i) for i in range(50)]


def test_a_function_that_hangs_can_be_left(agent: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.01)
    agent("""
        import threading
        begun, release, workers = threading.Event(), threading.Event(), []
        def ask(text):
            workers.append(threading.current_thread())
            begun.set()
            release.wait()
            return text
    """)
    target = connected()
    import my_agent  # type: ignore[import-not-found]

    async def run() -> None:
        asking = asyncio.ensure_future(target.ask(request()))
        await asyncio.to_thread(my_agent.begun.wait, WAIT_SECONDS)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(run())
    (worker,) = my_agent.workers
    assert worker.daemon
    my_agent.release.set()
    worker.join(WAIT_SECONDS)  # what it returns to a closed loop is dropped without a sound
    assert not worker.is_alive()


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        ("", "missing:ask", "there is no module 'missing' in the project"),
        ("", "my_agent.deep:ask", "there is no module 'my_agent.deep'"),
        ("def asking(text): ...", "my_agent:askin", "no 'askin' (did you mean 'asking'?)"),
        ("ask = 5", "my_agent:ask", "python:my_agent:ask is int, not a function"),
        ("import nowhere", "my_agent:ask", "ModuleNotFoundError: No module named 'nowhere'"),
        ("def ask(:", "my_agent:ask", "could not be imported: SyntaxError"),
        ("1 / 0", "my_agent:ask", "imported: ZeroDivisionError: division by zero (my_agent.py:1)"),
        ("import sys; sys.exit(1)", "my_agent:ask", "could not be imported: SystemExit: 1"),
    ],
)
def test_an_import_failure_is_reported_on_connect(
    agent: Write, code: str, name: str, words: str
) -> None:
    agent(code)
    with pytest.raises(UsageError) as caught:
        PythonTarget(callable=name).connect()
    assert words in str(caught.value)
    assert "<frozen" not in str(caught.value)


@pytest.mark.parametrize("name", ["my_agent", "my-agent:ask", "my_agent:", ":ask", "a:b:c", "a:1"])
def test_a_name_without_module_and_function_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match=r"package\.module:function"):
        PythonTarget(callable=name)


def test_it_is_called_by_its_name_or_its_function() -> None:
    settings: dict[str, Any] = {"callable": "a.b:c"}
    assert PythonTarget(**settings).label == "python:a.b:c"
    assert PythonTarget(name="mine", **settings).label == "mine"
