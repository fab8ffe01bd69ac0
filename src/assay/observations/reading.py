"""Any record of what a target did to an Observation: the shapes, and how each is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from assay.documents.document import MAX_DEPTH, too_deep
from assay.errors import ObservationError, printable
from assay.model.observation import Observation
from assay.model.shape import shown
from assay.observations import agentv, anthropic, openai, otel, own, responses
from assay.observations.made import made


class Shape(msgspec.Struct, frozen=True):
    """A family of records: what it is known by, in words and in code."""

    name: str
    sign: str
    fits: Callable[[Any], bool]
    read: Callable[[Any], Observation]


#: In this order: the first that fits reads the record.
SHAPES = (
    Shape("Assay", "'response' or 'toolCalls'", own.fits, own.read),
    Shape("AgentV", "'output_messages' or 'text'", agentv.fits, agentv.read),
    Shape("OpenTelemetry", "'resourceSpans', or a list of spans", otel.fits, otel.read),
    Shape("OpenAI Responses", "'output', or a list of items", responses.fits, responses.read),
    Shape("Anthropic", "messages with content blocks", anthropic.fits, anthropic.read),
    Shape("OpenAI chat", "'messages', 'choices', or a list of them", openai.fits, openai.read),
    Shape("failure", "'error'", own.failed, own.read),
)


def read(value: Any) -> Observation:
    """The observation that a text or a record of any known shape tells of."""
    if isinstance(value, Observation):
        return made(value)
    if isinstance(value, str):
        return Observation(response=value, raw=value)
    if not isinstance(value, (dict, list)):
        raise _unknown(value)
    if too_deep(value):
        raise ObservationError(f"the observation is nested deeper than {MAX_DEPTH} levels")
    return _read(value)


def read_json(data: bytes) -> Observation:
    """The observation that a line of JSON tells of; raises also what msgspec raises."""
    plain = own.plain_record(data)
    return read(msgspec.json.decode(data)) if plain is None else own.of_plain(plain, data)


def _read(value: Any) -> Observation:
    for shape in SHAPES:
        if shape.fits(value):
            return shape.read(value)
    raise _unknown(value)


def _unknown(value: Any) -> ObservationError:
    if isinstance(value, dict) and value:
        keys = [repr(key) for key in value]
        more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
        found = f"a mapping with {', '.join(key[:40] for key in keys[:8])}{more}"
    elif isinstance(value, list) and value:
        found = f"a list that starts with {shown(value[0])}"
    else:
        found = shown(value)
    known = "; ".join(f"{shape.name}: {shape.sign}" for shape in SHAPES)
    return ObservationError(printable(f"{found} is no observation; known shapes are {known}"))
