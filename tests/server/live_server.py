"""A server on a port of loopback, in a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI

from assay.server.serving import listen, make_server
from timeouts import WAIT_SECONDS


@contextmanager
def live(app: FastAPI) -> Iterator[str]:
    """The URL of the application while it is served."""
    ready = threading.Event()
    server = make_server(app, ready.set)
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            assert ready.wait(WAIT_SECONDS)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(WAIT_SECONDS)
        assert not thread.is_alive()
