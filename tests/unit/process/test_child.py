"""Children of every bad kind: nothing of them stays, and nothing of them stops us."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Coroutine
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest

from assay.process import child
from assay.process.child import FinishedProcess, Limits, run
from timeouts import WAIT_SECONDS

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")

T = TypeVar("T")
#: So long that a test which waits for it has failed.
FOREVER = 1000.0
IDLE = "import signal\nwhile True: signal.pause()\n"
FLOOD = """
import os, signal, sys
def flood():
    try:
        while True: os.write(1, b"x" * 65536)
    except BrokenPipeError:
        while True: pass
"""


def guarded(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that must not hang."""
    return asyncio.run(asyncio.wait_for(work, WAIT_SECONDS))


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", dedent(code), *arguments]


async def here(argv: list[str], stdin: bytes = b"", **limits: Any) -> FinishedProcess:
    env = {"PATH": os.defpath}
    return await run(argv, stdin=stdin, cwd=".", env=env, limits=Limits(**limits))


def outcome(argv: list[str], stdin: bytes = b"", **limits: Any) -> FinishedProcess:
    return guarded(here(argv, stdin, **limits))


@pytest.fixture
def marker() -> str:
    """An argument that only the processes of one test have."""
    return uuid.uuid4().hex


def living(marker: str) -> list[int]:
    """The processes with the marker; dead ones have no command line, even if not reaped."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if marker.encode() in arguments:
                found.append(int(entry.name))
    return found


def all_live(marker: str, count: int) -> bool:
    """Whether this many have the marker, as soon as forked processes have become programs."""
    deadline = time.monotonic() + WAIT_SECONDS
    while len(living(marker)) < count:
        if time.monotonic() > deadline:
            return False
    return True


def all_die(marker: str) -> bool:
    """Whether no process with the marker is left, as soon as the system has killed them."""
    deadline = time.monotonic() + WAIT_SECONDS
    while living(marker):
        if time.monotonic() > deadline:
            return False
    return True


# What comes back


def test_output_exit_code_and_duration_come_back() -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('oops', file=sys.stderr)"
    done = outcome(python(code), b"hello")
    assert (done.state, done.returncode, done.fault) == ("exited", 0, "")
    assert (done.stdout, done.stderr_tail) == (b"HELLO\n", b"oops\n")
    assert done.duration_ms > 0


def test_another_exit_code_is_a_fault_in_words() -> None:
    done = outcome(python("raise SystemExit(3)"))
    assert (done.state, done.returncode) == ("exited", 3)
    assert done.fault == "ended with exit code 3"


def test_death_by_a_signal_is_a_fault_in_words() -> None:
    done = outcome(python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))
    assert done.returncode == -signal.SIGSEGV
    assert done.fault == "was killed by SIGSEGV"


def test_a_signal_without_a_name_has_its_number() -> None:
    done = outcome(python("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 1)"))
    assert done.fault == f"was killed by signal {signal.SIGRTMIN + 1}"


def test_arguments_are_not_shell_text() -> None:
    odd = ["a b", "$HOME", "`id`", "x; y", "*", "", "-c"]
    done = outcome(python("import sys; print(sys.argv[1:])", *odd))
    assert done.stdout.decode() == f"{odd}\n"


def test_only_the_given_environment_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    code = "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))"  # Python sets that one
    env = {"PATH": os.defpath, "MINE": "1"}
    done = guarded(run(python(code), cwd=".", env=env, limits=Limits()))
    assert done.stdout == b"['ASSAY_CHILD', 'MINE', 'PATH']\n"


def test_the_child_runs_in_its_folder(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd())"
    done = guarded(run(python(code), cwd=str(tmp_path), env={}, limits=Limits()))
    assert done.stdout.decode().strip() == os.path.realpath(tmp_path)


def test_many_children_at_once_keep_their_answers_apart() -> None:
    async def all_of_them() -> list[FinishedProcess]:
        one = "import sys; print(sys.stdin.read())"
        return await asyncio.gather(*(here(python(one), b"%d" % n) for n in range(20)))

    assert [done.stdout for done in guarded(all_of_them())] == [b"%d\n" % n for n in range(20)]


def test_no_file_descriptor_is_left_open() -> None:
    async def before_and_after() -> tuple[int, int]:
        await here(python("pass"))
        before = len(os.listdir("/proc/self/fd"))
        for code in ("pass", "print('x' * 100)"):
            await here(python(code), b"x", max_output=10)
        return before, len(os.listdir("/proc/self/fd"))

    before, after = guarded(before_and_after())
    assert after == before


# stdin


def test_a_child_need_not_read_a_large_stdin() -> None:
    assert outcome(python("print('done')"), b"x" * 5_000_000).stdout == b"done\n"


def test_a_child_may_read_part_of_a_large_stdin() -> None:
    code = "import os; print(len(os.read(0, 10))); os.close(0)"
    assert outcome(python(code), b"x" * 5_000_000).stdout == b"10\n"


def test_a_large_stdin_arrives_whole() -> None:
    data = os.urandom(5_000_000)
    code = "import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    assert outcome(python(code), data).stdout.decode().strip() == hashlib.sha256(data).hexdigest()


def test_stdin_can_be_opened_by_its_path() -> None:
    assert outcome(["sh", "-c", "cat /dev/stdin"], b"hello").stdout == b"hello"


# stdout and stderr


def test_a_child_that_writes_forever_is_stopped_at_the_limit(marker: str) -> None:
    done = outcome(python(FLOOD + "flood()", marker), max_output=100_000)
    assert done.state == "too_much_output"
    assert done.stdout == b"x" * 100_000
    assert done.fault == "wrote more than 100,000 bytes and was stopped"
    assert not living(marker)


def test_reading_stops_after_too_much_output() -> None:
    code = """
    import os, signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        while True: os.write(1, b"x" * 65536)
    except BrokenPipeError:
        os._exit(9)
    """
    assert outcome(python(code), max_output=10, grace_seconds=FOREVER).returncode == 9


def test_output_of_just_the_limit_is_fine() -> None:
    done = outcome(python("print('x' * 99_999)"), max_output=100_000)
    assert (done.state, len(done.stdout)) == ("exited", 100_000)


def test_too_much_output_is_noticed_even_of_a_child_that_is_quick() -> None:
    done = outcome(python("print('x' * 10)"), max_output=10)
    assert (done.state, done.stdout) == ("too_much_output", b"x" * 10)


def test_only_the_end_of_stderr_is_kept() -> None:
    code = "import sys; sys.stderr.write('a' * 1_000_000 + 'the end')"
    tail = outcome(python(code)).stderr_tail
    assert len(tail) == child.STDERR_TAIL_BYTES
    assert tail.endswith(b"aathe end")


def test_a_child_may_close_its_output_long_before_it_exits() -> None:
    done = outcome(python("import os, sys; os.close(1); os.close(2); os._exit(4)"))
    assert (done.state, done.returncode) == ("exited", 4)


# Its end, and the end of what it started


def test_a_child_that_takes_too_long_is_stopped(marker: str) -> None:
    done = outcome(python(IDLE, marker), timeout_seconds=0.05)
    assert done.state == "timed_out"
    assert done.fault == "took longer than 0.05 s and was stopped"
    assert not living(marker)


def test_a_child_may_clean_up_on_sigterm() -> None:
    code = "signal.signal(signal.SIGTERM, lambda *_: os._exit(7))\nflood()"
    done = outcome(python(FLOOD + code), max_output=10, grace_seconds=FOREVER)
    assert done.returncode == 7


def test_a_child_that_ignores_sigterm_is_killed(marker: str) -> None:
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nflood()"
    done = outcome(python(FLOOD + code, marker), max_output=10, grace_seconds=0)
    assert done.returncode == -signal.SIGKILL
    assert not living(marker)


GRANDCHILD = """
import subprocess, sys
def grandchild(**how):
    code = (
        "import os, signal, sys;"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "os.write(int(sys.argv[2]), b'.');"
        "[signal.pause() for _ in iter(int, 1)]"
    )
    import os
    ready, write = os.pipe()
    argv = [sys.executable, "-I", "-S", "-c", code, sys.argv[1], str(write)]
    subprocess.Popen(argv, pass_fds=[write], **how)
    os.read(ready, 1)
"""


def test_descendants_that_hold_the_pipes_are_killed(marker: str) -> None:
    done = outcome(python(GRANDCHILD + "grandchild()\nprint('done')", marker))
    assert (done.state, done.returncode, done.stdout) == ("exited", 0, b"done\n")
    assert all_die(marker)


def test_descendants_without_pipes_are_killed_too(marker: str) -> None:
    quiet = "grandchild(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
    assert outcome(python(GRANDCHILD + quiet, marker)).returncode == 0
    assert all_die(marker)


def test_a_stopped_child_takes_its_own_children_with_it(marker: str) -> None:
    done = outcome(python(GRANDCHILD + "grandchild()" + FLOOD + "flood()", marker), max_output=10)
    assert done.state == "too_much_output"
    assert all_die(marker)


@pytest.mark.parametrize("how", ["", "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"])
def test_one_that_left_the_group_is_killed_too(marker: str, how: str) -> None:
    code = GRANDCHILD + f"grandchild(start_new_session=True, {how})\nprint('done')"
    done = outcome(python(code, marker))
    assert (done.state, done.stdout) == ("exited", b"done\n")
    assert all_die(marker)


def test_one_that_left_the_group_of_a_stopped_child_is_killed_too(marker: str) -> None:
    code = GRANDCHILD + "grandchild(start_new_session=True)" + FLOOD + "flood()"
    assert outcome(python(code, marker), max_output=10).state == "too_much_output"
    assert all_die(marker)


def test_processes_of_other_runs_survive(marker: str) -> None:
    code = GRANDCHILD + "grandchild(start_new_session=True, env={'ASSAY_CHILD': 'other'})"
    outcome(python(code, marker))
    (other,) = living(marker)
    os.kill(other, signal.SIGKILL)
    assert all_die(marker)


def test_a_hidden_descendant_that_holds_the_pipes_does_not_block_us(marker: str) -> None:
    code = GRANDCHILD + "grandchild(start_new_session=True, env={})\nprint('done')"
    done = outcome(python(code, marker))
    (escaped,) = living(marker)
    os.kill(escaped, signal.SIGKILL)
    assert (done.state, done.stdout) == ("exited", b"done\n")
    assert all_die(marker)


def test_output_that_a_grandchild_passes_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent exits at once; the grandchild still has the text to write, then ends too."""
    monkeypatch.setattr(child, "LINGER_SECONDS", FOREVER)
    code = """
    import os
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent: pass
        os.write(1, b"passed on")
    """
    assert outcome(python(code)).stdout == b"passed on"


# Cancellation


def ready_pipe(folder: Path) -> Path:
    """A named pipe: a reader waits until something was written."""
    pipe = folder / "ready"
    os.mkfifo(pipe)
    return pipe


STUBBORN = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[2], "w").close()
while True: signal.pause()
"""


async def cancelled(argv: list[str], pipe: Path, times: int = 1, **limits: Any) -> None:
    work = asyncio.create_task(here(argv, **limits))
    await asyncio.to_thread(pipe.read_bytes)
    for _ in range(times):
        work.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await work


def test_a_cancelled_run_leaves_nothing(tmp_path: Path, marker: str) -> None:
    pipe = ready_pipe(tmp_path)
    code = GRANDCHILD + "import signal\ngrandchild()" + STUBBORN
    guarded(cancelled(python(code, marker, str(pipe)), pipe, grace_seconds=0))
    assert all_die(marker)


def test_a_second_cancellation_cuts_the_grace(tmp_path: Path, marker: str) -> None:
    pipe = ready_pipe(tmp_path)
    argv = python("import signal, sys\n" + STUBBORN, marker, str(pipe))
    guarded(cancelled(argv, pipe, times=2, grace_seconds=FOREVER))
    assert not living(marker)


@pytest.mark.parametrize("steps", range(6))
def test_a_run_can_be_cancelled_while_it_starts(marker: str, steps: int) -> None:
    async def hasty() -> None:
        work = asyncio.create_task(here(python(IDLE, marker)))
        for _ in range(steps):
            await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    guarded(hasty())
    assert not living(marker)


def test_processes_that_a_child_starts_at_once_are_killed(tmp_path: Path, marker: str) -> None:
    pipe = ready_pipe(tmp_path)
    code = GRANDCHILD + "import signal\ngrandchild()" + STUBBORN

    async def hasty() -> None:
        work = asyncio.create_task(here(python(code, marker, str(pipe)), grace_seconds=0))
        while not living(marker):
            await asyncio.sleep(0)
        pipe.read_bytes()  # this blocks the event loop
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    guarded(hasty())
    assert all_die(marker)


# What cannot be started


@pytest.mark.parametrize("limits", [{}, {"max_memory_mb": 500}])
def test_a_missing_program_is_named(limits: dict[str, Any]) -> None:
    done = outcome(["no-such-program", "x"], **limits)
    assert (done.state, done.returncode) == ("not_started", None)
    assert done.fault == "the program 'no-such-program' was not found on PATH"


def test_a_program_named_by_its_path_is_looked_for_in_the_childs_folder(tmp_path: Path) -> None:
    script = tmp_path / "judge"
    script.write_text("#!/bin/sh\necho here\n")
    script.chmod(0o755)
    done = guarded(run(["./judge"], cwd=str(tmp_path), env={}, limits=Limits()))
    assert done.stdout == b"here\n"
    done = guarded(run(["./other"], cwd=str(tmp_path), env={}, limits=Limits()))
    assert done.fault == f"the program './other' does not exist in the folder {str(tmp_path)!r}"


def test_a_file_that_is_not_executable_is_named(tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text("print(1)\n")
    done = guarded(run(["./judge.py"], cwd=str(tmp_path), env={}, limits=Limits()))
    assert done.fault == "the program './judge.py' is not executable"


def test_a_file_that_is_not_a_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "judge").write_text("no #! line\n")
    (tmp_path / "judge").chmod(0o755)
    done = guarded(run(["./judge"], cwd=str(tmp_path), env={}, limits=Limits()))
    assert done.state == "not_started"
    assert "'./judge' could not be started" in done.fault
    limits = Limits(max_memory_mb=500)
    done = guarded(run(["./judge"], cwd=str(tmp_path), env={}, limits=limits))
    assert done.returncode == 1
    assert b"'./judge' could not be started within its limits" in done.stderr_tail


@pytest.mark.parametrize("name", ["gone", "file"])
def test_a_folder_that_does_not_exist_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / name)
    done = guarded(run(["sh"], cwd=folder, env={}, limits=Limits()))
    assert done.fault == f"the working directory {folder!r} does not exist"


def test_an_argument_that_no_system_can_pass_is_a_fault() -> None:
    done = outcome(["sh", "\0"])
    assert done.state == "not_started"
    assert "null byte" in done.fault


# Memory and processor time


def test_more_memory_than_the_limit_is_refused() -> None:
    argv = python("x = bytearray(400 * 1024 * 1024); print('done')")
    done = outcome(argv, max_memory_mb=200)
    assert done.returncode == 1
    assert b"MemoryError" in done.stderr_tail
    assert outcome(argv, max_memory_mb=4000).stdout == b"done\n"


def test_more_processor_time_than_the_limit_is_refused() -> None:
    done = outcome(python("while True: pass"), max_cpu_seconds=0.5)
    assert done.returncode == -signal.SIGXCPU
    assert done.fault == "used more than 1 s of processor time"


def test_limits_leave_everything_else_of_the_child_alone(tmp_path: Path, marker: str) -> None:
    code = """
    import os, sys
    print(sys.argv[1:], sys.stdin.read(), os.getcwd(), os.environ["MINE"])
    """
    # Python itself ignores SIGPIPE, so the look at the signals is left to the shell.
    argv = ["sh", "-c", 'grep SigIgn /proc/self/status; cat; pwd; echo "$MINE" "$@"', "sh", marker]
    outputs = []
    for limits in (Limits(), Limits(max_memory_mb=2000, max_cpu_seconds=100)):
        env = {"PATH": os.defpath, "MINE": "1"}
        for command in (argv, python(code, "a b", "-c")):
            done = guarded(run(command, stdin=b"in\n", cwd=str(tmp_path), env=env, limits=limits))
            assert done.fault == ""
            outputs.append(done.stdout)
    assert outputs[:2] == outputs[2:]


def test_a_limit_above_the_system_limit_becomes_the_system_limit() -> None:
    inner = python("import resource as r; print(r.getrlimit(r.RLIMIT_CPU))")
    wrapped = child._limited(inner, Limits(max_cpu_seconds=100))
    code = "import os, resource as r; r.setrlimit(r.RLIMIT_CPU, (50, 50));"
    code += f"os.execv({wrapped[0]!r}, {wrapped!r})"
    assert outcome(python(code)).stdout == b"(50, 50)\n"


def test_limits_that_cannot_be_set_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Windows:
        name = "nt"
        path = os.path

    monkeypatch.setattr(child, "os", Windows())
    done = outcome(["sh"], max_memory_mb=100)
    assert done.state == "not_started"
    assert done.fault == "memory and processor limits cannot be set on Windows"


@pytest.mark.parametrize(
    ("stderr", "quoted"),
    [
        (b"", "it failed"),
        (b"\n  \n", "it failed"),
        (b"only line\n", "it failed; its stderr ends with: only line"),
        (b"a\n\n  b  c\n", "it failed; its stderr ends with: a b c"),
        (b"x" * 500 + b"\nKeyError: 'city'\n", "xx KeyError: 'city'"),
        (b"before\nValueError: " + b"y" * 500 + b" end\n", "ends with: ValueError: yy"),
        (b"before\nValueError: " + b"y" * 500 + b" end\n", "y end"),
    ],
)
def test_last_line_of_stderr_is_kept(stderr: bytes, quoted: str) -> None:
    message = FinishedProcess("exited", 1, stderr_tail=stderr).explained("it failed")
    assert quoted in message
    assert len(message) <= len("it failed; its stderr ends with: ") + child.MAX_QUOTED
    assert message.isprintable()
