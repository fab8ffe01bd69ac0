"""OpenAI chat: arguments are JSON text, results are messages of their own; whole completions."""

from __future__ import annotations

from typing import Any

from assay.model.observation import Observation
from assay.observations import chat
from assay.observations.measures import measures
from assay.observations.pairing import Turn, ending, observe
from assay.observations.record_format import Need, RecordFormat
from assay.observations.records import RecordReader, broken, message_list


def read(value: Any) -> Observation:
    if isinstance(value, dict) and "choices" in value:
        return _completion(RecordReader(value), value)
    return chat.read(value)


def _completion(record: RecordReader, raw: Any) -> Observation:
    """The first choice is the answer."""
    choices = record.records("choices")
    if not choices:
        return observe([], measures(record), raw, unknown="the completion has no choices")
    choice = choices[0]
    if (message := choice.record("message")) is not None:
        answer = chat.turn(RecordReader({**message.raw, "role": "assistant"}, message.at))
    elif (text := choice.text("text")) is not None:  # of a model that completes texts
        answer = Turn("assistant", text)
    else:
        raise broken(choice.at, "has no 'message'")
    observation = observe([answer], measures(record), raw)
    notes = (*observation.notes, *ending(choice.get("finish_reason")))
    return observation.replace(notes=tuple(dict.fromkeys(notes)))


def _has_list(value: Any) -> bool:
    has_key = isinstance(value, dict) and ("choices" in value or "messages" in value)
    return has_key or bool(message_list(value))


def _has_message(value: Any) -> bool:
    if isinstance(value, dict) and ("choices" in value or value.get("messages") == []):
        return True
    return any(map(chat.is_message, message_list(value) or ()))


FORMAT = RecordFormat(
    "chat messages",
    (
        Need("'messages' or 'choices'", _has_list),
        Need("'role'", _has_message),
    ),
    read,
)
