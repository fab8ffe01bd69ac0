"""Projects that are served for the tests of pages."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from browser.hostile import write_suites
from e2e.projects import NOTHING, Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "weather"


class Site:
    """A server at work on a project. Its `runs` are ids, oldest first."""

    def __init__(self, url: str, project: Project) -> None:
        self.url, self.project = url, project
        self.runs = [run_id for run_id, _ in project.runs()]

    @property
    def run(self) -> str:
        """The newest run."""
        return self.runs[-1]


@contextmanager
def served(project: Project, *, env: Mapping[str, str] = NOTHING) -> Iterator[Site]:
    """A real server on a free port of loopback; it ends with the test."""
    process = project.start("serve", "--port", "0", env=env)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r" on (http://\S+)", line)
        assert match is not None, line
        yield Site(match[1], project)
    finally:
        process.terminate()
        with process:
            process.communicate()


@contextmanager
def example_site(root: Path) -> Iterator[Site]:
    """The example after its demo: `v1` is the baseline, and `v2` lost a critical case."""
    project = example(root)
    with served(project) as site:
        yield site


def example(root: Path) -> Project:
    """The example with its two runs."""
    shutil.copytree(EXAMPLE, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".assay"))
    project = Project(root)
    project.run("run", "evals/", "--target", "v1", code=1)
    project.run("baseline", "update", "main")
    project.run("run", "evals/", "--target", "v2", "--baseline", "main", code=1)
    return project


@contextmanager
def hostile_site(root: Path) -> Iterator[Site]:
    """The run in which every text is hostile, and its baseline, which passed more cases."""
    project = Project(root)
    write_suites(root)
    project.run("run", "evals/", code=1)
    project.run("baseline", "set", "main")  # some of its cases are errored
    project.run("run", "evals/", "--target", "worse", "--baseline", "main", code=1)
    with served(project) as site:
        yield site
