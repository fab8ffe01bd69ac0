"""Python functions of a project as tools of a chat model."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import ArgsKwargs

from assay.errors import UsageError
from assay.model.json_schema import AnswerSchema, answer_schema
from assay.model.message import ToolCall
from assay.problems import MAX_MESSAGE
from assay.redaction import cut
from assay.registry import imported, raised
from assay.targets.sdk_results import json_of
from assay.targets.tools import PREFIX, Answer, ToolDefinition, failed, succeeded
from assay.text import printable
from assay.threads import TARGETS_LOOP, IsolatedLoop, Outcome, in_thread

#: The most characters of a result: more would not fit any model, and be in every later request.
MAX_RESULT = 1_000_000

_SECTION = re.compile(r"[A-Z][a-z]+:\s*\Z")
_ARGUMENTS = re.compile(r"(Args|Arguments|Parameters):\s*\Z")
_ARGUMENT = re.compile(r"\s+(\w+)\s*(?:\([^)]*\))?:\s*(.*)\Z")
_FIELD = re.compile(r":param\s+(?:\w+\s+)?(\w+):\s*(.*)\Z")


class ToolFunction(msgspec.Struct, frozen=True):
    """A function that a model may call: its definition, and how it is called."""

    definition: ToolDefinition
    function: Callable[..., Any]
    adapter: Any
    schema: AnswerSchema

    @classmethod
    def named(cls, reference: str) -> ToolFunction:
        """The function; raises UsageError if it cannot be imported or described to a model."""
        function = imported(reference.removeprefix(PREFIX), UsageError)
        try:
            _check_parameters(function)
            adapter: Any = TypeAdapter(cast("Any", function))
            schema = adapter.json_schema()
            compiled = answer_schema(schema)
        except (PydanticUserError, ValueError, TypeError, NameError) as error:
            reason = str(error).partition("\n")[0]
            raise UsageError(f"{reference} cannot be a tool of a model: {reason}") from None
        text, arguments = _docstring(function)
        for name, property_schema in schema.get("properties", {}).items():
            property_schema.pop("title", None)
            if name in arguments:
                property_schema.setdefault("description", arguments[name])
        name = re.split(r"[.:]", reference)[-1]
        definition = ToolDefinition(name=name, description=text or None, parameters=schema)
        return cls(definition, function, adapter, compiled)

    async def answer(self, call: ToolCall, loop: IsolatedLoop, seconds: float) -> Answer:
        """The call with what the function returned, or with why it failed."""
        arguments = {} if call.input is None else call.input
        try:
            faults = self.schema.faults(arguments)
        except (TimeoutError, RecursionError):
            faults = ["the arguments are too large to check"]
        if faults:
            return failed(call, f"wrong arguments: {'; '.join(faults)}")
        try:
            async with asyncio.timeout(seconds):
                outcome = await self._outcome(arguments, loop)
        except TimeoutError:
            late = call.replace(duration_ms=seconds * 1000)
            return failed(late, f"{call.tool} returned nothing within {seconds:g} s")
        call = call.replace(duration_ms=outcome.duration_ms)
        if outcome.error is not None:
            return failed(call, _reason(outcome.error))
        try:
            answer = succeeded(call, json_of(outcome.value))
        except (TypeError, ValueError, RecursionError) as error:
            reason = f"{call.tool} returned a value that cannot be converted to JSON: {error}"
            return failed(call, printable(cut(reason, MAX_MESSAGE, "both")))
        if len(answer.text) > MAX_RESULT:
            most = f"a result may have {MAX_RESULT:,}"
            return failed(call, f"{call.tool} returned {len(answer.text):,} characters; {most}")
        return answer

    async def _outcome(self, arguments: Mapping[str, Any], loop: IsolatedLoop) -> Outcome:
        outcome = await in_thread(self.adapter.validate_python, ArgsKwargs((), dict(arguments)))
        value = outcome.value
        return await loop.outcome(lambda: value) if inspect.isawaitable(value) else outcome


class ToolFunctions:
    """The functions of a target; async ones run on the event loop of all targets."""

    def __init__(self, references: Sequence[str], seconds: float) -> None:
        found = [ToolFunction.named(reference) for reference in references]
        self._functions = {each.definition.name: each for each in found}
        self._seconds = seconds
        self._loop = TARGETS_LOOP.join() if references else None

    def __contains__(self, tool: str) -> bool:
        return tool in self._functions

    def __bool__(self) -> bool:
        return bool(self._functions)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(each.definition for each in self._functions.values())

    async def answer(self, call: ToolCall) -> Answer:
        """The answer of the function of the call's tool, which must be one of them."""
        assert self._loop is not None
        return await self._functions[call.tool].answer(call, self._loop, self._seconds)

    async def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            await loop.close()


def _check_parameters(function: Callable[..., Any]) -> None:
    """Raise ValueError if a mapping of arguments does not fit the parameters."""
    parameters = inspect.signature(function).parameters
    if inspect.isfunction(function) and next(iter(parameters), "") == "self":
        raise ValueError("it is a method of a class; name that of an object, such as client.fetch")
    for parameter in parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise ValueError(f"its parameter {str(parameter)!r} cannot be given by name")


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description, and those of the parameters, in the style of Google or of Sphinx."""
    text, arguments = list[str](), dict[str, str]()
    section, last = "", ""
    for line in (inspect.getdoc(function) or "").splitlines():
        if _SECTION.match(line):
            section = line
        elif field := _FIELD.match(line):
            section, last = ":param", field[1]
            arguments[last] = field[2]
        elif not section and not line.startswith(":"):
            text.append(line)
        elif _ARGUMENTS.match(section) and (argument := _ARGUMENT.match(line)):
            last = argument[1]
            arguments[last] = argument[2]
        elif line.strip() and last and (section == ":param" or _ARGUMENTS.match(section)):
            arguments[last] += f" {line.strip()}"
    return "\n".join(text).strip(), arguments


def _reason(error: BaseException) -> str:
    """The last line of an exception."""
    if isinstance(error, ValidationError):
        faults = error.errors(include_url=False, include_input=False)
        told = ["{}: {}".format(".".join(map(str, each["loc"])), each["msg"]) for each in faults]
        return f"wrong arguments: {'; '.join(told)}"
    return raised(error)
