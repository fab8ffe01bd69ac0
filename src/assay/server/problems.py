"""The error response to a request that does not match the OpenAPI document.

pydantic finds the problems, in the order of the fields; the schema says what would be right.
"""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request

from assay.server.envelope import JSON, ApiError, invalid
from assay.server.openapi import Schema, document, resolved
from assay.server.requests import unknown
from assay.server.schemas import OWN

_LENGTHS = {"string_too_short", "string_too_long", "too_short", "too_long"}
#: NUL, and halves of surrogate pairs.
_NOT_STORABLE = {"string_pattern_mismatch", "string_unicode"}


def first_error(error: RequestValidationError, request: Request) -> ApiError:
    """The error for the first problem."""
    problem = error.errors()[0]
    kind, value, (where, *path) = problem["type"], problem["input"], problem["loc"]
    if where == "body" and not path:
        return _wrong_body(kind, value)
    what, known = _described(request, where)
    if kind == "extra_forbidden":
        return unknown(what, path[0], known)
    label = f"{what} '{path[0]}{''.join(f'[{part}]' for part in path[1:])}'"
    # An empty query parameter is as good as none.
    if kind == "missing" or (kind == "string_too_short" and where == "query"):
        return ApiError("MISSING_FIELD", f"{label} is required")
    if path == ["input"]:  # as in the contract
        label = "Input"
    if kind == OWN:
        return invalid(f"{label} {problem['msg']}")
    if kind in _NOT_STORABLE:
        return invalid(f"{label} has a NUL or half of a surrogate pair, which cannot be stored")
    schema = resolved(known[path[0]])
    for _ in path[1:]:
        schema = resolved(schema["items"])
    if kind in _LENGTHS:
        return ApiError("INVALID_LENGTH", f"{label} must {_length(schema)}")
    found = "" if where == "query" else f" is {_kind(value)}; it"
    return invalid(f"{label}{found} must be {_expected(schema)}")


def _described(request: Request, where: str) -> tuple[str, dict[str, Schema]]:
    """What to call the parameters of a request, or the fields of its body; and their schemas."""
    method = request.method.lower().replace("head", "get")
    operation = document()["paths"][request.scope["route"].path][method]
    if where == "query":
        parameters = (p for p in operation["parameters"] if p["in"] == "query")
        return "Query parameter", {p["name"]: p["schema"] for p in parameters}
    schema = resolved(operation["requestBody"]["content"][JSON]["schema"])
    return "Field", schema.get("properties", {})


def _wrong_body(kind: str, value: Any) -> ApiError:
    if isinstance(value, list) and value and isinstance(value[0], ApiError):  # it is malformed
        return value[0]
    if kind == "missing":
        return invalid("Malformed JSON: the body is empty")
    if kind == "string_unicode":
        return invalid("A field whose name has half of a surrogate pair is not known")
    return invalid(f"The body is {_kind(value)}; it must be an object")


def _length(schema: Schema) -> str:
    """The allowed length of a text or an array."""
    if schema["type"] == "string":
        verb, unit, least, most = "be", "chars", schema.get("minLength"), schema["maxLength"]
    else:
        verb, unit, least, most = "have", "items", schema.get("minItems"), schema["maxItems"]
    return f"{verb} {f'{least}-{most}' if least else f'at most {most}'} {unit}"


def _expected(schema: Schema) -> str:
    """What a value must be."""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    kind, least, most = schema["type"], schema.get("minimum"), schema.get("maximum")
    if kind in ("integer", "number"):
        what = "a whole number" if kind == "integer" else "a number"
        return f"{what} {f'of at least {least}' if most is None else f'from {least} to {most}'}"
    if kind == "array":
        item = schema["items"]
        of = "ids" if item.get("format") == "uuid" else "texts"
        return f"an array of {of}" if item.get("type") == "string" else "an array"
    return {"string": "text", "boolean": "true or false"}.get(kind, "an object")


def _kind(value: Any) -> str:
    """The JSON type of a value, for messages."""
    kinds = {dict: "an object", list: "an array", str: "text", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")
