"""Pages from Jinja2 templates, and the policy that they carry.

How to add a page: write `web/templates/NAME.html`, which extends `base.html` and takes its parts
from `macros.html`, and `server/pages/NAME.py` with `async def get(request)`, which returns
`render(...)`, and `ROUTES = [page("/name", get, "parameter")]`. Add them to `routes.py`, and the
page to `PAGES` if it belongs in the header. Forms post to `page(..., method="POST")` and are read
by `read_form`. A page is complete without JavaScript. If it has a module, put it in
`web/static/NAME.js` and load it in the block `modules`:

    {% block modules %}<script type="module" src="{{ static("NAME.js") }}"></script>{% endblock %}

The policy forbids inline scripts, styles and event handlers, and `innerHTML`: modules make elements
with `createElement` and `textContent`. Style by the classes of `assay.css` only. Bind keys with
`data-key` attributes or `keys.js`. Raise ApiError, UsageError or NotInStore for an error page. Test
with `read_page` of `tests/server/test_pages.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.server.callers import STATIC, caller_of
from assay.server.envelope import ApiError
from assay.server.requests import check_query, unknown
from assay.server.state import state_of
from assay.version import __version__
from assay.web.environment import draw, static_files, static_version

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
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"
#: The pages in the header: section, address and label; and the one that the name leads to.
PAGES: tuple[tuple[str, str, str], ...] = (
    ("runs", "/", "Runs"),
    ("compare", "/compare", "Compare"),
    ("trend", "/trend", "Trend"),
    ("test-cases", "/test-cases", "Test cases"),
)
HOME = "/"
Handler = Callable[[Request], Awaitable[Response]]


def render(
    template: str,
    request: Request,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    """A page; its template gets the values and the `caller`, and escapes all of them."""
    settings = state_of(request).settings
    place = f"{settings.root.name} · {settings.config.store.partition(':')[0]}"
    around = {"caller": caller_of(request), "place": place, "pages": PAGES, "home": HOME}
    around["has_page"] = {key for key, *_ in PAGES}.__contains__
    text = draw(template, values | around | {"version": __version__})
    return Response(text, status, _HEADERS | (headers or {}), "text/html")


def page(path: str, handler: Handler, *parameters: str, method: str = "GET") -> Route:
    """The route of a page that takes these query parameters, each at most once."""

    async def checked(request: Request) -> Response:
        check_query(request, takes_query=bool(parameters))
        for name in request.query_params:
            if name not in parameters:
                raise unknown("Query parameter", name, parameters)
        return await handler(request)

    return Route(path, checked, methods=[method])


def error_page(request: Request, error: ApiError) -> Response:
    """The page of an error, for a browser."""
    title = "Not found" if error.status_code == 404 else "That did not work"
    headers = dict(error.headers or {})
    return render(
        "error.html", request, error.status_code, headers, title=title, message=error.detail
    )


async def get_static_file(request: Request) -> Response:
    """A style sheet or module; its address has a version, so that browsers can keep it."""
    check_query(request)
    name = request.path_params["name"]
    found = static_files().get(name)
    if found is None:
        raise ApiError("NOT_FOUND", f"There is no route {request.url.path}")
    kept = request.path_params["version"] == static_version()
    headers = {"cache-control": _FOREVER if kept else "no-cache"}
    return Response(found, headers=headers, media_type=_MEDIA_TYPES[name.rpartition(".")[2]])


STATIC_FILES = Route(STATIC + "{version}/{name}", get_static_file, methods=["GET"])
