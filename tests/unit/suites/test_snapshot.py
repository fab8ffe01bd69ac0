"""The snapshot is captured by a function or a program, or the run does not start."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from assay.errors import SnapshotError
from assay.settings import Settings
from assay.suites.snapshot import capture
from unit.conftest import Project


def captured(project: Project, config: str) -> object:
    project.write("assay.yaml", config)
    return capture(Settings.find(project.root))


def failure(project: Project, config: str, *, code: int = 3) -> str:
    with pytest.raises(SnapshotError) as caught:
        captured(project, config)
    assert caught.value.exit_code == code
    return str(caught.value)


@pytest.fixture
def module(project: Project, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the project, under a name that no other test has."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"capture_{abs(hash(str(project.root)))}"
    project.write(
        f"{name}.py",
        """
        import math, sys, threading
        def works(): return {"price": 178.5}
        async def later(): return {"price": 3}
        def raises(): raise ValueError("no \\x1b[31mdata")
        def leaves(): sys.exit(4)
        def interrupts(): raise KeyboardInterrupt
        def listed(): return [1]
        def unsayable(): return {"a": object()}
        def endless(): return {"a": math.nan}
        def cycle():
            a = {}
            a["a"] = a
            return a
        def waits(): threading.Event().wait()
        def asks(x): return {}
        number = 3
        """,
    )
    return name


def test_no_snapshot_is_none(project: Project) -> None:
    assert captured(project, "{}\n") is None


def test_a_function_is_called(project: Project, module: str) -> None:
    assert captured(project, f"snapshot: python:{module}:works\n") == {"price": 178.5}
    assert captured(project, f"snapshot: {{callable: '{module}:later'}}\n") == {"price": 3}


def test_it_works_beside_a_running_loop(project: Project, module: str) -> None:
    async def main() -> tuple[object, object]:
        config = "snapshot: command:echo '{}'\n"
        return captured(project, config), captured(project, f"snapshot: python:{module}:later\n")

    assert asyncio.run(main()) == ({}, {"price": 3})


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("raises", "raised ValueError: no \\x1b[31mdata"),
        ("leaves", "raised SystemExit: 4"),
        ("interrupts", "raised KeyboardInterrupt"),
        ("listed", "gave a list, not a JSON object"),
        ("unsayable", "returned something that is not JSON: Object of type object"),
        ("endless", "returned something that is not JSON: Out of range float"),
        ("cycle", "returned something that is not JSON: Circular"),
        ("asks", "raised TypeError"),
    ],
)
def test_a_function_that_fails_is_told(
    project: Project, module: str, function: str, told: str
) -> None:
    message = failure(project, f"snapshot: python:{module}:{function}\n")
    assert message.startswith(f"python:{module}:{function} ")
    assert told in message


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("number", "is int, not a function"),
        ("nothing", "has no 'nothing'"),
    ],
)
def test_a_function_that_is_not_there_is_a_wrong_configuration(
    project: Project, module: str, function: str, told: str
) -> None:
    assert told in failure(project, f"snapshot: python:{module}:{function}\n", code=2)


def test_a_module_that_is_missing_or_broken_is_told(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    project.write("broken_capture.py", "1 / 0\n")
    assert "ZeroDivisionError" in failure(project, "snapshot: python:broken_capture:f\n", code=2)
    told = failure(project, "snapshot: python:no_such_capture:f\n", code=2)
    assert "there is no module 'no_such_capture'" in told


def test_a_function_that_hangs_does_not_hang_us(project: Project, module: str) -> None:
    config = f"snapshot: {{callable: '{module}:waits', timeout_seconds: 0.05}}\n"
    assert failure(project, config).endswith("took longer than 0.05 s")


def test_a_program_is_run_in_the_project(project: Project) -> None:
    project.write("data.json", b'\xef\xbb\xbf{"price": 3}')
    assert captured(project, "snapshot: {command: [cat, data.json]}\n") == {"price": 3}
    assert captured(project, "snapshot: command:cat data.json | cat\n") == {"price": 3}


def test_arguments_are_not_for_a_shell(project: Project) -> None:
    project.write("assay.yaml", "snapshot: {command: [echo, '{}', '; touch hacked']}\n")
    with pytest.raises(SnapshotError):
        capture(Settings.find(project.root))
    assert not Path("hacked").exists()


def test_a_program_sees_only_the_variables_that_are_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPTURE_ONE", "1")
    monkeypatch.setenv("CAPTURE_TWO", "2")
    script = 'echo "{\\"one\\": \\"$CAPTURE_ONE\\", \\"two\\": \\"$CAPTURE_TWO\\"}"'
    config = f"snapshot:\n  command: '{script}'\n  env: [CAPTURE_ONE]\n"
    assert captured(project, config) == {"one": "1", "two": ""}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo no luck >&2; exit 7", "ended with exit code 7; its stderr ends with: no luck"),
        ("kill -9 $$", "was killed by SIGKILL"),
        ("true", "gave no JSON"),
        ("echo {", "gave no JSON"),
        ("echo 3", "gave 3, not a JSON object"),
        ("echo 'null'", "gave null, not a JSON object"),
        ("printf '\\377'", "printed something that is not UTF-8"),
        ('echo \'{"a": 1, "a": 2}\'', "gave no proper JSON: the key 'a' appears twice"),
        ("head -c 3000000 /dev/zero", "wrote more than 1,048,576 bytes"),
    ],
)
def test_a_program_that_fails_is_told(project: Project, script: str, told: str) -> None:
    quoted = script.replace("'", "''")
    config = f"snapshot:\n  command: '{quoted}'\n  max_output_mb: 1\n"
    assert told in failure(project, config)


def test_a_program_that_hangs_is_stopped(project: Project) -> None:
    config = "snapshot: {command: [sleep, '1000'], timeout_seconds: 0.05}\n"
    assert "took longer than 0.05 s and was stopped" in failure(project, config)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{command: [no-such-program]}", "was not found on PATH"),
        ("{command: [ls], cwd: nowhere}", "nowhere' does not exist"),
    ],
)
def test_a_program_that_cannot_start_is_reported(project: Project, source: str, told: str) -> None:
    assert told in failure(project, f"snapshot: {source}\n", code=2)
