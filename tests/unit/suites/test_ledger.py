"""The regression ledger: locked cases never change, they are archived."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import assay
from assay.errors import EvalFileErrors, LedgerError, UsageError
from assay.service import eval_files, regressions
from assay.suites import ledger


def case(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"rg-get_weather-{number:03}",
        "description": f"regression — bug {number}",
        "difficulty": "regression",
        "createdAt": "2026-01-15T10:30:00Z",
        "bugRef": f"#{number}",
        "input": {"message": f"prompt {number}"},
        "expect": {"toolsCalled": ["get_weather"], "noToolErrors": True},
    } | changes


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "get_weather.regression.json"
    path.write_text(json.dumps([case(1), case(2), case(3)], indent=2))
    return path


def codes(file: Path) -> list[str]:
    return [p.code for p in eval_files.validate(file).problems]


def test_unlocked_cases_are_warned_about(file: Path) -> None:
    (suite,) = assay.load(file)
    assert [w.code for w in suite.warnings] == ["unlocked-regression"] * 3
    assert "assay regression lock" in suite.warnings[0].hint
    assert [w.line for w in suite.warnings] == [2, 18, 34]


def test_locking_silences_the_warning_and_is_idempotent(file: Path) -> None:
    assert ledger.lock(file) == [case(n)["id"] for n in (1, 2, 3)]
    before = ledger.lock_file(file).read_text()
    assert ledger.lock(file) == []
    assert ledger.lock_file(file).read_text() == before
    assert codes(file) == []


def test_layout_and_key_order_do_not_change_a_case(file: Path) -> None:
    ledger.lock(file)
    shuffled = [dict(reversed(case(n).items())) for n in (1, 2, 3)]
    file.write_text(json.dumps(shuffled))
    assert codes(file) == []


def test_changed_content_under_a_locked_id_is_an_error(file: Path) -> None:
    ledger.lock(file)
    file.write_text(json.dumps([case(1), case(2, bugRef="#99"), case(3)], indent=2))
    with pytest.raises(EvalFileErrors) as caught:
        assay.load(file)
    (problem,) = caught.value.problems
    assert problem.code == "regression-changed"
    assert "rg-get_weather-002" in problem.message
    assert "archive" in problem.hint
    assert problem.line == 18


def test_a_locked_case_that_is_gone_is_an_error(file: Path) -> None:
    ledger.lock(file)
    file.write_text(json.dumps([case(1), case(3)]))
    (problem,) = eval_files.validate(file).errors
    assert problem.code == "regression-gone"
    assert "rg-get_weather-002" in problem.message
    assert "archive" in problem.hint


@pytest.mark.parametrize("named", [".", "get_weather.regression.lock.json"])
def test_deleting_the_whole_file_does_not_hide_its_locked_cases(file: Path, named: str) -> None:
    ledger.lock(file)
    ledger.archive(file, "rg-get_weather-003")
    file.unlink()
    problems = eval_files.validate(named).problems
    lock = "get_weather.regression.lock.json"
    assert [(p.code, p.file, p.line, p.column) for p in problems] == [
        ("regression-gone", lock, 4, 5),
        ("regression-gone", lock, 5, 5),
    ]
    assert "rg-get_weather-001" in problems[0].message
    (listed,) = regressions.entries(named).values()
    assert [(entry.id[-3:], entry.status) for entry in listed] == [
        ("001", "gone"),
        ("002", "gone"),
        ("003", "archived"),
    ]
    with pytest.raises(LedgerError, match="is gone"):
        regressions.lock(named)


def test_a_broken_lock_of_a_file_that_is_gone_is_an_error(file: Path) -> None:
    file.unlink()
    ledger.lock_file(file).write_text("{}")
    assert [p.code for p in eval_files.validate(".").problems] == ["ledger-broken"]


def test_a_lock_without_cases_misses_no_file(file: Path) -> None:
    ledger.lock(file)
    for number in (1, 2, 3):
        ledger.archive(file, f"rg-get_weather-{number:03}")
    file.unlink()
    assert eval_files.validate(".").problems == ()


def test_lock_refuses_to_bless_a_changed_case(file: Path) -> None:
    ledger.lock(file)
    before = ledger.lock_file(file).read_text()
    file.write_text(json.dumps([case(1, bugRef="#99"), case(2), case(3), case(4)]))
    with pytest.raises(LedgerError, match="rg-get_weather-001"):
        ledger.lock(file)
    assert ledger.lock_file(file).read_text() == before


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("envelope", [False, True])
def test_archiving_moves_one_case_and_leaves_the_rest_as_it_was(
    file: Path, number: int, envelope: bool
) -> None:
    rows = ",\n".join("   " + json.dumps(case(n)) for n in (1, 2, 3))
    text = '{"metadata": {"toolName":   "get_weather"},\n "cases": [\n' + rows + "\n]}\n"
    file.write_text(text if envelope else f"[\n{rows}\n]\n")
    ledger.lock(file)
    target = ledger.archive(file, f"rg-get_weather-{number:03}")
    assert json.loads(target.read_text()) == [case(number)]
    left = [n for n in (1, 2, 3) if n != number]
    data = json.loads(file.read_text())
    assert (data["cases"] if envelope else data) == [case(n) for n in left]
    for n in left:
        assert f"   {json.dumps(case(n))}" in file.read_text()
    assert set(json.loads(ledger.lock_file(file).read_text())["cases"]) == {
        case(n)["id"] for n in left
    }
    assert codes(file) == []


def test_archiving_the_only_case_leaves_valid_json(file: Path) -> None:
    file.write_text(json.dumps([case(1)], indent=2))
    ledger.archive(file, "rg-get_weather-001")
    assert json.loads(file.read_text()) == []
    assert not list(file.parent.glob(".*"))


def test_archives_grow(file: Path) -> None:
    ledger.archive(file, "rg-get_weather-001")
    ledger.archive(file, "rg-get_weather-003")
    archived = json.loads(ledger.archive_file(file).read_text())
    assert [c["id"] for c in archived] == ["rg-get_weather-001", "rg-get_weather-003"]


def test_archiving_an_unknown_case_names_the_nearest(file: Path) -> None:
    with pytest.raises(LedgerError, match="did you mean 'rg-get_weather-00"):
        ledger.archive(file, "rg-get_weathr-001")


def test_archiving_twice_says_so(file: Path) -> None:
    ledger.archive(file, "rg-get_weather-001")
    with pytest.raises(LedgerError, match="archived already"):
        ledger.archive(file, "rg-get_weather-001")


def test_a_changed_case_is_not_archived(file: Path) -> None:
    ledger.lock(file)
    file.write_text(json.dumps([case(1, bugRef="#99"), case(2), case(3)]))
    with pytest.raises(LedgerError, match="restore it first"):
        ledger.archive(file, "rg-get_weather-001")
    assert not ledger.archive_file(file).exists()


def test_entries_tell_every_state(file: Path) -> None:
    ledger.lock(file)
    ledger.archive(file, "rg-get_weather-003")
    file.write_text(json.dumps([case(1, bugRef="#99"), case(4)]))
    states = {entry.id[-3:]: entry.status for entry in ledger.entries(file)}
    assert states == {"001": "changed", "004": "unlocked", "002": "gone", "003": "archived"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "json-syntax"),
        ("[]", "ledger-broken"),
        ('{"cases": {"a": 1}}', "ledger-broken"),
        ('{"cases": {}, "cases": {}}', "duplicate-key"),
    ],
)
def test_a_broken_lock_file_is_an_error(file: Path, text: str, code: str) -> None:
    ledger.lock_file(file).write_text(text)
    (problem,) = eval_files.validate(file).errors
    assert problem.code == code
    assert problem.file == "get_weather.regression.lock.json"


def test_a_failed_write_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.lock(file)
    before = ledger.lock_file(file).read_text()

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", refuse)
    file.write_text(json.dumps([case(1), case(2), case(3), case(4)]))
    with pytest.raises(LedgerError, match="disk full"):
        ledger.lock(file)
    assert ledger.lock_file(file).read_text() == before
    assert not list(file.parent.glob(".*"))


UNREADABLE = "/proc/self/mem"  # it opens, and breaks when it is read


@pytest.mark.skipif(not Path(UNREADABLE).exists(), reason="needs such a file")
@pytest.mark.parametrize("verb", [regressions.lock, regressions.entries])
@pytest.mark.parametrize("broken", ["t.regression.json", "get_weather.regression.lock.json"])
def test_a_file_that_breaks_while_it_is_read_is_a_problem(
    file: Path, verb: Callable[[str], object], broken: str
) -> None:
    file.with_name(broken).symlink_to(UNREADABLE)
    with pytest.raises(EvalFileErrors) as caught:
        verb(".")
    assert [(p.file, p.code) for p in caught.value.problems] == [(broken, "unreadable")]


# Adding


TODAY = date(2026, 3, 21)
BUG = ledger.Bug("Is it cold in Oslo?", {"responseContains": ["-4"]}, "sign was lost", "WX-212")


def added(number: int) -> dict[str, Any]:
    return {
        "id": f"rg-get_weather-{number:03}",
        "description": "regression — sign was lost",
        "difficulty": "regression",
        "createdAt": "2026-03-21",
        "bugRef": "WX-212",
        "input": {"message": "Is it cold in Oslo?"},
        "expect": {"responseContains": ["-4"]},
    }


def test_adding_appends_a_locked_case_with_the_next_number(file: Path) -> None:
    ledger.lock(file)
    ledger.archive(file, "rg-get_weather-003")
    before = file.read_text()
    assert ledger.add(file, BUG, TODAY) == "rg-get_weather-004"
    assert json.loads(file.read_text()) == [case(1), case(2), added(4)]
    assert file.read_text().startswith(before.rstrip("]\n"))
    assert codes(file) == []


def test_none_is_lost_of_cases_that_are_added_at_once(file: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        bugs = [replace(BUG, bug_ref=f"WX-{number}") for number in range(8)]
        added = list(pool.map(lambda bug: ledger.add(file, bug, TODAY), bugs))
    assert sorted(added) == [f"rg-get_weather-{number:03}" for number in range(4, 12)]
    assert {e.id for e in ledger.entries(file) if e.status == "locked"} == set(added)


def test_nobody_waits_for_ever_for_another_who_changes_a_ledger(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "LOCK_TIMEOUT_SECONDS", 0.0)
    before = file.read_text()
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        with pytest.raises(LedgerError, match="another process"):
            ledger.add(file, BUG, TODAY)
    finally:
        os.close(folder)
    assert file.read_text() == before
    assert ledger.add(file, BUG, TODAY) == "rg-get_weather-004"


def test_adding_locks_no_other_case(file: Path) -> None:
    ledger.add(file, BUG, TODAY)
    assert codes(file) == ["unlocked-regression"] * 3
    assert list(json.loads(ledger.lock_file(file).read_text())["cases"]) == ["rg-get_weather-004"]


def test_adding_makes_the_file(file: Path) -> None:
    file.unlink()
    assert regressions.add(".", "get_weather", BUG, TODAY) == (file, "rg-get_weather-001")
    assert file.read_text() == json.dumps([added(1)], indent=2, ensure_ascii=False) + "\n"
    assert codes(file) == []
    other = replace(BUG, bug_ref="WX-213")
    assert regressions.add(".", "get_weather", other, TODAY)[1] == "rg-get_weather-002"
    assert file.read_text().count("\n  {\n") == 2
    assert not list(file.parent.glob(".*"))


@pytest.mark.parametrize(
    ("content", "identity"),
    [
        ({"metadata": {"toolName": "a.b"}, "cases": []}, "rg-a.b-001"),
        ([case(1), case(2, id="rg-get_weathers-900")], "rg-get_weather-002"),
        ([case(1, id="rg-get_weather-1000"), case(2)], "rg-get_weather-1001"),
        ([case(1, id=f"rg-get_weather-{'9' * 5000}"), case(2)], "rg-get_weather-003"),
    ],
)
def test_the_id_names_the_tool_and_the_next_number(file: Path, content: Any, identity: str) -> None:
    file.write_text(json.dumps(content))
    assert ledger.add(file, BUG, TODAY) == identity
    assert "error" not in {p.severity for p in eval_files.validate(file).problems}


@pytest.mark.parametrize("said", ["regression — x", "regression —x", "  x ", "regression — x\n"])
def test_the_description_begins_as_it_should(file: Path, said: str) -> None:
    ledger.add(file, replace(BUG, description=said), TODAY)
    assert json.loads(file.read_text())[-1]["description"] == "regression — x"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"bug_ref": " "}, "bugRef"),
        ({"prompt": ""}, "message"),
        ({"prompt": "{{seed:a}}"}, "seed:a"),
        ({"prompt": "\ud800"}, "surrogate"),
        ({"description": "regression — "}, "has no description"),
        ({"expect": {}}, "asserts nothing"),
        ({"expect": {"responseNonEmpty": False}}, "asserts nothing"),
        ({"expect": {"toolCalled": ["a"]}}, "toolCalled"),
        ({"expect": {"responseContains": ["{{snapshot:x}}"]}}, "snapshot-token"),
        ({"expect": {"maxLatencyMs": float("nan")}}, "cannot be written as JSON"),
        ({"expect": {"responseContains": {"a"}}}, "cannot be written as JSON"),
    ],
)
def test_a_case_that_would_not_load_is_not_added(
    file: Path, changes: dict[str, Any], told: str
) -> None:
    before = file.read_text()
    with pytest.raises((LedgerError, EvalFileErrors)) as caught:
        ledger.add(file, replace(BUG, **changes), TODAY)
    assert told in str(caught.value)
    assert file.read_text() == before
    assert not ledger.lock_file(file).exists()


def test_nothing_is_added_while_a_locked_case_is_changed_or_gone(file: Path) -> None:
    ledger.lock(file)
    lock = ledger.lock_file(file).read_text()
    for cases in ([case(1, bugRef="#99"), case(2), case(3)], [case(1)]):
        file.write_text(json.dumps(cases))
        with pytest.raises(LedgerError, match="archive"):
            regressions.add(".", "get_weather", BUG, TODAY)
        assert json.loads(file.read_text()) == cases
    file.unlink()
    with pytest.raises(LedgerError, match="is gone"):
        regressions.add(".", "get_weather", BUG, TODAY)
    assert ledger.lock_file(file).read_text() == lock


@pytest.mark.parametrize("text", ["", "[", "{}", '{"cases": 3}', "[3]", '[{"id": "x"}]', "null"])
def test_nothing_is_added_to_a_file_that_does_not_load(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(EvalFileErrors):
        regressions.add(".", "get_weather", BUG, TODAY)
    assert file.read_text() == text


@pytest.mark.parametrize("tool", ["", ".", "..", "../x", "a/b", "a\\b", "a b", "a\0b", "c:x", ".x"])
def test_a_tool_is_named_like_a_file(file: Path, tool: str) -> None:
    with pytest.raises(UsageError, match="is not a valid tool name"):
        regressions.add(".", tool, BUG, TODAY)


def test_a_failed_write_adds_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_text()

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(LedgerError, match="disk full"):
        ledger.add(file, BUG, TODAY)
    assert file.read_text() == before
    assert not list(file.parent.glob(".*"))


def test_a_folder_that_is_not_there_is_told(file: Path) -> None:
    with pytest.raises(LedgerError, match="cannot write"):
        regressions.add("nowhere", "get_weather", BUG, TODAY)
