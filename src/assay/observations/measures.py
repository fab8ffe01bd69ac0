"""Usage, cost, time and failure: beside the messages of a record, in every spelling."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from assay.model.observation import Usage
from assay.observations.records import Record, error_text

_INPUT = ("inputTokens", "input_tokens", "prompt_tokens", "input")
_OUTPUT = ("outputTokens", "output_tokens", "completion_tokens", "output")
#: Input tokens that a provider counts beside the others, not among them.
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens", "cached")


class Measures(msgspec.Struct, frozen=True):
    """What a record says beside its messages; None is not reported."""

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


def measures(record: Record) -> Measures:
    if _KEYS.isdisjoint(record.raw):
        return _NONE
    return Measures(
        usage=read_usage(record.record("usage", "token_usage", "tokenUsage")),
        cost_usd=record.number("costUsd", "cost_usd"),
        duration_ms=record.number("durationMs", "duration_ms"),
        error=error_text(record.get("error")),
    )


def measures_of_replies(record: Record, entries: Iterable[Record]) -> Measures:
    """The same of a list of messages: replies that were put there whole have their own usage."""
    found = measures(record)
    if found.usage is not None:
        return found
    return replace(found, usage=total(read_usage(entry.record("usage")) for entry in entries))


def read_usage(record: Record | None) -> Usage | None:
    """Tokens in any provider's words; None when there are none."""
    if record is None:
        return None
    read, written = record.count(*_INPUT), record.count(*_OUTPUT)
    if read is None and written is None:
        return None
    if read is not None and len(record.raw) > 2:
        read += sum(record.count(name) or 0 for name in _CACHED)
    return Usage(read, written)


def total(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum of those that are known."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    return Usage(
        _sum(usage.input_tokens for usage in known), _sum(usage.output_tokens for usage in known)
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
