"""The real command, as a user runs it: output, exit codes, nothing half-written."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import preloaded_command
from e2e.projects import ASSAY, fit
from timeouts import WAIT_SECONDS

GOOD = "cases:\n  - id: a\n    input: Hi\n    expected_output: Hello\n"
BAD = "cases:\n  - id: a\n    inptu: Hi\n    expected_output: Hello\n  - id: b\n    input: x\n"
WARNS = "cases:\n  - id: a\n    input: Hi\n    outcome: polite\n    criteria: kind\n"
REGRESSION = {
    "id": "rg-t-001",
    "description": "regression — x",
    "difficulty": "regression",
    "createdAt": "2026-01-15",
    "bugRef": "#1",
    "input": {"message": "x"},
    "expect": {"toolsCalled": ["t"]},
}


#: Ids of runs, and how long something took.
CHANGING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4,12}){0,4}|[0-9.]+ m?s\b")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assay(*arguments: str, code: int = 0, cwd: str = ".") -> subprocess.CompletedProcess[str]:
    return fit(preloaded_command.assay(*arguments, cwd=cwd), code)


def started(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The same from the start of Python on."""
    command = [ASSAY, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=WAIT_SECONDS
    )
    return fit(done, code)


def test_version() -> None:
    assert started("--version").stdout == started("-V").stdout
    assert started("--version").stdout.startswith("assay ")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["validate", "."], 2),
        (["schema", "eval"], 0),
        (["run", "good.eval.yaml", "--target", "echo:"], 1),
        (["compare", "a", "b"], 2),
    ],
)
def test_a_command_that_begins_with_all_modules_does_what_a_new_one_does(
    arguments: list[str], code: int
) -> None:
    Path("good.eval.yaml").write_text(GOOD)
    Path("bad.eval.yaml").write_text(BAD)
    real, quick = started(*arguments, code=code), assay(*arguments, code=code)
    for stream in ("stdout", "stderr"):
        told, other = (CHANGING.sub("", getattr(done, stream)) for done in (real, quick))
        assert told == other


@pytest.mark.parametrize("command", ["--version", "--help", "schema eval", "schema --help"])
def test_a_full_disk_under_stdout_is_told(command: str) -> None:
    script = f'"$0" {command} > /dev/full'
    done = subprocess.run(
        ["sh", "-c", script, ASSAY], capture_output=True, text=True, timeout=WAIT_SECONDS
    )
    assert done.stderr == "assay: stdout cannot be written: No space left on device\n"
    assert done.returncode == 3


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    Path("bad.eval.yaml").write_text(BAD)
    script = '{ "$0" validate . --json; echo "exit $?" >&2; } | true'
    done = subprocess.run(
        ["sh", "-c", script, ASSAY], capture_output=True, text=True, timeout=WAIT_SECONDS
    )
    assert "exit 2" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_closed_from_the_start_change_nothing_else(closed: str) -> None:
    Path("a.eval.yaml").write_text("cases: [{id: a, input: hi, expected_output: ho}]")
    script = f'"$0" run a.eval.yaml --target "command:echo hi" -o a.json {closed}; echo "exit $?"'
    done = subprocess.run(
        ["sh", "-c", script, ASSAY], capture_output=True, text=True, timeout=WAIT_SECONDS
    )
    assert done.stdout.endswith("exit 1\n")
    assert "assay:" not in done.stderr
    (case,) = json.loads(Path("a.json").read_text())["suites"][0]["cases"]
    assert case["details"]["response"] == "hi"


def test_help_lists_the_commands_and_each_has_examples() -> None:
    text = assay("--help").stdout
    for command in ("init", "lint", "regression", "schema", "validate"):
        assert command in text
        assert "Examples:" in assay(command, "--help").stdout
    for command in ("lock", "archive", "list"):
        assert "Examples:" in assay("regression", command, "--help").stdout


def test_a_misspelt_command_offers_the_nearest() -> None:
    assert "did you mean 'validate'?" in assay("vaildate", code=2).stderr


def test_validate_prints_every_problem_of_every_file() -> None:
    Path("one.eval.yaml").write_text(BAD)
    Path("two.eval.jsonl").write_text('{"id": "a", "input": 1, "expected_output": "x"}\n')
    Path("three.eval.yaml").write_text(GOOD)
    done = assay("validate", ".", code=2)
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    places = [line.split(": error")[0] for line in lines]
    assert places == [
        "one.eval.yaml:3:5",
        "one.eval.yaml:5:5",
        "two.eval.jsonl:1:22",
    ]
    assert lines[0].startswith("one.eval.yaml:3:5: error[unknown-key]: ")
    assert "did you mean 'input'?" in done.stdout
    assert "1 suite with 1 case loaded; 3 errors, 0 warnings" in done.stderr


def test_validate_as_json() -> None:
    Path("one.eval.yaml").write_text(BAD)
    problems = json.loads(assay("validate", "one.eval.yaml", "--json", code=2).stdout)
    assert set(problems[0]) == {"file", "line", "column", "severity", "code", "message", "hint"}
    assert [p["code"] for p in problems] == ["unknown-key", "asserts-nothing"]
    Path("good.eval.yaml").write_text(GOOD)
    assert json.loads(assay("validate", "good.eval.yaml", "--json").stdout) == []


def test_warnings_change_the_exit_code_only_when_strict() -> None:
    Path("w.eval.yaml").write_text(WARNS)
    assert "warning[ignored-alias]" in assay("validate", "w.eval.yaml").stdout
    assay("validate", "w.eval.yaml", "--strict", code=2)


def test_what_was_passed_over_is_on_stderr() -> None:
    Path("good.eval.yaml").write_text(GOOD)
    Path("compose.yaml").write_text("services: {}\n")
    done = assay("validate", ".")
    assert "skipped compose.yaml (no cases)" in done.stderr
    assert "compose" not in done.stdout


def test_missing_paths_and_empty_folders_are_errors() -> None:
    Path("good.eval.yaml").write_text(GOOD)
    missing = assay("validate", "god.eval.yaml", code=2).stdout
    assert missing.startswith("god.eval.yaml: error[not-found]")
    assert "did you mean 'good.eval.yaml'?" in missing
    Path("empty").mkdir()
    told = assay("validate", "empty", code=2).stdout
    assert "no-eval-files" in told
    assert "weather.eval.yaml" in told
    assert "Usage" in assay("validate", code=2).stderr


def test_a_wrong_config_is_exit_2() -> None:
    Path("assay.yaml").write_text("nope: 1\n")
    Path("good.eval.yaml").write_text(GOOD)
    for verb in ("validate", "lint"):
        done = assay(verb, ".", code=2)
        assert done.stdout.startswith("assay.yaml:1:1: error[unknown-key]: ")
        assert done.stderr == "0 suites with 0 cases loaded; 1 error, 0 warnings\n"
    told = assay("regression", "list", code=2).stderr
    assert told.startswith("assay.yaml:1:1: error[unknown-key]: ")


def test_validate_exits_2_when_a_plugin_fails() -> None:
    Path("assay.yaml").write_text("plugins: [no_such_module]\n")
    Path("good.eval.yaml").write_text(GOOD)
    done = assay("validate", ".", code=2)
    assert done.stdout.startswith("assay.yaml:1:11: error[plugin-failed]: the plugin 'no_such_mod")
    assert "1 suite with 1 case loaded; 1 error" in done.stderr


@pytest.mark.parametrize("verb", ["validate", "lint"])
@pytest.mark.parametrize(
    ("name", "text", "line", "code"),
    [
        ("assay.yaml", "nope: 1\n", 1, "unknown-key"),
        ("assay.yaml", "a: [\n", 2, "yaml-syntax"),
        ("pyproject.toml", "[tool.assay\n", 1, "toml-syntax"),
    ],
)
def test_a_wrong_config_is_told_as_json_too(
    verb: str, name: str, text: str, line: int, code: str
) -> None:
    Path(name).write_text(text)
    Path("good.eval.yaml").write_text(GOOD)
    done = assay(verb, ".", "--json", code=2)
    (problem,) = json.loads(done.stdout)
    assert (problem["file"], problem["line"], problem["code"]) == (name, line, code)
    assert "1 error" in done.stderr


def test_other_errors_are_told_as_json_too() -> None:
    (problem,) = json.loads(assay("validate", "", "--json", code=2).stdout)
    assert (problem["file"], problem["code"], problem["message"]) == (
        "",
        "usage",
        "a path is empty",
    )


@pytest.mark.parametrize("arguments", [["init"], ["init", "mine"], ["validate", "."]])
def test_a_working_directory_that_is_gone(project: Path, arguments: list[str]) -> None:
    gone = project / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert "the working directory no longer exists" in started(*arguments, code=2).stderr


def test_hostile_names_and_values_stay_text() -> None:
    Path("a\x1b[31m.eval.yaml").write_text("- id: 'x\x85y'\n  input: [\n")
    done = assay("validate", ".", code=2)
    assert r"a\x1b[31m.eval.yaml" in done.stdout
    assert not {"\x1b", "\x85"} & set(done.stdout + done.stderr)


def test_lint() -> None:
    Path("a.eval.yaml").write_text("- {id: a, input: q, expected_output: x, threshold: 0}\n")
    assert "warning[cannot-fail]" in assay("lint", ".").stdout
    assay("lint", ".", "--strict", code=2)


@pytest.mark.parametrize("name", ["eval", "golden", "labeled", "regression", "rubric"])
def test_schema(name: str) -> None:
    schema = json.loads(assay("schema", name).stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_an_unknown_schema_is_a_usage_error() -> None:
    assert "'golden'" in assay("schema", "gold", code=2).stderr


def test_init_writes_a_project_that_runs_and_never_overwrites() -> None:
    done = assay("init", "mine")
    assert "wrote mine/assay.yaml" in done.stdout
    assay("validate", "mine/evals", "--strict")
    assay("lint", "mine/evals", "--strict")
    assert assay("run", "evals", cwd="mine").stdout.endswith("\nPASSED (exit code 0)\n")
    suite = Path("mine/evals/first.eval.yaml").read_text()
    assert suite.startswith("# yaml-language-server: $schema=eval.schema.json\n")
    assert json.loads(Path("mine/evals/eval.schema.json").read_text())["$defs"]
    assert yaml.safe_load(Path("mine/assay.yaml").read_text())
    Path("mine/evals/first.eval.yaml").write_text("mine\n")
    Path("mine/assay.yaml").unlink()
    Path("mine/example_agent.py").unlink()
    refused = assay("init", "mine", code=2).stderr
    assert "not overwritten: mine/assay.schema.json, mine/evals/first.eval.yaml" in refused
    assert Path("mine/evals/first.eval.yaml").read_text() == "mine\n"
    assert not Path("mine/assay.yaml").exists()


def test_what_a_new_project_records_stays_out_of_git() -> None:
    assay("init")
    assay("run", "evals")
    subprocess.run(["git", "init", "-q"], check=True, timeout=WAIT_SECONDS)
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    found = subprocess.run(
        status, capture_output=True, text=True, check=True, timeout=WAIT_SECONDS
    ).stdout
    assert "assay.yaml" in found
    assert ".assay/" not in found


def test_regression_ledger() -> None:
    Path("t.regression.json").write_text(json.dumps([REGRESSION], indent=2))
    assert "unlocked-regression" in assay("validate", ".").stdout
    assay("validate", ".", "--strict", code=2)
    assert "locked rg-t-001" in assay("regression", "lock").stdout
    assert "nothing to lock" in assay("regression", "lock", ".").stdout
    assay("validate", ".", "--strict")
    (row,) = json.loads(assay("regression", "list", "--json").stdout)
    assert row == {
        "file": "t.regression.json",
        "id": "rg-t-001",
        "status": "locked",
        "created_at": "2026-01-15",
        "bug_ref": "#1",
        "description": "regression — x",
    }
    assert "rg-t-001  locked" in assay("regression", "list").stdout
    changed = REGRESSION | {"bugRef": "#2"}
    Path("t.regression.json").write_text(json.dumps([changed], indent=2))
    problem = assay("validate", ".", code=2).stdout
    assert "regression-changed" in problem
    assert "assay regression archive rg-t-001" in problem
    assay("regression", "lock", code=2)
    Path("t.regression.json").write_text(json.dumps([REGRESSION], indent=2))
    assert "did you mean" in assay("regression", "archive", "rg-t-01", code=2).stderr
    assert "moved rg-t-001" in assay("regression", "archive", "rg-t-001").stdout
    assert json.loads(Path("t.regression.archive.json").read_text()) == [REGRESSION]
    assert "rg-t-001  archived" in assay("regression", "list").stdout


def test_regression_without_regression_files() -> None:
    Path("good.eval.yaml").write_text(GOOD)
    assert "no *.regression.json" in assay("regression", "list", code=2).stderr
