"""HTTP for targets: requests with JSON, and every failure as a TargetError.

Network errors, 408, 429 and 5xx are retryable. A timeout is not, nor is a complete but invalid
reply: the same request would get the same reply.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import Any

import aiohttp
import msgspec

from assay.errors import TargetError
from assay.model.values import from_json
from assay.redaction import Redactor, cut
from assay.targets.address import shown_url
from assay.targets.reply import require
from assay.text import printable

MAX_BYTES = 20 * 1024 * 1024
MAX_QUOTED = 300

_SECONDS = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_HINTS = {
    401: "check the API key",
    403: "check the permissions of the API key",
    404: "check the address, and the model if it names one",
}
#: "Too many requests", "service unavailable", and what Anthropic calls "overloaded".
_OVERLOADED = (429, 503, 529)
_HOPELESS = (
    aiohttp.ClientSSLError,
    aiohttp.ServerFingerprintMismatch,
    aiohttp.ClientResponseError,  # the response is not valid HTTP
    aiohttp.NonHttpUrlClientError,
    ValueError,  # a header or an address that cannot be sent
)


class HttpReply(msgspec.Struct, frozen=True):
    """A reply with any status; `duration_ms` is that of this request alone."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    duration_ms: float

    @property
    def text(self) -> str:
        """The body for messages; invalid UTF-8 is replaced."""
        return self.body.decode("utf-8", "replace")


class HttpClient:
    """Sends JSON, with one session per event loop, opened on first use.

    Without a timeout, the caller must have one and cancel. `close()` closes the session of the
    running loop. Secrets never appear in errors.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        *,
        timeout: float | None,
        secrets: Iterable[str] = (),
        max_bytes: int = MAX_BYTES,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._headers, self._timeout = headers, timeout
        self._redactor = Redactor(secrets)  # a run redacts them too, but other callers do not
        self._max_bytes, self._now = max_bytes, now
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    async def post(self, url: str, body: Mapping[str, Any]) -> HttpReply:
        return await self.send("POST", url, body)

    async def send(self, method: str, url: str, body: Any = None) -> HttpReply:
        """The reply, with any status; raises TargetError if there is none."""
        started = time.perf_counter()
        shown = shown_url(url)
        try:
            # Following a redirect could send the API key to another host.
            data = None if body is None else json.dumps(body).encode()
            request = self._session().request(method, url, data=data, allow_redirects=False)
            async with request as response:
                content = await self._read(response, shown)
        except TimeoutError:
            limit = f" within {self._timeout:g} s" if self._timeout else ""
            raise TargetError(f"{shown} did not answer{limit}", unreachable=True) from None
        except (aiohttp.ClientError, ValueError) as error:
            raise self._no_reply(shown, error) from None
        duration = (time.perf_counter() - started) * 1000
        return HttpReply(shown, response.status, response.headers, content, duration)

    def document(self, reply: HttpReply) -> dict[str, Any]:
        """The JSON object of a reply; raises TargetError for anything else, or an error status."""
        return require(self.value(reply), dict, f"the reply of {reply.url}")

    def value(self, reply: HttpReply) -> Any:
        """The JSON value of a reply; raises TargetError if it is not JSON, or an error status."""
        if not 200 <= reply.status < 300:
            raise self._error_status(reply)
        try:
            return from_json(reply.body.decode())
        except UnicodeDecodeError as error:
            message = f"the reply of {reply.url} is not UTF-8: {error.reason} at byte {error.start}"
            raise TargetError(message) from None
        except ValueError as error:
            body = self.quote(reply.text)
            fault = f"is not JSON: {error}: {body}" if body else "is empty; it should be JSON"
            message = f"the reply of {reply.url} {fault}"
            raise TargetError(message) from None

    def quote(self, text: str) -> str:
        """A text of the server for a message: without secrets, on one line, cut to size."""
        text = cut(self._redactor.text(text), 4 * MAX_QUOTED, "both")
        return cut(printable(" ".join(text.split())), MAX_QUOTED, "both")

    async def close(self) -> None:
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions[loop] = aiohttp.ClientSession(
                headers={"Content-Type": "application/json", **self._headers},
                # The caller limits the requests in flight. With a limit here they would wait for
                # a connection, and the wait would count as the target's time.
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                # A cookie would make one answer depend on another.
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._sessions[loop]

    async def _read(self, response: aiohttp.ClientResponse, shown: str) -> bytes:
        content = bytearray()
        if (response.content_length or 0) <= self._max_bytes:
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) > self._max_bytes:
                    break
            else:
                return bytes(content)
        limit = f"{self._max_bytes / 1024 / 1024:g} MB"
        raise TargetError(f"the reply of {shown} is larger than {limit}")

    def _no_reply(self, shown: str, error: Exception) -> TargetError:
        hopeless = isinstance(error, _HOPELESS)
        words = f"{shown} cannot be called" if hopeless else f"no answer from {shown}"
        if isinstance(error, aiohttp.ClientResponseError):
            words = f"{shown} sent an invalid HTTP response"
        return TargetError(
            f"{words}: {self._reason(error)}",
            retryable=not hopeless,
            unreachable=isinstance(error, aiohttp.ClientConnectorError),
        )

    def _error_status(self, reply: HttpReply) -> TargetError:
        status = reply.status
        message = f"{reply.url} answered {status} {responses.get(status, '')}".rstrip()
        quoted = self.quote(error_message(reply.text))
        if quoted:
            message += f": {quoted}"
        hint = _HINTS.get(status)
        if 300 <= status < 400:
            hint = "it redirects; set the final address"
        retryable = status in (408, 429) or status >= 500
        after = retry_after(reply.headers.get("Retry-After", ""), self._now())
        return TargetError(
            f"{message} ({hint})" if hint else message,
            retryable=retryable,
            retry_after=after if retryable else None,
            overloaded=status in _OVERLOADED,
        )

    def _reason(self, error: Exception) -> str:
        # str(error) would begin with a status of 400 that the server did not send.
        reason = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
        # aiohttp's own message repeats the address, and mentions TLS even without it.
        cause = getattr(error, "os_error", None)
        if isinstance(cause, OSError) and (cause.errno or cause.strerror):
            refused = cause.errno == errno.ECONNREFUSED
            reason = os.strerror(errno.ECONNREFUSED) if refused else cause.strerror or str(cause)
        return self.quote(reason) or type(error).__name__


def error_message(text: str) -> str:
    """The message in a provider's error, `{"error": {"message": ...}}`; else the whole text."""
    try:
        error = from_json(text)["error"]
        message = error["message"] if isinstance(error, dict) else error
    except (ValueError, LookupError, TypeError):
        return text
    return message if isinstance(message, str) else text


def retry_after(value: str, now: datetime) -> float | None:
    """The seconds of a Retry-After header, which may also be a date; None if it is neither."""
    if _SECONDS.fullmatch(value):
        return max(float(value), 0.0)
    try:
        date = parsedate_to_datetime(value)
        # A zone of "-0000" is UTC, but is parsed as a naive date.
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
    except (ValueError, OverflowError):  # not a date, or out of range
        return None
    return max(seconds, 0.0)
