"""A baseline only moves forward: what `update` and `set` accept, refuse and keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import BaselineRefused, StoreError
from assay.service.baselines import baseline, set_baseline, update_baseline
from assay.service.history import compare, remove_runs, show
from assay.service.store import open_store
from assay.settings import Settings
from assay.stores.sqlite import SqliteStore
from unit.conftest import invoke


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("assay.yaml").touch()
    write(20)
    return tmp_path


def write(count: int, name: str = "s.eval.jsonl", **more: Any) -> None:
    cases = [{"id": f"c{i}", "input": f"c{i}", "expected_output": "good"} for i in range(count)]
    Path(name).write_text("".join(json.dumps(case | more) + "\n" for case in cases))


def run(*bad: str, path: str = ".", **options: Any) -> assay.Run:
    def answer(message: str) -> Any:
        if message in bad:
            return "bad"
        if f"!{message}" in bad:
            raise RuntimeError("down")
        return "good"

    return assay.run(path, target=answer, **options)


def stays(call: Callable[[], Any], *reasons: str) -> None:
    """The update changes nothing, for reasons that begin so."""
    before = baseline("main").run.id
    found = call()
    assert (found.moved, baseline("main").run.id) == (False, before)
    for reason, wanted in zip(found.reasons, reasons, strict=False):
        assert reason.startswith(wanted), found.reasons
    assert len(found.reasons) >= len(reasons)


def test_update_creates_a_baseline_and_moves_it() -> None:
    first = run("c0")
    assert update_baseline("main").moved
    second = run(baseline="main")
    found = update_baseline("main")
    assert (found.moved, baseline("main").run.id) == (True, second.id)
    assert baseline("main").history == (first.id, second.id)
    stays(lambda: update_baseline("main"), f"{second.id} is this baseline already")


def test_update_does_not_follow_a_decline() -> None:
    """Five cases are lost at every step: the first step is caught, and stays caught."""
    run()
    update_baseline("main")
    for step in (5, 10, 15):
        found = run(*(f"c{n}" for n in range(step)), baseline="main")
        assert (found.verdict, found.exit_code) == ("failed", 1)
        stays(
            lambda: update_baseline("main"),
            "its verdict against the baseline is failed",
            "the pass rate fell",
        )


def test_update_keeps_the_baseline_when_the_verdict_is_inconclusive() -> None:
    run()
    update_baseline("main")
    run("c1", baseline="main", confirm=0)
    stays(lambda: update_baseline("main"), "its verdict against the baseline is inconclusive")


def test_excused_and_accepted_losses_let_it_move() -> None:
    run()
    update_baseline("main")
    asked: list[str] = []

    def flaky(message: str) -> str:
        asked.append(message)
        return "bad" if message == "c3" and asked.count("c3") == 1 else "good"

    excused = assay.run(".", target=flaky, baseline="main")
    assert excused.comparison is not None
    assert [loss.status for loss in excused.comparison.losses] == ["excused"]
    assert update_baseline("main").moved
    Path("assay.yaml").write_text("accepted: [{case: c4, reason: gone}]\n")
    run("c4", baseline="main")
    assert update_baseline("main").moved


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"filter": "c1*"}, "it is partial: it asked only the cases of --filter 'c1*'"),
        ({"tag": ["a"]}, "it is partial: it asked only the cases of --tag a"),
        ({"limit": 3}, "it is partial: it asked only the cases of --limit 3"),
        ({"shard": "1/2"}, "it is partial: it asked only the cases of --shard 1/2"),
    ],
)
def test_partial_runs_are_refused(options: dict[str, Any], reason: str) -> None:
    write(20, tags=["a"])
    run()
    update_baseline("main")
    found = run(**options)
    stays(lambda: update_baseline("main", found.id), reason)
    for name in ("main", "new"):
        with pytest.raises(BaselineRefused) as refused:
            set_baseline(name, found.id)
        assert refused.value.reasons[0] == reason
    assert not update_baseline("new", found.id).moved
    set_baseline("main", found.id, accept=True)
    assert baseline("main").history == (found.id,)


def test_runs_that_did_not_finish_are_refused() -> None:
    run()
    update_baseline("main")
    found = run("c0", "c1", max_failures=1, workers=1)
    assert found.record.status == "interrupted"
    stays(lambda: update_baseline("main", found.id), "it is partial: it is interrupted")


def test_errored_cases_are_refused() -> None:
    """Otherwise the next failure of the case would not be a loss."""
    run()
    update_baseline("main")
    found = run("!c3", baseline="main")
    assert found.exit_code == 3
    stays(lambda: update_baseline("main"), "errored in one of the runs: s.eval.jsonl: c3")


def test_cases_that_still_exist_must_be_there() -> None:
    write(3, "other.eval.jsonl")
    run()
    update_baseline("main")
    run(path="s.eval.jsonl")
    reason = "it lacks cases of the baseline: other.eval.jsonl: c0, other.eval.jsonl: c1"
    stays(lambda: update_baseline("main"), reason)
    with pytest.raises(BaselineRefused, match="it lacks cases of the baseline"):
        set_baseline("main")
    write(1, "other.eval.jsonl")  # two cases were removed on purpose
    run(path="s.eval.jsonl")
    stays(lambda: update_baseline("main"), "it lacks cases of the baseline: other.eval.jsonl: c0")
    Path("other.eval.jsonl").write_text("{")
    stays(lambda: update_baseline("main"), "it lacks cases of the baseline")
    Path("other.eval.jsonl").unlink()
    assert update_baseline("main").moved


def test_an_older_run_does_not_become_the_baseline() -> None:
    older = run()
    newer = run()
    update_baseline("main", newer.id)
    stays(lambda: update_baseline("main", older.id), f"it is older than {newer.id}")
    assert set_baseline("main", older.id).id == older.id, "a person may decide so"


def test_an_update_does_not_undo_that_of_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    update_baseline("main")
    older, newer = run(), run()
    moved: list[bool] = []
    move = SqliteStore.move_baseline

    def late(store: SqliteStore, name: str, run_id: str, before: str | None) -> bool:
        if not moved:
            moved.append(move(store, name, newer.id, before))
        return move(store, name, run_id, before)

    monkeypatch.setattr(SqliteStore, "move_baseline", late)
    found = update_baseline("main", older.id)
    assert found.reasons == (f"it is older than {newer.id}, which is the baseline now",)
    assert (moved, baseline("main").run.id) == ([True], newer.id)


def test_set_refuses_lost_cases_with_the_list() -> None:
    run()
    set_baseline("main")
    worse = run("c1", "c2", baseline="main")
    with pytest.raises(BaselineRefused) as refused:
        set_baseline("main")
    assert refused.value.exit_code == 1
    why = "passed before, fails now: the failure repeats; 0 of 5 re-asks passed"
    assert list(refused.value.reasons) == [f"s.eval.jsonl: {name}: {why}" for name in ("c1", "c2")]
    set_baseline("main", accept=True)
    assert baseline("main").history == (worse.id,)


@pytest.mark.parametrize("command", [["set"], ["update", "--strict"]])
def test_a_refusal_prints_the_first_lost_cases(command: list[str]) -> None:
    write(60)
    run()
    set_baseline("main")
    run(*(f"c{n}" for n in range(30)), baseline="main")
    with pytest.raises(BaselineRefused) as refused:
        set_baseline("main")
    assert len(refused.value.reasons) == 30
    assert str(refused.value).endswith("; not asked again; and 10 more")
    done = invoke("baseline", *command, "main")
    assert done.exit_code == 1
    lines = done.stderr.splitlines()
    assert sum(line.startswith("  - ") for line in lines) == 20
    assert any(line.endswith("more; `assay compare --json` lists them all") for line in lines)


def test_a_slow_decline_is_a_warning() -> None:
    """Each step loses a case that is flaky at that moment; together they are a decline."""
    first = run()
    update_baseline("main")
    for step in range(1, 6):
        dead = [f"c{n}" for n in range(step - 1)]
        asked: list[str] = []

        def answer(message: str, dead: list[str] = dead, step: int = step) -> str:
            asked.append(message)  # noqa: B023 - called within this step
            flaky = message == f"c{step - 1}" and asked.count(message) == 1  # noqa: B023
            return "bad" if message in dead or flaky else "good"

        found = assay.run(".", target=answer, baseline="main")
        assert found.verdict == "passed", "one flaky loss at a time"
        assert update_baseline("main").moved
        assert found.comparison is not None
        expected = (
            f"slow decline: of 20 cases, 5 stopped passing and 0 started to since {first.id}, the"
            " first run of the baseline 'main'",
        )
        assert found.comparison.warnings == (expected if step == 5 else ())
    assert expected[0] in found.report("md").replace("&#39;", "'").replace("&#58;", ":")
    assert compare("main", found.id).warnings == expected
    shown = show(found.id).comparison
    assert shown is not None
    assert shown.warnings == expected
    set_baseline("main", accept=True)
    assert compare("main", found.id).warnings == ()


def test_the_first_run_of_a_history_is_kept() -> None:
    first, second = run(), run()
    with closing(open_store(Settings.find(Path.cwd()))) as store:
        store.set_baseline("main", first.id)
        store.set_baseline("main", second.id)
    with pytest.raises(StoreError, match="the first run of the baseline 'main'"):
        remove_runs([first.id])
