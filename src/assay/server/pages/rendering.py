"""Pages from Jinja2 templates, the files that they load, and the policy that they carry."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import Response

from assay.server.callers import caller_of
from assay.server.envelope import ApiError
from assay.server.requests import check_query

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    # With `no-referrer`, browsers would send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
}
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}


def render(
    template: str,
    request: Request,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    """A page; its template gets the values and the `caller`, and escapes all of them."""
    text = _environment().get_template(template).render(values, caller=caller_of(request))
    return Response(text, status, _HEADERS | (headers or {}), "text/html")


async def get_static_file(request: Request) -> Response:
    """A style sheet or module of the pages."""
    check_query(request)
    name = request.path_params["name"]
    found = _static_files().get(name)
    if found is None:
        raise ApiError("NOT_FOUND", f"There is no route {request.url.path}")
    return Response(found, media_type=_MEDIA_TYPES[name.rpartition(".")[2]])


@cache
def _static_files() -> dict[str, bytes]:
    folder = files("assay.server.pages").joinpath("static")
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("assay.server.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
