"""A stranger's package, really installed: its parts are used like our own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from timeouts import WAIT_SECONDS

PACKAGE = Path(__file__).parents[1] / "extension"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package installed into a folder of its own, as pip installs any other."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([*pip, *options, str(PACKAGE)], check=True, timeout=WAIT_SECONDS)
    return folder


def assay(site: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "assay", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS
    )


SUITE = """\
cases:
  - id: greets
    input: Say hello
    evaluators:
      - {type: polite, words: [hello]}
      - {type: short, most: 20}
"""

GRADE = """
import assay
case = assay.load("greet.eval.yaml")[0].cases[0]
for answer in ("hello there", "Good day, dear visitor of this page"):
    print(*[result.score.score for result in assay.evaluate(case, answer).evaluators])
"""


def test_its_evaluators_load_and_judge(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "greet.eval.yaml").write_text(SUITE)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    graded = subprocess.run(
        [sys.executable, "-c", GRADE],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS,
    )  # fmt: skip
    assert graded.stdout.splitlines() == ["1.0 1.0", "0.0 0.0"], graded.stderr


def test_its_keys_are_checked_with_their_places(installed: Path, tmp_path: Path) -> None:
    malformed = SUITE.replace("words:", "wrods:").replace("20", "many")
    (tmp_path / "greet.eval.yaml").write_text(malformed)
    done = assay(installed, tmp_path, "validate", "greet.eval.yaml")
    assert done.returncode == 2
    assert "greet.eval.yaml:5:24: error[unknown-key]" in done.stdout
    assert "did you mean 'words'?" in done.stdout
    assert "greet.eval.yaml:6:29: error[" in done.stdout


def test_its_keys_are_in_the_schema(installed: Path, tmp_path: Path) -> None:
    done = assay(installed, tmp_path, "schema", "eval")
    assert '"most"' in done.stdout


def test_plugins_lists_it_and_says_what_is_broken(installed: Path, tmp_path: Path) -> None:
    done = assay(installed, tmp_path, "plugins", "--json")
    entries = {(e["kind"], e["name"]): e for e in json.loads(done.stdout)}
    assert entries["evaluator", "polite"] == {
        "kind": "evaluator",
        "name": "polite",
        "source": "assay-politeness",
        "fault": "",
    }
    assert entries["evaluator", "short"]["fault"] == ""
    assert entries["target provider", "parrot"]["fault"] == ""
    assert "a_module_that_nobody_has" in entries["evaluator", "broken"]["fault"]
    assert entries["evaluator", "contains"]["source"] == "assay-evals"
    assert done.returncode == 3


def test_without_it_nothing_is_broken(tmp_path: Path) -> None:
    done = assay(tmp_path, tmp_path, "plugins")
    assert done.returncode == 0, done.stdout
    assert "polite" not in done.stdout
