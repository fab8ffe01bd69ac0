"""What a route says of itself in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from assay.server.envelope import CODES, JSON, Code

Schema = dict[str, Any]
#: What stands for a text that every store can keep. Halves of surrogate pairs are no text at all.
STORABLE = "^[^\\u0000]*$"
UUID: Schema = {"type": "string", "format": "uuid"}
COUNT: Schema = {"type": "integer", "minimum": 0}
#: These may be the answer to every request.
_EVERYWHERE: tuple[Code, ...] = ("INVALID_INPUT", "UNAUTHORIZED", "INTERNAL_ERROR")
#: These may be the answer to every request with a body.
_WITH_BODY: tuple[Code, ...] = ("PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE")


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def record(properties: dict[str, Schema], *optional: str, **more: Any) -> Schema:
    """An object of exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **more,
    }


def bounded(schema: Any) -> Any:
    """The schema with the limit that whole numbers of shapes have: they fit 64 bits."""
    if isinstance(schema, list):
        return [bounded(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    limit = {"maximum": 2**64 - 1} if schema.get("type") == "integer" else {}
    return limit | {key: bounded(part) for key, part in schema.items()}


def parameter(name: str, where: str, schema: Schema, meaning: str, **more: Any) -> Schema:
    required = {"required": True} if where == "path" else {}
    head = {"name": name, "in": where, "description": meaning}
    return {**head, **required, "schema": schema, **more}


LIMIT = parameter(
    "limit",
    "query",
    {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    "Max results.",
)
SKIP = parameter(
    "skip", "query", {"type": "integer", "minimum": 0, "default": 0}, "Number to skip."
)


def operation(
    name: str,
    summary: str,
    answer: Schema,
    *,
    parameters: tuple[Schema, ...] = (),
    body: Schema | None = None,
    errors: tuple[Code, ...] = (),
) -> dict[str, Any]:
    """The arguments of a route. `answer` is one of those below."""
    codes = (*errors, *_EVERYWHERE, *(_WITH_BODY if body is not None else ()))
    described: dict[str, Any] = {"operationId": name, "summary": summary}
    if parameters:
        described["parameters"] = list(parameters)
    if body is not None:
        described["requestBody"] = {"required": True, "content": {JSON: body}}
    described["responses"] = {**answer, **_failures(codes)}
    return {"openapi_extra": described}


def answers(
    status: int, meaning: str, data: Schema, example: Any, links: Schema | None = None
) -> Schema:
    """An answer with data in the envelope."""
    envelope = record({"success": {"const": True}, "data": data, "error": {"type": "null"}})
    shown = {"success": True, "data": example, "error": None}
    content = {JSON: {"schema": envelope, "example": shown}}
    more = {"links": links} if links else {}
    return {str(status): {"description": meaning, "content": content, **more}}


def a_page(name: str, item: str, shown: Any, **more: tuple[Schema, Any]) -> Schema:
    """An answer with some items of a list; `more` are further fields with their examples."""
    fields = {name: {"type": "array", "items": ref(item)}, "count": COUNT}
    fields |= {field: schema for field, (schema, _) in more.items()}
    example = {name: [shown], "count": 1} | {field: given for field, (_, given) in more.items()}
    return answers(200, f"A page of {name.replace('_', ' ')}", record(fields), example)


def _failures(codes: tuple[Code, ...]) -> Schema:
    """The answers of these codes, by their status."""
    by_status: dict[int, list[Code]] = {}
    for code in CODES:
        if code in codes:
            by_status.setdefault(CODES[code][0], []).append(code)
    return {str(status): _failure(found) for status, found in sorted(by_status.items())}


def _failure(codes: list[Code]) -> Schema:
    error = record({"code": {"enum": list(codes)}, "message": {"type": "string"}})
    schema = record({"success": {"const": False}, "data": {"type": "null"}, "error": error})
    meaning = "; ".join(f"{code}: {CODES[code][1]}" for code in codes)
    shown = {"code": codes[0], "message": CODES[codes[0]][1]}
    example = {"success": False, "data": None, "error": shown}
    return {"description": meaning, "content": {JSON: {"schema": schema, "example": example}}}
