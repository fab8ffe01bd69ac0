"""Tools of a chat model: their definitions, and stubs in their place."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, Field, WrapValidator

from assay.model.function import check_reference
from assay.model.json_schema import check_schema
from assay.model.message import ToolCall
from assay.wire.fields import Json, Text
from assay.wire.shape import Shape
from assay.wire.validation_errors import AlsoCheck, problem, repeated, shown

#: What the name of a function begins with, in place of a definition.
PREFIX = "python:"
#: The schema of a tool's parameters if only its name is known.
ANYTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}


class ToolDefinition(Shape):
    """A tool that a model may call; `parameters` is the JSON Schema of its arguments."""

    name: Text
    description: Text | None = None
    parameters: Annotated[dict[str, Json], AfterValidator(check_schema)] | None = None

    def wire(self, schema_key: str) -> dict[str, Any]:
        """The definition in JSON, with its schema under the API's key for it."""
        described = {"description": self.description} if self.description else {}
        return {"name": self.name, **described, schema_key: self.parameters or ANYTHING}


def _repeated(raw: Any) -> Iterable[Any]:
    return repeated(raw, "the tool {} is defined twice", "name")


def _function_or_definition(raw: Any, handler: Any) -> Any:
    if not isinstance(raw, str):
        return handler(raw)
    if not raw.startswith(PREFIX):
        message = f"is {shown(raw)}, neither a mapping nor 'python:' and a function"
        raise problem("wrong-value", message, "for example python:my_tools:get_weather")
    return PREFIX + check_reference(raw.removeprefix(PREFIX))


_REFERENCE = Annotated[str, Field(pattern=f"^{PREFIX}.*:")]
#: A definition, or the name of a function of the project: `python:module:function`.
Tool = Annotated[
    ToolDefinition,
    WrapValidator(_function_or_definition, json_schema_input_type=_REFERENCE | ToolDefinition),
]
#: What a target has under `tools`; in values, each is a ToolDefinition or a text.
Tools = Annotated[tuple[Tool, ...], AlsoCheck(_repeated)]


def offered(tools: Iterable[ToolDefinition], names: Iterable[str]) -> list[ToolDefinition]:
    """The tools, and one without a schema for each other name."""
    known = {tool.name: tool for tool in tools}
    for name in names:
        known.setdefault(name, ToolDefinition(name=name))
    return list(known.values())


class Answer(msgspec.Struct, frozen=True):
    """A call of the model with its result, and the text of the result for the model."""

    call: ToolCall
    text: str

    @property
    def failed(self) -> bool:
        return self.call.success is False


def succeeded(call: ToolCall, result: Any) -> Answer:
    """The call with its result."""
    return Answer(call.replace(output=result, success=True), result_text(result))


def failed(call: ToolCall, error: str) -> Answer:
    """The call with the error that the model sees."""
    return Answer(call.replace(success=False, error=error), f"Error: {error}")


def result_text(result: Any) -> str:
    """A result for the model: text as it is, anything else as JSON."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
