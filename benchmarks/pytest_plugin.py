"""The cost of the pytest plugin: unused, against `assay run`, and for each item.

    python benchmarks/pytest_plugin.py [--items 10000]

The agent is an async function that takes 200 ms. CPU times are the lowest of several runs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5
BIN = Path(sys.executable).parent
#: Installed packages are compiled: without bytecode, start-up would mostly be compiling.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
#: Only our plugin and pytest's own, so that others do not hide what it costs.
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
AGENT = """
import asyncio

async def slow(question):
    await asyncio.sleep(0.2)
    return question

def quick(question):
    return question
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--items", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "agent.py").write_text(AGENT)
        (project / "assay.yaml").write_text("{}\n")
        (project / "test_empty.py").write_text("def test_it(): pass\n")
        unused(project)
        live(project, 200)
        items(project, options.items)


def unused(project: Path) -> None:
    """What a project pays that has the plugin installed and does not use it; the bar is 20 ms."""
    bare, with_plugin = [], []
    for _ in range(ROUNDS):
        bare.append(pytest(project, "test_empty.py")[1])
        with_plugin.append(pytest(project, "-p", "_assay_pytest", "test_empty.py")[1])
    cost = 1000 * (min(with_plugin) - min(bare))
    print(f"unused: {cost:.0f} ms of CPU, of {1000 * min(bare):.0f} ms (bar 20 ms)", flush=True)


def live(project: Path, count: int) -> None:
    """Cases of 200 ms with 100 in flight, both as whole commands."""
    write(project, count)
    options = ("target", "python:agent:slow"), ("workers", "100")
    flags = [word for name, value in options for word in (f"--{name}", value)]
    ours = [word.replace("--", "--assay-") for word in flags]
    command = [str(BIN / "assay"), "run", "a.eval.jsonl", "--store", "memory:", *flags]
    runs, tests = [], []
    for _ in range(ROUNDS):
        runs.append(timed(command, project, {})[0])
        tests.append(plugin(project, *ours)[0])
    limit = 1.5 * min(runs) + 0.001 * count
    found = f"{min(tests):.2f} s, `assay run` {min(runs):.2f} s (bar {limit:.2f} s)"
    print(f"{count} cases of 200 ms, 100 in flight: {found}", flush=True)


def items(project: Path, count: int) -> None:
    """What an item costs in CPU, above one item."""
    costs = {}
    for number in (1, count):
        write(project, number)
        costs[number] = plugin(project, "--assay-target", "python:agent:quick")[1]
    each = 1000 * (costs[count] - costs[1]) / count
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{count:,} items: {each:.2f} ms of CPU an item, {peak:.0f} MB", flush=True)


def write(project: Path, count: int) -> None:
    case = '{"id": "c%d", "input": "hello", "expected_output": "hello"}\n'
    (project / "a.eval.jsonl").write_text("".join(case % number for number in range(count)))


def plugin(project: Path, *flags: str) -> tuple[float, float]:
    load = ("-p", "_assay_pytest", "--assay", "--assay-store", "memory:")
    return pytest(project, *load, *flags, "a.eval.jsonl")


def pytest(project: Path, *arguments: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return timed(command, project, ALONE)


def timed(command: list[str], project: Path, more: dict[str, str]) -> tuple[float, float]:
    """The wall and the CPU time of a command, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, cwd=project, env=ENVIRONMENT | more, capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
