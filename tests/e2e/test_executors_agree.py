"""All executors give the same results: files and exports are equal byte by byte.

Only what says when, where and as which run it was done is left out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contract.postgres import PASSWORD, Server

pytestmark = pytest.mark.cluster

#: Files of more than 4 MB are spread over workers.
LEAST_BYTES = 4_300_000
FORMATS = ("jsonl", "csv", "observations")
SQLITE = "sqlite:local.db"


@pytest.fixture
def url(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = postgres.new_database()
    yield url
    postgres.give_back(url)


def write(cases: int) -> None:
    """A suite with every outcome, several evaluators, and texts that are not ASCII."""
    Path("assay.yaml").write_text("shared_folder: true\n")
    Path("manners.py").write_text("def polite(response):\n    return 'please' in response\n")
    padding = "." * (LEAST_BYTES // cases)
    with open("a.eval.jsonl", "w") as suite, open("seen.jsonl", "w") as seen:
        for n in range(cases):
            suite.write(json.dumps(case(n, padding), ensure_ascii=False) + "\n")
            if n % 101:
                answer = {"id": f"c{n}", "response": f"það er {n % 13}{', please' * (n % 5)} 🌧"}
                measured = {"costUsd": 0.001 * n, "durationMs": 12.5} if n % 3 else {}
                seen.write(json.dumps(answer | measured) + "\n")


def case(n: int, padding: str) -> dict[str, Any]:
    checks = [
        {"type": "contains", "value": f"er {n % 11}"},
        {"type": "regex", "value": "[0-9]+", "weight": 2},
        {"type": "python:manners:polite"},
        {"type": "similarity", "value": "það er 7, please"},
    ]
    written = {"id": f"c{n}", "input": f"spurning {n}? {padding}", "tags": [f"t{n % 4}"]}
    skip = {"skip": "later"} if n % 97 == 5 else {}
    return written | {"evaluators": checks[: n % 4 + 1]} | skip


def assay(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "assay", *arguments], capture_output=True)


def documents(executor: str, store: str, *options: str) -> dict[str, bytes]:
    """The result file and the exports of a run."""
    before = {file.name for file in Path(".assay").glob("runs/*")}
    place = ["--executor", executor, "--store", store, *options]
    done = assay("run", "a.eval.jsonl", "--target", "replay:seen.jsonl", "--quiet", *place)
    assert done.returncode == 1, done.stderr.decode()
    (run,) = {file.name for file in Path(".assay").glob("runs/*")} - before
    (result,) = Path(".assay/runs", run).iterdir()
    found = {"result": without_place(result.read_bytes())}
    for name in FORMATS:
        exported = assay("export", name, run, "--store", store)
        assert exported.returncode == 0, exported.stderr.decode()
        found[name] = exported.stdout
    return {name: data.replace(run.encode(), b"RUN") for name, data in found.items()}


def without_place(result: bytes) -> bytes:
    """A result file without the time, the environment, and the options that name the executor."""
    text = re.sub(r'"timestamp":"[^"]*"', '"timestamp":0', result.decode(), count=1)
    at = text.rindex('"options":')
    options, end = json.JSONDecoder().raw_decode(text, at + len('"options":'))
    assert text[end:].startswith(',"environment":')
    environment, end = json.JSONDecoder().raw_decode(text, end + len(',"environment":'))
    assert environment["assay"]
    kept = {k: v for k, v in options.items() if k not in ("executor", "workers_per_machine")}
    return (text[:at] + json.dumps(kept) + text[end:]).encode()


def check_that_all_agree(cases: int, places: dict[str, dict[str, bytes]]) -> None:
    assert len(places["local"]["jsonl"].splitlines()) == cases
    found = {json.loads(line)["outcome"] for line in places["local"]["jsonl"].splitlines()}
    assert found == {"passed", "failed", "errored", "skipped"}
    for (one, expected), (other, found_there) in pairwise(places.items()):
        for name, document in expected.items():
            assert found_there[name] == document, f"{name} of {one} and {other} differ"


def test_executors_give_the_same_results(url: str, dask_cluster: str) -> None:
    write(1000)
    places = {
        "local": documents("local", SQLITE),
        "processes": documents("processes", url, "--workers-per-machine", "2"),
        "dask": documents(f"dask://{dask_cluster}", url),
    }
    check_that_all_agree(1000, places)


@pytest.mark.full
def test_executors_give_the_same_results_of_many_cases(url: str, dask_cluster: str) -> None:
    write(100_000)
    places = {
        "local": documents("local", SQLITE),
        "processes": documents("processes", url, "--workers-per-machine", "2"),
        "dask": documents(f"dask://{dask_cluster}", url),
        "ray": documents("ray", url, "--workers-per-machine", "2"),
    }
    check_that_all_agree(100_000, places)
