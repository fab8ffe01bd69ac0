"""Who may ask: hosts, tokens, and the headers that keep browsers from helping strangers."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
from collections.abc import Collection
from hashlib import sha256
from hmac import compare_digest
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.errors import UsageError
from assay.server.envelope import UNEXPECTED, ApiError, invalid

log = logging.getLogger("assay.server")
#: Separated by commas or spaces; each is a token that lets its holder in.
TOKENS_VARIABLE = "ASSAY_API_TOKENS"

#: An address in brackets or a name, and a port.
_HOST = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:@/]*))(?::[0-9]*)?")
STOPPING = "The server was stopped before the request was answered"
API_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Access(msgspec.Struct, frozen=True):
    """Who is let in. Without tokens everybody is who reaches the server by one of its names.

    `hosts` are the names that the server answers to; None stands for every address, as only
    names can be made to point here by a stranger's page.
    """

    tokens: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset({"localhost"})
    loopback_only: bool = True

    @classmethod
    def of(cls, host: str, tokens: Collection[str], names: Collection[str] = ()) -> Access:
        """The access to a server bound to `host`; raises UsageError when it would be open."""
        local = is_loopback(host)
        if not local and not tokens:
            raise UsageError(
                f"{host!r} can be reached from other machines: set {TOKENS_VARIABLE} to the"
                " tokens that let them in, or serve on 127.0.0.1"
            )
        known = {"localhost", *map(_allowed, names)}
        if not local:
            known |= {socket.gethostname().lower(), host.lower()}
        return cls(tuple(tokens), frozenset(known), local)

    def knows_host(self, header: str) -> bool:
        """Is it a name of this server? A page of a stranger has its own name in the header."""
        name = _host_name(header)
        if name in self.hosts:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.loopback_only

    def knows_token(self, header: bytes) -> bool:
        """Is it `Bearer` with one of the tokens, in UTF-8? Takes as long for any other."""
        scheme, _, given = header.partition(b" ")
        digest = sha256(given.strip()).digest()
        found = False
        for token in self.tokens:
            found |= compare_digest(sha256(token.encode()).digest(), digest)
        return found and scheme.lower() == b"bearer"


def tokens_of(written: str) -> tuple[str, ...]:
    """The tokens in the environment variable."""
    return tuple(written.replace(",", " ").split())


def is_loopback(host: str) -> bool:
    """Does the name or address lead to this machine only?"""
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
    """Stands before all routes: lets in, adds headers, and turns faults into an envelope."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message["headers"], *API_HEADERS]
            await send(message)

        try:
            self._admit(scope)
            await self._app(scope, receive, guarded)
        except ApiError as error:
            await error.response()(scope, receive, guarded)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:  # the server waits no longer for what is under way
            if not begun:
                await ApiError("INTERNAL_ERROR", STOPPING).response()(scope, receive, guarded)
        except Exception:  # a fault of ours: its story stays in the log
            log.exception("%s %s failed", scope["method"], scope["path"])
            if begun:
                raise
            await ApiError("INTERNAL_ERROR", UNEXPECTED).response()(scope, receive, guarded)

    def _admit(self, scope: Scope) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        authorization: bytes = dict(scope["headers"]).get(b"authorization", b"")
        if len(hosts) != 1:  # of two, others on the way may believe another one than we do
            raise invalid("A request must have one Host header")
        if not self._access.knows_host(hosts[0].decode("latin-1")):
            raise invalid("The Host header names another server; see `assay serve --allow-host`")
        if self._access.tokens and not self._access.knows_token(authorization):
            message = "A valid token is required: send 'Authorization: Bearer TOKEN'"
            raise ApiError("UNAUTHORIZED", message, {"www-authenticate": "Bearer"})
        _check_path(scope)


def _check_path(scope: Scope) -> None:
    """Refuse a path that the router would take for another one."""
    raw: bytes = scope["raw_path"]
    # An escaped slash is a part of a name, and no border between two.
    if b"%2f" in raw.lower() or not _is_text(unquote_to_bytes(raw)):
        raise ApiError("NOT_FOUND", f"There is no route {raw.decode('latin-1')}")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _allowed(written: str) -> str:
    """The name in `--allow-host`, as it is compared. An empty one would stand for any nonsense."""
    name = _host_name(written)
    if not name:
        raise UsageError(f"{written!r} is not a name of a host, such as evals.example")
    return name


def _host_name(header: str) -> str:
    """The header without its port, in lower case; empty when it is no host with a port."""
    found = _HOST.fullmatch(header.strip().lower())
    return (found[1] or found[2].removesuffix(".")) if found else ""
