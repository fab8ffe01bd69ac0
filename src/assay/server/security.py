"""Access control: host names, bearer tokens, and headers that restrict what browsers do."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from collections.abc import Callable, Collection
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.errors import UsageError
from assay.redaction import Redactor, patterns_only, redacting
from assay.server.callers import Authentication
from assay.server.envelope import UNEXPECTED, ApiError, invalid
from assay.server.origins import origin_of
from assay.server.tokens import TOKENS_VARIABLE, Token

log = logging.getLogger("assay.server")
#: A Host header: an address in brackets or a name, and a port.
_HOST = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:@/]*))(?::[0-9]*)?")
STOPPING = "The server was stopped before the request was answered"
API_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Access(msgspec.Struct, frozen=True):
    """Who may use the server: holders of a token or, if there are none, everybody.

    Either way requests must name one of the `hosts`, or an IP address, which must be a loopback
    one if `loopback_only`. By DNS rebinding another site's pages can reach the server, but only
    under a name. `origin` is that of `--public-url`: how browsers reach the server.
    """

    tokens: tuple[Token, ...] = ()
    hosts: frozenset[str] = frozenset({"localhost"})
    loopback_only: bool = True
    origin: str = ""

    @classmethod
    def of(
        cls,
        host: str,
        tokens: Collection[Token],
        names: Collection[str] = (),
        public_url: str | None = None,
    ) -> Access:
        """The access to a server bound to `host`; raises UsageError when it would be open."""
        local = is_loopback(host)
        if not local and not tokens:
            raise UsageError(
                f"{host!r} can be reached from other machines: set {TOKENS_VARIABLE} to the"
                " accepted tokens, or serve on 127.0.0.1"
            )
        hosts = {"localhost", *map(_checked_host, names)}
        if not local:
            hosts |= {socket.gethostname().lower(), host.lower()}
        origin = "" if public_url is None else origin_of(public_url)
        if origin:
            hosts.add(_host_name(origin.partition("://")[2]))
        return cls(tuple(tokens), frozenset(hosts), local, origin)

    def allows_host(self, header: str) -> bool:
        """Does the Host header name this server? From another site's page it names that site."""
        name = _host_name(header)
        if name in self.hosts:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.loopback_only


def is_loopback(host: str) -> bool:
    """Is a server on this name or address reachable from this machine only?"""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except OSError:
        raise UsageError(f"{host!r} is neither an address nor a name of this machine") from None
    return all(ipaddress.ip_address(entry[4][0]).is_loopback for entry in found)


class Guard:
    """Middleware: checks access, adds headers, and turns unexpected errors into responses."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        authentication: Authentication,
        redactor: Callable[[], Redactor] = patterns_only,
    ) -> None:
        self._app, self._access, self._redactor = app, access, redactor
        self._authentication = authentication

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with redacting(self._redactor):
            if scope["type"] == "http":
                await self._guard(scope, receive, send)
            else:
                await self._app(scope, receive, send)

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name for name, _ in message["headers"]}  # those of a page differ
                added = [pair for pair in API_HEADERS if pair[0] not in own]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            self._check_host(scope)
            await self._authentication.check(scope)
            _check_path(scope)
            await self._app(scope, receive, send_guarded)
        except ApiError as error:
            await error.response()(scope, receive, send_guarded)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:  # the grace period of a server that stops is over
            if not started:
                await ApiError("INTERNAL_ERROR", STOPPING).response()(scope, receive, send_guarded)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            if started:
                raise
            await ApiError("INTERNAL_ERROR", UNEXPECTED).response()(scope, receive, send_guarded)

    def _check_host(self, scope: Scope) -> None:
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1:  # with two, a proxy may go by another one than we do
            raise invalid("A request must have one Host header")
        if not self._access.allows_host(hosts[0]):
            raise invalid("The Host header names another server; see `assay serve --allow-host`")


def _check_path(scope: Scope) -> None:
    """Refuse a path that the router would take for another one."""
    raw: bytes = scope["raw_path"]
    # An escaped slash belongs to a segment, but the router would split there.
    if b"%2f" in raw.lower() or not _is_utf8(unquote_to_bytes(raw)):
        raise ApiError("NOT_FOUND", f"There is no route {raw.decode('latin-1')}")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _checked_host(option: str) -> str:
    """The name in `--allow-host`. An empty one would match every malformed Host header."""
    name = _host_name(option)
    if not name:
        raise UsageError(f"{option!r} is not a name of a host, such as evals.example")
    return name


def _host_name(header: str) -> str:
    """The host in lower case, without the port; empty if the header is malformed."""
    found = _HOST.fullmatch(header.strip().lower())
    return (found[1] or found[2].removesuffix(".")) if found else ""
