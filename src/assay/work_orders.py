"""The work orders of this process: the worker of each is made once and kept."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
from functools import lru_cache
from hashlib import sha256

import msgspec

from assay.errors import ExecutorError
from assay.ports import Worker, WorkOrder
from assay.registry import imported
from assay.version import __version__

_workers: dict[WorkOrder, Worker] = {}
_lock = threading.Lock()
#: A process of a cluster may have several threads, but a worker does one piece at a time.
_working = threading.Lock()
_decode = msgspec.msgpack.Decoder(WorkOrder).decode


def _renew_lock() -> None:
    """Another thread may hold the lock while this process is forked."""
    global _lock, _working
    _lock, _working = threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def encoded(order: WorkOrder) -> bytes:
    """The order as it is sent to another process."""
    return msgspec.msgpack.encode(order)


@lru_cache(maxsize=4)
def decoded(data: bytes) -> WorkOrder:
    return _decode(data)


def do(order: bytes, piece: bytes) -> bytes:
    """Do a piece of an encoded order; this is what executors submit to other engines.

    A process of theirs may outlive a run. It works for one order at a time, so it has the files and
    modules of one project, and keeps nothing of a run whose coordinator was killed.
    """
    try:
        with _working:
            wanted = decoded(order)
            for other in [known for known in _workers if known != wanted]:
                close_worker(other)
            return worker_of(wanted)(piece)
    except Exception as error:
        raise picklable(error) from None


def name_of(order: WorkOrder) -> str:
    """A short name of an order, by which other processes can be asked to release it."""
    return sha256(order.maker.encode() + order.details).hexdigest()


async def release(name: str) -> None:
    """Close the worker of the order with this name in this process, without blocking its loop."""
    for order in [order for order in list(_workers) if name_of(order) == name]:
        await asyncio.to_thread(close_worker, order)


def picklable(error: Exception) -> Exception:
    """The error, or its message if it cannot be copied to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # its class may raise anything
        return ExecutorError(f"{type(error).__name__}: {error}")
    return error


def worker_of(order: WorkOrder) -> Worker:
    """The worker of an order in this process; made by the first call, or inherited by a fork."""
    with _lock:
        if order not in _workers:
            _check_version(order)
            make = imported(order.maker, ExecutorError)
            _workers[order] = make(order.details)
        return _workers[order]


def _check_version(order: WorkOrder) -> None:
    if order.version != __version__:
        found = f"this worker has Assay {__version__}, and the run was started by {order.version}"
        raise ExecutorError(f"{found}: install the same version on all machines")


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
