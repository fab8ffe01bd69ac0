"""The command in a process of its own that begins with every module loaded.

Most of what a short command costs is importing. Here one process has imported everything and
forks for each command, which has its own arguments, folder, environment, streams and exit code,
and ends like any other. A test starts the command itself where starting is the point: closed
streams, signals, a damaged installation, or what Python reads when it begins.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

#: No command of a test takes this long; one that does hangs.
PATIENCE = 120.0
#: No command of a test needs a core for so long; unlike a time, others cannot make it longer.
CPU_SECONDS = 20


def assay(
    *arguments: str,
    cwd: str | Path = ".",
    env: Mapping[str, str] | None = None,
    typed: str = "",
    together: bool = False,
) -> subprocess.CompletedProcess[str]:
    """The command from start to end; `together` has errors among the output."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "out" if together else "err")]
        streams[0].write_text(typed, encoding="utf-8")
        order = {
            "arguments": arguments,
            "cwd": str(Path(cwd).resolve()),
            "env": dict(os.environ if env is None else env),
            "streams": [str(file) for file in streams],
        }
        code = _carried_out(order)
        out, err = (file.read_text(encoding="utf-8") for file in streams[1:])
    return subprocess.CompletedProcess(["assay", *arguments], code, out, "" if together else err)


def _carried_out(order: dict[str, Any]) -> int:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    late = threading.Timer(PATIENCE, os.killpg, (server.pid, signal.SIGKILL))
    late.start()
    try:
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
    finally:
        late.cancel()
    if not answer:
        _server.cache_clear()
        raise AssertionError(f"{order['arguments']} did not end")
    return int(answer)


@cache
def _server() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, __file__]
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    with server:
        assert server.stdin is not None
        server.stdin.close()  # it ends when nobody can order any more


def _serve() -> None:
    """Returns in the child, once for every order."""
    import assay

    for module in pkgutil.walk_packages(assay.__path__, "assay."):
        if not module.name.startswith(("assay.testing", "assay.server", "assay.__main__")):
            import_module(module.name)
    _build(import_module("assay.model.shape").Shape)
    gc.freeze()
    # The standard streams are for the commands.
    orders, codes = os.fdopen(os.dup(0)), os.dup(1)
    for line in orders:
        child = os.fork()
        if not child:
            os.close(orders.fileno())
            os.close(codes)
            return _become(json.loads(line))
        _, status = os.waitpid(child, 0)
        os.write(codes, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _build(shape: Any) -> None:
    """What validates a shape is otherwise built when it is first used."""
    for kind in shape.__subclasses__():
        kind.model_rebuild()
        _build(kind)


def _become(order: dict[str, Any]) -> None:
    """What a new process would begin with."""
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    # `out` is opened for both streams when they are one: each has its own place, so both append.
    flags = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_APPEND] * 2)
    for stream, (name, flag) in enumerate(zip(order["streams"], flags, strict=True)):
        opened = os.open(name, flag)
        os.dup2(opened, stream)
        os.close(opened)
    program = Path(sys.executable).with_name("assay")
    sys.argv = [str(program), *order["arguments"]]
    more = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [str(program.parent), *more]


if __name__ == "__main__":
    from assay.cli.main import main

    _serve()
    main()
