"""Serves a project until a signal, and then shuts down gracefully, so that no work is lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from assay.errors import UsageError
from assay.ports import Store
from assay.redaction import Redactor
from assay.server.app import create_app
from assay.server.protocol import LimitedHttpProtocol
from assay.server.security import Access
from assay.server.state import State
from assay.service.secrets import project_redactor
from assay.settings import Settings
from assay.targets.pool.target_pool import TargetPool

log = logging.getLogger("assay.server")
#: How long requests in progress may take after the first signal.
GRACE_SECONDS = 15
#: How long the server may take to end after the first signal, whatever hangs in it. Requests and
#: trials in flight have used up their own grace long before.
END_SECONDS = 25.0
#: How long an idle connection is kept open.
KEEP_ALIVE_SECONDS = 30
_BACKLOG = 2048


def serve(
    settings: Settings,
    store: Store,
    access: Access,
    address: tuple[str, int],
    root: Path,
    ready: Callable[[str], None],
) -> None:
    """Serve until a signal; `ready` is called with the URL once requests are accepted."""
    logging.basicConfig(handlers=[log_handler(settings)], level=logging.WARNING)
    with listen(*address) as listener:
        warn_about_targets(settings)
        app = create_app(settings, store, access, root=root)
        server = make_server(app, lambda: ready(_url(listener)), END_SECONDS)
        server.run(sockets=[listener])


def warn_about_targets(settings: Settings) -> None:
    """Log the targets that cannot be used; runs that name one will be refused."""
    for fault in TargetPool(settings).faults():
        log.warning("a target cannot be used: %s", fault)


def log_handler(settings: Settings) -> logging.Handler:
    """Writes the log to stderr, without the secrets of the project."""
    handler = logging.StreamHandler()
    handler.setFormatter(_RedactingFormatter(project_redactor(settings)))
    return handler


class _RedactingFormatter(logging.Formatter):
    """Formats lines of the log, tracebacks included, without secrets."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__("assay: %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(super().format(record))


def make_server(
    app: FastAPI, ready: Callable[[], None], end_seconds: float | None = None
) -> uvicorn.Server:
    """A server for the application, not yet running.

    `end_seconds` after the first signal, it ends the process if that has not happened yet.
    """
    config = uvicorn.Config(
        app,
        http=LimitedHttpProtocol,
        ws="none",
        loop="auto",  # uvloop if it is installed
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return _Server(config, app, ready, end_seconds)


class _Server(uvicorn.Server):
    """Calls `ready` when it is, and stops the runs on signals."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        ready: Callable[[], None],
        end_seconds: float | None,
    ) -> None:
        super().__init__(config)
        self._state: State = app.state.assay
        self._ready, self._end_seconds = ready, end_seconds
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down gracefully; a second signal aborts the runs, and a second Ctrl-C all requests.

        Code of the project or a store that hangs can still prevent the exit: a third Ctrl-C, or
        the end of the time for it, ends the process regardless. What was acknowledged is on disk.
        """
        if self.force_exit and sig == signal.SIGINT:
            os._exit(128 + sig)
        if self._end_seconds is not None and not self.should_exit:
            end = threading.Timer(self._end_seconds, self._end, [sig])
            end.daemon = True
            end.start()
        run_manager = self._state.run_manager
        stop = run_manager.abort if self.should_exit else run_manager.stop
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True
        if self._loop is not None:  # this also ends event streams, which keep connections open
            self._loop.call_soon_threadsafe(stop)

    def _end(self, sig: int) -> None:
        runs = self._state.run_manager.under_way
        log.error("%d runs did not stop within %g s: exiting", runs, self._end_seconds)
        os._exit(128 + sig)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on the address; raises UsageError when that fails."""
    host = host.strip("[]")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # Connections inherit it. asyncio sets it only on sockets that were made for TCP by number.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (")[0]
        raise UsageError(f"{host}:{port} cannot be served: {reason}") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
