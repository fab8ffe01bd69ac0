"""A stranger's package that is broken in every way: each is told, and spoils nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.projects import Project, ended

STRANGERS = """\
from types import SimpleNamespace
from assay import EvaluatorSpec
from assay.model.target import TargetSpec

NUMBER = 5

class Plain: ...

class Mute(EvaluatorSpec): ...

class Unprepared(EvaluatorSpec):
    def prepare(self, resources):
        raise LookupError("no such model")

class Unplugged(TargetSpec):
    def connect(self):
        raise LookupError("no such plug")

class Nobody(TargetSpec):
    def connect(self):
        return None

def shut(url): ...

def empty(url, root): ...

def fails(*arguments):
    raise LookupError("no such sheet")

def says(answer):
    return lambda *arguments: answer

crashing = SimpleNamespace(write=fails)
failing = SimpleNamespace(load=fails, recognises=says(""))
unsure = SimpleNamespace(load=says(None), recognises=fails)
eager = SimpleNamespace(load=says(None), recognises=says(True))
"""
ENTRIES = {
    "evaluators": {"odd": "NUMBER", "mute": "Mute", "unprepared": "Unprepared"},
    "targets": {"odd": "Plain", "unplugged": "Unplugged", "nobody": "Nobody"},
    "loaders": {"odd": "Plain", "failing": "failing", "unsure": "unsure", "eager": "eager"},
    "stores": {"odd": "NUMBER", "shut": "shut", "empty": "empty"},
    "executors": {"odd": "NUMBER"},
    "reporters": {"odd": "Plain", "crashing": "crashing"},
}
SUITE = {"cases": [{"id": "a", "input": "hello", "expected_output": "hello"}]}


def packaged(entries: dict[str, dict[str, str]]) -> str:
    lines = []
    for group, named in entries.items():
        lines.append(f"[assay.{group}]")
        lines += [f"{name} = strangers:{value}" for name, value in named.items()]
    return "\n".join(lines)


class Workshop(Project):
    """A project in an environment with the package."""

    def __init__(self, root: Path, site: Path) -> None:
        super().__init__(root)
        self.site = Project(site)
        self.site.write("strangers.py", STRANGERS)
        self.site.write("strangers-1.0.dist-info/METADATA", "Name: strangers\nVersion: 1.0\n")
        self.site.write("strangers-1.0.dist-info/entry_points.txt", packaged(ENTRIES))
        self.write("a.eval.yaml", SUITE)

    def assay(self, *arguments: str, code: int) -> subprocess.CompletedProcess[str]:
        return self.run(*arguments, code=code, env={"PYTHONPATH": str(self.site.root)})

    def started(self, *arguments: str, code: int) -> subprocess.CompletedProcess[str]:
        """From the start of Python on: some packages are looked at when modules are loaded."""
        env = {"PYTHONPATH": str(self.site.root)}
        return ended(self.start_anew(*arguments, env=env), code)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "home", tmp_path / "site")


def test_plugins_lists_each_with_its_fault(shop: Workshop) -> None:
    done = shop.assay("plugins", "--json", code=3)
    faults = {(e["kind"], e["name"]): e["fault"] for e in json.loads(done.stdout) if e["fault"]}
    assert sorted(faults) == [
        ("evaluator", "mute"),
        ("evaluator", "odd"),
        ("executor", "odd"),
        ("loader", "odd"),
        ("reporter", "odd"),
        ("store", "odd"),
        ("target provider", "odd"),
    ]
    for (kind, name), fault in faults.items():
        assert fault.startswith(f"the {kind} {name!r} of strangers is ")
    assert "odd                  strangers  FAILED: the " in shop.assay("plugins", code=3).stdout


def test_what_nobody_uses_spoils_nothing(shop: Workshop) -> None:
    shop.assay("validate", "a.eval.yaml", code=0)
    shop.assay("run", ".", "--target", "echo:", "-o", "report.md", code=0)
    assert "not a subclass of TargetSpec" in shop.assay("doctor", code=2).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "odd:"], "'odd' of strangers is the class Plain, not a subclass of Target"),
        (["--target", "unplugged:"], "'unplugged' failed to connect: LookupError: no such plug"),
        (["--target", "nobody:"], "'nobody' connected to NoneType, which has no 'name'"),
        (["--store", "odd:x"], "'odd' of strangers is an object of type int, not a function"),
        (["--store", "shut:x"], "the store 'shut' could not be opened: TypeError: shut() takes"),
        (["--store", "empty:x"], "the store 'empty' is NoneType, which has no 'test_cases'"),
        (["-o", "report.odd"], "'odd' of strangers is the class Plain, which has no function"),
    ],
)
def test_what_a_run_needs_is_told_before_it(
    shop: Workshop, arguments: list[str], words: str
) -> None:
    target = () if "--target" in arguments else ("--target", "echo:")
    done = shop.assay("run", ".", *target, *arguments, code=3)
    assert words in done.stderr
    assert not (shop.root / ".assay" / "runs").exists()


def test_doctor_tells_of_a_target_that_cannot_be_connected(shop: Workshop) -> None:
    assert "no such plug" in shop.assay("doctor", "--target", "unplugged:", code=2).stdout


def test_a_reporter_that_breaks_is_told_after_the_run(shop: Workshop) -> None:
    output = ("-o", "report.crashing", "-o", "report.md")
    done = shop.assay("run", ".", "--target", "echo:", *output, code=3)
    assert "assay: the reporter 'crashing' failed: LookupError: no such sheet" in done.stderr
    assert "the run is recorded: `assay report " in done.stderr
    assert done.stdout == ""
    assert not list(shop.root.glob("*crashing*"))


@pytest.mark.parametrize(
    ("suffix", "words"),
    [
        ("odd", "the loader 'odd' of strangers is the class Plain, which has no function 'load'"),
        ("failing", "its loader failed: LookupError: no such sheet"),
        ("unsure", "its loader failed: LookupError: no such sheet"),
        ("eager", "'recognises' of its loader returned bool, not a reason or ''"),
    ],
)
def test_a_loader_that_breaks_is_a_problem_of_its_file(
    shop: Workshop, suffix: str, words: str
) -> None:
    shop.write(f"b.{suffix}", "")
    done = shop.assay("validate", ".", "--json", code=2)
    (problem,) = json.loads(done.stdout)
    assert (problem["file"], problem["code"]) == (f"b.{suffix}", "plugin-failed")
    assert words in problem["message"]


def test_a_loader_that_gives_no_suite_is_a_problem_of_its_file(shop: Workshop) -> None:
    shop.write("b.unsure", "")
    done = shop.assay("validate", "b.unsure", code=2)
    assert "error[plugin-failed]: its loader returned NoneType, not a Suite" in done.stdout


def test_an_evaluator_that_cannot_judge_is_a_problem_of_its_place(shop: Workshop) -> None:
    shop.write("a.eval.yaml", with_evaluators({"type": "mute"}))
    done = shop.assay("validate", ".", code=2)
    assert "the class Mute, which has neither 'evaluate' nor 'prepare'" in done.stdout


def test_an_evaluator_that_cannot_be_prepared_is_errored_and_the_run_goes_on(
    shop: Workshop,
) -> None:
    shop.write("a.eval.yaml", with_evaluators({"type": "unprepared"}, {"type": "is_json"}))
    shop.write("b.eval.yaml", SUITE)
    done = shop.assay("run", ".", "--target", "echo:", "--json", code=3)
    cases = [case for suite in json.loads(done.stdout)["suites"] for case in suite["cases"]]
    assert [case["details"]["outcome"] for case in cases] == ["errored", "passed"]
    assert "unprepared: it could not be prepared: LookupError: no such model" in cases[0]["error"]
    assert [e["score"] for e in cases[0]["details"]["evaluators"]] == [None, 0.0]


def with_evaluators(*evaluators: dict[str, Any]) -> dict[str, Any]:
    return {"cases": [{"id": "a", "input": "hello", "evaluators": list(evaluators)}]}


def test_metadata_that_cannot_be_read_stops_nothing(shop: Workshop) -> None:
    broken = shop.site.write("broken-1.0.dist-info/entry_points.txt", "")
    broken.write_bytes(b"[assay.reporters]\nn\xe4me = strangers:crashing\n")
    rest = "[assay.reporters]\nrest = strangers:crashing\n"
    shop.site.write("leftover-1.0.dist-info/entry_points.txt", rest)
    listed = shop.started("plugins", code=3).stdout
    assert "reporter         rest                 strangers:crashing" in listed
    shop.started("validate", "a.eval.yaml", code=0)
