"""`/login` exchanges a token for a session cookie, and `/logout` ends the session."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from assay.server.callers import LOGIN, LOGOUT
from assay.server.forms import read_form
from assay.server.pages.rendering import HOME, render
from assay.server.security import Access
from assay.server.sessions import Sessions
from assay.server.throttle import Throttle
from assay.server.tokens import find_token

#: A path on this server. Browsers take `//` and `/\` for the start of another server's address.
_LOCAL = re.compile(r"/(?:[!-.0-\[\]-~][!-\[\]-~]*)?")
_WRONG = "This token is not valid."
_TOO_MANY = "Too many failed attempts. Wait a minute, then try again."


class LoginPages:
    """The log-in page of a server."""

    def __init__(self, access: Access, sessions: Sessions, throttle: Throttle) -> None:
        self._access, self._sessions, self._throttle = access, sessions, throttle

    def routes(self) -> list[Route]:
        return [
            Route(LOGIN, self.get, methods=["GET"]),
            Route(LOGIN, self.log_in, methods=["POST"]),
            Route(LOGOUT, self.log_out, methods=["POST"]),
        ]

    async def get(self, request: Request) -> Response:
        """The form for the token; a server without tokens needs none."""
        page = _local_page(request.query_params.get("next", ""))
        if not self._access.tokens:
            return RedirectResponse(page, 303)
        return _form(request, page)

    async def log_in(self, request: Request) -> Response:
        """Begin a new session, and end the one that the browser had."""
        form = await read_form(request)
        page, client = _local_page(form.get("next", "")), self._client(request)
        if not self._access.tokens:
            return RedirectResponse(page, 303)
        if wait := self._throttle.wait_seconds(client):
            return _form(request, page, 429, {"retry-after": str(wait)}, _TOO_MANY)
        token = find_token(self._access.tokens, form.get("token", "").strip().encode())
        if token is None:
            self._throttle.note_failure(client)
            return _form(request, page, 401, {"www-authenticate": "Bearer"}, _WRONG)
        await self._sessions.end(request.headers)
        cookie = self._sessions.set_cookie(await self._sessions.create(token))
        return RedirectResponse(page, 303, {"set-cookie": cookie})

    async def log_out(self, request: Request) -> Response:
        await self._sessions.end(request.headers)
        return RedirectResponse(LOGIN, 303, {"set-cookie": self._sessions.clear_cookie()})

    def _client(self, request: Request) -> str:
        """The address of the client. Behind a proxy, the one that the proxy saw, if it says so."""
        forwarded = request.headers.getlist("x-forwarded-for")
        if self._access.origin and forwarded:
            return forwarded[-1].rpartition(",")[2].strip()
        return request.client.host if request.client else ""


def _form(
    request: Request,
    page: str,
    status: int = 200,
    headers: dict[str, str] | None = None,
    message: str = "",
) -> Response:
    return render("login.html", request, status, headers, next=page, message=message)


def _local_page(given: str) -> str:
    """The page to show after the log-in; never one of another server."""
    return given if _LOCAL.fullmatch(given) else HOME
