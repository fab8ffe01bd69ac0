"""`processes`: work is spread over the cores of this machine.

The processes are forked, so that they have everything the work needs without its being sent.
Only pieces and results travel. One that dies, as when the system is out of memory, is replaced
and its pieces are done again; a piece that kills twice ends it all.
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

from assay.errors import ExecutorError

T = TypeVar("T")
R = TypeVar("R")

#: How many pieces a process has at hand, so that it never waits for the next.
AT_HAND = 2
#: An answer of up to so many bytes is not sent, but laid where the parent sees it.
SHELF_BYTES = 1024 * 1024
#: The collector of a process looks for garbage after so many pieces, and not in between.
PIECES_A_COLLECTION = 50


class Processes:
    """As many processes as there are cores that this one may use, unless told otherwise."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or len(os.sched_getaffinity(0))

    def run(self, work: Callable[[T], R], pieces: Iterable[T]) -> Iterator[R]:
        return _Answers([_Worker(work) for _ in range(self.count)], iter(pieces))


class _Answers(Iterator[Any]):
    """What processes answer, in the order in which they do. At the end they are ended."""

    def __init__(self, workers: list[_Worker], source: Iterator[Any]) -> None:
        self._workers, self._answers = workers, _answers(workers, source)
        try:
            next(self._answers)  # they are at work from now on
        except BaseException:
            self.close()
            raise

    def __next__(self) -> Any:
        return next(self._answers)

    def waits_for(self) -> list[int]:
        """Files of which one can be read when the next answer is there; none at the end."""
        return [worker.connection.fileno() for worker in self._workers if worker.at_hand]

    def close(self) -> None:
        self._answers.close()
        for worker in self._workers:
            worker.end()


def _answers(workers: list[_Worker], source: Iterator[Any]) -> Generator[Any]:
    """Nothing once all have pieces, then the answers."""
    try:
        for worker in workers:
            _feed(worker, source)
        yield None
        while busy := {w.connection: w for w in workers if w.at_hand}:
            for connection in wait(list(busy)):
                yield from _taken(busy[connection], source)  # type: ignore[index]
    finally:
        for worker in workers:
            worker.end()


def _feed(worker: _Worker, source: Iterator[Any]) -> None:
    while len(worker.at_hand) < AT_HAND:
        try:
            worker.give(next(source))
        except StopIteration:
            return


def _taken(worker: _Worker, source: Iterator[Any]) -> Iterator[Any]:
    """The next result of a process, which gets another piece for it."""
    try:
        failed, result = worker.take()
    except (EOFError, OSError):
        worker.replace()
        return
    if failed:
        raise result
    _feed(worker, source)
    yield result


class _Worker:
    """A process, and the pieces that it has not answered yet."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work, self._deaths = work, 0
        self.at_hand: deque[Any] = deque()
        self._start()

    def give(self, piece: Any) -> None:
        self.at_hand.append(piece)
        self._send(piece)

    def take(self) -> tuple[bool, Any]:
        failed, answer = self.connection.recv()
        if isinstance(answer, _Laid):
            answer = self._shelf.taken(answer)
        self.at_hand.popleft()
        self._deaths = 0
        return failed, answer

    def replace(self) -> None:
        """Another process for one that died, with the same pieces."""
        self._process.join()
        code = self._process.exitcode or 0
        self._deaths += 1
        if self._deaths > 1:
            ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise ExecutorError(f"a process that graded ended with {ended}, twice on the same work")
        self.connection.close()
        self._shelf.close()
        self._start()
        for piece in self.at_hand:
            self._send(piece)

    def end(self) -> None:
        self.connection.close()
        self._shelf.close()
        if self._process.is_alive():
            self._process.terminate()
        self._process.join()

    def _send(self, piece: Any) -> None:
        with suppress(OSError):  # it died; whoever takes its answer finds out
            self.connection.send(piece)

    def _start(self) -> None:
        context = get_context("fork")
        self.connection, other = context.Pipe()
        own: Connection = self.connection
        self._shelf = _Shelf()
        work = (self._work, self._shelf)
        self._process = context.Process(target=_serve, args=(*work, other, own), daemon=True)
        with warnings.catch_warnings():
            # Newer Pythons warn of threads. Ours write to the store, which no child touches.
            warnings.simplefilter("ignore", DeprecationWarning)
            # What is there now is shared with the child, as long as neither looks at it.
            gc.freeze()
            self._process.start()
            gc.unfreeze()
        other.close()


class _Laid(NamedTuple):
    """An answer that lies on the shelf."""

    place: int
    size: int


class _Shelf:
    """Memory that a process shares with its parent, with a place for each answer under way.

    Through a pipe an answer would be copied four times, and wait for room in it. Places are
    used in turn: one is free again before its turn comes, as the piece for it is given only
    once the answer before was taken.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, AT_HAND * SHELF_BYTES)
        self._turn = 0

    def lay(self, answer: Any) -> Any:
        """The place of the answer; itself when it is too large, or something else than bytes."""
        self._turn = (self._turn + 1) % AT_HAND
        if type(answer) is not bytes or len(answer) > SHELF_BYTES:
            return answer
        start = self._turn * SHELF_BYTES
        self._memory[start : start + len(answer)] = answer
        return _Laid(start, len(answer))

    def taken(self, laid: _Laid) -> bytes:
        return self._memory[laid.place : laid.place + laid.size]

    def close(self) -> None:
        self._memory.close()


def _serve(
    work: Callable[[Any], Any], shelf: _Shelf, connection: Connection, parents: Connection
) -> None:
    """Answer pieces until the connection is closed. It leaves without cleaning up: what it
    inherited, open files and databases, belongs to its parent."""
    parents.close()
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    arrived: SimpleQueue[tuple[Any] | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, arrived), daemon=True).start()
    try:
        for number in count(1):
            if number % PIECES_A_COLLECTION == 0:
                gc.collect()
            if (arrival := arrived.get()) is None:
                break
            (piece,) = arrival
            try:
                answer = (False, shelf.lay(work(piece)))
            except Exception as error:
                answer = (True, _portable(error))
            connection.send(answer)
    except (EOFError, OSError):
        pass
    finally:
        sys.stdout.flush()
        os._exit(0)


def _receive(connection: Connection, arrived: SimpleQueue[tuple[Any] | None]) -> None:
    """Take pieces as they come, also while one is at work.

    Else the parent, who sends a large one, and we, who send a large answer, would wait for each
    other.
    """
    try:
        while True:
            arrived.put((connection.recv(),))
    except (EOFError, OSError):
        arrived.put(None)


def _portable(error: Exception) -> Exception:
    """The error, or its words when it cannot travel."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does
        return ExecutorError(f"{type(error).__name__}: {error}")
    return error
