"""Worker processes: they compute, and are killed when they compute too long."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ExecutorError
from assay.process import workers
from assay.process.workers import compute
from timeouts import WAIT_SECONDS

FOREVER = 1000.0


def guarded(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of work that must not hang."""
    return asyncio.run(asyncio.wait_for(work, WAIT_SECONDS))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def dies(pid: int) -> bool:
    """Whether a process ends, as soon as the system has carried out the kill."""
    deadline = time.monotonic() + WAIT_SECONDS
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
    return True


def await_computation(pid: int) -> None:
    """Wait until a process has used the processor for a while."""
    began = processor_time(pid)
    deadline = time.monotonic() + WAIT_SECONDS
    while processor_time(pid) < began + 0.2:
        assert time.monotonic() < deadline, "it computes nothing"


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def pid_of_worker() -> int:
    return int(guarded(compute(os.getpid)))


def test_a_function_is_called_in_another_process_which_is_used_again() -> None:
    assert guarded(compute(max, 3, 5)) == 5
    first = pid_of_worker()
    assert first != os.getpid()
    assert pid_of_worker() == first


def test_large_arguments_and_results_come_through() -> None:
    assert guarded(compute(str.upper, "é" * 3_000_000)) == "É" * 3_000_000


def test_an_exception_of_the_function_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        guarded(compute(int, "x"))
    assert guarded(compute(int, "7")) == 7


def test_output_of_the_function_does_not_disturb_the_replies() -> None:
    assert guarded(compute(print, "\0" * 100)) is None
    assert guarded(compute(len, "four")) == 4


def test_a_computation_that_takes_too_long_is_killed_and_the_next_is_not() -> None:
    pid = pid_of_worker()
    with pytest.raises(TimeoutError):
        guarded(compute(time.sleep, FOREVER, limit=0.05))
    assert dies(pid)
    assert pid_of_worker() != pid


def test_the_limit_is_one_of_processor_time() -> None:
    pid = pid_of_worker()
    assert guarded(compute(time.sleep, 0.2, limit=0.1)) is None  # waits longer than that
    with pytest.raises(TimeoutError):
        guarded(compute(exec, "while True: pass", limit=0.1))
    assert dies(pid)
    assert guarded(compute(max, 3, 5)) == 5


def test_a_cancelled_computation_is_killed() -> None:
    pid = pid_of_worker()

    async def work() -> None:
        computing = asyncio.ensure_future(compute(time.sleep, FOREVER, limit=FOREVER))
        while workers._idle:  # it has not begun
            await asyncio.sleep(0)
        computing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await computing

    guarded(work())
    assert dies(pid)


def test_a_process_that_dies_is_an_error_and_is_replaced() -> None:
    with pytest.raises(ExecutorError, match="the process that computed it ended with signal 9"):
        guarded(compute(os.kill, 0, signal.SIGKILL))
    assert guarded(compute(max, 3, 5)) == 5


def test_one_worker_computes_per_core() -> None:
    async def work() -> int:
        pids = await asyncio.gather(*(compute(os.getpid) for _ in range(50)))
        return len(set(pids))

    assert guarded(work()) <= len(os.sched_getaffinity(0))


ORPHANED = """
import asyncio, os, re
from assay.process.workers import compute
async def work():
    print(await compute(os.getpid), flush=True)
    await compute(re.match, "(a+)+$", "a" * 60 + "b", limit=1000)  # keeps the interpreter
asyncio.run(work())
"""


def test_a_worker_ends_with_its_parent_even_while_it_computes() -> None:
    command = [sys.executable, "-c", ORPHANED]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        await_computation(pid)
        parent.kill()
    assert dies(pid)


def test_workers_end_silently_with_the_interpreter() -> None:
    code = (
        "import asyncio, os, assay.process.workers as w; print(asyncio.run(w.compute(os.getpid)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert dies(int(done.stdout))


def test_a_forked_process_starts_workers_of_its_own() -> None:
    pid = pid_of_worker()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, str(pid_of_worker()).encode())
        finally:
            workers._end_idle()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        other = int(pipe.read())
    os.waitpid(child, 0)
    assert other != pid
    assert pid_of_worker() == pid
