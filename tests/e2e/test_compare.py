"""`assay compare` and `assay baseline`, as a user runs them, on a real store."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import assay as api
import preloaded_command
from assay.stores.sqlite import SqliteStore
from assay.testing.stores import make_run, make_trial, saved
from e2e.projects import fit

BASE, SAME, WORSE, UNSURE, OTHER = (f"0198c0d{i}-0000-7000-8000-000000000000" for i in range(5))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assay(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    return fit(preloaded_command.assay(*arguments), code)


def add(store: SqliteStore, run_id: str, letters: str, key: str = "k") -> None:
    names = {"P": "passed", "F": "failed", "E": "errored"}
    store.begin(make_run(run_id))
    trials = [
        make_trial(i, run_id=run_id, outcome=names[letter], comparability=key)
        for i, letter in enumerate(letters)
    ]
    saved(store, *trials)
    store.finish(run_id, "finished", "2026-01-31T12:01:00Z", {"passed": letters.count("P")})


@pytest.fixture
def store(project: Path) -> None:
    store = SqliteStore(project / ".assay" / "assay.db")
    add(store, BASE, "P" * 20)
    add(store, SAME, "P" * 20)
    add(store, WORSE, "P" * 10 + "F" * 10)
    add(store, UNSURE, "P" * 18 + "FF")
    add(store, OTHER, "P" * 20, key="other")
    store.close()


def test_exit_codes(store: None) -> None:
    assay("compare", BASE, SAME)
    assay("compare", BASE, SAME, "--strict")
    assay("compare", BASE, WORSE, code=1)
    assay("compare", WORSE, BASE)
    assay("compare", BASE, UNSURE)
    assay("compare", BASE, UNSURE, "--strict", code=4)
    assay("compare", BASE, UNSURE, "--gate", "strict", code=1)
    assay("compare", BASE, SAME, "--gate", "non-inferiority", code=1)
    assay("compare", BASE, SAME, "--gate", "non-inferiority", "--margin", "0.5")
    assay("compare", BASE, OTHER)
    assay("compare", BASE, OTHER, "--strict", code=4)
    assay("compare", BASE, "nothing", code=2)
    assay("compare", BASE, "nothing.json", code=2)
    assay("compare", BASE, SAME, "--gate", "lax", code=2)
    assay("compare", BASE, SAME, "--margin", "2", code=2)


def test_json(store: None) -> None:
    found = json.loads(assay("compare", BASE, WORSE, "--json", code=1).stdout)
    assert (found["decision"], found["pairs"], found["exitCode"]) == ("regressed", 20, 1)
    assert (found["base"], found["candidate"]) == (BASE, WORSE)
    assert found["regressions"] == [f"case-{i}" for i in range(10, 20)]
    assert found == api.compare(BASE, WORSE).to_dict()


def test_text(store: None) -> None:
    text = assay("compare", BASE, WORSE, code=1).stdout
    assert text.startswith("FAILED: 10 lost (10 not confirmed), 0 new passes\n")
    reason = "passed before, fails now: not confirmed; not asked again"
    assert f"lost (10)\n  evals/weather.eval.yaml: case-10\n    {reason}\n" in text
    assert "pass rate alone: regressed: 20 cases compared, pass rate -50.0 points" in text
    assert "gate regression: failed" in text


@pytest.mark.parametrize(("candidate", "code"), [(UNSURE, 0), (WORSE, 1)])
def test_texts_fit_a_page(store: None, project: Path, candidate: str, code: int) -> None:
    entry = {"case": "case-19", "reason": "it is known, and " * 10}
    (project / "assay.yaml").write_text(json.dumps({"accepted": [entry]}))
    lines = assay("compare", BASE, candidate, code=code).stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[lines.index("accepted (1)") + 3].startswith("    it is known, and ")


def test_a_small_p_is_not_zero(project: Path) -> None:
    for name, score in (("old.jsonl", 1), ("new.jsonl", 0)):
        lines = [json.dumps({"eval_id": f"c{n}", "score": score}) + "\n" for n in range(60)]
        (project / name).write_text("".join(lines))
    assert ", p < 0.0001\n" in assay("compare", "old.jsonl", "new.jsonl", code=1).stdout


def test_baselines(store: None) -> None:
    assert "there is no baseline" in assay("baseline", "list").stderr
    assert assay("baseline", "set", "main", BASE).stdout == f"main is now {BASE}\n"
    assert assay("baseline", "set", "next").stdout == f"next is now {OTHER}\n"
    assay("baseline", "set", "copy", "main")
    rows = json.loads(assay("baseline", "list", "--json").stdout)
    assert {row["name"]: row["runId"] for row in rows} == {
        "copy": BASE,
        "main": BASE,
        "next": OTHER,
    }
    assert f"runId       {BASE}" in assay("baseline", "show", "main").stdout
    assert json.loads(assay("baseline", "show", "main", "--json").stdout)["status"] == "finished"
    assay("compare", "main", WORSE[:8], code=1)
    assay("baseline", "rm", "main")
    assert "did you mean" not in assay("compare", "main", WORSE, code=2).stderr
    assert "did you mean 'next'?" in assay("baseline", "show", "nxet", code=2).stderr
    assay("baseline", "set", "latest", code=2)
    assay("baseline", "set", "x", "nothing", code=2)


def test_files_need_no_store(project: Path) -> None:
    lines = [[{"eval_id": str(i), "score": s} for i in range(9)] for s in (1.0, 0.5)]
    for name, rows in zip(("old.jsonl", "new.jsonl"), lines, strict=True):
        Path(name).write_text("\n".join(map(json.dumps, rows)))
    assay("compare", "old.jsonl", "new.jsonl", code=1)
    assert not (project / ".assay").exists()
    assert api.compare(Path("old.jsonl"), Path("new.jsonl")).decision == "regressed"


def test_a_file_and_a_run(store: None) -> None:
    rows = [{"test_id": f"case-{i}", "score": 1} for i in range(20)]
    Path("agentv.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = api.compare("agentv.jsonl", WORSE)
    assert (found.decision, found.base, found.pairs) == ("regressed", "agentv.jsonl", 20)


def test_a_broken_file_is_told_with_its_place(store: None) -> None:
    Path("broken.jsonl").write_text('{"eval_id": "a", "score": 1}\n{"eval_id"\n')
    assert (
        "assay: broken.jsonl:2:11: the JSON ends too early"
        in assay("compare", BASE, "broken.jsonl", code=2).stderr
    )
