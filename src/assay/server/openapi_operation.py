"""Builders for the OpenAPI descriptions of routes."""

from __future__ import annotations

from typing import Any

from assay.server import bodies
from assay.server.envelope import CODES, JSON, Code

Schema = dict[str, Any]
#: Matches text that every store can keep: without NUL. Lone surrogates are not valid text anyway.
STORABLE = "^[^\\u0000]*$"
UUID: Schema = {"type": "string", "format": "uuid"}
COUNT: Schema = {"type": "integer", "minimum": 0}
#: The errors that any request can get.
_ALWAYS: tuple[Code, ...] = ("INVALID_INPUT", "UNAUTHORIZED", "INTERNAL_ERROR")
#: The errors that any request with a body can get.
_WITH_BODY: tuple[Code, ...] = ("PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE")


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def record(properties: dict[str, Schema], *optional: str, **more: Any) -> Schema:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **more,
    }


def bounded(schema: Any) -> Any:
    """The schema with integers limited to 64 bits, as in the model."""
    if isinstance(schema, list):
        return [bounded(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    limit = {"maximum": 2**64 - 1} if schema.get("type") == "integer" else {}
    return limit | {key: bounded(part) for key, part in schema.items()}


def parameter(name: str, where: str, schema: Schema, description: str, **more: Any) -> Schema:
    required = {"required": True} if where == "path" else {}
    head = {"name": name, "in": where, "description": description}
    return {**head, **required, "schema": schema, **more}


LIMIT = parameter(
    "limit",
    "query",
    {"type": "integer", "minimum": 1, "maximum": bodies.MAX_LIMIT, "default": bodies.LIMIT},
    "Max results.",
)
SKIP = parameter(
    "skip", "query", {"type": "integer", "minimum": 0, "default": 0}, "Number to skip."
)


def operation(
    name: str,
    summary: str,
    success: Schema,
    *,
    parameters: tuple[Schema, ...] = (),
    body: Schema | None = None,
    errors: tuple[Code, ...] = (),
) -> dict[str, Any]:
    """The keyword arguments of a route. `success` is made by `response` or `page`."""
    codes = (*errors, *_ALWAYS, *(_WITH_BODY if body is not None else ()))
    extra: dict[str, Any] = {"operationId": name, "summary": summary}
    if parameters:
        extra["parameters"] = list(parameters)
    if body is not None:
        extra["requestBody"] = {"required": True, "content": {JSON: body}}
    extra["responses"] = {**success, **_failures(codes)}
    return {"openapi_extra": extra}


def response(
    status: int, description: str, data: Schema, example: Any, links: Schema | None = None
) -> Schema:
    """A response with data in the envelope."""
    schema = record({"success": {"const": True}, "data": data, "error": {"type": "null"}})
    envelope = {"success": True, "data": example, "error": None}
    content = {JSON: {"schema": schema, "example": envelope}}
    more = {"links": links} if links else {}
    return {str(status): {"description": description, "content": content, **more}}


def page(name: str, item: str, example: Any, **more: tuple[Schema, Any]) -> Schema:
    """A response with a page of items; `more` are further fields with their examples."""
    fields = {name: {"type": "array", "items": ref(item)}, "count": COUNT}
    fields |= {field: schema for field, (schema, _) in more.items()}
    data = {name: [example], "count": 1} | {field: value for field, (_, value) in more.items()}
    return response(200, f"A page of {name.replace('_', ' ')}", record(fields), data)


def _failures(codes: tuple[Code, ...]) -> Schema:
    """The error responses for these codes, by status."""
    by_status: dict[int, list[Code]] = {}
    for code in CODES:
        if code in codes:
            by_status.setdefault(CODES[code][0], []).append(code)
    return {str(status): _failure(found) for status, found in sorted(by_status.items())}


def _failure(codes: list[Code]) -> Schema:
    error = record({"code": {"enum": list(codes)}, "message": {"type": "string"}})
    schema = record({"success": {"const": False}, "data": {"type": "null"}, "error": error})
    description = "; ".join(f"{code}: {CODES[code][1]}" for code in codes)
    first = {"code": codes[0], "message": CODES[codes[0]][1]}
    example = {"success": False, "data": None, "error": first}
    return {"description": description, "content": {JSON: {"schema": schema, "example": example}}}
