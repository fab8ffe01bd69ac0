"""`assay view` as a process: it serves, opens a browser, and ends with Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import sys
from pathlib import Path

import httpx2
import pytest

from e2e.projects import Process, Project, ended
from timeouts import WAIT_SECONDS

SUITE = "cases:\n  - {id: paris, input: Paris, expected_output: Paris}\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("assay.yaml", {"targets": [{"name": "echo", "provider": "echo"}]})
    project.write("evals/small.eval.yaml", SUITE)
    project.run("run", "evals/", "--target", "echo")
    return project


def printed(process: Process) -> tuple[str, str]:
    """The address of the server, and the path of the page, as printed."""
    assert process.stdout is not None
    match = re.search(r" on (http://127\.0\.0\.1:\d+)(/\S*)", process.stdout.readline())
    assert match is not None
    return match[1], match[2]


def test_it_opens_the_page_of_a_run_until_ctrl_c(project: Project) -> None:
    ((run_id, _),) = project.runs()
    os.mkfifo(project.root / "opened")
    opened = os.open(project.root / "opened", os.O_RDONLY | os.O_NONBLOCK)
    # The browser is a program that writes the address to our pipe.
    code = "import sys; open('opened', 'w').write(sys.argv[1])"
    browser = f"{shlex.join([sys.executable, '-c', code])} %s"
    process = project.start("view", "latest", env={"BROWSER": browser})
    url, path = printed(process)
    assert path == f"/runs/{run_id}"
    assert select.select([opened], [], [], WAIT_SECONDS)[0]
    assert os.read(opened, 1000).decode() == url + path
    os.close(opened)
    page = httpx2.get(url + path, timeout=WAIT_SECONDS)
    assert page.status_code == 200
    assert run_id in page.text
    process.send_signal(signal.SIGINT)
    ended(process, 0)


def test_it_opens_the_page_of_a_group(project: Project) -> None:
    targets = ("--target", "echo", "--target", "echo:")
    group = json.loads(project.run("run", "evals/", *targets, "--json").stdout)["groupId"]
    process = project.start("view", group[:18], "--no-browser")
    url, path = printed(process)
    assert path == f"/groups/{group}"
    page = httpx2.get(url + path, timeout=WAIT_SECONDS)
    assert "Cannot tell" in page.text
    process.send_signal(signal.SIGINT)
    ended(process, 0)


def test_without_a_run_it_shows_the_list_of_runs(project: Project) -> None:
    process = project.start("view", "--no-browser", env={"BROWSER": "touch opened"})
    url, path = printed(process)
    assert path == "/"
    assert httpx2.get(url + path, timeout=WAIT_SECONDS).status_code == 200
    process.send_signal(signal.SIGINT)
    ended(process, 0)
    assert not (project.root / "opened").exists()


def test_an_unknown_run_is_refused(project: Project) -> None:
    done = project.run("view", "nothing", code=2)
    assert "the store has no run or baseline 'nothing'" in done.stderr
