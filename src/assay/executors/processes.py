"""`processes`: spreads work over the cores of this machine.

The processes are forked where the system can, and then share the worker that this process has
made; otherwise each makes its own from the order. Each has two pipes. A thread of this process
sends it a piece and waits for the result, so that a process which dies, as when the system is out
of memory, leaves no other one waiting. It is replaced, and its piece is done again.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import warnings
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from assay.errors import ExecutorError, UsageError
from assay.ports import WorkOrder
from assay.process import watchdog
from assay.threads import call_in_thread
from assay.work_orders import close_worker, decoded, encoded, picklable, worker_of

#: How many pieces are taken for each process, so that it never waits for the next.
PIECES_AHEAD = 2
#: A result of up to this many bytes fits a pipe, and its process goes on before it is read.
_PIPE_BYTES = 1024 * 1024
#: The garbage collector of a process runs after this many new objects: grading makes no cycles.
_OBJECTS_PER_COLLECTION = 500_000
#: One process is forked at a time: one that inherits the other end of another's pipe would keep
#: the end of that process from being noticed.
_forking = threading.Lock()


class Processes:
    """Runs `count` processes; by default one for each core that this process may use.

    `start_method` is one of `multiprocessing`: by default `fork`, or else `spawn`.
    """

    def __init__(self, count: int | None = None, start_method: str = "") -> None:
        self.count = count or len(os.sched_getaffinity(0))
        forks = "fork" in get_all_start_methods()
        self._context = get_context(start_method or ("fork" if forks else "spawn"))

    @classmethod
    def at(cls, address: str, workers: int | None) -> Processes:
        if address:
            raise UsageError(f"the executor 'processes' has no address, and {address!r} is one")
        return cls(workers)

    async def run(self, order: WorkOrder, pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
        left = iter(pieces)
        pool = _Pool(order, self._context)
        try:
            if self._context.get_start_method() == "fork":
                worker_of(order)
            for _ in range(self.count):
                pool.add_process()
            while True:
                for piece in islice(left, self.count * PIECES_AHEAD - len(pool.calls)):
                    pool.submit(piece)
                if not pool.calls:
                    return
                for result in await pool.results():
                    yield result
        finally:
            pool.close()
            close_worker(order)


class _Died(Exception):
    """A process ended; the message says how."""


class _Pool:
    """The processes of an order, and the pieces that they have not done yet."""

    def __init__(self, order: WorkOrder, context: Any) -> None:
        self._order, self._context = order, context
        self._processes: list[_Process] = []
        self._idle: SimpleQueue[_Process | None] = SimpleQueue()
        #: Each call with its piece, and how many processes have died on that.
        self.calls: dict[asyncio.Future[bytes], tuple[bytes, int]] = {}

    def add_process(self) -> None:
        """Not in a thread: this forks, and a child inherits locks that other threads hold."""
        process = _Process(self._order, self._context)
        self._processes.append(process)
        self._idle.put(process)

    def submit(self, piece: bytes, deaths: int = 0) -> None:
        call = asyncio.wrap_future(call_in_thread(partial(self._ask, piece)))
        self.calls[call] = piece, deaths

    async def results(self) -> list[bytes]:
        """The next results; none if only processes died, which are replaced."""
        done, _ = await asyncio.wait(self.calls, return_when=asyncio.FIRST_COMPLETED)
        found = []
        for call in done:
            piece, deaths = self.calls.pop(call)
            try:
                found.append(call.result())
            except _Died as ended:
                if deaths:
                    what = f"a worker process ended with {ended}, twice on the same work"
                    raise ExecutorError(what) from None
                self.add_process()
                self.submit(piece, deaths + 1)
        return found

    def _ask(self, piece: bytes) -> bytes:
        process = self._idle.get()
        if process is None:
            raise _Died("the pool was closed")
        try:
            return process.ask(piece)
        finally:
            if process.is_alive:
                self._idle.put(process)

    def close(self) -> None:
        for call in self.calls:
            call.cancel()
            self._idle.put(None)
        for process in self._processes:
            process.end()


class _Process:
    """A process that does one piece after the other."""

    def __init__(self, order: WorkOrder, context: Any) -> None:
        with _forking:
            pieces, self._pieces = context.Pipe(duplex=False)
            self._results, results = context.Pipe(duplex=False)
            _enlarge(results)
            arguments = (encoded(order), pieces, results)
            self._process = context.Process(target=_serve, args=arguments, daemon=True)
            with warnings.catch_warnings():
                # Newer Pythons warn of forking with threads. Ours write to the store, which
                # children do not use.
                warnings.simplefilter("ignore", DeprecationWarning)
                # Keeps the collector of the child from touching, and so copying, inherited pages.
                gc.freeze()
                try:
                    self._process.start()
                finally:
                    gc.unfreeze()
            pieces.close()
            results.close()
        self.is_alive = True
        watchdog.watch(self._process.pid)

    def ask(self, piece: bytes) -> bytes:
        """The result of a piece; raises what the worker raises, or _Died."""
        try:
            self._pieces.send_bytes(piece)
            result, error = self._results.recv()
        except (EOFError, OSError):
            self.is_alive = False
            self._process.join()
            watchdog.forget(self._process.pid)  # the system may give its number to another one
            code = self._process.exitcode or 0
            raise _Died(signal.Signals(-code).name if code < 0 else f"exit code {code}") from None
        if error is not None:
            raise error
        return bytes(result)

    def end(self) -> None:
        # Not `terminate`: a process that has just been forked still has our handler of SIGTERM.
        self._process.kill()
        self._process.join()
        watchdog.forget(self._process.pid)


def _enlarge(pipe: Connection) -> None:
    """Let a pipe hold a whole result, if the system supports it."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _serve(order: bytes, pieces: Connection, results: Connection) -> None:
    """The main function of a process."""
    gc.freeze()
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # of the user: the parent kills
    with suppress(EOFError, OSError):  # the parent is gone
        while True:
            results.send(_reply(order, pieces.recv_bytes()))


def _reply(order: bytes, piece: bytes) -> tuple[bytes, Exception | None]:
    try:
        return worker_of(decoded(order))(piece), None
    except Exception as error:
        return b"", picklable(error)
