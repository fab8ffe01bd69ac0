"""The command in a process of its own that begins with every module loaded.

Most of what a short command costs is importing. Here one process has imported everything and
forks for each command, which has its own arguments, folder, environment, streams and exit code,
takes signals and ends like any other. A test starts the command itself where starting is the
point: closed streams, a damaged installation, what Python reads when it begins, or the name by
which others find the process.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Self, TextIO

from timeouts import WAIT_SECONDS

#: No command of a test needs a core for so long; unlike a time, others cannot make it longer.
CPU_SECONDS = 20


def assay(
    *arguments: str,
    cwd: str | Path = ".",
    env: Mapping[str, str] | None = None,
    typed: str = "",
    together: bool = False,
    memory: int = 0,
) -> subprocess.CompletedProcess[str]:
    """The command from start to end; `together` has errors among the output."""
    limits = {"seconds": CPU_SECONDS, "memory": memory}
    with Process(arguments, cwd, env, typed=typed, together=together, **limits) as process:
        out, err = process.communicate()
    assert process.returncode is not None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


#: The command for shells. It hands its arguments and streams over, and ends as the command does.
_FOR_SHELLS = """#!{python} -IS
import json, os, sys
from _socket import SCM_RIGHTS, SOL_SOCKET, socket
from struct import pack

order, told = os.pipe(), os.pipe()
env = dict(os.environ)
orders = socket(fileno=int(env.pop("PRELOADED_COMMAND")))
ends = pack("5i", order[0], told[1], 0, 1, 2)
orders.sendmsg([b"!"], [(SOL_SOCKET, SCM_RIGHTS, ends)])
os.close(told[1])
limits = {{"seconds": {seconds}}}
wanted = {{"arguments": sys.argv[1:], "cwd": os.getcwd(), "limits": limits, "env": env}}
os.write(order[1], json.dumps(wanted).encode())
os.close(order[1])
_, code = map(int, open(told[0]))
os._exit(code if code >= 0 else 128 - code)
"""


def shell(script: str, cwd: str | Path) -> subprocess.CompletedProcess[str]:
    """A script in which `assay` is the command in such a process; errors are among the output."""
    orders = _orders()
    path = [_folder_for_shells(), Path(sys.executable).parent, os.environ.get("PATH", "")]
    env = {"PATH": os.pathsep.join(map(str, path)), "PRELOADED_COMMAND": str(orders.fileno())}
    return subprocess.run(
        ["sh", "-c", script],
        cwd=cwd,
        env={**os.environ, **env},
        pass_fds=[orders.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


@cache
def _folder_for_shells() -> Path:
    """What comes first in the PATH of shells."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    command = Path(folder.name, "assay")
    command.write_text(_FOR_SHELLS.format(python=sys.executable, seconds=CPU_SECONDS))
    command.chmod(0o755)
    return command.parent


class Process:
    """A command at work, with what tests need of a `subprocess.Popen`."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        cwd: str | Path,
        env: Mapping[str, str] | None,
        *,
        typed: str = "",
        together: bool = False,
        **limits: int,
    ) -> None:
        self.args = ["assay", *arguments]
        self.returncode: int | None = None
        given, out, err, told, order = (os.pipe() for _ in range(5))
        streams = [given[0], out[1], out[1] if together else err[1]]
        socket.send_fds(_orders(), [b"!"], [order[0], told[1], *streams])
        for end in (order[0], told[1], given[0], out[1], err[1]):
            os.close(end)
        _write(given[1], typed)
        wanted = {"arguments": arguments, "cwd": str(Path(cwd).resolve()), "limits": limits}
        wanted["env"] = dict(os.environ if env is None else env)
        _write(order[1], json.dumps(wanted))
        self.stdout: TextIO | None = os.fdopen(out[0], encoding="utf-8")
        self.stderr: TextIO | None = os.fdopen(err[0], encoding="utf-8")
        self._told = os.fdopen(told[0], "rb", buffering=0)  # what was read early is not waited for
        self.pid = int(self._told.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None:
            self.kill()
        self.wait()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def wait(self, timeout: float = WAIT_SECONDS) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def communicate(self, timeout: float = WAIT_SECONDS) -> tuple[str, str]:
        """All that is still to be read of the output and of errors."""
        read = {"stdout": "", "stderr": ""}

        def drain(name: str, stream: TextIO) -> None:
            with stream:
                read[name] = stream.read()

        streams = {"stdout": self.stdout, "stderr": self.stderr}
        threads = [
            threading.Thread(target=drain, args=item, daemon=True)
            for item in streams.items()
            if item[1] is not None
        ]
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join(timeout)
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout)
        return read["stdout"], read["stderr"]

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it has ended, and nobody has asked yet
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def _write(pipe: int, text: str) -> None:
    with os.fdopen(pipe, "w", encoding="utf-8") as stream:
        stream.write(text)


@cache
def _orders() -> socket.socket:
    """Where orders go; the process at the other end is there until this one is closed."""
    here, there = socket.socketpair()
    command = [sys.executable, __file__, str(there.fileno())]
    with there:
        server = subprocess.Popen(command, pass_fds=[there.fileno()], start_new_session=True)
    atexit.register(_end, server, here)
    return here


def _end(server: subprocess.Popen[bytes], orders: socket.socket) -> None:
    orders.close()
    server.wait()


def _serve(orders: socket.socket) -> None:
    """Returns in the process of a command, once for each."""
    import assay

    for module in pkgutil.walk_packages(assay.__path__, "assay."):
        if not module.name.startswith(("assay.testing", "assay.__main__")):
            import_module(module.name)
    _build(import_module("assay.wire.shape").Shape)
    gc.freeze()
    while True:
        order, ends, _, _ = socket.recv_fds(orders, 1, 5)
        with suppress(ChildProcessError):  # those who kept commands that have ended
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not order:
            os._exit(0)
        if not os.fork():
            orders.close()
            return _keep(*ends)
        for end in ends:
            os.close(end)


def _keep(order: int, tell: int, *streams: int) -> None:
    """Tells the number of the command's process, and how that ended; returns in it."""
    with os.fdopen(order, encoding="utf-8") as stream:
        wanted = json.load(stream)
    child = os.fork()
    if not child:
        os.close(tell)
        return _become(wanted, streams)
    for end in streams:
        os.close(end)
    try:
        os.write(tell, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(tell, b"%d\n" % os.waitstatus_to_exitcode(status))
    finally:
        os._exit(0)


def _build(shape: Any) -> None:
    """What validates a shape is otherwise built when it is first used."""
    for kind in shape.__subclasses__():
        kind.model_rebuild()
        _build(kind)


def _become(order: dict[str, Any], streams: tuple[int, ...]) -> None:
    """What a new process would begin with."""
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in {*streams}:
        os.close(stream)
    program = Path(sys.executable).with_name("assay")
    sys.argv = [str(program), *order["arguments"]]
    more = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [str(program.parent), *more]
    _limit(**order["limits"])


def _limit(seconds: int = 0, memory: int = 0) -> None:
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
        if most:
            resource.setrlimit(kind, (most, most))


def _finish(main: Callable[[], None]) -> None:
    """Run the command to its end. Python would free every module, which takes ten times as long."""
    code = 0
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    from assay.cli.main import main

    _serve(socket.socket(fileno=int(sys.argv[1])))
    _finish(main)
