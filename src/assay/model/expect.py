"""The `expect` block: assertions on the tools an agent called and the text it gave.

Keys are written in camelCase or in snake_case; the fields carry the camelCase names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from assay import tokens
from assay.errors import BadPattern, nearest
from assay.model.json_schema import check_schema
from assay.model.rules import Asserts, BelongsTo, Excludes, Rule, Ruled
from assay.model.shape import (
    AtLeastOne,
    Count,
    Empty,
    Flag,
    Json,
    Positive,
    Shape,
    Text,
    problem,
)
from assay.patterns import compile_pattern

#: In a set of tools, alone: no tool at all.
NO_TOOL = "__none__"


def snake(name: str) -> str:
    """`toolsCalled` as `tools_called`."""
    return re.sub(r"([A-Z])", lambda m: "_" + m[1].lower(), name)


def _check_pattern(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except BadPattern as error:
        raise problem("bad-regex", f"{pattern!r} does not compile: {error}") from None
    return pattern


def _check_tokens(text: str) -> str:
    for token in tokens.find(text):
        if token.fault:
            hint = (
                nearest(token.source, tokens.SOURCES, 0.5)
                if token.source not in tokens.SOURCES
                else ""
            )
            raise problem("bad-token", f"{token.text!r}: {token.fault}", hint)
    return text


def _check_value_tokens(value: Any) -> Any:
    for text in _texts(value):
        _check_tokens(text)
    return value


def _check_set(tools: list[str]) -> list[str]:
    if NO_TOOL in tools and len(tools) > 1:
        raise problem("wrong-value", f"{NO_TOOL!r} means no tool and must stand alone in its set")
    return tools


def _check_called(tools: list[str]) -> list[str]:
    if NO_TOOL in tools:
        message = f"{NO_TOOL!r} belongs in 'toolsAcceptable'"
        raise problem("wrong-value", message, "write toolsCalled: []")
    return tools


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


Regex = Annotated[Text, AfterValidator(_check_pattern)]
Tokened = Annotated[Text, AfterValidator(_check_tokens)]
ToolName = Text
_NAMES_NO_TOOL: Any = {"contains": {"const": NO_TOOL}}
_ALONE: Any = {"if": _NAMES_NO_TOOL, "then": {"maxItems": 1}}
_NOT_THERE: Any = {"not": _NAMES_NO_TOOL}
ToolSet = Annotated[list[ToolName], AfterValidator(_check_set), Field(json_schema_extra=_ALONE)]
ToolsCalled = Annotated[ToolSet, AfterValidator(_check_called), Field(json_schema_extra=_NOT_THERE)]


def _value_when(assertion: str, schema: dict[str, Any]) -> dict[str, Any]:
    chosen = {"properties": {"assertion": {"const": assertion}}, "required": ["assertion"]}
    return {"if": chosen, "then": {"properties": {"value": schema}}}


class ToolParam(Ruled):
    """An assertion on one parameter of the calls of one tool."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                _value_when("oneOf", {"type": "array", "minItems": 1}),
                _value_when("matches", {"type": "string"}),
            ]
        }
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        BelongsTo("value", "assertion", ("equals", "contains", "oneOf", "matches"), needed=True),
    )

    tool: ToolName
    paramName: Text
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: Annotated[Json, AfterValidator(_check_value_tokens)] = None
    call: AtLeastOne | None = None

    @model_validator(mode="after")
    def _value_fits(self) -> ToolParam:
        if self.assertion == "oneOf" and not (isinstance(self.value, list) and self.value):
            raise problem("wrong-type", "'oneOf' needs a list of values")
        if self.assertion == "matches":
            if not isinstance(self.value, str):
                raise problem("wrong-type", "'matches' needs a regular expression")
            _check_pattern(self.value)
        return self

    def resolve(self, sources: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """The value with its tokens replaced, and the members that `oneOf` lost on the way."""
        if self.assertion != "oneOf":
            return _resolve_value(self.value, sources), []
        kept, without = _resolve_each(self.value, sources)
        return (kept, without) if kept else (_UNRESOLVED, [])


class ExpectBase(Shape):
    """The keys that every tier takes."""

    toolsCalledMode: Literal["set", "multiset", "sequence"] = "set"
    toolsNotCalled: list[ToolName] = Empty(list)
    toolParams: list[ToolParam] = Empty(list)
    responseContains: list[Tokened] = Empty(list)
    responseContainsAny: list[Annotated[list[Tokened], Field(min_length=1)]] = Empty(list)
    responseNotContains: list[Tokened] = Empty(list)
    responseMatches: list[Regex] = Empty(list)
    maxLatencyMs: Positive | None = None
    maxTokens: Positive | None = None
    maxCostUsd: Positive | None = None
    minToolCalls: Count | None = None
    maxToolCalls: Count | None = None
    jsonValid: Flag = False
    jsonSchema: dict[str, Json] | None = None
    minLength: Count | None = None
    maxLength: Count | None = None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name in cls.model_fields:
            if snake(name) != name:
                cls.spelling.add(snake(name), name)

    def __getattr__(self, name: str) -> Any:
        """Snake_case spellings reach the same settings: `tools_called`."""
        camel = type(self).spelling.aliases.get(name)
        if camel is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return getattr(self, camel)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for low, high in (("minToolCalls", "maxToolCalls"), ("minLength", "maxLength")):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None and least > most:
                raise problem("conflicting-keys", f"{low} {least} is above {high} {most}")
        return self

    def asserted(self) -> list[str]:
        """The keys that assert something; false and empty lists do not."""
        return ASSERTED.said(self)

    def resolve(self, sources: Mapping[str, Any]) -> tuple[Self, list[str], list[str]]:
        """The block with its tokens replaced, what was skipped for want of a value, and dropped.

        One entry a skipped value and a skipped group; a member of a group that keeps others
        is dropped, not skipped.
        """
        changes: dict[str, Any] = {}
        skipped: list[str] = []
        dropped: list[str] = []
        for key in ("responseContains", "responseNotContains"):
            kept, without = _resolve_each(getattr(self, key), sources)
            skipped += [f"{key}: {text}" for text in without]
            changes[key] = kept
        groups = []
        for group in self.responseContainsAny:
            members, without = _resolve_each(group, sources)
            if members:
                groups.append(members)
                dropped += [f"responseContainsAny: {text}" for text in without]
            else:
                skipped.append(f"responseContainsAny: {' | '.join(group)}")
        changes["responseContainsAny"] = groups
        params = []
        for param in self.toolParams:
            value, without = param.resolve(sources)
            name = f"toolParams: {param.tool}.{param.paramName}"
            if value is _UNRESOLVED:
                skipped.append(name)
            else:
                params.append(param.model_copy(update={"value": value}))
                dropped += [f"{name}: {tokens.as_text(member)}" for member in without]
        changes["toolParams"] = params
        return self.model_copy(update=changes), skipped, dropped

    def texts_with_tokens(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Every text that may hold tokens, with its path in the block."""
        for key in ("responseContains", "responseNotContains"):
            for index, text in enumerate(getattr(self, key)):
                yield (key, index), text
        for index, group in enumerate(self.responseContainsAny):
            for member, text in enumerate(group):
                yield ("responseContainsAny", index, member), text
        for index, param in enumerate(self.toolParams):
            for text in _texts(param.value):
                yield ("toolParams", index, "value"), text

    @field_validator("jsonSchema")
    @classmethod
    def _is_a_schema(cls, schema: Any) -> Any:
        return None if schema is None else check_schema(schema)


class Expect(ExpectBase, Ruled):
    """The whole block: what the labeled and regression tiers and YAML suites take."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Excludes("toolsCalled", ("toolsAcceptable",), "keep 'toolsCalled' when one set is right"),
    )

    toolsCalled: ToolsCalled | None = None
    toolsAcceptable: Annotated[list[ToolSet], Field(min_length=1)] | None = None
    noToolErrors: Flag = False
    responseNonEmpty: Flag = False


class GoldenExpect(ExpectBase):
    """The golden tier's block: one routing, no tool error, an answer; all three are required."""

    toolsCalled: ToolsCalled
    noToolErrors: Flag
    responseNonEmpty: Flag


#: toolsCalledMode only tightens another key; `toolsCalled: []` says that no tool is called.
ASSERTED = Asserts(
    tuple(name for name in Expect.model_fields if name != "toolsCalledMode"),
    "the block asserts nothing: every key is false or empty",
    even_empty=("toolsCalled", "jsonSchema"),
)

_UNRESOLVED = object()


def _resolve_each(values: list[Any], sources: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """The values with their tokens replaced, and those that have an unresolved one."""
    pairs = [(value, _resolve_value(value, sources)) for value in values]
    without = [value for value, resolved in pairs if resolved is _UNRESOLVED]
    return [resolved for _, resolved in pairs if resolved is not _UNRESOLVED], without


def _resolve_value(value: Any, sources: Mapping[str, Any]) -> Any:
    """A value with its tokens replaced, wherever they stand in it."""
    if isinstance(value, str):
        text = tokens.resolve(value, sources)
        return _UNRESOLVED if text is None else text
    if isinstance(value, list):
        items = [_resolve_value(item, sources) for item in value]
        return _UNRESOLVED if _UNRESOLVED in items else items
    if isinstance(value, dict):
        pairs = {key: _resolve_value(item, sources) for key, item in value.items()}
        return _UNRESOLVED if _UNRESOLVED in pairs.values() else pairs
    return value
