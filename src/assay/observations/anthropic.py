"""Anthropic: whole replies, and messages whose calls and results are content blocks."""

from __future__ import annotations

from typing import Any

from assay.model.observation import Observation
from assay.observations import chat
from assay.observations.blocks import is_tool_block
from assay.observations.measures import measures_of_replies
from assay.observations.pairing import observe
from assay.observations.record_format import Need, RecordFormat
from assay.observations.records import RecordReader, message_list


def read(value: Any) -> Observation:
    if not _is_reply(value):
        return chat.read(value)
    record = RecordReader(value)
    return observe([chat.turn(record)], measures_of_replies(record, [record]), value, is_reply=True)


def _is_reply(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "message" and "role" in value


def _has_messages(value: Any) -> bool:
    return _is_reply(value) or any(map(chat.is_message, message_list(value) or ()))


def _has_blocks(value: Any) -> bool:
    if _is_reply(value):
        return True
    contents = (
        message.get("content") for message in message_list(value) or () if isinstance(message, dict)
    )
    return any(
        is_tool_block(block) for blocks in contents if isinstance(blocks, list) for block in blocks
    )


FORMAT = RecordFormat(
    "Anthropic",
    (
        Need("'role'", _has_messages),
        Need("'content' with 'tool_use'", _has_blocks),
    ),
    read,
)
