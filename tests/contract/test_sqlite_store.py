"""What a file on a disk adds: killed processes, other processes, and everything a disk does."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from assay.errors import RunHeld, StoreError
from assay.model.run import TrialRecord
from assay.stores import sqlite
from assay.stores.file_lease import FileLease
from assay.stores.group_commit import MAX_GROUP, GroupCommit, Write
from assay.stores.migrating import APPLICATION_ID, migrate, scripts
from assay.stores.sqlite import SqliteStore
from assay.testing.case_index import make_case, make_ended_run
from assay.testing.stores import SECONDS, make_run, make_trial, saved

WRITER = Path(__file__).with_name("store_writer.py")
KILLS = 50 if os.environ.get("ASSAY_TEST_PROFILE") == "full" else 4


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def writer(file: Path, run_id: str, count: int, *more: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(file), run_id, str(count), *map(str, more)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[str]) -> tuple[int, list[int], str]:
    """Exit code, acknowledged positions and error output of a writer."""
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, [int(line) for line in out.splitlines()], err


def query(file: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(sql).fetchall()


def sound(file: Path) -> bool:
    return query(file, "PRAGMA integrity_check") == [("ok",)]


def test_the_values_of_a_row_are_in_the_order_of_the_fields() -> None:
    """They are written into the columns of these names."""
    fields = TrialRecord.__struct_fields__
    numbered: dict[str, Any] = {name: number for number, name in enumerate(fields)}
    for name in ("result", "observation", "content"):
        numbered[name] = bytes([numbered[name]])
    assert _row_of(numbered) == tuple(numbered.values())
    nothing = numbered | dict.fromkeys(sqlite._NULLABLE) | {"content": b""}
    empty = [name for name, value in zip(fields, _row_of(nothing), strict=True) if value == b""]
    assert empty == list(sqlite._NULLABLE)


def _row_of(values: dict[str, Any]) -> tuple[Any, ...]:
    return sqlite._row(TrialRecord(**values), bytearray(values["content"]))


# Killed, and not alone


@pytest.mark.parametrize("kill", range(KILLS))
def test_acknowledged_writes_survive_kill_9(kill: int, file: Path) -> None:
    point = random.Random(kill).randrange(1, 3000)
    process = writer(file, "run-1", 1_000_000)
    assert process.stdout is not None
    first = [int(process.stdout.readline()) for _ in range(point)]
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split("\n")[:-1]  # the last line may be cut
    process.communicate(timeout=SECONDS)
    acknowledged = [*first, *map(int, rest)]

    store = SqliteStore(file)
    kept = list(store.trials("run-1"))
    assert {t.position for t in kept} >= set(acknowledged)
    assert kept == [make_trial(t.position, result=b"r" * 1000) for t in kept]
    assert store.run("run-1").status == "running"
    saved(store, make_trial(2_000_000))
    store.close()
    assert sound(file)


def test_every_commit_waits_for_the_disk(file: Path) -> None:
    """Power cannot be cut here; this is what SQLite's promise about it rests on."""
    with closing(SqliteStore(file)) as store:
        writer = store._file.writer
        assert writer.execute("PRAGMA synchronous").fetchone() == (2,)
        assert writer.execute("PRAGMA fullfsync").fetchone() == (1,)
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_processes_may_write_at_once_from_the_first_moment(file: Path) -> None:
    count, processes = 1500, 4
    names = [f"run-{i}" for i in range(processes)]
    running = [writer(file, name, count) for name in names]
    for process in running:
        assert ended(process) == (0, list(range(count)), "")
    with closing(SqliteStore(file)) as store:
        assert [run.id for run in store.runs(10)] == sorted(names, reverse=True)
        for name in names:
            assert list(store.finished(name)) == [(i, 0) for i in range(count)]
    assert sound(file)


def test_another_store_sees_acknowledged_writes(file: Path) -> None:
    with closing(SqliteStore(file)) as one, closing(SqliteStore(file)) as other:
        one.begin(make_run())
        for i in range(20):
            saved(one, make_trial(i))
            assert len(list(other.finished("run-1"))) == i + 1


def test_a_lock_of_another_process_is_reported(file: Path) -> None:
    store = SqliteStore(file, lock_timeout=0.05)
    store.begin(make_run())
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"store\.db: it is locked by another process"):
            store.save(make_trial(0)).result(SECONDS)
        assert store.run("run-1") == make_run(), "readers do not wait"
        with closing(SqliteStore(file, lock_timeout=0.05)) as reader:
            assert list(reader.trials("run-1")) == []
        other.execute("ROLLBACK")
    saved(store, make_trial(0))
    assert len(list(store.trials("run-1"))) == 1
    store.close()


def test_a_new_store_locked_by_another_process_is_reported(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="it is locked by another process"):
            SqliteStore(file, lock_timeout=0.05)


# Leases


def test_a_lease_file_is_next_to_the_store_and_removed_afterwards(file: Path) -> None:
    with closing(SqliteStore(file)) as store, closing(SqliteStore(file)) as other:
        folder = file.with_name("store.db.leases")
        with store.lease("run-1"):
            assert other.held("run-1")
            assert len(list(folder.iterdir())) == 1
        assert not other.held("run-1")
        assert list(folder.iterdir()) == []


def test_a_lease_ends_with_its_process(file: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from assay.stores.sqlite import SqliteStore\n"
        "with SqliteStore(Path(sys.argv[1])).lease('run-1'):\n"
        "    print('held', flush=True)\n    sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with closing(SqliteStore(file)) as store:
        assert store.held("run-1")
        process.kill()
        process.communicate(timeout=SECONDS)
        assert not store.held("run-1")


def test_a_lease_is_on_the_file_that_others_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who held it before may remove the file between our opening and our locking it."""
    lease, times = FileLease(tmp_path, "run"), 0
    locked = lease._lock

    def removed_once() -> Any:
        nonlocal times
        stream = locked()
        times += 1
        if times == 1:
            lease._file.unlink()
        return stream

    monkeypatch.setattr(lease, "_lock", removed_once)
    with lease:
        assert times == 2
        with pytest.raises(RunHeld), FileLease(tmp_path, "run"):
            pass
    with FileLease(tmp_path, "run"):
        pass


# The disk


def test_a_folder_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("I am a file")
    with pytest.raises(
        StoreError, match=r"the store cannot be created: .*(File exists|Not a directory)"
    ):
        SqliteStore(tmp_path / "folder" / "store.db")


def test_a_file_that_is_a_folder_is_reported(file: Path) -> None:
    file.mkdir()
    with pytest.raises(StoreError, match="it cannot be opened"):
        SqliteStore(file)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that others may read and only we may write; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
        os.chmod(name, 0o755)


def test_a_read_only_folder_is_reported(shared: Path) -> None:
    shared.chmod(0o555)
    code, acknowledged, output = ended(writer(shared / "store.db", "run-1", 10, "--as-nobody"))
    assert (code, acknowledged) == (1, [])
    assert output.startswith("store-failed: ")
    assert "it cannot be opened; check its folder and its permissions" in output
    assert "Traceback" not in output
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_store_in_a_read_only_folder_is_left_unchanged(journal: str, shared: Path) -> None:
    file = shared / "store.db"
    with closing(SqliteStore(file)) as store:
        store.begin(make_run())
    query(file, f"PRAGMA journal_mode = {journal}")
    before = file.read_bytes()
    file.chmod(0o444)
    shared.chmod(0o555)
    as_for_a_lock = "--lock-timeout", 10 * SECONDS  # it does not wait that long
    code, acknowledged, output = ended(writer(file, "run-2", 10, "--as-nobody", *as_for_a_lock))
    assert (code, acknowledged) == (1, [])
    assert "store-failed: " in output
    assert "permissions" in output or "read-only" in output
    assert file.read_bytes() == before


@pytest.mark.parametrize("room", [1, 1_000_000, 2_000_000, 4_000_000])
def test_a_file_size_limit_is_reported_and_acknowledged_writes_are_kept(
    room: int, file: Path
) -> None:
    code, acknowledged, output = ended(writer(file, "run-1", 100_000, "--max-file-bytes", room))
    assert code == 1
    assert output.startswith("store-failed: ")
    assert "a limit on the size of files was reached" in output
    assert "Traceback" not in output
    assert bool(acknowledged) == (room > 1)
    with closing(SqliteStore(file)) as store:
        if acknowledged:
            assert {key[0] for key in store.finished("run-1")} >= set(acknowledged)
        store.begin(make_run("run-2"))
    assert sound(file)


def test_a_full_disk_is_reported_and_writes_continue_when_there_is_space(file: Path) -> None:
    store = SqliteStore(file)
    store.begin(make_run())
    limit = store._file.writer  # SQLite answers this limit as it answers a full disk
    limit.execute("PRAGMA max_page_count = 20")
    futures = [store.save(make_trial(i, result=b"r" * 5000)) for i in range(50)]
    faults = [future.exception(SECONDS) for future in futures]
    assert any("the disk is full; free some space" in str(fault) for fault in faults)
    limit.execute("PRAGMA max_page_count = 100000")
    saved(store, make_trial(100))
    kept = [i for i, fault in enumerate(faults) if fault is None]
    assert [position for position, _ in store.finished("run-1")] == [*kept, 100]
    store.close()
    assert sound(file)


def test_keep_on_a_full_disk_raises(file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        store._file.writer.execute("PRAGMA max_page_count = 20")
        store.put("reply", {"text": "r" * 500_000})
        with pytest.raises(StoreError, match="the disk is full"):
            store.keep("pins", {"text": "r" * 500_000})
        assert store.get("reply") is store.get("pins") is None


# What is in the file already


def test_a_file_that_is_not_a_database_is_left_unchanged(file: Path) -> None:
    text = "dear diary, " * 1000
    file.write_text(text)
    with pytest.raises(StoreError, match=r"store\.db: it is not a SQLite database"):
        SqliteStore(file)
    assert file.read_text() == text


def test_the_database_of_another_program_is_left_unchanged(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE diary (page TEXT)")
    before = file.read_bytes()
    with pytest.raises(StoreError, match="a database of another program"):
        SqliteStore(file)
    assert file.read_bytes() == before


def test_a_newer_schema_is_left_unchanged(file: Path) -> None:
    SqliteStore(file).close()
    query(file, f"PRAGMA user_version = {len(scripts('sqlite')) + 1}")
    before = file.read_bytes()
    known = len(scripts("sqlite"))
    message = f"has schema {known + 1}, and this version of Assay supports up to {known}; update"
    with pytest.raises(StoreError, match=message):
        SqliteStore(file)
    assert file.read_bytes() == before


def filled(file: Path) -> int:
    """Makes a store of some size; its size in bytes."""
    with closing(SqliteStore(file)) as store:
        store.begin(make_run())
        saved(store, *(make_trial(i, result=b"r" * 1000) for i in range(500)))
    return file.stat().st_size


def read_all(file: Path) -> int:
    with closing(SqliteStore(file)) as store:
        return len([*store.trials("run-1"), *store.finished("run-1")])


@pytest.mark.parametrize("lost", [4096, 100_000, 500_000])
def test_a_truncated_file_is_reported(lost: int, file: Path) -> None:
    os.truncate(file, filled(file) - lost)
    with pytest.raises(StoreError, match="it is damaged"):
        read_all(file)


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_is_reported_or_read(seed: int, file: Path) -> None:
    size = filled(file)
    damage = random.Random(seed)
    with file.open("r+b") as handle:
        for _ in range(10):
            handle.seek(damage.randrange(size))
            handle.write(damage.randbytes(200))
    with suppress(StoreError):  # and never anything else
        read_all(file)


def test_damaged_json_is_reported(file: Path) -> None:
    filled(file)
    with closing(sqlite3.connect(file)) as other:
        other.execute("UPDATE run SET options = '{'")
        other.commit()
    with closing(SqliteStore(file)) as store, pytest.raises(StoreError, match="it is damaged"):
        store.run("run-1")


# Migrations


def migrated(file: Path, *more: str) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    migrate(connection, "store.db", [*scripts("sqlite"), *more])
    return connection


def test_a_store_is_brought_to_the_newest_schema_and_keeps_its_runs(file: Path) -> None:
    filled(file)
    with closing(migrated(file, "ALTER TABLE run ADD COLUMN note TEXT; -- why\n")) as connection:
        assert connection.execute("SELECT id, note FROM run").fetchall() == [("run-1", None)]
        assert connection.execute("PRAGMA user_version").fetchone() == (len(scripts("sqlite")) + 1,)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_a_migration_that_fails_changes_nothing(file: Path) -> None:
    filled(file)
    before = query(file, "SELECT sql FROM sqlite_master")
    with pytest.raises(sqlite3.OperationalError):
        migrated(file, "CREATE TABLE note (text TEXT);", "CREATE TABLE run (again TEXT);")
    assert query(file, "SELECT sql FROM sqlite_master") == before
    assert query(file, "PRAGMA user_version") == [(len(scripts("sqlite")),)]


# Reading and writing


def test_trials_are_read_in_the_order_of_their_key_without_sorting(file: Path) -> None:
    filled(file)
    order = "WHERE run_id = 'run-1' ORDER BY position, repeat"
    for columns in ("*", "position, repeat"):
        plan = query(file, f"EXPLAIN QUERY PLAN SELECT {columns} FROM trial {order}")
        assert "TEMP B-TREE" not in str(plan)


@pytest.mark.parametrize(
    "bad", [make_trial(2**70), make_trial(7, case_id="\ud800"), make_trial(7, suite=None)], ids=repr
)
def test_a_trial_that_cannot_be_stored_does_not_end_the_group(bad: TrialRecord, file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        store.begin(make_run())
        futures = [store.save(trial) for trial in (make_trial(0), bad, make_trial(1))]
        faults = [future.exception(SECONDS) for future in futures]
        assert faults[0] is faults[2] is None
        assert isinstance(faults[1], StoreError)
        assert "this cannot be stored" in str(faults[1])
        assert list(store.finished("run-1")) == [(0, 0), (1, 0)]


def test_writes_during_a_commit_form_one_group() -> None:
    begun, busy, groups = threading.Event(), threading.Event(), list[int]()

    def commit(group: list[Write[int]]) -> None:
        begun.set()
        busy.wait(SECONDS)
        groups.append(len(group))

    commits = GroupCommit(commit)
    first = commits.submit(0)
    assert begun.wait(SECONDS)  # the first is being written alone
    rest = [commits.submit(i) for i in range(MAX_GROUP + 500)]
    busy.set()
    commits.close()
    assert first.done()
    assert all(future.done() for future in rest)
    assert groups == [1, MAX_GROUP, 500]


def test_a_reply_is_on_disk_after_closing(file: Path) -> None:
    store = SqliteStore(file)
    for i in range(100):
        store.put(f"key-{i % 10}", {"reply": i})
    store.close()
    with closing(SqliteStore(file)) as again:
        assert [again.get(f"key-{i}") for i in range(10)] == [{"reply": 90 + i} for i in range(10)]


def test_a_program_that_forgets_to_close_its_store_ends(file: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from assay.stores.sqlite import SqliteStore;"
        "from assay.testing.stores import make_run;"
        "SqliteStore(Path(sys.argv[1])).begin(make_run())"
    )
    subprocess.run([sys.executable, "-c", code, str(file)], check=True, timeout=SECONDS)
    with closing(SqliteStore(file)) as store:
        assert store.run("run-1") == make_run()


def test_rows_of_a_run_that_is_deleted_amid_a_query_are_not_taken_for_those_of_another(
    tmp_path: Path,
) -> None:
    numbers = []
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        for run_id in ("run-1", "run-2"):
            assert store.case_index.add(make_ended_run(store, run_id), [make_case(0)])
            with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
                numbers += connection.execute("SELECT number FROM indexed_run").fetchall()
            store.delete(run_id)
    assert numbers == [(1,), (2,)]
