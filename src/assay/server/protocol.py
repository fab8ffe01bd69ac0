"""HTTP as the server speaks it: who is slow or sends nonsense does not keep a connection."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

from httptools import HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from assay.server.envelope import JSON, failure
from assay.server.security import API_HEADERS

#: A request whose head takes longer to arrive is not waited for.
HEAD_SECONDS = 10.0
#: Nor is the rest of one; whoever reads a body gives it less time, and says so.
REQUEST_SECONDS = 60.0
#: Who takes nothing of an answer for so long does not get the rest.
STALLED_SECONDS = 30.0
#: The largest head of a request, and the most headers, those after its body too.
MAX_HEAD = 64 * 1024
MAX_HEADERS = 200
#: So much of a request is received, whoever reads it.
MAX_REQUEST = 16 * 1024 * 1024
_OTHER_PROTOCOL = (b"upgrade", b"http2-settings")
#: The beginning of a request with an address that some clients send as it was typed.
_UNESCAPED = re.compile(rb"[A-Z]+ /[!-~]*[\x80-\xff]")


class PatientProtocol(HttpToolsProtocol):
    """Gives every request some time and some room; refusals are in the envelope.

    The methods are those of uvicorn, also the first one with an underscore.
    """

    #: When what is awaited must be here: a head, or the rest of a request.
    _late: asyncio.TimerHandle | None = None
    _in_head = True
    #: How much has come since the request began, as far as it came by itself.
    _size = 0
    _headers_size = 0
    #: What is being read, how many requests begin in it, and what of it is to be read again.
    _data = memoryview(b"")
    _begun = 0
    _again: tuple[bytes, memoryview] | None = None
    #: The request before one that waits for its turn, and the one that is being answered.
    _before: Any = None
    _answered: Any = None
    #: When to look again how much of an answer is not taken yet, and how much it was last.
    _watch: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()
        self._watch = self.loop.call_later(STALLED_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)  # tells it to the last request, which may have to wait
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()

    def data_received(self, data: bytes) -> None:
        awaited, self._begun = self._in_head, 0
        self._feed(memoryview(data))
        while self._again is not None:
            (head, rest), self._again = self._again, None
            self._feed(memoryview(head))
            self._feed(rest)
        if self.transport.is_closing():
            return
        if self._begun <= awaited:  # else most of it may be of the request before
            self._size += len(data)
        if self._in_head and self._size > MAX_HEAD:
            self.send_400_response(f"The head of the request is larger than {MAX_HEAD} bytes")
        elif self._size > MAX_REQUEST:
            self.transport.close()
        elif self._late is None and self.cycle.response_complete:
            self._await_head()  # line breaks between requests are no beginning of one

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
            raise ValueError("too many headers")  # the parser stops, and refuses the request
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # it is read again
        self._in_head = False
        self._wait(REQUEST_SECONDS)
        before = self.cycle
        super().on_headers_complete()
        if self._is_queued:
            self._before = before
        else:
            self._answered = self.cycle

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._answered = self.pipeline[-1][0]
        super().on_response_complete()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._wait(None)
        super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Read a request again as if it had not asked for another protocol.

        The parser takes what follows its head for that protocol, and not for its body.
        """
        upgrade, method = sys.exception(), self.parser.get_method()
        assert isinstance(upgrade, HttpParserUpgrade)
        if method == b"CONNECT":
            self.send_400_response("This server is no proxy")
            return
        lines = [b"%b %b HTTP/%b" % (method, self.url, self.parser.get_http_version().encode())]
        lines += [b"%b: %b" % pair for pair in _in_http(self.headers)]
        self._again = (b"\r\n".join(lines) + b"\r\n\r\n", self._data[upgrade.args[0] :])
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser refuses; but what was asked before is answered, and no more."""
        if self._is_queued and self.cycle.more_body:  # it is refused, those before it are not
            self.pipeline.popleft()
            self.cycle = self._before
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self._in_head and _UNESCAPED.match(self._data):
            msg = "The address must be ASCII: write other characters as %XX, in UTF-8"
        body = failure("INVALID_INPUT", msg)
        about = {b"content-type": JSON.encode(), b"content-length": b"%d" % len(body)}
        headers = [*about.items(), (b"connection", b"close"), *API_HEADERS]
        lines = [b"HTTP/1.1 400 Bad Request", *(b"%b: %b" % pair for pair in headers)]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()

    @property
    def _is_queued(self) -> bool:
        """Has the last request to wait until those before it are answered?"""
        return bool(self.pipeline) and self.pipeline[0][0] is self.cycle

    def resume_writing(self) -> None:
        self._unsent = 0
        super().resume_writing()

    def _await_head(self) -> None:
        self._in_head, self._size, self._headers_size = True, 0, 0
        self._wait(HEAD_SECONDS)

    def _wait(self, seconds: float | None) -> None:
        """Hang up after so long, and not when it was said before."""
        if self._late is not None:
            self._late.cancel()
        self._late = None if seconds is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _look(self) -> None:
        """Hang up when nothing of an answer was taken since the last look."""
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if self._unsent and self._unsent == before:
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(STALLED_SECONDS, self._look)


def _in_http(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers without those that ask for another protocol."""
    kept = []
    for name, value in headers:
        if name == b"connection":
            words = [word.strip() for word in value.split(b",")]
            value = b", ".join(word for word in words if word.lower() not in _OTHER_PROTOCOL)
        if name not in _OTHER_PROTOCOL and (value or name != b"connection"):
            kept.append((name, value))
    return kept
