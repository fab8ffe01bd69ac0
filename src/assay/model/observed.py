"""What a target did in a trial, in words: its answer and its calls."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from assay.model.observation import Usage
from assay.redaction import cut
from assay.text import duration

#: The most characters of the arguments or the result of a call.
MAX_VALUE = 2000
_as_json = json.JSONEncoder(ensure_ascii=False, default=str).encode


class ObservedCall(msgspec.Struct, frozen=True, rename="camel"):
    """A call of a tool, as an observation has it."""

    name: str = ""
    params: Any = None
    result: Any = None
    success: bool | None = None
    error: str | None = None
    duration_ms: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """`refund(order="A100", amount=43.5)`."""
        if isinstance(self.params, dict):
            inside = ", ".join(f"{key}={_as_json(value)}" for key, value in self.params.items())
        else:
            inside = "" if self.params is None else _as_json(self.params)
        return f"{self.name}({cut(inside, MAX_VALUE, 'both')})"

    @property
    def ending(self) -> str:
        """How it ended: its error or its result, and how long it took."""
        took = "" if self.duration_ms is None else f" ({duration(self.duration_ms)})"
        if self.error is not None or self.success is False:
            return f"error: {cut(self.error or 'no reason given', MAX_VALUE, 'both')}{took}"
        if self.result is None:
            return f"no result{took}"
        shown = self.result if isinstance(self.result, str) else _as_json(self.result)
        return f"returned {cut(shown, MAX_VALUE, 'both')}{took}"


class Observed(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of a recorded observation that people read."""

    response: str = ""
    tool_calls: tuple[ObservedCall, ...] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()


decode_observed = msgspec.json.Decoder(Observed).decode
