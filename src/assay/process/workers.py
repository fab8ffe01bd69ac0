"""Worker processes for long computations: off the event loop, on another core, and with a limit.

A computation that takes too long, or whose caller is cancelled, is killed with its process. What
counts is its processor time, so that a busy machine changes no result. The processes start Python
anew: a fork can deadlock in a process with threads, and `multiprocessing` would import the script
of the user again. The watchdog ends them with this process, however that ends.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from assay.errors import ExecutorError
from assay.process import watchdog
from assay.process.cpu_slots import cpu_slot
from assay.threads import in_thread

T = TypeVar("T")

#: How much processor time a computation may take, in seconds.
LIMIT_SECONDS = 10.0
#: How many times as long it may take in all, on a busy machine.
_BUSY = 12
#: How long a process may take to start.
START_SECONDS = 60.0

#: How much lower the priority of a worker process is.
_NICE = 10

#: The signal of the timer for processor time, which ends the process; 0 where there is none.
_TIMER: int = getattr(signal, "SIGPROF", 0)
_SIZE = struct.Struct("<Q")
#: Not `-m`: the folder that the user is in must not come first on the path. The last argument is
#: where this package is, in case that is not on the path of a new interpreter.
_MAIN = "import sys; sys.path.append(sys.argv[1]); from assay.process.workers import serve; serve()"


async def compute(function: Callable[..., T], *arguments: Any, limit: float = LIMIT_SECONDS) -> T:
    """What a function of a module returns in a worker process; at most one computes per core.

    Raises what the function raises, TimeoutError after the limit, and ExecutorError if the process
    dies. Function, arguments and result are pickled.
    """
    request = pickle.dumps((function, arguments, limit))
    async with cpu_slot():
        try:
            worker = _idle.pop()
        except IndexError:
            worker = _Worker()
        try:
            if not worker.started:
                async with asyncio.timeout(START_SECONDS):
                    _raised(await in_thread(worker.start))
            async with asyncio.timeout(limit * _BUSY if _TIMER else limit):
                reply = _raised(await in_thread(worker.ask, request))
        except BaseException:  # a cancellation, too
            worker.kill()
            raise
        _idle.append(worker)
    value, error = reply
    if error is not None:
        raise error
    return cast(T, value)


def _raised(outcome: Any) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


class _Worker:
    """A process that answers one request after the other; its methods block, but for `kill`."""

    def __init__(self) -> None:
        self.started = self._killed = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        folder = str(Path(__file__).parents[2])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _MAIN, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, watchdog.MARK: watchdog.mark()},
            start_new_session=True,  # Ctrl-C is for us only
        )
        watchdog.watch(self._process.pid)
        if self._killed:
            self._process.kill()
        self.ask(pickle.dumps((_ready, (), LIMIT_SECONDS)))
        self.started = True

    def ask(self, request: bytes) -> Any:
        """The function's result and None, or None and its exception."""
        process = self._process
        assert process is not None
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            _send(stdin, request)
            return pickle.loads(_receive(stdout))
        except (OSError, EOFError):
            code = self._close(process)
            if code == -_TIMER:
                raise TimeoutError from None
            ended = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise ExecutorError(f"the process that computed it ended with {ended}") from None

    def kill(self) -> None:
        """End the process; a call of `ask` in another thread notices."""
        self._killed = True
        if self._process is not None:
            self._process.kill()

    def end(self) -> None:
        """End an idle process, and wait until it is gone."""
        self.kill()
        if self._process is not None:
            self._close(self._process)

    def forget(self) -> None:
        """Close our end of the pipes: in a fork, the worker belongs to the parent process."""
        _forgotten.append(self)
        for pipe in (self._process.stdin, self._process.stdout) if self._process else ():
            if pipe is not None:
                pipe.close()

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> int:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # unsent data, which is no longer read
                    pipe.close()
        code = process.wait()
        watchdog.forget(process.pid)
        return code


#: The processes without work. List operations are atomic.
_idle: list[_Worker] = []
#: Keeps the processes of a parent from being reported as lost.
_forgotten: list[_Worker] = []


@atexit.register
def _end_idle() -> None:
    while _idle:
        _idle.pop().end()


def _forget_idle() -> None:
    while _idle:
        _idle.pop().forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_idle)


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(_SIZE.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    [size] = _SIZE.unpack(_read(pipe, _SIZE.size))
    return _read(pipe, size)


def _read(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _ready() -> None:
    """The first request: imports are not part of a computation."""


def serve() -> None:
    """The main function of a worker process."""
    if hasattr(os, "nice"):  # the event loop, which measures durations, comes first
        os.nice(_NICE)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the computation prints must not mix with replies
    with suppress(OSError, EOFError):  # the parent is gone
        while True:
            _send(replies, _reply(_receive(sys.stdin.buffer)))


def _set_timer(seconds: float) -> None:
    """Let the system end this process after this much processor time; 0 stops the timer."""
    if _TIMER:
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _reply(request: bytes) -> bytes:
    try:
        function, arguments, limit = pickle.loads(request)
        _set_timer(limit)
        result = function(*arguments)
        _set_timer(0)
        return pickle.dumps((result, None))
    except Exception as error:
        _set_timer(0)
        try:
            return pickle.dumps((None, pickle.loads(pickle.dumps(error))))
        except Exception:  # its class may raise anything
            return pickle.dumps((None, ExecutorError(f"{type(error).__name__}: {error}")))
