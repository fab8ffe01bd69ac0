"""The work orders of this process: the worker of each is made once and kept."""

from __future__ import annotations

import os
import threading

import msgspec

from assay.errors import ExecutorError
from assay.ports import Worker, WorkOrder
from assay.registry import imported

_workers: dict[WorkOrder, Worker] = {}
_lock = threading.Lock()
_decode = msgspec.msgpack.Decoder(WorkOrder).decode


def _renew_lock() -> None:
    """Another thread may hold the lock while this process is forked."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def encoded(order: WorkOrder) -> bytes:
    """The order as it is sent to another process."""
    return msgspec.msgpack.encode(order)


def decoded(data: bytes) -> WorkOrder:
    return _decode(data)


def worker_of(order: WorkOrder) -> Worker:
    """The worker of an order in this process; made by the first call, or inherited by a fork."""
    with _lock:
        if order not in _workers:
            make = imported(order.maker, ExecutorError)
            _workers[order] = make(order.details)
        return _workers[order]


def keep(order: WorkOrder, worker: Worker) -> None:
    """Let this process, and those forked from it, use a worker that is made already."""
    with _lock:
        _workers[order] = worker


def close_worker(order: WorkOrder) -> None:
    """Close the worker of an order, if there is one."""
    with _lock:
        worker = _workers.pop(order, None)
    if worker is not None:
        worker.close()
