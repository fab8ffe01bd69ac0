"""Run a child process safely: in its own process group, with limits of time, output, memory, CPU.

However a run ends (exit, limit, cancellation, kill -9 of this process), no process of the child's
group survives it. On Linux, neither do processes that left the group, as long as they kept the
environment variable that marks them. A failure is a value: `FinishedProcess` says in words what
happened.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from assay.process import watchdog
from assay.redaction import cut, cut_to_end
from assay.text import printable

State = Literal["exited", "timed_out", "too_much_output", "not_started"]

#: How much of the end of stderr is kept to find secrets in, and how many characters are shown.
STDERR_TAIL_BYTES = 64 * 1024
STDERR_SHOWN = 4096
#: How many characters of that a message quotes.
MAX_QUOTED = 300
#: How long pipes are read after the exit: descendants that keep them open must not block us.
LINGER_SECONDS = 0.25


class Limits(msgspec.Struct, frozen=True):
    """What a child may use; `grace_seconds` is the time between SIGTERM and SIGKILL.

    Memory and CPU time are limits of each process, not of the group as a whole. Without a
    timeout here, the caller must have one, and cancel.
    """

    timeout_seconds: float | None = 60.0
    max_output: int = 10 * 1024 * 1024
    max_memory_mb: float | None = None
    max_cpu_seconds: float | None = None
    grace_seconds: float = 2.0


class FinishedProcess(msgspec.Struct, frozen=True):
    """How a child ended. `fault` says what went wrong, and is empty after exit code 0.

    `returncode` is negative for a signal, as in `subprocess`, and None if nothing was started.
    `stdout` is truncated at the limit; only the end of stderr is kept.
    """

    state: State
    returncode: int | None = None
    stdout: bytes = b""
    stderr_tail: bytes = b""
    duration_ms: float = 0.0
    fault: str = ""

    @property
    def stderr(self) -> str:
        """The end of stderr as text, redacted."""
        text = self.stderr_tail.decode("utf-8", "replace")
        return cut_to_end(text, STDERR_SHOWN, start_missing=self.start_missing).strip()

    @property
    def start_missing(self) -> bool:
        """Was the beginning of stderr dropped?"""
        return len(self.stderr_tail) >= STDERR_TAIL_BYTES

    def explained(self, message: str) -> str:
        """The message with the end of stderr, in one line."""
        lines = [printable(" ".join(line.split())) for line in self.stderr.splitlines()]
        if not any(lines):
            return message
        # The last line of a traceback has the error: it is shown first of all.
        last = cut(lines.pop(), MAX_QUOTED, "both")
        before, room = " ".join(filter(None, lines)), MAX_QUOTED - len(last) - 1
        if len(before) > room:
            before = f"...{before[3 - room :]}" if room > 3 else ""
        return f"{message}; its stderr ends with: {f'{before} {last}'.strip()}"


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    cwd: str,
    env: Mapping[str, str],
    limits: Limits,
) -> FinishedProcess:
    """Run a program until it exits or exceeds a limit; then kill everything it has started."""
    fault = _why_not_startable(argv, cwd, env, limits)
    if fault:
        return FinishedProcess("not_started", fault=fault)
    child = _Child(limits.max_output)
    started_at = time.monotonic()
    starting = asyncio.ensure_future(_start(child, _limited(argv, limits), stdin, cwd, env))
    try:
        await asyncio.shield(starting)
        timed_out = not await child.ends_within(limits.timeout_seconds)
    except (OSError, ValueError) as error:
        return FinishedProcess("not_started", fault=f"{argv[0]!r} could not be started: {error}")
    finally:
        await asyncio.wait([starting])  # after a cancellation too there is a process to kill
        await child.stop(limits.grace_seconds)
    state: State = "timed_out" if timed_out else "exited"
    if child.overflow.done():
        state = "too_much_output"
    code = child.exited.result()
    return FinishedProcess(
        state,
        code,
        bytes(child.stdout[: limits.max_output]),
        bytes(child.stderr),
        (time.monotonic() - started_at) * 1000,
        _fault(state, code, limits),
    )


def _why_not_startable(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], limits: Limits
) -> str:
    """Why the program cannot be started; the OSError does not say if `cwd` is the cause."""
    if not os.path.isdir(cwd):
        return f"the working directory {cwd!r} does not exist"
    if _needs_wrapper(limits) and os.name == "nt":
        return "memory and processor limits cannot be set on Windows"
    program = argv[0]
    if os.path.dirname(program):
        path = os.path.join(cwd, program)
        if not os.path.isfile(path):
            return f"the program {program!r} does not exist in the folder {cwd!r}"
        return "" if os.access(path, os.X_OK) else f"the program {program!r} is not executable"
    if shutil.which(program, path=env.get("PATH", os.defpath)) is None:
        return f"the program {program!r} was not found on PATH"
    return ""


async def _start(
    child: _Child, argv: Sequence[str], stdin: bytes, cwd: str, env: Mapping[str, str]
) -> None:
    # A file, not a pipe: a child that never reads it cannot block us, and no pipe can break.
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        child.mark = watchdog.mark()
        marked = {**env, watchdog.MARK: child.mark}
        await asyncio.get_running_loop().subprocess_exec(
            lambda: child, *argv, stdin=file, cwd=cwd, env=marked, start_new_session=True
        )


class _Child(asyncio.SubprocessProtocol):
    """Collects the child's output, and observes its exit and the end of its output."""

    def __init__(self, max_output: int) -> None:
        loop = asyncio.get_running_loop()
        self.max_output = max_output
        self.mark = ""
        self.stdout, self.stderr = bytearray(), bytearray()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.overflow: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.open_pipes = {1, 2}
        self.transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.SubprocessTransport, transport)
        watchdog.watch(self._group)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.stderr += data
            del self.stderr[:-STDERR_TAIL_BYTES]
        elif not self.overflow.done():
            self.stdout += data
            if len(self.stdout) > self.max_output:
                self.overflow.set_result(None)
                assert self.transport is not None
                pipe = self.transport.get_pipe_transport(fd)
                assert pipe is not None
                pipe.close()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.open_pipes.discard(fd)
        if not self.open_pipes and not self.closed.done():
            self.closed.set_result(None)

    def process_exited(self) -> None:
        assert self.transport is not None
        code = self.transport.get_returncode()
        assert code is not None
        self.exited.set_result(code)

    async def ends_within(self, seconds: float | None) -> bool:
        """Did it exit, or exceed the output limit, in time?"""
        ends: list[asyncio.Future[Any]] = [self.exited, self.overflow]
        done, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)

    async def stop(self, grace: float) -> None:
        """Terminate the whole group, then kill it; returns when the child is reaped."""
        if self.transport is None:
            return
        try:
            if not self.exited.done():
                self._signal_group(signal.SIGTERM)
                await asyncio.wait([self.exited], timeout=grace)
            if not self.exited.done():
                self._kill_group()
            await asyncio.wait([self.exited])
            await asyncio.wait([self.closed], timeout=LINGER_SECONDS)
        finally:
            # Kills what outlived the child, even if a second cancellation interrupted the above.
            # The group id cannot have been reused: not while a member lives, and after that too
            # little time has passed for the ids to wrap around.
            self._kill_group()
            watchdog.kill_marked(self.mark)
            watchdog.forget(self._group)
            await asyncio.wait([self.exited])
            self.transport.close()

    @property
    def _group(self) -> int:
        """For the watchdog: the group, which is a negative number, or on Windows the child."""
        assert self.transport is not None
        pid = self.transport.get_pid()
        return pid if os.name == "nt" else -pid

    def _kill_group(self) -> None:
        self._signal_group(watchdog.KILL)

    def _signal_group(self, number: int) -> None:
        assert self.transport is not None
        try:
            if os.name == "nt":  # no process groups there: only the child itself can be killed
                self.transport.kill()
            else:
                os.killpg(self.transport.get_pid(), number)  # as session leader it leads the group
        except (ProcessLookupError, PermissionError):
            pass  # no process is left, or only some that changed their user


# Limits are set by a small Python program that then execs the child. `preexec_fn` would run code
# between fork and exec, which can deadlock when there are threads, and asyncio has some; setting
# the limits from outside would be too late for a quick child.
_WRAPPER = """
import os, resource as r, signal, sys
memory, cpu, *argv = sys.argv[1:]
def limit(kind, soft, hard):
    most = r.getrlimit(kind)[1]
    r.setrlimit(kind, [n if most == r.RLIM_INFINITY else min(n, most) for n in (soft, hard)])
try:
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and the child would inherit that
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    limit(r.RLIMIT_CORE, 0, 0)  # SIGXCPU would leave a core file behind
    if cpu:
        limit(r.RLIMIT_CPU, int(cpu), int(cpu) + 1)
    if memory:
        limit(r.RLIMIT_AS, int(memory), int(memory))
    os.execvp(argv[0], argv)
except (OSError, ValueError, MemoryError) as error:
    sys.exit(f"{argv[0]!r} could not be started within its limits: {error}")
"""


def _needs_wrapper(limits: Limits) -> bool:
    return limits.max_memory_mb is not None or limits.max_cpu_seconds is not None


def _limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """The command that sets the limits and then execs the program."""
    if not _needs_wrapper(limits):
        return list(argv)
    memory, cpu = limits.max_memory_mb, limits.max_cpu_seconds
    wrapper = [sys.executable, "-I", "-S", "-c", _WRAPPER]
    wrapper.append("" if memory is None else str(math.ceil(memory * 1024 * 1024)))
    wrapper.append("" if cpu is None else str(math.ceil(cpu)))
    return [*wrapper, *argv]


def _fault(state: State, code: int, limits: Limits) -> str:
    if state == "timed_out":
        return f"took longer than {limits.timeout_seconds:g} s and was stopped"
    if state == "too_much_output":
        return f"wrote more than {limits.max_output:,} bytes and was stopped"
    if code >= 0:
        return f"ended with exit code {code}" if code else ""
    if limits.max_cpu_seconds is not None and code == -getattr(signal, "SIGXCPU", 0):
        return f"used more than {math.ceil(limits.max_cpu_seconds)} s of processor time"
    return f"was killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
