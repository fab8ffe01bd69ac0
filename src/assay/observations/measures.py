"""Usage, cost, duration and error of a record, in the spellings of all providers."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from assay.model.observation import Usage
from assay.observations.records import RecordReader, error_text

_INPUT = ("inputTokens", "input_tokens", "prompt_tokens", "input")
_OUTPUT = ("outputTokens", "output_tokens", "completion_tokens", "output")
#: Input tokens that a provider does not include in the others.
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens", "cached")


class Measures(msgspec.Struct, frozen=True):
    """What a record reports in addition to its messages; None if not reported."""

    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    error: str | None = None


_NONE = Measures()
_KEYS = frozenset(
    {
        *("usage", "token_usage", "tokenUsage", "costUsd", "cost_usd"),
        *("durationMs", "duration_ms", "error"),
    }
)


def measures(record: RecordReader) -> Measures:
    if _KEYS.isdisjoint(record.raw):
        return _NONE
    return Measures(
        usage=read_usage(record.record("usage", "token_usage", "tokenUsage")),
        cost_usd=record.number("costUsd", "cost_usd"),
        duration_ms=record.number("durationMs", "duration_ms"),
        error=error_text(record.get("error")),
    )


def measures_of_replies(record: RecordReader, entries: Iterable[RecordReader]) -> Measures:
    """As `measures`, but usage may be that of the messages: whole API responses have their own."""
    found = measures(record)
    if found.usage is not None:
        return found
    usages = (entry.record("usage", "usage_metadata") for entry in entries)
    return replace(found, usage=total(map(read_usage, usages)))


def read_usage(record: RecordReader | None) -> Usage | None:
    """The token counts under any provider's keys; None if there are none."""
    if record is None:
        return None
    sent, generated = record.count(*_INPUT), record.count(*_OUTPUT)
    if sent is None and generated is None:
        return None
    if sent is not None and len(record.raw) > 2:
        sent += sum(record.count(name) or 0 for name in _CACHED)
    return Usage(sent, generated)


def total(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum of all known usages; None if none is known."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    return Usage(
        _sum(usage.input_tokens for usage in known), _sum(usage.output_tokens for usage in known)
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
