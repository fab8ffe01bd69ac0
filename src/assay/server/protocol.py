"""HTTP as the server speaks it: who is slow or sends nonsense does not keep a connection."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from assay.server.envelope import failure

#: A request whose head takes longer to arrive is not waited for.
HEAD_SECONDS = 10.0
#: The largest head of a request.
MAX_HEAD = 64 * 1024


class PatientProtocol(HttpToolsProtocol):
    """Gives every head of a request some time and some room; refusals are in the envelope."""

    _late: asyncio.TimerHandle | None = None
    _head = 0
    _in_head = True
    _begun = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._begun = False
        super().data_received(data)
        if self._in_head:  # of a head that began here only what comes after the one before
            self._head += len(data.rpartition(b"\r\n\r\n")[2] if self._begun else data)
        if self._in_head and self._head > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response(f"The head of the request is larger than {MAX_HEAD} bytes")

    def on_message_begin(self) -> None:
        self._begun = True
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._head_is_here()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        body = failure("INVALID_INPUT", msg)
        head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _await_head(self) -> None:
        self._head_is_here()
        self._in_head, self._head = True, 0
        self._late = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _head_is_here(self) -> None:
        self._in_head = False
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
