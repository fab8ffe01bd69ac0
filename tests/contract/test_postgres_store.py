"""The store in PostgreSQL holds what the port promises, and says what a server may do to it."""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from assay.errors import CommitInDoubt, RunHeld, StoreError
from assay.model.run import TrialRecord
from assay.ports import Store
from assay.registry import stores
from assay.service.store import open_store as project_store
from assay.settings import Config, Settings
from assay.stores.migrating import scripts
from assay.stores.postgres import open_store
from assay.stores.postgres_server import PostgresServer
from assay.stores.postgres_store import PostgresStore, migrate
from assay.stores.sql import TRIAL_COLUMNS
from assay.testing.stores import SECONDS, StoreConformance, make_run, make_trial, saved
from assay.testing.test_cases import TestCaseConformance, added, new_case
from contract.case_model import compare
from contract.case_processes import lose_nothing, outlive_kill_9
from contract.postgres import Server
from contract.rest_model import compare_requests

WRONG = "not-the-password"


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    url = postgres.new_database()
    yield url
    postgres.give_back(url)


class OnPostgres:
    """Each test has a database of its own."""

    @pytest.fixture(autouse=True)
    def _database(self, postgres: Server) -> Iterator[None]:
        self.url = postgres.new_store()
        yield
        postgres.give_back_store(self.url)

    def make_store(self, folder: Path) -> Store:
        return PostgresStore(self.url)


class TestPostgresStore(OnPostgres, StoreConformance):
    pass


class TestPostgresTestCases(OnPostgres, TestCaseConformance):
    pass


def test_both_schemes_open_it(url: str, tmp_path: Path) -> None:
    for scheme in ("postgresql", "postgres"):
        with closing(stores.get(scheme)(url.replace("postgresql", scheme), tmp_path)) as store:
            assert store.runs(1) == []


def test_a_content_that_another_process_is_about_to_use_is_not_deleted(url: str) -> None:
    question = b'{"input":[]}'
    with closing(PostgresStore(url)) as store, psycopg.connect(url) as other:
        for run_id in ("run-1", "run-2"):
            store.begin(make_run(run_id))
        saved(store, make_trial(0, content=question))
        columns = ", ".join(TRIAL_COLUMNS[1:])
        other.execute(b"INSERT INTO content SELECT * FROM content ON CONFLICT DO NOTHING")
        other.execute(
            f"INSERT INTO trial (run_id, {columns}) SELECT 'run-2', {columns} FROM trial".encode()
        )
        with ThreadPoolExecutor() as pool:
            deleting = pool.submit(store.delete, "run-1")
            with suppress(TimeoutError):
                deleting.result(0.3)
            other.commit()
            deleting.result(SECONDS)
        assert [trial.content for trial in store.trials("run-2")] == [question]


@pytest.mark.parametrize("compared", [compare, compare_requests])
def test_it_answers_as_the_model_does(
    compared: Callable[[Callable[[], Store]], None], postgres: Server
) -> None:
    used: list[str] = []

    def fresh() -> Store:
        while used:
            postgres.give_back_store(used.pop())
        used.append(postgres.new_store())
        return PostgresStore(used[0])

    compared(fresh)
    postgres.give_back_store(used.pop())


# Other processes


def test_processes_lose_nothing(url: str) -> None:
    lose_nothing(url, lambda: PostgresStore(url))


@pytest.mark.parametrize("kill", range(2))
def test_acknowledged_writes_survive_kill_9(kill: int, url: str) -> None:
    outlive_kill_9(url, lambda: PostgresStore(url), random.Random(kill).randrange(1, 200))


def test_processes_may_open_a_new_database_at_once(url: str) -> None:
    opened: list[PostgresStore] = []
    with ThreadPoolExecutor(8) as pool:
        opened += pool.map(PostgresStore, [url] * 8)
    for i, store in enumerate(opened):
        store.begin(make_run(f"run-{i}"))
    assert len(opened[0].runs(10)) == 8
    for store in opened:
        store.close()


def test_of_two_processes_one_begins_a_run(url: str) -> None:
    with closing(PostgresStore(url)) as one, closing(PostgresStore(url)) as other:
        one.begin(make_run())
        with pytest.raises(StoreError, match="a run 'run-1' already exists"):
            other.begin(make_run())


def test_concurrent_saves_of_the_same_trials_do_not_deadlock(url: str) -> None:
    with closing(PostgresStore(url)) as one, closing(PostgresStore(url)) as other:
        one.begin(make_run())
        places = list(range(300))
        futures = [one.save(make_trial(i)) for i in places]
        futures += [other.save(make_trial(i, outcome="failed")) for i in reversed(places)]
        assert [future.exception(SECONDS) for future in futures] == [None] * 600
        assert [trial.position for trial in one.trials("run-1")] == places


def test_a_lease_ends_with_its_process(url: str) -> None:
    code = (
        "import sys; from assay.stores.postgres_store import PostgresStore\n"
        "with PostgresStore(sys.argv[1]).lease('run-1'):\n"
        "    print('held', flush=True)\n    sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with closing(PostgresStore(url)) as store:
        assert store.held("run-1")
        assert not store.held("run-2")
        process.kill()
        process.communicate(timeout=SECONDS)
        deadline = time.monotonic() + SECONDS
        while store.held("run-1"):  # the server takes a moment to notice
            assert time.monotonic() < deadline


# What a server may do


def test_an_unreachable_server_is_reported(postgres: Server) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"postgresql://me:{WRONG}@127.0.0.1:{free.getsockname()[1]}/db"
        with pytest.raises(StoreError, match="the server cannot be reached; check host") as caught:
            PostgresStore(url)
    assert WRONG not in str(caught.value)
    assert "postgresql://me@127.0.0.1:" in str(caught.value)


def test_a_wrong_password_is_reported_and_not_shown(postgres: Server) -> None:
    for user in ("postgres", "nobody-knows"):
        with pytest.raises(StoreError, match="refuses the user or the password") as caught:
            PostgresStore(postgres.url("postgres", user, WRONG))
        text = "".join(traceback.format_exception(caught.value))
        assert WRONG not in text.replace(__file__, "")


def test_a_missing_password_is_reported(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    url = f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres"
    with pytest.raises(StoreError, match="asks for a password; set PGPASSWORD or ASSAY_STORE"):
        PostgresStore(url)


@pytest.mark.parametrize(
    "url", ["postgresql://me:pa%zzword@host/db", "postgresql://me:pa ss@h:x:y/d"]
)
def test_a_broken_url_is_reported_and_not_shown(url: str) -> None:
    with pytest.raises(StoreError, match="the URL of the store is not a PostgreSQL URL") as caught:
        PostgresStore(url)
    assert "pa" not in "".join(traceback.format_exception_only(caught.value)).replace("as %25", "")


def test_a_missing_database_is_reported(postgres: Server) -> None:
    with pytest.raises(StoreError, match="the database does not exist; create it"):
        PostgresStore(postgres.url("nowhere"))


def test_a_newer_schema_is_left_unchanged(postgres: Server, url: str) -> None:
    PostgresStore(url).close()
    known = len(scripts("postgres"))
    postgres.sql(f"UPDATE assay_schema SET version = {known + 1}", url)
    message = f"has schema {known + 1}, and this version of Assay supports up to {known}; update"
    with pytest.raises(StoreError, match=message):
        PostgresStore(url)
    assert postgres.sql("SELECT version FROM assay_schema", url) == [(known + 1,)]


def test_the_database_of_another_program_is_left_unchanged(postgres: Server, url: str) -> None:
    postgres.sql("CREATE TABLE trial (verdict TEXT)", url)
    with pytest.raises(StoreError, match="it has tables of another program"):
        PostgresStore(url)
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    assert postgres.sql(tables, url) == [("trial",)]


def test_a_read_only_server_is_reported(postgres: Server, url: str) -> None:
    PostgresStore(url).close()
    name = url.rpartition("/")[2]
    postgres.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with closing(PostgresStore(url)) as store:
        assert store.runs(1) == []
        with pytest.raises(StoreError, match="it is read-only; name the primary server"):
            store.begin(make_run())


def test_a_user_without_privileges_is_reported(postgres: Server, url: str) -> None:
    postgres.sql(f"CREATE ROLE guest LOGIN PASSWORD '{WRONG}'")
    host = url.partition("@")[2]
    with pytest.raises(StoreError, match="the user may not do this; grant CREATE"):
        PostgresStore(f"postgresql://guest:{WRONG}@{host}")


FAULTS = {
    "53100": "the disk of the server is full; free some space",
    "53300": "the server has no connection left",
    "57P01": "the connection was lost",
    "XX001": "it is damaged",
    "42P01": "it is damaged, or its tables are not ours",
}


@pytest.mark.parametrize("code", FAULTS)
def test_server_errors_have_our_messages(code: str) -> None:
    server = PostgresServer("postgresql://me:secret@host/db", 1)
    fault = psycopg.errors.lookup(code)("no luck\nDETAIL: more")
    with pytest.raises(StoreError, match=f"{FAULTS[code]}.*no luck"), server.translating_errors():
        raise fault


def test_a_lock_of_another_process_is_reported(url: str) -> None:
    with closing(PostgresStore(url, lock_timeout=0.05)) as store, psycopg.connect(url) as other:
        store.begin(make_run())
        other.execute("LOCK TABLE trial IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreError, match="it is locked by another process"):
            store.save(make_trial(0)).result(SECONDS)
        other.rollback()
        saved(store, make_trial(0))


def test_a_server_that_comes_back_is_used_again(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url, retry_seconds=0)) as store:
        store.begin(make_run())
        saved(store, make_trial(0))
        (case,) = added(store.test_cases, new_case())
        left = store.trials("run-1")
        next(left)
        postgres.stop()
        try:
            with pytest.raises(StoreError, match="the server cannot be reached"):
                store.run("run-1")
            with pytest.raises(StoreError, match="the server cannot be reached"):
                store.save(make_trial(1)).result(SECONDS)
            with pytest.raises(StoreError, match="the server cannot be reached"):
                store.lease("run-1").__enter__()
        finally:
            postgres.start()
        saved(store, make_trial(2))
        assert list(store.finished("run-1")) == [(0, 0), (2, 0)]
        assert store.test_cases.get(case.id) == case
        left.close()  # type: ignore[attr-defined]


@contextmanager
def restarting(server: Server) -> Iterator[None]:
    """The server is killed, and comes back while the block is at work."""
    server.stop()
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(server.start)
        yield
        started.result()


def test_reads_and_writes_wait_for_a_server_that_restarts(
    postgres: Server,
    url: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with closing(PostgresStore(url)) as store, closing(PostgresStore(url)) as other:
        store.begin(make_run())
        saved(store, *(make_trial(i) for i in range(500)))
        with store.lease("run-1"):
            reading = store.trials("run-1")
            first = next(reading)
            with restarting(postgres):
                save = store.save(make_trial(500))
                assert store.run("run-1").status == "running"
                assert [first, *reading][:500] == [make_trial(i) for i in range(500)]
                save.result(SECONDS)
                (case,) = added(store.test_cases, new_case())
                store.put("key", {"a": 1})
                store.finish("run-1", "finished", "2026-01-31T12:05:00Z", {})
            assert other.held("run-1")
            with pytest.raises(RunHeld):
                other.lease("run-1").__enter__()
        assert not other.held("run-1")
        assert other.test_cases.get(case.id) == case
        assert other.run("run-1").status == "finished"
        assert len(list(other.finished("run-1"))) == 501
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_a_lease_waits_for_a_server_that_restarts(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store, restarting(postgres), store.lease("run-1"):
        assert store.held("run-1")


def test_waiting_for_an_unreachable_server_is_limited(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url, retry_seconds=0.2)) as store:
        store.begin(make_run())
        postgres.stop()
        try:
            for attempt in (store.baselines, lambda: store.save(make_trial(0)).result(SECONDS)):
                with pytest.raises(StoreError, match="the server cannot be reached"):
                    attempt()
        finally:
            postgres.start()
        saved(store, make_trial(0))


def test_rows_that_changed_while_the_server_restarted_are_refused(
    postgres: Server, url: str
) -> None:
    with closing(PostgresStore(url)) as store:
        store.begin(make_run())
        saved(store, *(make_trial(i) for i in range(1, 500)))
        reading = store.trials("run-1")
        for _ in range(200):
            next(reading)
        with restarting(postgres):
            saved(store, make_trial(0))
            with pytest.raises(StoreError, match="what was being read has changed"):
                next(reading)


def end_connection(postgres: Server, url: str, table: str) -> None:
    """The next insert into a table ends its connection at the commit, and only that one does."""
    postgres.sql(
        f"""
        CREATE SEQUENCE doubt;
        CREATE FUNCTION vanish() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('doubt') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER vanishing AFTER INSERT ON {table}
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION vanish()
        """,
        url,
    )


@pytest.mark.parametrize(("trials", "size"), [(2, 10), (50, 10), (3, 10_000_000)])
def test_trials_are_saved_again_when_the_server_goes_away_while_they_are_written(
    postgres: Server,
    url: str,
    trials: int,
    size: int,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with closing(PostgresStore(url)) as store, closing(psycopg.connect(url)) as other:
        store.begin(make_run())
        other.execute("LOCK TABLE trial IN ACCESS EXCLUSIVE MODE")
        save = store.save(*(make_trial(i, result=b"r" * size) for i in range(trials)))
        while not postgres.sql("SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert not save.done()
        with restarting(postgres):
            save.result(SECONDS)
        assert len(list(store.finished("run-1"))) == trials
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_trials_are_saved_again_when_their_commit_is_in_doubt(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store:
        store.begin(make_run())
        end_connection(postgres, url, "trial")
        saved(store, make_trial(0))
        assert list(store.finished("run-1")) == [(0, 0)]
    assert postgres.sql("SELECT last_value FROM doubt", url) == [(2,)]


def test_a_run_is_not_begun_again_when_its_commit_is_in_doubt(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store:
        end_connection(postgres, url, "run")
        with pytest.raises(CommitInDoubt, match="what was not acknowledged may be missing"):
            store.begin(make_run())
    assert postgres.sql("SELECT last_value FROM doubt", url) == [(1,)]


def end_leases(postgres: Server) -> None:
    holders = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks"
    postgres.sql(f"{holders} WHERE locktype = 'advisory'")


def test_a_lease_whose_connection_was_lost_is_taken_again(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store, closing(PostgresStore(url)) as other:
        store.begin(make_run())
        with store.lease("run-1"):
            end_leases(postgres)
            saved(store, make_trial(0))
            assert other.held("run-1")
        assert not other.held("run-1")


def test_whether_a_run_is_held_takes_its_lost_lease_again(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store, closing(PostgresStore(url)) as other:
        store.begin(make_run())
        with store.lease("run-1"):
            end_leases(postgres)
            assert not other.held("run-1")
            assert store.held("run-1")
            assert other.held("run-1")
            end_leases(postgres)
            with other.lease("run-1"):
                assert not store.held("run-1")
        assert not other.held("run-1")


def test_threads_that_take_a_lost_lease_again_do_not_disturb_each_other(
    postgres: Server, url: str
) -> None:
    with closing(PostgresStore(url)) as store, ThreadPoolExecutor(8) as pool:
        store.begin(make_run())
        with store.lease("run-1"):
            for _ in range(5):
                end_leases(postgres)
                assert all(pool.map(store.held, ["run-1"] * 8))


def test_a_run_that_another_process_finished_takes_nothing_more(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store, closing(PostgresStore(url)) as other:
        store.begin(make_run())
        with store.lease("run-1"):
            end_leases(postgres)
            with other.lease("run-1"):
                other.finish("run-1", "finished", "2026-01-31T12:05:00Z", {})
            for _ in range(2):
                with pytest.raises(StoreError, match="another process may be working on it"):
                    saved(store, make_trial(0))
        assert list(store.finished("run-1")) == []
        assert not other.held("run-1")


def test_a_starting_server_is_reported() -> None:
    server = PostgresServer("postgresql://me:secret@host/db", 1)
    fault = psycopg.OperationalError("failed: FATAL:  the database system is starting up")
    with pytest.raises(StoreError, match="starting or stopping"), server.translating_errors():
        raise fault


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such limit")
def test_a_server_that_vanishes_is_waited_for_half_a_minute(url: str) -> None:
    for more, limit in (("", 30_000), ("?tcp_user_timeout=5000", 5000)):
        connection = PostgresServer(url + more, 1).connect()
        with closing(connection), socket.socket(fileno=os.dup(connection.fileno())) as copy:
            assert copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == limit


def test_connection_parameters_of_the_url_apply(url: str) -> None:
    for more, name in (("", "assay"), ("?application_name=mine", "mine")):
        with closing(PostgresServer(url + more, 1).connect()) as connection:
            assert connection.execute("SHOW application_name").fetchone() == (name,)


def test_a_connection_that_the_server_ends_is_replaced(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store:
        store.begin(make_run())
        others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        postgres.sql(f"{others} WHERE datname = '{url.rpartition('/')[2]}'")
        saved(store, make_trial(0))
        assert len(list(store.trials("run-1"))) == 1


def test_a_run_whose_lease_was_lost_takes_nothing_more(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store, closing(PostgresStore(url)) as other:
        store.begin(make_run())
        store.begin(make_run("run-2"))
        with store.lease("run-1"):
            saved(store, make_trial(0))
            end_leases(postgres)
            with other.lease("run-1"):
                lost, kept = store.save(make_trial(1)), store.save(make_trial(1, run_id="run-2"))
                with pytest.raises(StoreError, match="the connection that held the run run-1"):
                    lost.result(SECONDS)
                kept.result(SECONDS)
                with pytest.raises(StoreError, match="another process may be working on it"):
                    store.finish("run-1", "finished", "2026-01-31T12:05:00Z", {})
                saved(other, make_trial(2))
        with store.lease("run-1"):
            saved(store, make_trial(3))
        assert list(store.finished("run-1")) == [(0, 0), (2, 0), (3, 0)]
        assert store.run("run-1").status == "running"


@pytest.mark.parametrize(
    "bad", [make_trial(2**70), make_trial(7, case_id="a\0"), make_trial(7, suite=None)]
)
def test_a_trial_that_cannot_be_stored_does_not_end_the_group(bad: TrialRecord, url: str) -> None:
    with closing(PostgresStore(url)) as store:
        store.begin(make_run())
        futures = [store.save(trial) for trial in (make_trial(0), bad, make_trial(1))]
        faults = [future.exception(SECONDS) for future in futures]
        assert faults[0] is faults[2] is None
        assert isinstance(faults[1], StoreError)
        assert "this cannot be stored" in str(faults[1])
        assert list(store.finished("run-1")) == [(0, 0), (1, 0)]


def test_trials_are_not_all_in_memory_at_once(url: str) -> None:
    with closing(PostgresStore(url)) as store:
        store.begin(make_run())
        store.save(*(make_trial(i, result=b"r" * 10_000) for i in range(3000))).result(SECONDS)
        tracemalloc.start()
        try:
            assert sum(1 for _ in store.trials("run-1")) == 3000
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 3000 * 10_000 / 2


def test_a_text_that_cannot_be_an_id_is_reported(url: str) -> None:
    with closing(PostgresStore(url)) as store, pytest.raises(StoreError):
        store.run("a\0")


# The schema


def columns(kind: str) -> list[tuple[str, str]]:
    found, table = [], ""
    for line in "\n".join(scripts(kind)).splitlines():
        if made := re.match(r"CREATE TABLE (\w+)", line):
            table = made[1]
            found.append((table, line.partition("-- ")[2]))
        elif column := re.match(r" +([a-z_]+) .*-- (.*)", line):
            found.append(
                (f"{table}.{column[1]}", column[2].replace("true", "1").replace("false", "0"))
            )
    return found


def test_it_has_the_tables_of_sqlite() -> None:
    own = [
        row for row in columns("postgres") if row[0].partition(".")[0] not in ("permit", "spending")
    ]
    assert own == columns("sqlite")


def test_permits_are_taken_from_a_server_that_restarts(postgres: Server, url: str) -> None:
    with closing(PostgresStore(url)) as store:
        assert store.permits.take("t", 1, 0.01) == 0
        with restarting(postgres):
            assert 80 < store.permits.take("t", 1, 0.01) <= 100


def test_all_processes_spend_one_budget(url: str) -> None:
    with closing(PostgresStore(url)) as store, closing(PostgresStore(url)) as other:
        assert store.permits.spend("run-1", 0.5, 2.0) == 2.5
        assert other.permits.spend("run-1", 0.25, 1.0) == 2.75
        assert store.permits.spend("run-1", 0.0) == 2.75
        assert store.permits.spend("run-1", 0.25, 3.0) == 3.25
        assert other.permits.spend("run-2", 0.0) == 0.0


def test_permits_are_slots_that_follow_each_other(url: str) -> None:
    with closing(PostgresStore(url)) as store, closing(PostgresStore(url)) as other:
        assert store.permits.take("t", 5, 0.01) == 0
        assert 400 < other.permits.take("t", 1, 0.01) <= 500
        assert 500 < store.permits.take("t", 0, 0.01) <= 600
        other.permits.hold("t", 100)
        assert 500 < store.permits.take("t", 0, 0.01) <= 600
        other.permits.hold("t", 5000)
        assert 4000 < store.permits.take("t", 0, 0.01) <= 5000
        assert store.permits.take("another", 1, 0.01) == 0


@pytest.mark.parametrize("schema", range(len(scripts("postgres")) + 1))
def test_every_schema_is_brought_to_the_newest(postgres: Server, url: str, schema: int) -> None:
    if schema:
        with psycopg.connect(url, autocommit=True) as connection:
            migrate(connection, "db", scripts("postgres")[:schema])
        run = "'run-1', '2026-01-31T12:00:00Z', 'running', 'echo', '{}', '{}', '{}', '[]'"
        postgres.sql(f"INSERT INTO run VALUES ({run})", url)
    with closing(PostgresStore(url)) as store:
        assert [run.id for run in store.runs(2)] == ["run-1"] * bool(schema)
        (case,) = added(store.test_cases, new_case("new", "y"))
        assert store.test_cases.page(9, tag="Y") == ([case], 1)


def test_a_migration_that_fails_changes_nothing(url: str) -> None:
    PostgresStore(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        more = ["CREATE TABLE note (text TEXT)", "CREATE TABLE run (again TEXT)"]
        with pytest.raises(psycopg.errors.DuplicateTable):
            migrate(connection, "db", [*scripts("postgres"), *more])
        assert connection.execute("SELECT to_regclass('note')").fetchone() == (None,)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "assay.stores.postgres_store", None)
    with pytest.raises(StoreError, match=r"needs psycopg .*pip install 'assay-evals\[postgres\]'"):
        open_store("postgresql://host/db")


def test_the_setting_says_how_long_a_server_is_tried_again(url: str, tmp_path: Path) -> None:
    settings = Settings(tmp_path, Config(store_retry_seconds=7))
    with closing(project_store(settings, url)) as store:
        assert getattr(store, "retry_seconds", None) == 7
