"""Group commit: one thread writes what many hand in, as much at a time as has gathered.

The disk is asked once for a whole group, so that a trial can be on it before it is reported
and still cost little.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from assay.errors import StoreError

T = TypeVar("T")

#: The most that goes into one group; other processes wait no longer than it takes to write.
MAX_GROUP = 1000


class Write(Generic[T]):
    """Something to write. `value` is what came of it, `refusal` why it alone was not written."""

    __slots__ = ("future", "refusal", "value", "what")

    def __init__(self, what: T) -> None:
        self.what = what
        self.value: Any = None
        self.refusal: Exception | None = None
        self.future: Future[Any] = Future()
        # Whoever stops waiting does not take it back: from here on it cannot be cancelled.
        self.future.set_running_or_notify_cancel()

    def settle(self) -> None:
        if self.refusal is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.refusal)


class GroupCommit(Generic[T]):
    """`commit` writes a group, all of it or nothing, in the order in which it was handed in.

    A StoreError that it raises is about the store, and the whole group is refused. Anything
    else is about something in the group: its members are then written one by one, so that
    only the culprit is refused.
    """

    def __init__(self, commit: Callable[[list[Write[T]]], None]) -> None:
        self._commit = commit
        self._queue: SimpleQueue[Write[T] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        # A daemon: a program that forgot to close its store can still end.
        self._thread = threading.Thread(target=self._run, name="assay-store", daemon=True)
        self._thread.start()

    def hand_in(self, what: T) -> Future[Any]:
        """Done when it is on disk."""
        write = Write(what)
        with self._lock:  # nothing may be queued behind the end
            if self._closed:
                raise StoreError("the store is closed")
            self._queue.put(write)
        return write.future

    def close(self) -> None:
        """Wait until all that was handed in is written; take nothing more."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group, ended = self._gathered(first)
            self._write(group)
            if ended:
                return

    def _gathered(self, first: Write[T]) -> tuple[list[Write[T]], bool]:
        """What is queued by now, and whether it is the last there will be."""
        group = [first]
        while len(group) < MAX_GROUP:
            try:
                write = self._queue.get_nowait()
            except Empty:
                break
            if write is None:
                return group, True
            group.append(write)
        return group, False

    def _write(self, group: list[Write[T]]) -> None:
        try:
            self._commit(group)
        except StoreError as error:
            for write in group:
                write.refusal = error
        except Exception as error:
            if len(group) > 1:
                for write in group:
                    write.refusal = None
                    self._write([write])
                return
            group[0].refusal = StoreError(f"this cannot be stored: {error}")
        for write in group:
            write.settle()
