"""`processes`: spreads work over the cores of this machine.

The processes are forked, so that they inherit everything the work needs; only pieces and results
are sent. A process that dies, as when the system is out of memory, is replaced and its pieces are
done again. If that dies on the same pieces too, an error is raised.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from assay import watchdog
from assay.errors import ExecutorError

T = TypeVar("T")
R = TypeVar("R")

#: How many pieces are assigned to a process at a time, so that it never waits for the next.
ASSIGNED = 2
#: Results of up to this many bytes go through shared memory instead of the pipe.
SLOT_BYTES = 1024 * 1024
#: Processes run the garbage collector only once in this many pieces.
PIECES_PER_COLLECTION = 50


class Processes:
    """Runs `count` processes; by default one for each core that this process may use."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or len(os.sched_getaffinity(0))

    def run(self, work: Callable[[T], R], pieces: Iterable[T]) -> Iterator[R]:
        return _Results([_Worker(work) for _ in range(self.count)], iter(pieces))


class _Results(Iterator[Any]):
    """The results of processes as they arrive; at the end the processes are terminated."""

    def __init__(self, workers: list[_Worker], pieces: Iterator[Any]) -> None:
        self._workers, self._results = workers, _results(workers, pieces)
        try:
            next(self._results)  # starts the work
        except BaseException:
            self.close()
            raise

    def __next__(self) -> Any:
        return next(self._results)

    def waits_for(self) -> list[int]:
        """File descriptors, one of which is readable once a result is there; none at the end."""
        return [worker.connection.fileno() for worker in self._workers if worker.assigned]

    def close(self) -> None:
        self._results.close()
        for worker in self._workers:
            worker.end()


def _results(workers: list[_Worker], pieces: Iterator[Any]) -> Generator[Any]:
    """Yields None once all workers have pieces, then the results."""
    try:
        for worker in workers:
            _assign(worker, pieces)
        yield None
        while busy := {w.connection: w for w in workers if w.assigned}:
            for connection in wait(list(busy)):
                yield from _receive_result(busy[connection], pieces)  # type: ignore[index]
    finally:
        for worker in workers:
            worker.end()


def _assign(worker: _Worker, pieces: Iterator[Any]) -> None:
    while len(worker.assigned) < ASSIGNED:
        try:
            worker.send(next(pieces))
        except StopIteration:
            return


def _receive_result(worker: _Worker, pieces: Iterator[Any]) -> Iterator[Any]:
    """The next result of a worker, which is assigned another piece; none if it died."""
    try:
        failed, result = worker.receive()
    except (EOFError, OSError):
        worker.replace()
        return
    if failed:
        raise result
    _assign(worker, pieces)
    yield result


class _Worker:
    """A process, and the pieces whose results it has not sent yet."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work, self._deaths = work, 0
        self.assigned: deque[Any] = deque()
        self._start()

    def send(self, piece: Any) -> None:
        self.assigned.append(piece)
        self._send(piece)

    def receive(self) -> tuple[bool, Any]:
        """Whether the work raised, and its result or exception."""
        failed, result = self.connection.recv()
        if isinstance(result, _Slot):
            result = self._shared.read(result)
        self.assigned.popleft()
        self._deaths = 0
        return failed, result

    def replace(self) -> None:
        """Start another process for one that died, with the same pieces."""
        self._join()
        code = self._process.exitcode or 0
        self._deaths += 1
        if self._deaths > 1:
            ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise ExecutorError(f"a process that graded ended with {ended}, twice on the same work")
        self.connection.close()
        self._shared.close()
        self._start()
        for piece in self.assigned:
            self._send(piece)

    def end(self) -> None:
        self.connection.close()
        self._shared.close()
        if self._process.is_alive():
            self._process.terminate()
        self._join()

    def _join(self) -> None:
        self._process.join()
        watchdog.forget(self._pid)

    def _send(self, piece: Any) -> None:
        with suppress(OSError):  # the process died, which `receive` will find out
            self.connection.send(piece)

    def _start(self) -> None:
        context = get_context("fork")
        self.connection, other = context.Pipe()
        own: Connection = self.connection
        self._shared = _SharedMemory()
        work = (self._work, self._shared)
        self._process = context.Process(target=_serve, args=(*work, other, own), daemon=True)
        with warnings.catch_warnings():
            # Newer Pythons warn of forking with threads. Ours write to the store, which children
            # do not use.
            warnings.simplefilter("ignore", DeprecationWarning)
            # Keeps the collector of the child from touching, and so copying, inherited pages.
            gc.freeze()
            self._process.start()
            gc.unfreeze()
        other.close()
        assert self._process.pid is not None
        self._pid = self._process.pid
        watchdog.watch(self._pid)


class _Slot(NamedTuple):
    """Where in shared memory a result is."""

    start: int
    size: int


class _SharedMemory:
    """Memory that a process shares with its parent, with a slot for each assigned piece.

    A pipe would copy a result four times, and block while it is full. Slots are used in turn: the
    next one is always free, as its piece is assigned only after its last result was received.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ASSIGNED * SLOT_BYTES)
        self._slot = 0

    def write(self, result: Any) -> Any:
        """The slot of the result; the result itself if it is too large, or not bytes."""
        self._slot = (self._slot + 1) % ASSIGNED
        if type(result) is not bytes or len(result) > SLOT_BYTES:
            return result
        start = self._slot * SLOT_BYTES
        self._memory[start : start + len(result)] = result
        return _Slot(start, len(result))

    def read(self, slot: _Slot) -> bytes:
        return self._memory[slot.start : slot.start + slot.size]

    def close(self) -> None:
        self._memory.close()


def _serve(
    work: Callable[[Any], Any], shared: _SharedMemory, connection: Connection, parent: Connection
) -> None:
    """The main function of a process: works on pieces until the connection is closed.

    Exits without cleaning up: inherited files and database connections belong to the parent.
    """
    parent.close()
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    arrived: SimpleQueue[tuple[Any] | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, arrived), daemon=True).start()
    try:
        for number in count(1):
            if number % PIECES_PER_COLLECTION == 0:
                gc.collect()
            if (arrival := arrived.get()) is None:
                break
            (piece,) = arrival
            try:
                reply = (False, shared.write(work(piece)))
            except Exception as error:
                reply = (True, _picklable(error))
            connection.send(reply)
    except (EOFError, OSError):
        pass
    finally:
        sys.stdout.flush()
        os._exit(0)


def _receive(connection: Connection, arrived: SimpleQueue[tuple[Any] | None]) -> None:
    """Receive pieces in the background, even while one is being worked on.

    Otherwise a parent that sends a large piece and a child that sends a large result would
    deadlock.
    """
    try:
        while True:
            arrived.put((connection.recv(),))
    except (EOFError, OSError):
        arrived.put(None)


def _picklable(error: Exception) -> Exception:
    """The error, or its message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # its class may raise anything
        return ExecutorError(f"{type(error).__name__}: {error}")
    return error
