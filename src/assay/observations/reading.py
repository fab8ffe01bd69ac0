"""Reads a record of any known shape into an Observation."""

from __future__ import annotations

from typing import Any

import msgspec

from assay.errors import ObservationError, nearest
from assay.model.observation import Observation
from assay.observations import (
    agentv,
    anthropic,
    atif,
    claude_code,
    interchange,
    openai,
    otel,
    responses,
)
from assay.observations.validation import checked
from assay.redaction import cut
from assay.text import printable
from assay.wire.document import MAX_DEPTH, too_deep
from assay.wire.validation_errors import shown

#: The first shape that fits reads the record.
FORMATS = (
    interchange.FORMAT,
    atif.FORMAT,
    claude_code.FORMAT,
    otel.FORMAT,
    responses.FORMAT,
    agentv.FORMAT,
    anthropic.FORMAT,
    openai.FORMAT,
    interchange.FAILURE,
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
    for shape in FORMATS:
        if shape.fits(value):
            return shape.read(value)
    raise _unknown(value)


def read_json(data: bytes) -> Observation:
    """The observation in a line of JSON; raises msgspec's errors too."""
    plain = interchange.plain_record(data)
    return read(msgspec.json.decode(data)) if plain is None else interchange.of_plain(plain, data)


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
    return ObservationError(printable(f"{found} is not a known record{hint}; {_wanted(value)}"))


def _wanted(value: Any) -> str:
    """What the nearest formats lack; if none is near, what can be given."""
    transcripts = [shape for shape in FORMATS[:-1] if shape is not interchange.FORMAT]
    near = [shape for shape in transcripts if any(need.holds(value) for need in shape.needs)]
    own = "a mapping with 'response' or 'toolCalls'"
    if near:
        return (
            f"what is missing: {', '.join(shape.missing(value) for shape in near)}; or give {own}"
        )
    return f"expected {own}, or a transcript of {', '.join(shape.name for shape in transcripts)}"
