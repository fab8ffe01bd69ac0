"""Who sends a request, and what it may do: by token, by session, or without either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from urllib.parse import quote

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from assay.server.envelope import ApiError
from assay.server.origins import check_origin
from assay.server.sessions import Sessions
from assay.server.tokens import Token, find_token

LOGIN, LOGOUT, STATIC = "/login", "/logout", "/static/"
_API = "/api/"
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Caller(msgspec.Struct, frozen=True):
    """The sender of a request; it is `open` to everybody if the server has no tokens."""

    via: Literal["open", "token", "session", "nothing"]
    may_write: bool = False


class LoginRequired(ApiError):
    """Leads a browser to the log-in page, and from there back to the page that it asked for."""

    def __init__(self, scope: Scope) -> None:
        super().__init__("UNAUTHORIZED", "Log in first")
        self._page: bytes = scope["raw_path"]
        if scope["query_string"]:
            self._page += b"?" + scope["query_string"]

    def response(self) -> Response:
        return RedirectResponse(f"{LOGIN}?next={quote(self._page, safe='/')}", 303)


class Authentication:
    """Finds the caller of a request, and refuses what it may not do."""

    def __init__(self, tokens: Sequence[Token], sessions: Sessions, origin: str = "") -> None:
        self._tokens, self._sessions, self._origin = tokens, sessions, origin

    async def check(self, scope: Scope) -> None:
        """Let the request pass, with its Caller in the scope, or raise an ApiError."""
        headers, path = Headers(scope=scope), scope["path"]
        caller = await self._find(headers)
        public = path in (LOGIN, LOGOUT) or path.startswith(STATIC)
        if caller.via == "nothing" and not public:
            raise _unauthorized(scope, headers)
        if scope["method"] not in _READS:
            if not _is_exempt(caller, path, headers):
                check_origin(headers, self._origin)
            if not caller.may_write and not public:
                raise ApiError("FORBIDDEN", "This token can only read; a write token is required")
        scope.setdefault("state", {})["caller"] = caller

    async def _find(self, headers: Headers) -> Caller:
        if not self._tokens:
            return Caller("open", may_write=True)
        via: Literal["token", "session"] = "token" if "authorization" in headers else "session"
        if via == "token":
            token = _bearer_token(headers.getlist("authorization"), self._tokens)
        else:
            token = await self._sessions.find(headers)
        return Caller("nothing") if token is None else Caller(via, token.may_write)


def caller_of(request: Request) -> Caller:
    """The caller of a request; routes can use it as a dependency."""
    caller: Caller = request.state.caller
    return caller


def wants_page(scope: Scope, headers: Headers) -> bool:
    """Does a browser ask for a page, as opposed to a program that calls the API?"""
    return "text/html" in headers.get("accept", "") and not scope["path"].startswith(_API)


def _is_exempt(caller: Caller, path: str, headers: Headers) -> bool:
    """Can no other website have made a browser send this write, whatever its Origin header says?

    Other websites cannot set a bearer token. The routes of the API take only JSON, which browsers
    do not send elsewhere without permission; without an Origin header it comes from a program.
    """
    if not path.startswith(_API):
        return False
    return caller.via == "token" or (caller.via == "open" and "origin" not in headers)


def _bearer_token(values: list[str], tokens: Sequence[Token]) -> Token | None:
    if len(values) != 1:
        return None
    scheme, _, given = values[0].partition(" ")
    found = find_token(tokens, given.strip().encode("latin-1"))
    return found if scheme.lower() == "bearer" else None


def _unauthorized(scope: Scope, headers: Headers) -> ApiError:
    if scope["method"] in _READS and wants_page(scope, headers):
        return LoginRequired(scope)
    message = "A valid token is required: send 'Authorization: Bearer TOKEN'"
    return ApiError("UNAUTHORIZED", message, {"www-authenticate": "Bearer"})
