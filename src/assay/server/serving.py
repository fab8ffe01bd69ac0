"""Serves a project until a signal ends it: gently, so that nothing under way is lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from assay.errors import UsageError
from assay.ports import Store
from assay.redaction import Redactor
from assay.roster.secrets import secrets_of
from assay.roster.targets import Roster
from assay.server.app import create_app
from assay.server.protocol import PatientProtocol
from assay.server.security import Access
from assay.server.state import State
from assay.settings import Settings

log = logging.getLogger("assay.server")
#: How long requests under way may take after the first signal, in seconds.
GRACE_SECONDS = 15
#: How long an idle connection is kept.
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
    """Serve until a signal comes; `ready` is told the URL once requests are answered."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="assay: %(message)s")
    with bound(*address) as listener:
        tell_faults(settings)
        app = create_app(settings, store, access, root=root)
        server_of(app, lambda: ready(_url(listener))).run(sockets=[listener])


def tell_faults(settings: Settings) -> None:
    """Warn of targets that cannot be used; a run that names one will be refused."""
    hidden = Redactor(secrets_of(settings)).text
    for fault in Roster(settings).faults():
        log.warning("a target cannot be used: %s", hidden(str(fault)))


def server_of(app: FastAPI, ready: Callable[[], None]) -> uvicorn.Server:
    """The server of an application; it has yet to be run."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return _Server(config, app, ready)


class _Server(uvicorn.Server):
    """Tells when it is ready, and the runs when it is to end."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._state: State = app.state.assay
        self._ready = ready
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends it gently, a second one its runs at once; Ctrl-C all of it.

        Code of the project that hangs, or the store, would keep it from ending: a third Ctrl-C
        leaves them behind. What was acknowledged is on disk.
        """
        if self.force_exit and sig == signal.SIGINT:
            os._exit(128 + sig)
        jobs = self._state.jobs
        told = jobs.hurry if self.should_exit else jobs.stop
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True
        if self._loop is not None:  # streams of events would keep their connections open
            self._loop.call_soon_threadsafe(told)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; raises UsageError when it cannot."""
    host = host.strip("[]")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (")[0]
        raise UsageError(f"{host}:{port} cannot be served: {reason}") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
