"""Messages and tool calls, the same in files, cases and observations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_type_hints

import msgspec
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError, core_schema

from assay.wire.fields import Json, NonBlankText, Number, Text
from assay.wire.key_names import KeyNames
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import merge_errors, problem, shown

Role = Literal["system", "user", "assistant", "tool"]
_ROLES = get_args(Role)


class _Record(msgspec.Struct, frozen=True):
    """A record that authors write as a mapping with these keys and no others."""

    keys: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON of an eval file, without keys that are not given."""
        pairs = ((name, getattr(self, name)) for name in self.keys)
        return {name: value for name, value in pairs if value is not None}

    def replace(self, **changes: Any) -> Self:
        """A copy with other values."""
        return msgspec.structs.replace(self, **changes)

    @classmethod
    def of(cls, fields: dict[str, Any], written: Any) -> Self:
        """The record of checked fields; `written` has only the keys that were given."""
        return cls(**fields)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Validate a mapping, then create the record: pydantic does not support structs."""
        hints = get_type_hints(cls, include_extras=True)
        fields = {}
        for given in msgspec.structs.fields(cls):
            if given.name in cls.keys:
                schema = handler.generate_schema(hints[given.name])
                if not given.required:
                    schema = core_schema.with_default_schema(schema, default=given.default)
                fields[given.name] = core_schema.typed_dict_field(schema, required=given.required)
        mapping = core_schema.typed_dict_schema(fields, cls=cls, extra_behavior="forbid")
        return core_schema.no_info_wrap_validator_function(
            lambda given, read: given if isinstance(given, cls) else cls.of(read(given), given),
            mapping,
            ref=cls.__name__,
            serialization=core_schema.plain_serializer_function_ser_schema(cls.to_dict),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core)
        KeyNames(frozenset(cls.keys)).describe(handler.resolve_ref_schema(schema))
        return schema


def _check_mapping(cls: type[ToolCall] | type[ContentPart]) -> BeforeValidator:
    """Checks the type and the unknown keys of a mapping, with better messages than pydantic."""
    spelling = KeyNames(frozenset(cls.keys))

    def check(raw: Any, info: ValidationInfo) -> Any:
        if isinstance(raw, (dict, cls)):
            return spelling.canonical(raw, info.context)
        raise problem("wrong-type", f"is {shown(raw)}, not a mapping")

    return BeforeValidator(check)


class ToolCall(_Record, frozen=True):
    """A call an assistant made, or is expected to make. None means not given.

    `success`, `error` and `notes` belong to observed calls and cannot be written in a file. `notes`
    report what is unusual about the call: it has no result, or its input is not JSON.
    `has_null_input` is true if `input: null` was written, which is not the same as no input.
    """

    keys = ("tool", "input", "output", "id", "duration_ms")

    tool: Text
    input: Json = None
    output: Json = None
    id: str | None = None
    duration_ms: Annotated[Number, Field(ge=0)] | None = None
    success: bool | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    has_null_input: bool = False

    @classmethod
    def of(cls, fields: dict[str, Any], written: Any) -> Self:
        return cls(**fields, has_null_input="input" in written and written["input"] is None)

    def to_dict(self) -> dict[str, Any]:
        found = _Record.to_dict(self)
        return {"tool": self.tool, "input": None} | found if self.has_null_input else found


class ContentPart(_Record, frozen=True, eq=False):
    """A piece of a message: text, or a file. The loader sets `path` to the location of the file.

    Comparison and repr ignore `path`, so that parts are equal wherever their project is.
    """

    keys = ("type", "value")

    type: Literal["text", "file"]
    value: str
    path: Path | None = None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (self.type, self.value) == (other.type, other.value)

    def __hash__(self) -> int:
        return hash((self.type, self.value))

    def __repr__(self) -> str:
        return f"ContentPart(type={self.type!r}, value={self.value!r})"


def _find_file(part: ContentPart, info: ValidationInfo) -> ContentPart:
    context: ValidationContext | None = info.context
    if part.type == "file" and context is not None:
        try:
            return part.replace(path=context.find_file(part.value))
        except PydanticCustomError as error:
            raise merge_errors([error], ("value",)) from None
    return part


def _expand_part(raw: Any) -> Any:
    """A bare text in a list of parts is a text part."""
    return {"type": "text", "value": raw} if isinstance(raw, str) else raw


Part = Annotated[
    ContentPart,
    _check_mapping(ContentPart),
    BeforeValidator(_expand_part, json_schema_input_type=str | ContentPart),
    AfterValidator(_find_file),
]
_PARTS: TypeAdapter[tuple[ContentPart, ...]] = TypeAdapter(
    tuple[Part, ...], config=ConfigDict(defer_build=True)
)


def _validate_content(raw: Any, info: ValidationInfo) -> Any:
    if raw is None or isinstance(raw, (str, dict)):
        return raw
    if isinstance(raw, list):
        return _PARTS.validate_python(raw, context=info.context)
    raise problem("wrong-type", f"is {shown(raw)}, neither text, a mapping nor a list of parts")


Content = Annotated[
    Any,
    PlainValidator(
        _validate_content, json_schema_input_type=str | dict[str, Any] | list[Part] | None
    ),
]


class Message(_Record, frozen=True):
    """One message: `content` is text, a tuple of parts, or any JSON value."""

    keys = ("role", "name", "content", "tool_calls")

    role: Role
    content: Content = None
    tool_calls: tuple[Annotated[ToolCall, _check_mapping(ToolCall)], ...] = ()
    name: str | None = None

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        """As `_validate_message`: content or a tool call is required; only assistants call."""
        schema: dict[str, Any] = handler(core)
        calls = {"required": ["tool_calls"], "properties": {"tool_calls": {"minItems": 1}}}
        has_content = {
            "required": ["content"],
            "properties": {"content": {"not": {"type": "null"}}},
        }
        assistant = {"properties": {"role": {"const": "assistant"}}}
        body = handler.resolve_ref_schema(schema)
        KeyNames(frozenset(cls.keys)).describe(body)
        body |= {"anyOf": [has_content, calls], "if": calls, "then": assistant}
        return schema

    def to_dict(self) -> dict[str, Any]:
        if type(self.content) is str and not self.tool_calls and self.name is None:
            return {"role": self.role, "content": self.content}
        result = _Record.to_dict(self)
        if isinstance(self.content, tuple):
            result["content"] = [part.to_dict() for part in self.content]
        result.pop("tool_calls")
        if self.tool_calls:
            result["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        return result

    @property
    def text(self) -> str:
        """The text of the content; other JSON values as JSON, files by their value."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        if isinstance(self.content, tuple):
            return "\n".join(part.value for part in self.content)
        return json.dumps(self.content, ensure_ascii=False)


_MESSAGE_KEYS = KeyNames(frozenset(Message.keys))
_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message, config=ConfigDict(defer_build=True))


def _plain_message(raw: Any) -> Message | None:
    """The fast path for most messages; None for any that needs validation."""
    if type(raw) is not dict:
        return None
    content = raw.get("content")
    if type(content) is not str or raw.get("role") not in _ROLES:
        return None
    if len(raw) == 2:
        return Message(raw["role"], content)
    raw_calls = raw.get("tool_calls")
    if len(raw) > 3 or type(raw_calls) is not list or raw["role"] != "assistant":
        return None
    calls = [_plain_call(call) for call in raw_calls]
    return None if None in calls else Message("assistant", content, tuple(calls))  # type: ignore[arg-type]


def _plain_call(raw: Any) -> ToolCall | None:
    if type(raw) is dict and len(raw) == 2 and "input" in raw:
        tool = raw.get("tool")
        if type(tool) is str and tool:
            return ToolCall(tool, raw["input"], has_null_input=raw["input"] is None)
    return None


def plain_messages(raw: Any) -> Messages:
    """The fast path for a list of plain messages; empty for anything else, left to pydantic."""
    if type(raw) is not list:
        return ()
    messages = []
    for item in raw:
        if (message := _plain_message(item)) is None:
            return ()
        messages.append(message)
    return tuple(messages)


def _validate_message(raw: Any, info: ValidationInfo) -> Message:
    message = raw if isinstance(raw, Message) else _plain_message(raw)
    if message is None:
        if type(raw) is not dict:
            raise problem("wrong-type", f"is {shown(raw)}, not a mapping")
        keys = _MESSAGE_KEYS.canonical(raw, info.context)
        message = _MESSAGE.validator.validate_python(keys, context=info.context)
    if message.content is None and not message.tool_calls:
        raise problem("missing-key", "the message has neither 'content' nor 'tool_calls'")
    if message.tool_calls and message.role != "assistant":
        text = f"only assistants call tools, not {message.role!r}"
        raise problem("wrong-value", text, at="tool_calls")
    return message


WrittenMessage = Annotated[
    Message, PlainValidator(_validate_message, json_schema_input_type=Message)
]
Messages = tuple[WrittenMessage, ...]


def expand_input(raw: Any) -> Any:
    """A text is one user message."""
    if isinstance(raw, str):
        if not raw.strip():
            raise problem("wrong-value", "the text is empty")
        return (Message("user", raw),)
    if isinstance(raw, dict):
        hint = "write a list with this message" if "role" in raw else ""
        raise problem("wrong-type", "is a mapping, neither text nor a list of messages", hint)
    if not isinstance(raw, (list, tuple)):
        raise problem("wrong-type", f"is {shown(raw)}, neither text nor a list of messages")
    return raw


def _is_message(raw: Any) -> bool:
    """A mapping with a known role, or with any role and content; `role: admin` alone is data."""
    if not isinstance(raw, dict) or "role" not in raw:
        return False
    return raw["role"] in _ROLES or "content" in raw or "tool_calls" in raw


def expand_output(raw: Any) -> Any:
    """Anything but messages is the content of one assistant message."""
    if _is_message(raw):
        return [raw]
    if isinstance(raw, list):
        for item in raw:
            if _is_message(item):
                return raw
    return raw if isinstance(raw, tuple) else (Message("assistant", raw),)


#: `_is_message` in JSON Schema
MESSAGE: dict[str, Any] = {
    "type": "object",
    "required": ["role"],
    "anyOf": [
        {"properties": {"role": {"enum": list(_ROLES)}}},
        {"required": ["content"]},
        {"required": ["tool_calls"]},
    ],
}
_MESSAGE_REF = {"$ref": "#/$defs/Message"}
_OUTPUT = {
    "if": {"type": "array", "contains": MESSAGE},
    "then": {"items": _MESSAGE_REF},
    "else": {"if": MESSAGE, "then": _MESSAGE_REF},
}


SomeMessages = Annotated[list[WrittenMessage], Field(min_length=1)]
InputMessages = Annotated[
    Messages,
    Field(min_length=1),
    WrapValidator(
        lambda raw, handler: plain_messages(raw) or handler(expand_input(raw)),
        json_schema_input_type=NonBlankText | SomeMessages,
    ),
]
ExpectedMessages = Annotated[
    Messages,
    Field(min_length=1),
    WrapValidator(lambda raw, handler: plain_messages(raw) or handler(expand_output(raw))),
    WithJsonSchema(_OUTPUT),
]
