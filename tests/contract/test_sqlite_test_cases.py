"""Test cases in a file: other processes, older schemas, and what a page costs."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from assay.model.run import RunRecord, TrialRecord
from assay.stores.migrating import migrate, scripts
from assay.stores.sqlite import SqliteStore
from assay.testing.stores import make_run, make_trial, saved
from assay.testing.test_cases import NOON, SECONDS, added, changed, new_case
from contract.case_processes import lose_nothing, outlive_kill_9


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_processes_lose_nothing(file: Path) -> None:
    lose_nothing(f"sqlite:{file}", lambda: SqliteStore(file))


@pytest.mark.parametrize("kill", range(3))
def test_acknowledged_writes_survive_kill_9(kill: int, file: Path) -> None:
    point = random.Random(kill).randrange(1, 300)
    outlive_kill_9(f"sqlite:{file}", lambda: SqliteStore(file), point)


def test_test_cases_are_there_after_closing(file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        (case,) = added(store.test_cases, new_case("a", "x"))
        case = changed(store.test_cases, case.id, input="b")
    with closing(SqliteStore(file)) as store:
        assert store.test_cases.page(10, tag="X") == ([case], 1)
        assert store.test_cases.versions(case.id, 9).total == 2


# Older schemas


def journal(connection: sqlite3.Connection) -> None:
    """What a store of the first schema has in it."""
    run = ("run-1", "2026-01-31T12:00:00Z", "running", "echo", "{}", "{}", "{}", "[]")
    columns = ", ".join(RunRecord.__struct_fields__[: len(run)])
    connection.execute(f"INSERT INTO run ({columns}) VALUES ({', '.join('?' * len(run))})", run)
    row = ["run-1", 0, 0, "a.yaml", "case-0", "passed", 1.0, 1.0, None, None, "c0ffee"]
    row += [0, None, 1.0, 0, 0, 1, b"{}", b"{}"]
    columns = ", ".join(TrialRecord.__struct_fields__[: len(row)])
    insert = f"INSERT INTO trial ({columns}) VALUES ({', '.join('?' * len(row))})"
    connection.execute(insert, row)
    connection.execute("INSERT INTO baseline VALUES ('main', 'run-1')")
    connection.execute("INSERT INTO cache VALUES ('key', '{\"reply\": 1}')")


def edited(connection: sqlite3.Connection) -> None:
    """What the second schema added."""
    a_test_case(connection, "a", "old")


def indexed(connection: sqlite3.Connection) -> None:
    """The third schema had an index of the tags in the second; see `test_older_stores.py`."""
    a_test_case(connection, "b", "older")


def moved(connection: sqlite3.Connection) -> None:
    """The fourth schema has the history of baselines."""
    connection.execute("INSERT OR REPLACE INTO baseline_history VALUES ('main', 1, 'run-1')")


def scanned(connection: sqlite3.Connection) -> None:
    """The fifth schema has no index of tags."""


def with_contents(connection: sqlite3.Connection) -> None:
    """The sixth schema has contents of cases."""
    connection.execute("INSERT INTO content VALUES (0, x'c0', x'7b7d')")
    connection.execute("UPDATE trial SET content = x'c0'")


def grouped(connection: sqlite3.Connection) -> None:
    """The seventh schema has groups of runs."""
    connection.execute("UPDATE run SET group_id = 'group'")


def a_test_case(connection: sqlite3.Connection, case_id: str, tag: str) -> None:
    added = "INSERT INTO tag_set (folded, total) VALUES (?, 1) RETURNING number"
    ((tags,),) = connection.execute(added, (tag.encode(),)).fetchall()
    added = "INSERT INTO test_case (id, version, created_at, tag_set) VALUES (?, 1, 'then', ?)"
    number = connection.execute(added, (case_id, tags)).lastrowid
    added = "INSERT INTO test_case_version VALUES (?, 1, 'in', 'out', NULL, ?, 'then')"
    connection.execute(added, (number, f'["{tag}"]'))
    connection.execute("UPDATE test_case_count SET total = total + 1")


#: What was added with each schema, from the first.
CONTENTS: list[Callable[[sqlite3.Connection], None]] = [
    journal,
    edited,
    indexed,
    moved,
    scanned,
    with_contents,
    grouped,
]


@pytest.mark.parametrize("schema", range(len(scripts("sqlite")) + 1))
def test_every_schema_is_migrated_with_its_content(schema: int, file: Path) -> None:
    assert len(CONTENTS) == len(scripts("sqlite")), (
        "what does a store of the new schema have in it?"
    )
    if schema:
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            migrate(connection, "store.db", scripts("sqlite")[:schema])
            for fill in CONTENTS[:schema]:
                fill(connection)
    with closing(SqliteStore(file)) as store:
        if schema >= 1:
            assert [trial.case_id for trial in store.trials(store.baseline("main"))] == ["case-0"]
            contents = [trial.content for trial in store.trials("run-1")]
            assert contents == [b"{}" if schema >= 6 else b""]
            assert [run.group for run in store.runs(9)] == ["group" if schema >= 7 else None]
            assert store.get("key") == {"reply": 1}
            assert store.baseline_history("main") == ["run-1"]
        if schema >= 2:
            kept = ["a", "b"][: min(schema - 1, 2)]
            assert [case.id for case in store.test_cases.page(9, tag="OLD").test_cases] == kept
            assert store.test_cases.page(9).total == len(kept)
        store.begin(make_run("run-2"))
        saved(store, make_trial(0, run_id="run-2"))
        before = store.test_cases.page(9).total
        added(store.test_cases, new_case("new", "y"))
        assert store.test_cases.page(9).total == before + 1


# What a page costs: in steps of SQLite's machine, which are the same on every computer


def steps(store: SqliteStore, limit: int, skip: int = 0, tag: str | None = None) -> int:
    store.test_cases.page(limit, skip, tag)
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    with store._file.reading() as connection:
        connection.set_progress_handler(count, 1)
    store.test_cases.page(limit, skip, tag)
    with store._file.reading() as connection:
        connection.set_progress_handler(None, 0)
    return counted


def filled(file: Path, count: int) -> SqliteStore:
    """Every hundredth test case is rare; all have one of five tags."""
    store = SqliteStore(file)
    futures = [
        store.test_cases.add(
            new_case(str(i), f"common-{i % 5}", *(["rare"] if i % 100 == 0 else [])), NOON
        )
        for i in range(count)
    ]
    for future in futures:
        future.result(SECONDS)
    return store


def test_the_first_page_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    with (
        closing(filled(tmp_path / "few.db", 100)) as few,
        closing(filled(tmp_path / "many.db", 3000)) as many,
    ):
        assert steps(many, 50) <= 1.1 * steps(few, 50)
        for case in many.test_cases.page(1000).test_cases:
            many.test_cases.remove(case.id, NOON)
        assert steps(many, 50) <= 1.1 * steps(few, 50), "deleted test cases are stepped over"


def test_a_tag_is_sought_once_in_each_different_set_of_tags(tmp_path: Path) -> None:
    with (
        closing(filled(tmp_path / "few.db", 100)) as few,
        closing(filled(tmp_path / "many.db", 3000)) as many,
    ):
        assert many.test_cases.page(50, tag="RARE").total == 30
        assert steps(many, 50, tag="nothing") <= 1.1 * steps(few, 50, tag="nothing")


#: A few characters, so that many tags have parts in common: of one to four bytes in UTF-8, and
#: some that mean something to SQL or to patterns.
LETTERS = "aA\xdf\u03b1\u4e2d\U0001f600\U0010ffff\xff %_'\"*^-"


def test_any_part_of_a_tag_is_found(file: Path) -> None:
    chance = random.Random(7)
    with closing(SqliteStore(file)) as store:
        cases = store.test_cases
        tags = [
            tuple("".join(chance.choices(LETTERS, k=chance.randint(1, 30))) for _ in range(3))
            for _ in range(300)
        ]
        made = added(cases, *(new_case(str(i), *some) for i, some in enumerate(tags)))
        for i in range(0, 300, 3):
            changed(cases, made[i].id, tags=tags[i] if i % 2 else tags[i][:1])
        for i in range(1, 300, 3):
            cases.remove(made[i].id, NOON).result(SECONDS)
        live = [case.tags for case in cases.page(1000).test_cases]
        for _ in range(1000):
            text = chance.choice(chance.choice(tags))
            begin = chance.randrange(len(text))
            needle = text[begin : begin + chance.randint(1, 20)] + chance.choice(["", "", "a"])
            matching = sum(any(needle.casefold() in t.casefold() for t in some) for some in live)
            assert cases.page(1, tag=needle).total == matching, needle
