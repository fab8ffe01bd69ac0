"""Request bodies and query parameters: limited in size and time, and parsed strictly."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request

from assay.documents.document import MAX_DEPTH, too_deep
from assay.errors import nearest
from assay.model.test_case import storable
from assay.redaction import cut
from assay.server.envelope import JSON, ApiError, invalid

#: The largest body that is accepted, in bytes.
MAX_BODY = 1024 * 1024
#: How much of a larger body is read and discarded, so that its sender gets to see the error.
MAX_DRAINED = 8 * 1024 * 1024
#: How long a body may take to arrive.
BODY_SECONDS = 30.0
#: The largest `limit` of a page, and the default.
MAX_LIMIT = 1000
LIMIT = 100
#: `int` refuses to parse many more digits than these.
_NUMBER = re.compile(r"-?[0-9]{1,4000}")
#: Larger than any count or position, and still fits a 64-bit column.
_HUGE = 2**62
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

T = TypeVar("T")
#: Checks the value of a field and converts it; raises ApiError.
Parser = Callable[[Any], Any]


def require_json(request: Request) -> None:
    """Refuse other content types: an HTML form of another site could send those."""
    headers = request.headers.getlist("content-type")
    if len(headers) > 1:  # a proxy may go by another one than we do
        message = f"A request must have one Content-Type header, and this has {len(headers)}"
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", message)
    header = headers[0] if headers else ""
    kind, *parameters = (part.strip().lower() for part in header.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    charsets = [value.strip('"') for name, _, value in pairs if name == "charset"]
    if kind != JSON or not {"utf-8", "utf8"}.issuperset(charsets):
        found = f"Content-Type is {quoted(header)}" if header else "Content-Type is missing"
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", f"{found}; it must be {JSON}")
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        message = f"Content-Encoding is {quoted(encoding)}; send the body as it is"
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", message)


async def json_object(request: Request) -> dict[str, Any]:
    """Read the body, which must be a JSON object."""
    return parse_object(await read_body(request))


async def read_body(request: Request) -> bytes:
    """The raw body of a request with a JSON content type and no query parameters."""
    query(request)
    require_json(request)
    return await _read_within_limits(request)


def parse_object(raw: bytes) -> dict[str, Any]:
    body = _parse_json(raw)
    if not isinstance(body, dict):
        raise invalid(f"The body is {_kind(body)}; it must be an object")
    return body


async def _read_within_limits(request: Request) -> bytes:
    chunks, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= MAX_BODY:
                    chunks.append(chunk)
                elif size > MAX_DRAINED:
                    break
    except TimeoutError:
        late = f"The body did not arrive within {BODY_SECONDS:g} seconds"
        raise ApiError("INVALID_INPUT", late, {"connection": "close"}) from None
    if size <= MAX_BODY:
        return b"".join(chunks)
    message = f"The body is larger than {MAX_BODY} bytes"
    raise ApiError("PAYLOAD_TOO_LARGE", message, {"connection": "close"})


def _parse_json(raw: bytes) -> Any:
    try:
        body = json.loads(
            raw.decode(),
            object_pairs_hook=_parse_pairs,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
        )
    except UnicodeDecodeError:
        raise invalid("Malformed JSON: the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        # Some of Python's messages continue with advice for programmers, or end in "at".
        found = error.msg.partition(" (")[0].removesuffix(" at")
        place = f"line {error.lineno} column {error.colno}"
        raise invalid(f"Malformed JSON: {found} at {place}") from None
    except RecursionError:
        raise invalid("Malformed JSON: it is nested too deeply") from None
    except ValueError:  # an integer with more digits than `int` parses
        raise invalid("Malformed JSON: a number is too long") from None
    if isinstance(body, (dict, list)) and too_deep(body):
        raise invalid(f"The body is nested deeper than {MAX_DEPTH} levels")
    return body


def _parse_float(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise invalid(f"Malformed JSON: the number {quoted(digits)} is too large")
    return number


def _parse_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return _unique("Field", pairs)


def _unique(what: str, pairs: list[tuple[str, T]]) -> dict[str, T]:
    """The pairs as a dict; a duplicate name is an error."""
    found = dict(pairs)
    if len(found) != len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise invalid(f"{what} {quoted(twice)} is given twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise invalid(f"Malformed JSON: {name} is no JSON number")


def parse_fields(
    body: Mapping[str, Any], fields: Mapping[str, Parser], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The given fields, parsed; raises the first problem in the order of `fields`."""
    values = {}
    for name, parse in fields.items():
        if name in body:
            values[name] = parse(body[name])
        elif name in required:
            raise ApiError("MISSING_FIELD", f"Field '{name}' is required")
    for name in body:
        if name not in fields:
            hint = nearest(name, fields)
            raise invalid(f"Field {quoted(name)} is not known" + (f"; {hint}" if hint else ""))
    return values


def text(label: str, least: int, most: int) -> Parser:
    """Parses text of `least` to `most` code points; error messages begin with `label`."""
    length = f"{least}-{most} chars" if least else f"at most {most} chars"

    def parse(value: Any) -> str:
        if not isinstance(value, str):
            raise invalid(f"{label} is {_kind(value)}; it must be text")
        if not least <= len(value) <= most:
            raise ApiError("INVALID_LENGTH", f"{label} must be {length}")
        if not storable(value):
            raise invalid(f"{label} has a NUL or half of a surrogate pair, which cannot be stored")
        return value

    return parse


def texts(name: str, most: int, each: tuple[int, int]) -> Parser:
    """Parses an array of at most `most` texts; `each` has the bounds of their lengths."""

    def parse(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise invalid(f"Field '{name}' is {_kind(value)}; it must be an array of texts")
        if len(value) > most:
            raise ApiError("INVALID_LENGTH", f"Field '{name}' must have at most {most} items")
        return tuple(text(f"Field '{name}[{i}]'", *each)(one) for i, one in enumerate(value))

    return parse


def flag(label: str) -> Parser:
    """Parses true or false."""

    def parse(value: Any) -> bool:
        if not isinstance(value, bool):
            raise invalid(f"{label} is {_kind(value)}; it must be true or false")
        return value

    return parse


def optional(parse: Parser) -> Parser:
    """The same parser, but null is accepted."""
    return lambda value: None if value is None else parse(value)


def uuid(label: str) -> Parser:
    """Parses a UUID, into lower case."""

    def parse(value: Any) -> str:
        found = uuid_or_none(value)
        if found is None:
            raise invalid(f"{label} must be a UUID, such as 550e8400-e29b-41d4-a716-446655440001")
        return found

    return parse


def uuid_or_none(value: Any) -> str | None:
    """The UUID in lower case; None when `value` is not one."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _UUID.fullmatch(lower) else None


def query(request: Request, *known: str) -> dict[str, str]:
    """The query parameters; one that is not `known`, or given twice, is an error."""
    raw: bytes = request.scope["query_string"]
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        raise invalid("The query is not UTF-8") from None
    found = _unique("Query parameter", pairs)
    for name in found:
        if name not in known:
            hint = nearest(name, known)
            message = f"Query parameter {quoted(name)} is not known"
            raise invalid(message + (f"; {hint}" if hint else ""))
        if not storable(found[name]):
            raise invalid(f"Query parameter {quoted(name)} has a NUL, which no text here can have")
    return found


def number(given: Mapping[str, str], name: str, default: int, least: int, most: int | None) -> int:
    """An integer query parameter."""
    digits = given.get(name)
    if digits is None:
        return default
    value = int(digits) if _NUMBER.fullmatch(digits) else None
    if value is None or value < least or (most is not None and value > most):
        limits = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise invalid(f"Query parameter '{name}' must be a whole number {limits}")
    return min(value, _HUGE)


def page(given: Mapping[str, str]) -> tuple[int, int]:
    """The query parameters `limit` and `skip`."""
    return number(given, "limit", LIMIT, 1, MAX_LIMIT), number(given, "skip", 0, 0, None)


def quoted(name: str) -> str:
    """Text from a request, shortened, quoted, and safe to encode as JSON."""
    short = cut(name, 53)
    return repr(short.encode("utf-8", "backslashreplace").decode())


def _kind(value: Any) -> str:
    """The JSON type of a value, for messages."""
    kinds = {dict: "an object", list: "an array", str: "text", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")
