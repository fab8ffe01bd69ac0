"""HTTP as the server speaks it: who is slow or sends nonsense does not keep a connection."""

from __future__ import annotations

import asyncio
import re
import sys
from http import HTTPStatus
from typing import Any

from httptools import HttpParserInvalidMethodError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from assay.server.envelope import CODES, JSON, Code, failure

#: A request whose head takes longer to arrive is not waited for.
HEAD_SECONDS = 10.0
#: Nor is the rest of one; whoever reads a body gives it less time, and says so.
REQUEST_SECONDS = 60.0
#: The largest head of a request.
MAX_HEAD = 64 * 1024
#: All that any path has.
METHODS = "DELETE, GET, HEAD, POST, PUT"
_METHOD = re.compile(rb"([A-Za-z-]{1,40}) [/*]")


class PatientProtocol(HttpToolsProtocol):
    """Gives every request some time and its head some room; refusals are in the envelope."""

    _late: asyncio.TimerHandle | None = None
    _head = 0
    _in_head = True
    _begun = False
    _data = b""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._begun, self._data = False, data
        super().data_received(data)
        if self._in_head:  # of a head that began here only what comes after the one before
            self._head += len(data.rpartition(b"\r\n\r\n")[2] if self._begun else data)
        if self._in_head and self._head > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response(f"The head of the request is larger than {MAX_HEAD} bytes")
        self._data = b""

    def on_message_begin(self) -> None:
        self._begun = True
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._wait(REQUEST_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._wait(None)
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser refuses; a method that it does not know is known by no path."""
        method = _METHOD.match(self._data)
        if method is not None and isinstance(sys.exception(), HttpParserInvalidMethodError):
            word = method[1].decode()
            message = f"{word} is not allowed here; allowed are {METHODS}"
            self._refuse("METHOD_NOT_ALLOWED", message, f"allow: {METHODS}\r\n")
        else:
            self._refuse("INVALID_INPUT", msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: the request is answered as if it had not asked for another protocol."""

    def _refuse(self, code: Code, message: str, header: str = "") -> None:
        body, (status, _) = failure(code, message), CODES[code]
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{header}"
        head += f"content-type: {JSON}\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def _await_head(self) -> None:
        self._in_head, self._head = True, 0
        self._wait(HEAD_SECONDS)

    def _wait(self, seconds: float | None) -> None:
        """Hang up after so long, and not when it was said before."""
        if self._late is not None:
            self._late.cancel()
        self._late = None if seconds is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
