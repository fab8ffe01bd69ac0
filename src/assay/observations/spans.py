"""Reads OpenTelemetry spans from JSON, both OTLP and the output of SDK exporters."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from assay.observations.records import RecordReader, broken, records
from assay.wire.validation_errors import shown

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
#: An integer as OTLP writes it, of up to 64 bits.
_INT64 = re.compile("-?[0-9]{1,19}")
_KEYS = {"spanId", "span_id", "context", "traceId", "trace_id", "startTimeUnixNano", "start_time"}


class Span(msgspec.Struct, frozen=True):
    """One span; times are in nanoseconds."""

    attributes: dict[str, Any]
    name: str = ""
    events: tuple[tuple[str, dict[str, Any]], ...] = ()
    id: str | None = None
    parent: str | None = None
    start: int | None = None
    end: int | None = None
    success: bool | None = None
    message: str | None = None
    at: str = ""

    @property
    def duration_ms(self) -> float | None:
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return (self.end - self.start) / 1_000_000


def has_span_keys(value: Any) -> bool:
    return isinstance(value, dict) and bool(_KEYS & value.keys())


def is_span(value: Any) -> bool:
    return has_span_keys(value) and "attributes" in value


def read_spans(value: Any) -> list[Span]:
    """The spans, however wrapped, in the order in which they ended."""
    spans = [_span(entry) for entry in _entries(value)]
    if all(span.end is not None for span in spans):
        spans.sort(key=lambda span: span.end or 0)
    return spans


def _entries(value: Any) -> list[RecordReader]:
    if isinstance(value, list):
        return records(value, "spans")
    record = RecordReader(value)
    if is_span(value):
        return [record]
    found = record.records("spans")
    for resource in record.records("resourceSpans", "resource_spans"):
        names = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
        for scope in resource.records(*names):
            found += scope.records("spans")
    return found


def _span(record: RecordReader) -> Span:
    context = record.record("context") or RecordReader({})
    status = record.record("status") or RecordReader({})
    code = str(status.get("code", "status_code")).upper().removeprefix("STATUS_CODE_")
    events = record.records("events")
    return Span(
        attributes=_attributes(record),
        name=record.text("name") or "",
        events=tuple((event.text("name") or "", _body(event)) for event in events),
        id=record.text("spanId", "span_id") or context.text("span_id", "spanId"),
        parent=record.text("parentSpanId", "parent_span_id", "parent_id"),
        start=_nanoseconds(record, "startTimeUnixNano", "start_time_unix_nano", "start_time"),
        end=_nanoseconds(record, "endTimeUnixNano", "end_time_unix_nano", "end_time"),
        success={"1": True, "OK": True, "2": False, "ERROR": False}.get(code),
        message=status.text("message", "description") or None,
        at=record.at,
    )


def _body(event: RecordReader) -> dict[str, Any]:
    """The content of an event, from both its body and its attributes."""
    body = event.get("body")
    return {**(body if isinstance(body, dict) else {}), **_attributes(event)}


def _attributes(record: RecordReader) -> dict[str, Any]:
    raw = record.get("attributes")
    if isinstance(raw, list):
        pairs = record.records("attributes")
        return {pair.needed("key"): _plain(pair.get("value")) for pair in pairs}
    return raw if isinstance(raw, dict) else {}


def _plain(value: Any) -> Any:
    """An OTLP value such as `{"stringValue": ...}`, unwrapped."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    [(kind, inner)] = value.items()
    if kind == "intValue" and isinstance(inner, str):
        return int(inner) if _INT64.fullmatch(inner) else inner
    if kind == "arrayValue" and isinstance(inner, dict):
        return [_plain(item) for item in RecordReader(inner).items("values")]
    if kind == "kvlistValue" and isinstance(inner, dict):
        pairs = RecordReader(inner, "kvlistValue").records("values")
        return {pair.needed("key"): _plain(pair.get("value")) for pair in pairs}
    return inner if kind.endswith("Value") else value


def _nanoseconds(record: RecordReader, *names: str) -> int | None:
    """A time in nanoseconds, from an integer, which OTLP writes as text, or from ISO 8601."""
    name, value = record.find(*names)
    if not isinstance(value, str):
        return record.count(name)
    if value.isascii() and value.isdecimal() and len(value) <= 20:
        return int(value)
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise broken(record.place(name), f"is {shown(value)}, not a time") from None
    return (time.replace(tzinfo=time.tzinfo or UTC) - _EPOCH) // _MICROSECOND * 1000
