"""A model provider on loopback: scripted answers, recorded requests, and every kind of fault.

    with ProviderServer(says("Hello"), status(500)) as server:
        OpenAITarget(model="m", base_url=server.openai)...

It runs in a thread of its own, so that blocking code and other processes can ask it too.
Answers are given in order; the last one is repeated.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Asked:
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: Any
    method: str
    query: dict[str, str]


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ProviderServer:
    """Serves until the end of its `with` block, and lets nothing hang longer than that."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[Asked] = []
        self._answers = answers
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai(self) -> str:
        """The base_url of an openai target; an anthropic one takes `url`."""
        return f"{self.url}/v1"

    @property
    def bodies(self) -> list[Any]:
        return [asked.body for asked in self.asked]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        connections: list[web.RequestHandler] = []

        def connection() -> web.RequestHandler:
            connections.append(server())
            return connections[-1]

        listener = await self._loop.create_server(connection, "127.0.0.1", 0)
        self._port = listener.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        await self._settle()  # a connection that is being accepted would outlive its listener
        listener.close()
        for each in connections:  # a polite close would wait for clients that do not read
            if each.transport is not None:
                each.transport.abort()
        await self._settle()
        await server.shutdown(timeout=0.001)  # 0 would wait for ever
        await self._settle()

    @staticmethod
    async def _settle() -> None:
        """Lets the loop do what it has begun: sockets that it still holds would be leaks."""
        for _ in range(5):
            await asyncio.sleep(0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        sent = await request.read()
        body = json.loads(sent) if sent else None
        query, headers = dict(request.query), dict(request.headers)
        self.asked.append(Asked(request.path, headers, body, request.method, query))
        answer = self._answers[min(len(self.asked), len(self._answers)) - 1]
        return await answer(request)  # type: ignore[arg-type]


def sends(document: Any, status: int = 200, **headers: str) -> Answer:
    """This JSON document; in the names of headers `_` is `-`."""
    written = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(document, status=status, headers=written)

    return answer


def says(text: str | Callable[[dict[str, Any]], str], **message: Any) -> Answer:
    """A chat completion, or a message of Anthropic's when that was asked; tokens 10 and 5.

    `text` may be a function of the request's body. `message` has further keys of the
    message of a chat completion.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        said = text if isinstance(text, str) else text(await request.json())
        if request.path.endswith("/messages"):
            return web.json_response(anthropic([{"type": "text", "text": said}]))
        return web.json_response(openai({"content": said, **message}))

    return answer


def openai(message: dict[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    """The document of a chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", **message}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{**choice, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def anthropic(content: list[dict[str, Any]], stop_reason: str = "end_turn") -> dict[str, Any]:
    """The document of a message."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": stop_reason,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def status(code: int, message: str = "it went wrong", **headers: str) -> Answer:
    """An error in the words of a provider: `status(429, Retry_After="2")`."""
    return sends({"error": {"type": "some_error", "message": message}}, code, **headers)


def raw(body: bytes, content_type: str = "application/json") -> Answer:
    """Exactly these bytes."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=content_type)

    return answer


def half_json() -> Answer:
    """A body that arrives whole and stops in the middle of its JSON."""
    return raw(json.dumps(openai({"content": "Hello"})).encode()[:60])


def invalid_utf8() -> Answer:
    return raw(b'{"choices": "\xff\xfe"}')


async def reset(request: web.Request) -> web.StreamResponse:
    """The connection is reset before anything is answered."""
    transport = request.transport
    assert transport is not None
    linger = struct.pack("ii", 1, 0)  # closing sends RST, as a crashed server's machine does
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    transport.abort()
    return web.Response()


async def cut(request: web.Request) -> web.StreamResponse:
    """The connection ends in the middle of the body."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [')
    assert request.transport is not None
    request.transport.close()
    return response


async def hang(request: web.Request) -> web.StreamResponse:
    """Nothing is answered until the server ends, which cancels this."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def stall(request: web.Request) -> web.StreamResponse:
    """The body begins, and nothing follows until the server ends."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [')
    return await hang(request)


async def close(request: web.Request) -> web.StreamResponse:
    """The connection is closed without an answer, as one that was idle for too long is."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


def then_closes(document: Any) -> Answer:
    """This JSON document; then the connection is closed without notice."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.json_response(document)
        await response.prepare(request)
        await response.write_eof()
        return await close(request)

    return answer


def huge(megabytes: int = 100, *, announced: bool) -> Answer:
    """A body of this size, with or without a Content-Length that says so."""

    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {"Content-Length": str(megabytes * MEGABYTE)} if announced else {}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for _ in range(megabytes):
            await response.write(b" " * MEGABYTE)
        return response

    return answer


def gone() -> str:
    """The address of a server that has stopped."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
