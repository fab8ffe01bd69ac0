"""HTTP with limits: clients that are slow or send nonsense lose their connection."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

from httptools import HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from assay.server.envelope import JSON, failure
from assay.server.security import API_HEADERS

#: How long the head of a request may take to arrive.
HEAD_SECONDS = 10.0
#: How long the rest may take; routes that read a body have a shorter limit, and send an error.
REQUEST_SECONDS = 60.0
#: How long a client may read nothing of a response.
STALLED_SECONDS = 30.0
#: The largest head of a request, and the most headers, including trailers.
MAX_HEAD = 64 * 1024
MAX_HEADERS = 200
#: The largest request, even if no route reads its body.
MAX_REQUEST = 16 * 1024 * 1024
_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")
#: A request line with characters that the client should have percent-encoded.
_UNESCAPED = re.compile(rb"[A-Z]+ /[!-~]*[\x80-\xff]")


class LimitedHttpProtocol(HttpToolsProtocol):
    """Limits the time and size of every request; errors are sent in the envelope.

    The methods override those of uvicorn, among them `_unsupported_upgrade_warning`.
    """

    #: Closes the connection if the head, or the rest of a request, is late.
    _deadline: asyncio.TimerHandle | None = None
    _in_head = True
    #: How many bytes of the current request arrived; data shared with an earlier one is left out.
    _size = 0
    _headers_size = 0
    #: The data being parsed, how many requests began in it, and what has to be parsed again.
    _data = memoryview(b"")
    _begun = 0
    _replay: tuple[bytes, memoryview] | None = None
    #: Why the request is refused, if the parser does not know.
    _refusal = ""
    #: The request before the queued one, and the one that is being answered.
    _previous: Any = None
    _answering: Any = None
    #: Checks for a stalled response, and how much of it was unsent at the last check.
    _stall_timer: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()
        self._stall_timer = self.loop.call_later(STALLED_SECONDS, self._check_stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        if self._stall_timer is not None:
            self._stall_timer.cancel()
        super().connection_lost(exc)  # notifies only the last request, which may be queued
        if self._answering is not None:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def data_received(self, data: bytes) -> None:
        was_in_head, self._begun = self._in_head, 0
        self._feed(memoryview(data))
        while self._replay is not None:
            (head, rest), self._replay = self._replay, None
            self._feed(memoryview(head))
            self._feed(rest)
        if self.transport.is_closing():
            return
        if self._begun <= was_in_head:  # else most of it may belong to an earlier request
            self._size += len(data)
        if self._in_head and self._size > MAX_HEAD:
            self.send_400_response(f"The head of the request is larger than {MAX_HEAD} bytes")
        elif self._size > MAX_REQUEST:
            self.transport.close()
        elif self._deadline is None and self.cycle.response_complete:
            self._await_head()  # line breaks between requests begin none, but need a deadline too

    def _feed(self, data: memoryview) -> None:
        if data and not self.transport.is_closing():
            self._data = data
            super().data_received(data)  # type: ignore[arg-type]
            self._data = memoryview(b"")

    def on_message_begin(self) -> None:
        self._begun += 1
        super().on_message_begin()
        self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers_size += len(name) + len(value)
        if len(self.headers) >= MAX_HEADERS or self._headers_size > MAX_HEAD:
            raise ValueError("too many headers")  # makes the parser fail, which sends a 400
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # the request will be parsed again
        if not _is_for_host(self.url, self.headers):
            self._refusal = "The address names another host than the Host header"
            raise ValueError(self._refusal)  # makes the parser fail, which sends a 400
        self._in_head = False
        self._set_deadline(REQUEST_SECONDS)
        previous = self.cycle
        super().on_headers_complete()
        if self._is_queued:
            self._previous = previous
        else:
            self._answering = self.cycle

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        super().on_response_complete()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._set_deadline(None)
        super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Have the request parsed again without the headers that ask for an upgrade.

        The parser would take what follows the head for the other protocol, not for a body.
        """
        upgrade, method = sys.exception(), self.parser.get_method()
        assert isinstance(upgrade, HttpParserUpgrade)
        if method == b"CONNECT":
            self.send_400_response("This server is not a proxy")
            return
        lines = [b"%b %b HTTP/%b" % (method, self.url, self.parser.get_http_version().encode())]
        lines += [b"%b: %b" % pair for pair in _without_upgrade(self.headers)]
        self._replay = (b"\r\n".join(lines) + b"\r\n\r\n", self._data[upgrade.args[0] :])
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def send_400_response(self, msg: str) -> None:
        """Send an error and close; while earlier requests await responses, only finish those."""
        if self._is_queued and self.cycle.more_body:  # drop this one, not those before it
            self.pipeline.popleft()
            self.cycle = self._previous
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self._in_head and _UNESCAPED.match(self._data):
            msg = "The address must be ASCII: write other characters as %XX, in UTF-8"
        body = failure("INVALID_INPUT", self._refusal or msg)
        headers = [
            (b"content-type", JSON.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *API_HEADERS,
        ]
        lines = [b"HTTP/1.1 400 Bad Request", *(b"%b: %b" % pair for pair in headers)]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()

    @property
    def _is_queued(self) -> bool:
        """Does the last request wait for the responses to earlier ones?"""
        return bool(self.pipeline) and self.pipeline[0][0] is self.cycle

    def resume_writing(self) -> None:
        self._unsent = 0
        super().resume_writing()

    def _await_head(self) -> None:
        self._in_head, self._size, self._headers_size = True, 0, 0
        self._set_deadline(HEAD_SECONDS)

    def _set_deadline(self, seconds: float | None) -> None:
        """Close the connection after this time; replaces any earlier deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._hang_up)

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _check_stalled(self) -> None:
        """Drop the connection if the client read nothing of a response since the last check."""
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if self._unsent and self._unsent == before:
            self.transport.abort()
        else:
            self._stall_timer = self.loop.call_later(STALLED_SECONDS, self._check_stalled)


def _is_for_host(url: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Does an address with a host (`GET http://host/path`) name that of the Host header?"""
    scheme, absolute, rest = url.partition(b"://")
    if not absolute or b"/" in scheme:
        return True
    authority = re.split(rb"[/?#]", rest, maxsplit=1)[0]
    return all(value.lower() == authority.lower() for name, value in headers if name == b"host")


def _without_upgrade(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers without those that ask for another protocol."""
    kept = []
    for name, value in headers:
        if name == b"connection":
            options = [option.strip() for option in value.split(b",")]
            value = b", ".join(o for o in options if o.lower() not in _UPGRADE_HEADERS)
        if name not in _UPGRADE_HEADERS and (value or name != b"connection"):
            kept.append((name, value))
    return kept
