"""The envelope `{success, data, error}` of every response, and the error codes."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta
from starlette.exceptions import HTTPException
from starlette.responses import Response

from assay.redaction import redacted

Code = Literal[
    "MISSING_FIELD",
    "INVALID_LENGTH",
    "INVALID_INPUT",
    "DUPLICATE_ID",
    "NOT_FOUND",
    "INTERNAL_ERROR",
    "UNAUTHORIZED",
    "FORBIDDEN",
    "METHOD_NOT_ALLOWED",
    "PAYLOAD_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "UNAVAILABLE",
]

#: The HTTP status of every error code, and what it means.
CODES: dict[Code, tuple[int, str]] = {
    "MISSING_FIELD": (400, "Required field not provided"),
    "INVALID_LENGTH": (400, "Field length outside allowed range"),
    "INVALID_INPUT": (400, "Input fails validation"),
    "DUPLICATE_ID": (400, "ID already exists (only on POST)"),
    "UNAUTHORIZED": (401, "No valid token or session"),
    "FORBIDDEN": (403, "The token can only read, or another website sent the request"),
    "NOT_FOUND": (404, "Resource not found"),
    "METHOD_NOT_ALLOWED": (405, "The path does not support this method"),
    "PAYLOAD_TOO_LARGE": (413, "The body is larger than 1 MiB"),
    "UNSUPPORTED_MEDIA_TYPE": (415, "The content type is not JSON, or the body is compressed"),
    "INTERNAL_ERROR": (500, "Unexpected server error"),
    "UNAVAILABLE": (503, "The store cannot be reached (only health)"),
}
JSON = "application/json"
#: The prefix of references in the OpenAPI document.
REF = "#/components/schemas/"
#: All that a client learns about an internal error.
UNEXPECTED = "Unexpected error; the server's log has the details"


#: The errors that any request can get.
_ALWAYS: tuple[Code, ...] = ("INVALID_INPUT", "UNAUTHORIZED", "INTERNAL_ERROR")
#: The errors that any request with a body can get.
WITH_BODY: tuple[Code, ...] = ("PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE")

T = TypeVar("T")


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object of a response: it has all these fields, and no others."""


class Success(Data, Generic[T], frozen=True):
    """A response with data."""

    success: Annotated[bool, Meta(extra_json_schema={"const": True})]
    data: T
    error: None


class Problem(Data, frozen=True):
    """What is wrong with a request, or with the server."""

    code: Code
    message: str


class Failure(Data, frozen=True):
    """A response without data."""

    success: Annotated[bool, Meta(extra_json_schema={"const": False})]
    data: None
    error: Problem


#: The bodies of all responses.
BODIES: list[Any] = [Failure]


def answers(data: Any, *codes: Code, status: int = 200, **more: Any) -> dict[str, Any]:
    """Keyword arguments of a route: its response has such data, or none, or one of the codes.

    `more` is for the entry of its status in the OpenAPI document.
    """
    found = {status: more} | described_errors(*codes, *_ALWAYS)
    if data is not None:
        found[status] = more | _described(Success[data])
        BODIES.append(Success[data])
    return {"status_code": status, "responses": found, "response_class": Response}


def _described(body: Any) -> dict[str, Any]:
    ((schema,), _) = msgspec.json.schema_components([body], ref_template=REF + "{name}")
    return {"content": {JSON: {"schema": schema}}}


def described_errors(*codes: Code) -> dict[int, dict[str, Any]]:
    """The entries of error codes in the OpenAPI document, by their status."""
    found: dict[int, dict[str, Any]] = {}
    for code, (failed, meaning) in CODES.items():
        if code in codes:
            entry = found.setdefault(failed, {"description": "", **_described(Failure)})
            entry["description"] += f"{'; ' if entry['description'] else ''}{code}: {meaning}"
    return found


class ApiError(HTTPException):
    """Ends a request with an error response; it never leaves the server."""

    def __init__(self, code: Code, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(CODES[code][0], message, headers)
        self.code = code

    def response(self) -> Response:
        return Response(failure(self.code, self.detail), self.status_code, self.headers, JSON)


def invalid(message: str) -> ApiError:
    """The error for input that is wrong in any other way than its length."""
    return ApiError("INVALID_INPUT", message)


def sentence(error: BaseException) -> str:
    """The message of an error, capitalised."""
    text = str(error)
    return text[:1].upper() + text[1:]


def success(data: Any, status: int = 200) -> Response:
    """A response with data."""
    return success_json(msgspec.json.encode(data), status)


def success_json(data: bytes, status: int = 200) -> Response:
    """A response with data that is encoded as JSON already."""
    body = b'{"success":true,"data":' + data + b',"error":null}'
    return Response(body, status, media_type=JSON)


def failure(code: Code, message: str) -> bytes:
    """The body of an error response."""
    return msgspec.json.encode(Failure(False, None, Problem(code, redacted(message))))
