"""`/docs`: the OpenAPI document as a page for people. It needs no JavaScript."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from assay.server.openapi import Schema, document
from assay.server.requests import check_query

_POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'"
_HEADERS = {"content-security-policy": _POLICY}


async def get_page(request: Request) -> Response:
    check_query(request)
    return Response(_page(), headers=_HEADERS, media_type="text/html")


async def get_style(request: Request) -> Response:
    check_query(request)
    style = files("assay.server").joinpath("docs.css").read_text(encoding="utf-8")
    return Response(style, media_type="text/css")


@cache
def _page() -> str:
    made, groups = document(), dict[str, list[str]]()
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            drawn = _operation(f"{method.upper()} {path}", operation)
            groups.setdefault(operation["tags"][0], []).append(drawn)
    routes = "".join(f"<h2>{escape(tag)}</h2>{''.join(drawn)}" for tag, drawn in groups.items())
    schemas = "".join(
        f'<details id="{escape(name)}"><summary>{escape(name)}</summary>{_json(schema)}</details>'
        for name, schema in sorted(made["components"]["schemas"].items())
    )
    info = made["info"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<title>Assay API</title><link rel="stylesheet" href="/docs.css"></head><body>'
        f"<main><h1>Assay API {escape(info['version'])}</h1><p>{_text(info['description'])}</p>"
        '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{routes}<h2>schemas</h2>{schemas}</main></body></html>"
    )


def _operation(route: str, operation: Schema) -> str:
    rows = [
        (f"{p['name']} ({p['in']})", _json(p["schema"]), _text(p.get("description", "")))
        for p in operation.get("parameters", ())
    ]
    bodies = {"body": operation["requestBody"]} if "requestBody" in operation else {}
    for name, described in (bodies | operation["responses"]).items():
        content = "".join(_json(one["schema"]) for one in described.get("content", {}).values())
        rows.append((name, content, _text(described.get("description", ""))))
    cells = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{content}</td><td>{text}</td></tr>'
        for name, content, text in rows
    )
    return (
        f'<section id="{escape(operation["operationId"])}"><h3><code>{escape(route)}</code></h3>'
        f"<p>{_text(operation['description'])}</p><table>{cells}</table></section>"
    )


def _json(schema: Any) -> str:
    """A schema; its references are links to where that schema is on the page."""
    if set(schema) == {"$ref"}:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    shown = escape(json.dumps(schema, indent=2), quote=False)
    linked = re.sub(r'"#/components/schemas/([^"]+)"', r'<a href="#\1">\1</a>', shown)
    return f"<pre>{linked}</pre>"


def _text(prose: str) -> str:
    """Prose in which `code` is marked by backticks."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(prose))
