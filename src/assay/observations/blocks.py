"""Content blocks and parts of messages: texts, calls and results, as all chat formats write them.

| Format | text | call | result |
|---|---|---|---|
| Anthropic | `text` | `tool_use` | `tool_result` |
| Bedrock | `{"text"}` | `{"toolUse"}` | `{"toolResult"}` |
| Gemini | `{"text"}` | `{"functionCall"}` | `{"functionResponse"}` |
| OpenTelemetry | `text` | `tool_call` | `tool_call_response` |
| AI SDK, of a model | `text` | `tool-call` | `tool-result` |
| AI SDK, of a page | `text` | `tool-invocation`, `tool-NAME`, `dynamic-tool` | in the call |
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from assay.model.message import ToolCall
from assay.observations.calls import read_chat_call
from assay.observations.pairing import REFUSED, Result
from assay.observations.records import RecordReader, as_text, joined, outcome
from assay.redaction import cut

_TEXTS = ("text", "input_text", "output_text", "refusal")
#: Kinds that are neither text, call nor result. The AI SDK has data for pages in `data-NAME`.
_SILENT = re.compile("(redacted_)?thinking|reasoning.*|step-start|source.*|data-.*|compaction")
_CALL = re.compile(".*tool_use|(server_)?tool_call|tool-call|function_call")
_RESULT = re.compile(".*tool_result|(server_)?tool_call_response|tool-(result|error)")
#: Content without text, which is kept unchanged.
_MEDIA = re.compile("image|audio|video|file|document|blob|uri|media|inline", re.IGNORECASE)
#: Blocks without a type, by their only key.
_NESTED = {
    "toolUse": "tool_use",
    "functionCall": "tool_call",
    "function_call": "tool_call",
    "toolResult": "tool_result",
    "functionResponse": "tool_result",
    "function_response": "tool_result",
}
#: The types of a result of the AI SDK, and whether the tool failed.
_TYPED_OUTPUT = {
    "text": False,
    "json": False,
    "content": False,
    "error-text": True,
    "error-json": True,
    "execution-denied": True,
}
_FAILED = "the tool failed"
_UNWRITTEN = "audio without a transcript was left out"


class Blocks(msgspec.Struct):
    """The content of one message."""

    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[Result] = []
    #: Blocks without text, such as images.
    media: list[Any] = []
    #: Content that is neither text nor a list of blocks.
    data: Any = None
    notes: list[str] = []

    @property
    def content(self) -> Any:
        """One text; if there is none, the other blocks or the data; None if there is nothing."""
        return "".join(self.texts) if self.texts else self.media or self.data


def is_tool_block(block: Any) -> bool:
    """Is it a block that only Anthropic and formats like it have?"""
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and (
        kind.endswith(("tool_use", "tool_result")) or kind in ("thinking", "redacted_thinking")
    )


def read_blocks(items: list[Any], at: str) -> Blocks:
    found = Blocks()
    for index, raw in enumerate(items):
        if isinstance(raw, str):
            found.texts.append(raw)
        else:
            _read(RecordReader(raw, f"{at}[{index}]"), found)
    return found


def _read(block: RecordReader, found: Blocks) -> None:
    kind, block = _kind(block)
    if kind in _TEXTS:
        text = block.get("text", "content", "refusal", "value")
        if isinstance(text, dict) and "annotations" in text:  # of OpenAI's Assistants
            text = text.get("value")
        found.texts.append(as_text(text, block.at))
        if kind == "refusal":
            found.notes.append(REFUSED)
    elif kind == "dynamic-tool" or (kind.startswith("tool-") and "state" in block.raw):
        name = None if kind == "dynamic-tool" else kind.removeprefix("tool-")
        found.calls.append(read_chat_call(block, name))
    elif kind == "tool-invocation":
        found.calls.append(read_chat_call(block.record("toolInvocation") or block))
    elif _CALL.fullmatch(kind):
        found.calls.append(read_chat_call(block))
    elif _RESULT.fullmatch(kind):
        found.results.append(_result(block))
    elif _MEDIA.search(kind) and (spoken := block.text("transcript")):
        found.texts.append(spoken)
    elif "audio" in kind:
        found.notes.append(_UNWRITTEN)
    elif _MEDIA.search(kind):
        found.media.append(block.raw)
    elif not _SILENT.fullmatch(kind):
        found.notes.append(f"a content block of the unknown type {cut(kind, 40)!r} was left out")


def _kind(block: RecordReader) -> tuple[str, RecordReader]:
    """The type of a block, and where its fields are."""
    if kind := block.text("type"):
        return kind, block
    for key, kind in _NESTED.items():
        if isinstance(block.get(key), dict):
            return kind, RecordReader(block.get(key), block.place(key))
    if isinstance(block.get("text"), str):
        return "reasoning" if block.get("thought") is True else "text", block
    return ", ".join(cut(str(key), 20) for key in block.raw), block


def _result(block: RecordReader) -> Result:
    content = block.get("content", "response", "result", "output", "error")
    failed = block.flag("is_error", "isError")
    status = block.get("status")
    if failed is None and status in ("success", "error"):
        failed = status == "error"
    output = _output(content)
    if isinstance(content, dict):
        kind = content.get("type")
        if "error_code" in content:  # of a tool that the provider runs
            output, failed = content["error_code"], True
        elif isinstance(kind, str) and kind in _TYPED_OUTPUT and len(content) == 2:
            output = _output(content.get("value"))
            failed = _TYPED_OUTPUT[kind]
    if block.get("type") == "tool-error":
        failed = True
    return Result(
        output=outcome(output),
        id=block.identity("tool_use_id", "toolUseId", "tool_call_id", "toolCallId", "id"),
        tool=block.text("toolName", "name"),
        success=None if failed is None else not failed,
        error=(as_text(output, block.at) or _FAILED) if failed else None,
    )


def _output(content: Any) -> Any:
    """Blocks as one text; a single block of Bedrock with JSON as its value."""
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        [only] = content
        if set(only) == {"json"}:
            return only["json"]
        if set(only) == {"text"} and isinstance(only["text"], str):
            return only["text"]
    return joined(content)
