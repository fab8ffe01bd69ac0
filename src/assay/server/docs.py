"""`/docs`: the OpenAPI document as a page for people. It needs no JavaScript."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from assay.server.openapi import Schema, document
from assay.server.pages.rendering import page, render


async def get_page(request: Request) -> Response:
    return render("docs.html", request, **_parts())


@cache
def _parts() -> dict[str, Any]:
    """The parts of the page. All of their text is our own, and escaped."""
    from markupsafe import Markup

    made, groups = document(), dict[str, list[str]]()
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            drawn = _operation(f"{method.upper()} {path}", operation)
            groups.setdefault(operation["tags"][0], []).append(drawn)
    schemas = "".join(
        f'<details id="{escape(name)}"><summary>{escape(name)}</summary>{_json(schema)}</details>'
        for name, schema in sorted(made["components"]["schemas"].items())
    )
    return {
        "api_version": made["info"]["version"],
        "description": Markup(_text(made["info"]["description"])),
        "groups": [(tag, Markup("".join(drawn))) for tag, drawn in groups.items()],
        "schemas": Markup(schemas),
    }


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
        f'<tr><th scope="row">{escape(name)}</th><td>{shown}</td><td>{text}</td></tr>'
        for name, shown, text in rows
    )
    return (
        f'<section id="{escape(operation["operationId"])}"><h3><code>{escape(route)}</code></h3>'
        f'<p>{_text(operation["description"])}</p><div class="scroll">'
        f"<table><tbody>{cells}</tbody></table></div></section>"
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


ROUTES = [page("/docs", get_page)]
