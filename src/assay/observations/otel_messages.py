"""The messages of a `gen_ai` span, in all the places that instrumentations use.

| Where | Written by |
|---|---|
| attributes `gen_ai.input.messages`, `gen_ai.output.messages` | today's conventions |
| events `gen_ai.user.message`, `gen_ai.choice` and the like | conventions of 2024 and 2025 |
| events `gen_ai.content.prompt`, `gen_ai.content.completion` | the first conventions |
| attributes `gen_ai.prompt.N.*`, `gen_ai.completion.N.*` | OpenLLMetry |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from assay.model.values import from_json
from assay.observations import chat
from assay.observations.pairing import Turn, ending
from assay.observations.records import RecordReader, broken, records
from assay.observations.spans import Span


def inputs(span: Span) -> list[Turn]:
    turns: list[Turn] = []
    for name, source in _sources(span):
        if system := _decoded(source, "gen_ai.system_instructions"):
            parts = system if isinstance(system, list) else [{"type": "text", "content": system}]
            turns.append(chat.turn(RecordReader({"role": "system", "parts": parts}, source.at)))
        turns += _messages(source, "gen_ai.input.messages")
        for attribute in ("gen_ai.prompt", "gen_ai.content.prompt"):
            turns += _content(source, attribute, "user")
        turns += [_turn(each, "user") for each in _numbered(source, "gen_ai.prompt")]
        if name.startswith("gen_ai.") and name.endswith(".message"):
            role = name.removeprefix("gen_ai.").removesuffix(".message")
            turns.append(chat.turn(RecordReader({"role": role, **_event(source)}, source.at)))
    return turns


def outputs(span: Span) -> list[Turn]:
    turns: list[Turn] = []
    for name, source in _sources(span):
        turns += _messages(source, "gen_ai.output.messages")
        for attribute in ("gen_ai.completion", "gen_ai.content.completion"):
            turns += _content(source, attribute, "assistant")
        # The first completion is the answer, as is the first choice.
        turns += [_turn(each, "assistant") for each in _numbered(source, "gen_ai.completion")[:1]]
        if name == "gen_ai.choice":
            turns += _choice(source)
    return turns


def _sources(span: Span) -> Iterator[tuple[str, RecordReader]]:
    """The attributes of the span, then those of its events, with the name of the event."""
    yield "", RecordReader(span.attributes, span.at)
    for name, body in span.events:
        yield name, RecordReader(body, f"{span.at} {name}".strip())


def _choice(source: RecordReader) -> list[Turn]:
    body = _event(source)
    message = body.get("message")
    if body.get("index") not in (None, 0, "0"):  # the first choice is the answer
        return []
    if message is None:
        message = body
    elif not isinstance(message, dict):
        message = {**body, "content": message}
    turn = chat.turn(RecordReader({**message, "role": "assistant"}, source.at))
    notes = (*turn.notes, *ending(body.get("finish_reason")))
    return [replace(turn, notes=tuple(dict.fromkeys(notes)))]


def _event(source: RecordReader) -> dict[str, Any]:
    """The body of an event of older instrumentations; parts of it may be JSON text."""
    names = ("gen_ai.event.content", "message", "tool_calls")
    body = {**source.raw, **{n: _decoded(source, n) for n in names if n in source.raw}}
    whole = body.pop("gen_ai.event.content", None)
    return {**body, **whole} if isinstance(whole, dict) else body


def _decoded(source: RecordReader, name: str) -> Any:
    """The value of an attribute, which may be JSON text."""
    value = source.get(name)
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return from_json(value)
        except ValueError as error:
            raise broken(source.place(name), f"is not valid JSON: {error}") from None
    return value


def _messages(source: RecordReader, name: str) -> list[Turn]:
    value = _decoded(source, name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise broken(source.place(name), "is not a list of messages")
    return [chat.turn(entry) for entry in records(value, source.place(name))]


def _content(source: RecordReader, name: str, role: str) -> list[Turn]:
    """Messages, or one text, under one attribute; the JSON that an answer may be stays text."""
    value = source.get(name)
    found = _messages_in(value) if isinstance(value, str) else value
    if isinstance(found, dict):
        found = [found]
    if isinstance(found, list) and found and all(map(chat.is_message, found)):
        return [chat.turn(entry) for entry in records(found, source.place(name))]
    return [chat.turn(RecordReader({"role": role, "content": value}, source.at))] if value else []


def _messages_in(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return None


def _numbered(source: RecordReader, name: str) -> list[RecordReader]:
    """The mappings that are spread over attributes such as `NAME.0.role`, in order."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in source.raw.items():
        if isinstance(key, str) and key.startswith(f"{name}."):
            number, _, field = key.removeprefix(f"{name}.").partition(".")
            if field and number.isascii() and number.isdecimal() and len(number) < 6:
                found.setdefault(int(number), {})[field] = value
    return [RecordReader(found[n], source.place(f"{name}.{n}")) for n in sorted(found)]


def _turn(record: RecordReader, role: str) -> Turn:
    """A message of OpenLLMetry; content that was blocks is JSON text."""
    raw: dict[str, Any] = {"role": role, **record.raw}
    raw["tool_calls"] = [call.raw for call in _numbered(record, "tool_calls")] or None
    content = raw.get("content")
    if isinstance(content, str) and content.lstrip().startswith("[{"):
        blocks = _messages_in(content)
        if isinstance(blocks, list) and all(isinstance(b, dict) and "type" in b for b in blocks):
            raw["content"] = blocks
    return chat.turn(RecordReader(raw, record.at))
