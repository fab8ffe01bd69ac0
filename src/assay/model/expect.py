"""The `expect` block: assertions on the tools that an agent called and on its answer.

Keys may be in camelCase or snake_case; the fields have the camelCase names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from assay.errors import BadPattern, nearest
from assay.model import tokens
from assay.model.json_schema import check_schema
from assay.patterns import compile_pattern
from assay.wire.fields import AtLeastOne, Count, Empty, Flag, Json, Positive, Text
from assay.wire.rules import Asserts, BelongsTo, CustomRule, Excludes, Rule, Ruled
from assay.wire.validation_errors import AnyValidationError, Steps, problem, raise_all

#: The keys whose texts may have tokens; values of `toolParams` may too.
RESPONSE_TEXTS = ("responseContains", "responseNotContains", "responseContainsAny")
#: The only item of a set of tools that means that no tool is called.
NO_TOOL = "__none__"


def snake(name: str) -> str:
    """`toolsCalled` as `tools_called`."""
    return re.sub(r"([A-Z])", lambda m: "_" + m[1].lower(), name)


def _check_pattern(pattern: str) -> str:
    raise_all(_bad_pattern(pattern))
    return pattern


def _bad_pattern(pattern: str, at: str = "") -> Iterator[AnyValidationError]:
    try:
        compile_pattern(pattern)
    except BadPattern as error:
        yield problem("bad-regex", f"{pattern!r} does not compile: {error}", at=at)


def _check_tokens(value: Any) -> Any:
    if not isinstance(value, str) or "{{" in value:
        raise_all(_bad_tokens(value))
    return value


def _bad_tokens(value: Any) -> Iterator[AnyValidationError]:
    for path, text in texts_in(value):
        for token in tokens.find(text):
            if token.fault:
                known = token.source in tokens.SOURCES
                hint = "" if known else nearest(token.source, tokens.SOURCES, 0.5)
                yield problem("bad-token", f"{token.text!r}: {token.fault}", hint, path)
        for slip in tokens.malformed(text):
            message, hint = f"{slip!r} is not a token", "for example {{seed:holdings[0].symbol}}"
            yield problem("bad-token", message, hint, path)


def refuse_tokens(value: str) -> str:
    """Reject tokens where they are not replaced: no answer would contain them."""
    for token in tokens.find(value) if "{{" in value else ():
        if token.source in tokens.SOURCES:
            hint = f"use tokens in {', '.join(RESPONSE_TEXTS)} and values of toolParams"
            raise problem("bad-token", f"{token.text!r} is not replaced here", hint)
    return value


def _check_set(tools: list[str]) -> list[str]:
    if NO_TOOL in tools and len(tools) > 1:
        message = f"{NO_TOOL!r} means no tool and must be the only item of its set"
        raise problem("wrong-value", message, at=(tools.index(NO_TOOL),))
    return tools


def texts_in(value: Any, path: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Every text in a JSON value, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, (list, dict)):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_in(item, (*path, step))


Regex = Annotated[Text, AfterValidator(refuse_tokens), AfterValidator(_check_pattern)]
Tokened = Annotated[Text, AfterValidator(_check_tokens)]
ToolName = Annotated[Text, AfterValidator(refuse_tokens)]
_NAMES_NO_TOOL: Any = {"contains": {"const": NO_TOOL}}
_ALONE: Any = {"if": _NAMES_NO_TOOL, "then": {"maxItems": 1}}
_WITHOUT_NO_TOOL: Any = {"not": _NAMES_NO_TOOL}
ToolSet = Annotated[list[ToolName], AfterValidator(_check_set), Field(json_schema_extra=_ALONE)]
ToolsCalled = Annotated[list[ToolName], Field(json_schema_extra=_WITHOUT_NO_TOOL)]


def _value_when(assertion: str, schema: dict[str, Any]) -> dict[str, Any]:
    chosen = {"properties": {"assertion": {"const": assertion}}, "required": ["assertion"]}
    return {"if": chosen, "then": {"properties": {"value": schema}}}


def _value_misfit(param: ToolParam) -> Sequence[AnyValidationError]:
    """Check that the value suits the assertion."""
    if param.assertion not in ("oneOf", "matches") or not param.is_given("value"):
        return ()
    if param.assertion == "matches":
        if isinstance(param.value, str):
            return [*_bad_pattern(param.value, "value")]
        return (problem("wrong-type", "'matches' needs a regular expression", at="value"),)
    if isinstance(param.value, list) and param.value:
        return ()
    return (problem("wrong-type", "'oneOf' needs a list of values", at="value"),)


_VALUE_FITS: dict[str, Any] = {
    "allOf": [
        _value_when("oneOf", {"type": "array", "minItems": 1}),
        _value_when("matches", {"type": "string"}),
    ]
}


class ToolParam(Ruled):
    """An assertion on one parameter of the calls of one tool."""

    rules: ClassVar[tuple[Rule, ...]] = (
        BelongsTo("value", "assertion", ("equals", "contains", "oneOf", "matches"), needed=True),
        CustomRule(_value_misfit, _VALUE_FITS),
    )

    tool: ToolName
    paramName: Text
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: Annotated[Json, AfterValidator(_check_tokens)] = None
    call: AtLeastOne | None = None

    def resolve(self, sources: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """The value with its tokens replaced, and the members of `oneOf` that have no value."""
        if self.assertion != "oneOf":
            return _resolve_value(self.value, sources), []
        kept, unresolved = _resolve_each(self.value, sources)
        return (kept, unresolved) if kept else (_UNRESOLVED, [])


def _conflicts(block: ExpectBase) -> Sequence[AnyValidationError]:
    found = []
    for low, high in (("minToolCalls", "maxToolCalls"), ("minLength", "maxLength")):
        least, most = getattr(block, low), getattr(block, high)
        if least is not None and most is not None and least > most:
            message = f"is {least}, above {high} {most}"
            found.append(problem("conflicting-keys", message, at=low))
    called = getattr(block, "toolsCalled", None)
    if called and NO_TOOL in called:
        message, hint = f"{NO_TOOL!r} belongs in 'toolsAcceptable'", "write toolsCalled: []"
        place = ("toolsCalled", called.index(NO_TOOL))
        found.append(problem("wrong-value", message, hint, place))
    return found


class ExpectBase(Ruled):
    """The keys that every tier takes."""

    rules: ClassVar[tuple[Rule, ...]] = (CustomRule(_conflicts),)

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
                cls.key_names.add(snake(name), name)

    @field_validator("*", mode="before")
    @classmethod
    def _false_asserts_nothing(cls, raw: Any, info: ValidationInfo) -> Any:
        name = str(info.field_name)
        if raw is False and cls._can_be_false(name):
            return cls.model_fields[name].get_default(call_default_factory=True)
        return raw

    @classmethod
    def draft(cls, raw: dict[str, Any]) -> Ruled:
        return super().draft({key: value for key, value in raw.items() if value is not False})

    @classmethod
    def _can_be_false(cls, name: str) -> bool:
        """Whether `false` means the same as leaving the key out; flags take it anyway."""
        field = cls.model_fields[name]
        return name in ASSERTED.keys and field.annotation is not bool and not field.is_required()

    @classmethod
    def describe_keys(cls, properties: dict[str, Any]) -> None:
        for name in filter(cls._can_be_false, properties.keys() & cls.model_fields.keys()):
            properties[name] = {"anyOf": [{"const": False}, properties[name]]}

    @classmethod
    def given(cls, key: str, nothing: tuple[Any, ...] = (None, False)) -> dict[str, Any]:
        return super().given(key, nothing)

    def __getattr__(self, name: str) -> Any:
        """Snake_case names work as well: `tools_called`."""
        camel = type(self).key_names.aliases.get(name)
        if camel is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return getattr(self, camel)

    def asserted(self) -> list[str]:
        """The keys that assert something; false and empty lists do not."""
        return ASSERTED.asserting(self)

    def resolve(self, sources: Mapping[str, Any]) -> tuple[Self, list[str], list[str]]:
        """The block with its tokens replaced, and what was skipped or dropped for lack of a value.

        A skipped group is one entry; a member of a group that keeps others is dropped.
        """
        changes: dict[str, Any] = {}
        skipped: list[str] = []
        dropped: list[str] = []
        for key in ("responseContains", "responseNotContains"):
            kept, unresolved = _resolve_each(getattr(self, key), sources)
            skipped += [f"{key}: {text}" for text in unresolved]
            changes[key] = kept
        groups = []
        for group in self.responseContainsAny:
            members, unresolved = _resolve_each(group, sources)
            if members:
                groups.append(members)
                dropped += [f"responseContainsAny: {text}" for text in unresolved]
            else:
                skipped.append(f"responseContainsAny: {' | '.join(group)}")
        changes["responseContainsAny"] = groups
        params = []
        for param in self.toolParams:
            value, unresolved = param.resolve(sources)
            name = f"toolParams: {param.tool}.{param.paramName}"
            if value is _UNRESOLVED:
                skipped.append(name)
            else:
                params.append(param.model_copy(update={"value": value}))
                dropped += [f"{name}: {tokens.as_text(member)}" for member in unresolved]
        changes["toolParams"] = params
        return self.model_copy(update=changes), skipped, dropped

    def texts_to_contain(self) -> list[str]:
        groups = (text for group in self.responseContainsAny for text in group)
        return [*self.responseContains, *groups]

    def texts_with_tokens(self) -> Iterator[tuple[Steps, str]]:
        """Every text that may have tokens, with its path in the block."""
        for key in RESPONSE_TEXTS:
            yield from texts_in(getattr(self, key), (key,))
        for index, param in enumerate(self.toolParams):
            yield from texts_in(param.value, ("toolParams", index, "value"))

    @field_validator("jsonSchema")
    @classmethod
    def _is_a_schema(cls, schema: Any) -> Any:
        return None if schema is None else check_schema(schema)


class Expect(ExpectBase):
    """The whole block: what the labeled and regression tiers and YAML suites take."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *ExpectBase.rules,
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


def merged(blocks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge blocks: lists of assertions are joined, and of other keys the first value counts.

    Of `toolsCalled` and `toolsAcceptable`, which exclude each other, the first is kept.
    """
    found: dict[str, Any] = {}
    for block in blocks:
        routed = not _ROUTES.isdisjoint(found)
        for key, value in block.items():
            if isinstance(value, list) and key not in _ROUTES:
                known = found.setdefault(key, [])
                known += [item for item in value if item not in known]
            elif not (routed and key in {*_ROUTES, "toolsCalledMode"}):
                found.setdefault(key, value)
    return found


_ROUTES = frozenset({"toolsCalled", "toolsAcceptable"})
#: toolsCalledMode only modifies another key; `toolsCalled: []` asserts that no tool is called.
ASSERTED = Asserts(
    tuple(name for name in Expect.model_fields if name != "toolsCalledMode"),
    "the block asserts nothing: every key is false or empty",
    even_empty=("toolsCalled", "jsonSchema"),
)

_UNRESOLVED = object()


def _resolve_each(values: list[Any], sources: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """The values with their tokens replaced, and those with an unresolved one."""
    pairs = [(value, _resolve_value(value, sources)) for value in values]
    unresolved = [value for value, resolved in pairs if resolved is _UNRESOLVED]
    return [resolved for _, resolved in pairs if resolved is not _UNRESOLVED], unresolved


def _resolve_value(value: Any, sources: Mapping[str, Any]) -> Any:
    """A value with its tokens replaced, at any depth."""
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
