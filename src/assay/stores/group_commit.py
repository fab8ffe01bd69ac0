"""Group commit: one thread writes everything that has been queued in a single transaction.

One sync serves a whole group, so every trial can be on disk before it is reported at little cost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from assay.errors import StoreError

T = TypeVar("T")

#: The largest group. Other processes have to wait while one is written.
MAX_GROUP = 1000


class Write(Generic[T]):
    """An item to write. `commit` sets its `result`, or its `error` if it alone was refused."""

    __slots__ = ("error", "future", "item", "result")

    def __init__(self, item: T) -> None:
        self.item = item
        self.result: Any = None
        self.error: Exception | None = None
        self.future: Future[Any] = Future()
        # A caller that stops waiting must not cancel the write.
        self.future.set_running_or_notify_cancel()

    def settle(self) -> None:
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class GroupCommit(Generic[T]):
    """`commit` writes a group atomically, in the order of submission.

    If it raises a StoreError, the store is at fault and the whole group fails. On any other
    exception some item is at fault: the items are written one by one, so that only it fails.
    """

    def __init__(self, commit: Callable[[list[Write[T]]], None]) -> None:
        self._commit = commit
        self._queue: SimpleQueue[Write[T] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        # A daemon, so that a program that did not close its store can still exit.
        self._thread = threading.Thread(target=self._run, name="assay-store", daemon=True)
        self._thread.start()

    def submit(self, item: T) -> Future[Any]:
        """Queue an item; the future is done when it is on disk."""
        write = Write(item)
        with self._lock:  # nothing may be queued after the None of `close`
            if self._closed:
                raise StoreError("the store is closed")
            self._queue.put(write)
        return write.future

    def close(self) -> None:
        """Accept no more items, and wait until all are written."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group, is_last = self._gather(first)
            self._write(group)
            if is_last:
                return

    def _gather(self, first: Write[T]) -> tuple[list[Write[T]], bool]:
        """All items in the queue, up to MAX_GROUP, and whether the queue was closed."""
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
                write.error = error
        except Exception as error:
            if len(group) > 1:
                for write in group:
                    write.error = None
                    self._write([write])
                return
            group[0].error = StoreError(f"this cannot be stored: {error}")
        for write in group:
            write.settle()
