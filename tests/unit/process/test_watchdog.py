"""kill -9 of a process leaves none of its children behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from timeouts import WAIT_SECONDS
from unit.process.test_child import GRANDCHILD, IDLE, all_die, all_live, living, python

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")

#: Runs each of the commands that it gets as its argument, all at once. Prints a dot for each child
#: that the watchdog knows.
PARENT = """
import asyncio, json, os, sys
from assay.process import watchdog
from assay.process.child import Limits, run

watch = watchdog.watch
watchdog.watch = lambda number: (watch(number), os.write(1, b"."))

async def main():
    limits, env = Limits(timeout_seconds=1000), {"PATH": os.defpath}
    commands = json.loads(sys.argv[1])
    await asyncio.gather(*(run(argv, cwd=".", env=env, limits=limits) for argv in commands))

asyncio.run(main())
"""
#: Grades with two worker processes that never finish a piece. The marker is not their argument.
PROCESSES = """
import asyncio
from assay.executors.processes import Processes
from assay.work_orders import keep
from assay.ports import WorkOrder

async def work_on(work):
    order = WorkOrder("made:already", b"")
    keep(order, work)
    async for _ in Processes(2).run(order, [b""] * 4):
        pass
"""
WORKERS = (
    PROCESSES
    + """
import os, signal

def work(piece):
    os.write(1, b"%d\\n" % os.getpid())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()

asyncio.run(work_on(work))
"""
)


@contextmanager
def process(code: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed at the end of the block, if not before."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def parent(*commands: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with process(PARENT, json.dumps(commands)) as started:
        yield started


def await_watched(parent: subprocess.Popen[bytes], count: int) -> None:
    """Wait until the watchdog watches this many children."""
    assert parent.stdout is not None
    assert parent.stdout.read(count) == b"." * count


def is_alive(pid: int) -> bool:
    """Is it running? A dead process that was not reaped is not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def ends(pid: int) -> bool:
    """Does it end within a while? A signal is carried out when the system gets to it."""
    deadline = time.monotonic() + WAIT_SECONDS
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
    return True


def watchdogs_of(pid: int) -> list[int]:
    """The watchdogs that a process has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if b"watchdog.py" in command and stat.rpartition(")")[2].split()[1] == str(pid):
                found.append(int(entry.name))
    return found


@pytest.fixture
def marker() -> Iterator[str]:
    marker = os.urandom(16).hex()
    yield marker
    for pid in living(marker):  # a failed test must not leave them behind either
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "how", ["", "env={}", "start_new_session=True", "stdout=subprocess.DEVNULL, env={}"]
)
def test_children_and_grandchildren_end_with_a_killed_parent(marker: str, how: str) -> None:
    argv = python(GRANDCHILD + f"grandchild({how})\n" + IDLE, marker)
    with parent(argv, argv) as started:
        await_watched(started, 2)
        assert all_live(marker, 4)
        started.kill()
        assert all_die(marker)


def test_a_child_that_hides_its_environment_ends_with_a_killed_parent(marker: str) -> None:
    with parent(["env", "-i", *python(IDLE, marker)]) as started:
        await_watched(started, 1)
        assert all_live(marker, 1)
        started.kill()
        assert all_die(marker)


def test_a_child_that_is_just_being_started_ends_with_a_killed_parent(marker: str) -> None:
    argv = python(IDLE, marker)
    with parent(*[argv] * 10) as started:
        assert all_live(marker, 1)
        started.kill()
        assert all_die(marker)


def test_a_killed_watchdog_is_replaced(marker: str, tmp_path: Path) -> None:
    fifo = tmp_path / "next"
    os.mkfifo(fifo)
    code = PARENT.replace(
        "asyncio.run(main())", "asyncio.run(main()); open(sys.argv[2]).read(); asyncio.run(main())"
    )
    argv = ["sh", "-c", f'test -e {tmp_path}/second && exec "$@" || :', "sh"]
    with process(code, json.dumps([[*argv, *python(IDLE, marker)]]), str(fifo)) as started:
        with fifo.open("w"):  # opened by the other end once the first children have ended
            (watchdog,) = watchdogs_of(started.pid)
            os.kill(watchdog, signal.SIGKILL)
            assert ends(watchdog)
            (tmp_path / "second").touch()
        await_watched(started, 2)
        assert all_live(marker, 1)
        started.kill()
        assert all_die(marker)


def test_one_watchdog_serves_all_children_and_ends_with_the_parent(marker: str) -> None:
    with parent(*[python(IDLE, marker)] * 5) as started:
        assert all_live(marker, 5)
        (watchdog,) = watchdogs_of(started.pid)
        started.terminate()
        started.wait()
        assert ends(watchdog)


def test_a_watchdog_gets_no_signals_of_the_group_of_its_parent(marker: str) -> None:
    with parent(python(IDLE, marker)) as started:
        await_watched(started, 1)
        (watchdog,) = watchdogs_of(started.pid)
        assert os.getsid(watchdog) == watchdog


def test_workers_end_with_a_killed_parent_although_they_never_finish() -> None:
    with process(WORKERS) as started:
        assert started.stdout is not None
        workers = [int(started.stdout.readline()) for _ in range(2)]
        started.kill()
        deadline = time.monotonic() + WAIT_SECONDS
        try:
            while any(is_alive(pid) for pid in workers):
                assert time.monotonic() < deadline
        finally:
            for pid in filter(is_alive, workers):
                os.kill(pid, signal.SIGKILL)


def test_children_of_workers_end_with_the_killed_parent_of_the_workers(marker: str) -> None:
    work = "import json, sys\n" + PARENT.replace("asyncio.run(main())", "")
    code = work + (PROCESSES + "asyncio.run(work_on(lambda piece: asyncio.run(main())))\n")
    with process(code, json.dumps([python(IDLE, marker)])) as started:
        assert all_live(marker, 2)
        started.kill()
        assert all_die(marker)


def test_a_parent_that_is_watched_itself_takes_its_children_with_it(marker: str) -> None:
    inner: list[Any] = [sys.executable, "-c", PARENT, json.dumps([python(IDLE, marker)])]
    with parent(inner) as started:
        assert all_live(marker, 1)
        started.kill()
        assert all_die(marker)
