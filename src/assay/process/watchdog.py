"""A small process that kills the children of this process when this process is gone.

It reads a pipe whose other end only this process has open, so that it sees the end of the pipe
however this process ends, kill -9 included. One watchdog serves all children: it is started with
the first one, and a child costs two short writes to the pipe. This file is also its program, for
which it must import nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import count

#: The environment variable whose value identifies the processes of a child.
MARK = "ASSAY_CHILD"
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
#: Bounds the search for processes that start others faster than they are found.
_MAX_SWEEPS = 20
#: A child that is just being started has no environment yet: it is looked for again after a while.
_SECONDS_TO_START = 0.2


class _Watchdog:
    """The watchdog of this process, which is not running until the first child is about to."""

    def __init__(self) -> None:
        self.token = os.urandom(16).hex()
        self._lock = threading.Lock()
        self._numbers = count()
        self._watched: set[int] = set()
        self._pipe: int | None = None

    def mark(self) -> str:
        with self._lock:
            self._send(b"-0\n")  # nothing to forget: starts a watchdog if none is running
            return f"{self.token}/{next(self._numbers)}/"

    def watch(self, number: int) -> None:
        with self._lock:
            self._watched.add(number)
            self._send(b"+%d\n" % number)

    def forget(self, number: int) -> None:
        with self._lock:
            if number in self._watched:
                self._watched.remove(number)
                self._send(b"-%d\n" % number)

    def let_go(self) -> None:
        """Close the pipe in a forked process: it would keep the watchdog waiting."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _send(self, line: bytes) -> None:
        try:
            if self._pipe is not None:
                os.write(self._pipe, line)
                return
        except BrokenPipeError:  # the watchdog was killed
            self.let_go()
        self._start()

    def _start(self) -> None:
        read, self._pipe = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, self.token],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=os.path.abspath(os.sep),
                # If this process is a child that is watched too, its watchdog has to outlive it.
                env={**os.environ, MARK: ""},
                start_new_session=True,
            )
        except BaseException:
            self.let_go()
            raise
        finally:
            os.close(read)
        process.returncode = 0  # it ends after this process: there is nothing to wait for
        for number in self._watched:
            os.write(self._pipe, b"+%d\n" % number)


_watchdog = _Watchdog()


def mark() -> str:
    """A new value of MARK. On Linux, processes that have it are killed when this process is gone.

    Set it in the environment of a child, and call `watch` once that is started.
    """
    return _watchdog.mark()


def watch(number: int) -> None:
    """Have a process killed when this process is gone; with a negative number, a process group."""
    _watchdog.watch(number)


def forget(number: int) -> None:
    """The process or the group has ended."""
    _watchdog.forget(number)


def _reset_after_fork() -> None:
    """A forked process has no children yet; it gets a watchdog of its own with the first one."""
    global _watchdog
    _watchdog.let_go()
    _watchdog = _Watchdog()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def kill_marked(start: str) -> None:
    """Kill processes whose mark has this prefix, and those they have started; needs /proc."""
    killed: set[int] = set()
    for _ in range(_MAX_SWEEPS):
        found = _find_marked(f"{MARK}={start}".encode()) - killed
        if not found:
            return
        for pid in found:
            kill(pid)
        killed |= found


def kill(number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it is gone, or changed its user
        os.kill(number, KILL)


def _find_marked(start: bytes) -> set[int]:
    """This user's processes with such an entry in their environment; none without /proc."""
    found = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with suppress(OSError):
                # Those of others could only be read by root.
                if os.stat(f"/proc/{name}").st_uid == os.geteuid():
                    with open(f"/proc/{name}/environ", "rb") as file:
                        if any(entry.startswith(start) for entry in file.read().split(b"\0")):
                            found.add(int(name))
    return found


def _main(token: str) -> None:
    """Follow what is watched until the pipe ends, and kill what is left."""
    watched: set[int] = set()
    for line in sys.stdin.buffer:
        (watched.add if line.startswith(b"+") else watched.discard)(int(line[1:]))
    for number in watched:
        kill(number)
    kill_marked(token)
    time.sleep(_SECONDS_TO_START)
    kill_marked(token)


if __name__ == "__main__":
    _main(sys.argv[1])
