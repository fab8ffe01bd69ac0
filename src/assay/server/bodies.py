"""The bodies and parameters of requests: received within limits, and read strictly."""

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
from assay.server.envelope import JSON, ApiError, invalid

#: The largest body that is read.
MAX_BODY = 1024 * 1024
#: So much of a larger one is received, so that its sender gets to see the refusal.
MAX_DRAINED = 8 * 1024 * 1024
#: A body that takes longer to arrive is not waited for.
BODY_SECONDS = 30.0
MAX_LIMIT = 1000
LIMIT = 100
#: As many digits as Python reads.
_NUMBER = re.compile(r"-?[0-9]{1,4000}")
#: More than there is of anything, and few enough for every database.
_BEYOND = 2**62
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

T = TypeVar("T")
#: Checks the value of a field and gives what is to be kept of it.
Read = Callable[[Any], Any]


def require_json(request: Request) -> None:
    """Refuse a write that a form of a foreign page could have sent."""
    written = request.headers.get("content-type", "")
    kind, *parameters = (part.strip().lower() for part in written.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    charsets = [value.strip('"') for name, _, value in pairs if name == "charset"]
    if kind != JSON or not {"utf-8", "utf8"}.issuperset(charsets):
        found = f"Content-Type is {shown(written)}" if written else "Content-Type is missing"
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", f"{found}; it must be {JSON}")
    coding = request.headers.get("content-encoding", "identity")
    if coding.strip().lower() != "identity":
        message = f"Content-Encoding is {shown(coding)}; send the body as it is"
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", message)


async def json_object(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object."""
    return object_of(await received(request))


async def received(request: Request) -> bytes:
    """The body as it was sent: JSON by its content type, and not too large."""
    query(request)
    require_json(request)
    return await _received(request)


def object_of(raw: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    body = _parsed(raw)
    if not isinstance(body, dict):
        raise invalid(f"The body is {_kind(body)}; it must be an object")
    return body


async def _received(request: Request) -> bytes:
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


def _parsed(raw: bytes) -> Any:
    try:
        body = json.loads(
            raw.decode(),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError:
        raise invalid("Malformed JSON: the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        # Some of Python's messages go on with advice for programmers, or end with "at".
        found = error.msg.partition(" (")[0].removesuffix(" at")
        place = f"line {error.lineno} column {error.colno}"
        raise invalid(f"Malformed JSON: {found} at {place}") from None
    except RecursionError:
        raise invalid("Malformed JSON: it is nested too deeply") from None
    except ValueError:  # an integer of more digits than Python reads
        raise invalid("Malformed JSON: a number is too long") from None
    if isinstance(body, (dict, list)) and too_deep(body):
        raise invalid(f"The body is nested deeper than {MAX_DEPTH} levels")
    return body


def _finite(written: str) -> float:
    number = float(written)
    if not isfinite(number):
        raise invalid(f"Malformed JSON: the number {shown(written)} is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return _once("Field", pairs)


def _once(what: str, pairs: list[tuple[str, T]]) -> dict[str, T]:
    """The pairs; refused when a name is there twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise invalid(f"{what} {shown(twice)} is given twice")
    return found


def _no_constant(name: str) -> Any:
    raise invalid(f"Malformed JSON: {name} is no JSON number")


def read_fields(
    body: Mapping[str, Any], fields: Mapping[str, Read], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The fields that were given. The first problem in the order of `fields` is told."""
    values = {}
    for name, read in fields.items():
        if name in body:
            values[name] = read(body[name])
        elif name in required:
            raise ApiError("MISSING_FIELD", f"Field '{name}' is required")
    for name in body:
        if name not in fields:
            hint = nearest(name, fields)
            raise invalid(f"Field {shown(name)} is not known" + (f"; {hint}" if hint else ""))
    return values


def text(label: str, least: int, most: int) -> Read:
    """A text of so many code points; `label` begins the sentence that refuses another."""
    length = f"{least}-{most} chars" if least else f"at most {most} chars"

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise invalid(f"{label} is {_kind(value)}; it must be text")
        if not least <= len(value) <= most:
            raise ApiError("INVALID_LENGTH", f"{label} must be {length}")
        if not storable(value):
            raise invalid(f"{label} has a NUL or half of a surrogate pair, which cannot be stored")
        return value

    return read


def texts(name: str, most: int, each: tuple[int, int]) -> Read:
    """A list of at most so many texts."""

    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise invalid(f"Field '{name}' is {_kind(value)}; it must be an array of texts")
        if len(value) > most:
            raise ApiError("INVALID_LENGTH", f"Field '{name}' must have at most {most} items")
        return tuple(text(f"Field '{name}[{i}]'", *each)(one) for i, one in enumerate(value))

    return read


def optional(read: Read) -> Read:
    """The same, or null."""
    return lambda value: None if value is None else read(value)


def uuid(label: str) -> Read:
    """A UUID, in lower case."""

    def read(value: Any) -> str:
        found = known_uuid(value)
        if found is None:
            raise invalid(f"{label} must be a UUID, such as 550e8400-e29b-41d4-a716-446655440001")
        return found

    return read


def known_uuid(value: Any) -> str | None:
    """The UUID in lower case; None when it is none."""
    lower = value.lower() if isinstance(value, str) else ""
    return lower if _UUID.fullmatch(lower) else None


def query(request: Request, *known: str) -> dict[str, str]:
    """The parameters after `?`; each is known and stands there once."""
    raw: bytes = request.scope["query_string"]
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict")
    except ValueError:
        raise invalid("The query is not UTF-8") from None
    found = _once("Query parameter", pairs)
    for name in found:
        if name not in known:
            hint = nearest(name, known)
            message = f"Query parameter {shown(name)} is not known"
            raise invalid(message + (f"; {hint}" if hint else ""))
        if not storable(found[name]):
            raise invalid(f"Query parameter {shown(name)} has a NUL, which no text here can have")
    return found


def number(given: Mapping[str, str], name: str, default: int, least: int, most: int | None) -> int:
    """A whole number among the parameters of a query."""
    written = given.get(name)
    if written is None:
        return default
    value = int(written) if _NUMBER.fullmatch(written) else None
    if value is None or value < least or (most is not None and value > most):
        limits = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise invalid(f"Query parameter '{name}' must be a whole number {limits}")
    return min(value, _BEYOND)


def page(given: Mapping[str, str]) -> tuple[int, int]:
    """`limit` and `skip`."""
    return number(given, "limit", LIMIT, 1, MAX_LIMIT), number(given, "skip", 0, 0, None)


def shown(name: str) -> str:
    """A name out of a request, of a bearable length, that can be written as JSON."""
    short = name if len(name) <= 50 else name[:50] + "..."
    return repr(short.encode("utf-8", "backslashreplace").decode())


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "an array", str: "text", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")
