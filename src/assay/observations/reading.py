"""Reads a record of any known shape into an Observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from assay.documents.document import MAX_DEPTH, too_deep
from assay.errors import ObservationError, nearest, printable
from assay.model.observation import Observation
from assay.model.refusal import shown
from assay.observations import agentv, anthropic, openai, otel, own, responses
from assay.observations.checked import checked
from assay.redaction import cut


class Shape(msgspec.Struct, frozen=True):
    """A family of records, how it is recognised, and how it is read."""

    name: str
    fits: Callable[[Any], bool]
    read: Callable[[Any], Observation]


#: The first shape that fits reads the record.
SHAPES = (
    Shape("Assay", own.fits, own.read),
    Shape("AgentV", agentv.fits, agentv.read),
    Shape("OpenTelemetry", otel.fits, otel.read),
    Shape("OpenAI Responses", responses.fits, responses.read),
    Shape("Anthropic", anthropic.fits, anthropic.read),
    Shape("OpenAI chat", openai.fits, openai.read),
    Shape("failure", own.failed, own.read),
)


def read(value: Any) -> Observation:
    """The observation in a text, or in a record of any known shape."""
    if isinstance(value, Observation):
        return checked(value)
    if isinstance(value, str):
        return Observation(response=value, raw=value)
    if not isinstance(value, (dict, list)):
        raise _unknown(value)
    if too_deep(value):
        raise ObservationError(f"the observation is nested deeper than {MAX_DEPTH} levels")
    for shape in SHAPES:
        if shape.fits(value):
            return shape.read(value)
    raise _unknown(value)


def read_json(data: bytes) -> Observation:
    """The observation in a line of JSON; raises msgspec's errors too."""
    plain = own.plain_record(data)
    return read(msgspec.json.decode(data)) if plain is None else own.of_plain(plain, data)


#: The interchange form has at least one of these.
_KEYS = ("response", "toolCalls")


def _unknown(value: Any) -> ObservationError:
    hint = ""
    if isinstance(value, dict) and value:
        keys = [repr(key) for key in value]
        more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
        found = f"a mapping with {', '.join(cut(key, 40) for key in keys[:8])}{more}"
        near = filter(None, (nearest(str(key), _KEYS) for key in value))
        hint = next((f" ({near})" for near in near), "")
    elif isinstance(value, list) and value:
        found = f"a list that starts with {shown(value[0])}"
    else:
        found = shown(value)
    others = ", ".join(dict.fromkeys(shape.name.split()[0] for shape in SHAPES[1:-1]))
    known = f"one has {' or '.join(map(repr, _KEYS))}, or a shape of {others}"
    return ObservationError(printable(f"{found} is no observation{hint}; {known}"))
