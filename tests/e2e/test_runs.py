"""`assay runs`, `report` and `export`: what was recorded is found, shown, written and removed."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from assay.cli.app import app
from assay.service.store import open_store
from assay.settings import Settings
from e2e.projects import Project

SUITE_B = """\
cases:
  - id: warm
    input: Is it warm?
    expected_output: "yes"
"""


def test_runs_are_listed_newest_first_with_counts_and_names(place: Any) -> None:
    old, new = place.run()["runId"], place.run()["runId"]
    place.assay("baseline", "set", "main", old)
    rows = place.json("runs", "list", "--json")
    assert [row["runId"] for row in rows] == [new, old]
    assert [row["baselines"] for row in rows] == [[], ["main"]]
    found = {k: rows[0][k] for k in ("status", "target", "suites", "totalCases", "exitCode")}
    assert found == {
        "status": "finished",
        "target": "replay:seen.jsonl",
        "suites": ["evals/a.eval.yaml"],
        "totalCases": 3,
        "exitCode": 1,
    }
    assert [rows[0][k] for k in ("passed", "failed", "errored", "skipped")] == [1, 1, 0, 1]
    (line,) = place.assay("runs", "list", "--limit", "1").stdout.splitlines()
    assert line.startswith(new)
    assert line.endswith("1 passed, 1 failed, 1 skipped")
    assert place.assay("runs", "list").stdout.splitlines()[1].endswith("[main]")


def test_a_store_without_runs_says_so(place: Any) -> None:
    result = place.assay("runs", "list")
    assert (result.stdout, "no run is recorded" in result.stderr) == ("", True)
    assert place.json("runs", "list", "--json") == []
    assert "no finished run" in place.assay("runs", "show", code=2).stderr


def test_a_run_that_selected_nothing_is_listed_as_one(place: Any) -> None:
    done = place.assay("run", "evals", "--target", "replay:seen.jsonl", "--tag", "x", code=5)
    assert "Target" not in done.stdout
    (line,) = place.assay("runs", "list").stdout.splitlines()
    assert line.endswith("  -  evals/a.eval.yaml  no cases")


def test_a_run_is_shown_as_it_was_reported(place: Any) -> None:
    arguments = ("run", "evals", "--target", "replay:seen.jsonl")
    reported = place.assay(*arguments, code=1).stdout
    assert "FAILED evals/a.eval.yaml:5 cold" in reported
    assert place.assay("runs", "show").stdout == reported


def test_a_run_is_shown_as_the_document_it_printed(place: Any) -> None:
    document = place.run()
    for reference in ("latest", document["runId"], document["runId"][:13]):
        assert place.json("runs", "show", reference, "--json") == document


def test_a_comparison_is_shown_with_the_baseline_of_then(place: Any) -> None:
    base = place.run()["runId"]
    place.assay("baseline", "set", "main")
    place.write("seen.jsonl", [{"id": "cold", "response": "-4"}, {"id": "warm", "response": "0"}])
    document = place.run("--baseline", "main", "--gate", "strict")
    assert document["comparison"]["regressions"] == ["warm"]
    place.assay("baseline", "set", "main", "--accept")
    assert place.json("runs", "show", document["runId"], "--json") == document
    place.assay("runs", "rm", base)
    shown = place.assay("runs", "show", document["runId"]).stdout
    assert "which cannot be read now" in shown
    assert "FAILED (exit code 1)" in shown, "the verdict stays what it was"


def test_only_what_failed_is_shown(place: Any, outcomes: Callable[[Any], dict[str, str]]) -> None:
    place.run()
    (line,) = place.assay("runs", "show", "--failed").stdout.splitlines()
    assert line.startswith("evals/a.eval.yaml:5: failed: cold: ")
    document = place.json("runs", "show", "--failed", "--json")
    assert outcomes(document) == {"evals/a.eval.yaml:cold": "failed"}
    assert document["suites"][0]["summary"]["totalCases"] == 3


def test_a_run_that_was_killed_is_shown_as_far_as_it_came(place: Any) -> None:
    run_id = place.run()["runId"]
    store = open_store(Settings.find(place.root))
    record = store.run(run_id)
    killed = msgspec.structs.replace(
        record, id="0" * 8 + run_id[8:], status="running", summary=None
    )
    store.begin(killed)
    trials = [msgspec.structs.replace(t, run_id=killed.id) for t in store.trials(run_id)]
    store.save(*trials).result()
    store.close()
    shown = place.assay("runs", "show", killed.id).stdout
    assert "the run has not ended" in shown
    assert "no counts yet" in place.assay("runs", "list").stdout


def test_runs_are_removed_with_their_files(place: Any) -> None:
    old, new = place.run()["runId"], place.run()["runId"]
    folder = place.root / ".assay" / "runs"
    assert (folder / old / "evals--a.eval.yaml.json").is_file()
    assert place.assay("runs", "rm", old[:13], old).stdout == f"removed {old}\n"
    assert not (folder / old).exists()
    assert (folder / new).is_dir()
    assert [row["runId"] for row in place.json("runs", "list", "--json")] == [new]


def test_runs_whose_files_cannot_be_removed_stay_all_of_them(place: Any) -> None:
    old, new = place.run()["runId"], place.run()["runId"]
    folder = place.root / ".assay" / "runs"
    (folder / f".removed-{new}" / "in the way").mkdir(parents=True)
    refused = place.assay("runs", "rm", old, new, code=3).stderr
    assert f".assay/runs/{new} cannot be removed: Directory not empty" in refused
    assert len(place.json("runs", "list", "--json")) == 2
    assert (folder / old / "evals--a.eval.yaml.json").is_file()
    assert (folder / new / "evals--a.eval.yaml.json").is_file()


def test_a_baseline_is_not_removed_nor_anything_beside_it(place: Any) -> None:
    old, new = place.run()["runId"], place.run()["runId"]
    place.assay("baseline", "set", "main", old)
    refused = place.assay("runs", "rm", new, "main", code=2).stderr
    assert f"the run {old} is the baseline 'main': `assay baseline rm main` first" in refused
    assert len(place.json("runs", "list", "--json")) == 2
    place.assay("baseline", "rm", "main")
    place.assay("runs", "rm", new, old)
    assert place.json("runs", "list", "--json") == []


@pytest.mark.parametrize("status", ["running", "interrupted", "finished"])
def test_a_run_that_is_at_work_is_not_removed(place: Any, status: str) -> None:
    run_id = place.run()["runId"]
    _set_status(place, run_id, status)
    with (
        closing(open_store(Settings.find(place.root))) as store,
        store.lease(run_id),
    ):
        assert "is running in another process" in place.assay("runs", "rm", run_id, code=2).stderr
    place.assay("runs", "rm", run_id)


def _set_status(place: Any, run_id: str, status: str) -> None:
    store = open_store(Settings.find(place.root))
    store.finish(run_id, status, "", {})  # type: ignore[arg-type]
    store.close()


def test_a_recorded_run_is_written_in_every_format(place: Any) -> None:
    run_id = place.run("-o", "before.md", "-o", "before.xml", "-o", "before.json")["runId"]
    place.assay("report", run_id, "-o", "after.md", "-o", "after.xml", "-o", "after.json")
    for suffix in ("md", "xml", "json"):
        before, after = (place.root / f"{name}.{suffix}" for name in ("before", "after"))
        assert before.read_bytes() == after.read_bytes()
    assert "ends in one of" in place.assay("report", "-o", "x.doc", code=2).stderr
    assert "--output" in place.assay("report", code=2).stderr


def test_results_are_exported(place: Any) -> None:
    place.run()
    lines = [json.loads(line) for line in place.assay("export").stdout.splitlines()]
    assert [line["outcome"] for line in lines] == ["passed", "failed", "skipped"]
    place.assay("export", "--format", "csv", "-o", "out.csv")
    with open("out.csv", encoding="utf-8", newline="") as stream:
        assert [row["id"] for row in csv.DictReader(stream)] == ["warm", "cold", "later"]
    place.assay("export", "-o", "by-suffix.CSV")
    assert (place.root / "by-suffix.CSV").read_bytes() == (place.root / "out.csv").read_bytes()
    assert "the folder no does not exist" in place.assay("export", "-o", "no/x.csv", code=2).stderr
    assert "is a folder" in place.assay("export", "-o", "evals", code=2).stderr


def test_exported_observations_replay_to_the_same_results(
    place: Any, outcomes: Callable[[Any], dict[str, str]]
) -> None:
    second = [{**SEEN_WARM, "response": "21, I think."}, {"id": "cold", "response": "-4"}]
    place.write("seen.jsonl", [SEEN_WARM, {"id": "cold", "error": "it broke"}, *second])
    first = place.run("--repeat", "2", code=0)
    place.assay("export", "--format", "observations", "-o", "again.jsonl")
    lines = [json.loads(line) for line in (place.root / "again.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["warm", "warm", "cold", "cold"]
    assert lines[2]["error"] == "it broke"
    place.write("seen.jsonl", lines)
    again = place.run("--repeat", "2", code=0)
    assert outcomes(again) == outcomes(first)
    for one, other in zip(first["suites"], again["suites"], strict=True):
        for before, after in zip(one["cases"], other["cases"], strict=True):
            assert before["details"] == after["details"]
            assert before["durationMs"] == after["durationMs"]


SEEN_WARM = {
    "id": "warm",
    "response": "It is 21.",
    "toolCalls": [{"name": "get_weather", "params": {"city": "Oslo"}, "success": True}],
    "durationMs": 12.5,
    "usage": {"inputTokens": 3, "outputTokens": 4},
    "costUsd": 0.25,
}


def test_a_format_may_stand_in_the_place_of_the_run(place: Any) -> None:
    old, new = place.run()["runId"], place.run()["runId"]

    def exported(*arguments: str) -> str:
        return str(place.assay("export", *arguments).stdout)

    for form in ("observations", "csv", "jsonl"):
        assert exported(form) == exported(new, "--format", form)
        assert exported(form, old) == exported(old, "--format", form)
        assert exported(form, old, "--format", form) == exported(form, old)
    place.assay("baseline", "set", "observations", old)
    assert exported("observations") == exported(old)
    assert exported("observations", new) == exported(new, "--format", "observations")
    place.assay("export", "observations", "-o", "again.jsonl", "--format", "csv")
    assert "warm" in Path("again.jsonl").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["yaml"], "only test cases are written as YAML"),
        (["yaml", "latest"], "only test cases are written as YAML"),
        (["csv", "--format", "observations"], "no run or baseline 'csv'"),
        (["csv", "latest", "--format", "jsonl"], "'csv' 'latest': name one run"),
        (["latest", "csv"], "'latest' 'csv': name one run, after one of jsonl, csv"),
        (["csv", "latest", "latest"], "name one run"),
        (["observation"], "no run or baseline 'observation'"),
        (["csv", "latest", "--test-cases"], "leave 'latest' out"),
    ],
)
def test_other_words_are_no_format(place: Any, arguments: list[str], words: str) -> None:
    place.run()
    assert words in place.assay("export", *arguments, code=2).stderr


@pytest.mark.parametrize("name", ["cases.yaml", "cases.YML", "CASES.JSONL", "cases.Csv"])
def test_the_suffix_decides_how_test_cases_are_written(place: Any, name: str) -> None:
    place.assay("export", "--test-cases", "-o", name)
    assert (place.root / name).is_file()


def test_what_was_not_asked_is_not_exported(
    place: Any, outcomes: Callable[[Any], dict[str, str]]
) -> None:
    place.write("seen.jsonl", [{"id": "warm", "response": "0"}, {"id": "cold", "response": "-4"}])
    document = place.run("--max-failures", "1", "--workers", "1", code=1)
    assert outcomes(document)["evals/a.eval.yaml:cold"] == "errored"
    lines = place.assay("export", document["runId"], "--format", "observations").stdout
    assert [json.loads(line)["id"] for line in lines.splitlines()] == ["warm"]


def test_export_warns_when_a_replay_would_mix_two_suites(place: Any) -> None:
    place.write("evals/b.eval.yaml", SUITE_B)
    place.run()
    result = place.assay("export", "--format", "observations")
    assert len(result.stdout.splitlines()) == 3
    assert "1 id is in more than one suite" in result.stderr


@pytest.mark.parametrize("arguments", [("runs", "show"), ("export",), ("report", "-o", "x.md")])
def test_a_run_that_is_not_there_is_a_wrong_argument(place: Any, arguments: Any) -> None:
    name, *options = arguments if arguments[0] != "runs" else ("runs show",)
    place.run()
    place.assay("baseline", "set", "main")
    refused = place.assay(*name.split(), "mian", *options, code=2).stderr
    assert "did you mean 'main'?" in refused


def test_another_store_is_read_by_its_url(place: Any) -> None:
    document = place.run("--store", "sqlite:other.db")
    assert place.json("runs", "list", "--json") == []
    url = ("--store", "sqlite:other.db")
    assert place.json("runs", "show", "--json", *url) == document
    assert place.assay("export", *url).stdout.count("\n") == 3
    assert document["runId"] in place.assay("baseline", "set", "main", *url).stdout
    assert place.json("baseline", "show", "main", "--json", *url)["runId"] == document["runId"]
    assert [row["name"] for row in place.json("baseline", "list", "--json", *url)] == ["main"]
    assert place.json("compare", "main", "latest", "--json", *url)["decision"] == "unchanged"
    place.assay("compare", "main", "latest", code=2)
    place.assay("baseline", "rm", "main", *url)
    assert place.json("baseline", "list", "--json", *url) == []
    assert "is not the URL of a store" in place.assay("runs", "list", "--store", "x", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["runs", "list"], 0),
        (["runs", "show"], 2),
        (["runs", "rm", "latest"], 2),
        (["trend"], 0),
        (["compare", "main", "latest"], 2),
        (["baseline", "list"], 0),
        (["baseline", "set", "main"], 2),
        (["baseline", "rm", "main"], 2),
        (["calibrate", "labels.csv"], 2),
        (["report", "latest", "-o", "report.md"], 2),
        (["export", "latest"], 2),
        (["export", "--test-cases"], 0),
        (["plan", "--cases", "50"], 0),
        (["doctor"], None),
    ],
)
def test_reading_makes_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int | None
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == code or code is None, done.output
    assert list(tmp_path.iterdir()) == []


def test_errors_quote_without_moving_the_cursor(place: Any) -> None:
    done = CliRunner().invoke(app, ["import", "gone\x1b[2J\x9b.yaml"], color=True)
    assert done.exit_code == 2
    assert done.stderr == "assay: gone\\x1b[2J\\x9b.yaml does not exist\n"


@pytest.mark.parametrize("letter", ["a", "語"])
def test_a_long_path_has_a_result_file_with_a_short_name(home: Project, letter: str) -> None:
    long = letter * (120 // len(letter.encode()))
    suite = {"cases": [{"id": "x", "input": "hi", "expect": {"responseContains": ["hi"]}}]}
    for middle in "12":
        home.write(f"evals/{long}/{long}{middle}/{long}/last.eval.yaml", suite)
    done = json.loads(home.call("run", "evals", "--target", "echo:", "--json").stdout)
    names = list(home.result_files(done["runId"]))
    assert len(names) == 2
    for name in names:
        begin, digest, end = name.split("~")
        assert begin.startswith(f"evals--{letter}")
        assert end.endswith(f"{letter}--last.eval.yaml.json")
        assert len(digest) == 12
        assert len(name.encode()) <= 255
    again = json.loads(home.call("run", "evals", "--target", "echo:", "--json").stdout)
    assert list(home.result_files(again["runId"])) == names


def test_a_path_that_fits_is_not_shortened(home: Project) -> None:
    suite = {"cases": [{"id": "x", "input": "hi", "expect": {"responseContains": ["hi"]}}]}
    fits = "b" * (240 - len("a--.eval.yaml"))
    home.write(f"a/{fits}.eval.yaml", suite)
    home.write(f"a/{fits}b.eval.yaml", suite)
    done = json.loads(home.call("run", "a", "--target", "echo:", "--json").stdout)
    names = list(home.result_files(done["runId"]))
    assert len(names) == 2
    assert [name for name in names if "~" not in name] == [f"a--{fits}.eval.yaml.json"]


@pytest.mark.parametrize("column", ["result", "observation"])
@pytest.mark.parametrize("damage", [b':"\xff', b"\x00\x01"])
def test_a_damaged_result_is_reported_as_such(home: Project, column: str, damage: bytes) -> None:
    home.write("assay.yaml", {"targets": [{"name": "echo", "provider": "echo"}]})
    home.write("a.eval.yaml", {"cases": [{"id": "a", "input": "x", "expected_output": "y"}]})
    home.run("run", ".", "--target", "echo", code=1)
    with closing(sqlite3.connect(home.root / ".assay" / "assay.db")) as connection:
        ((data,),) = connection.execute(f"SELECT {column} FROM trial").fetchall()
        data = bytes(data).replace(b':"', damage)
        connection.execute(f"UPDATE trial SET {column} = ?", (data,))
        connection.commit()
    for command in (["runs", "show"], ["report", "-o", "o.md"], ["export"]):
        done = home.run(*command, code=3)
        assert "the store is damaged: a result in it cannot be read" in done.stderr
        assert "codec" not in done.stderr
        assert not (home.root / "o.md").exists()


def test_a_replay_line_that_is_not_utf8_is_named(home: Project) -> None:
    (home.root / "seen.jsonl").write_bytes(b'{"id": "a", "response": "caf\xe9"}\n')
    home.write("a.eval.yaml", {"cases": [{"id": "a", "input": "x", "expected_output": "y"}]})
    done = home.run("run", ".", "--target", "replay:seen.jsonl", code=3)
    assert "seen.jsonl:1: it is not UTF-8: " in done.stdout
    assert "codec" not in done.stdout
