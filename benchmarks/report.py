"""The HTML report of a large run: its size, what writing it takes, and how quick it is in Chromium.

    python benchmarks/report.py [--cases 100000] [--keep FOLDER]

Texts are pieces of the docstrings of the standard library, as made-up prose would compress too
well. 12 % of the cases fail, 2 % are errored, and there is a baseline. Without Playwright and
Chromium only the writing is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ASSAY = str(Path(sys.executable).with_name("assay"))
MEGABYTE = 1_000_000
TAGS = ("billing", "refund", "shipping", "account", "search", "returns", "slow", "critical")
#: Until the list is ready, and what opens a case. Waiting is done in the page: a poll would count.
READY = "html[data-ready]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--keep", help="a folder for the project, which is used again if it exists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(options.keep or folder)
        if not (root / "assay.yaml").exists():
            prepare(root, options.cases)
        file = root / "report.html"
        write_report(root, file)
        if shutil.which("chromium"):
            look(file)


def prepare(root: Path, cases: int) -> None:
    """A project with two runs: the second has lost some cases that the first passed."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "assay.yaml").touch()
    texts = list(passages())
    for name, seed in (("before", 1), ("now", 2)):
        chance = random.Random(seed)
        with (
            open(root / "cases.eval.jsonl", "w") as suite,
            open(root / f"{name}.jsonl", "w") as seen,
        ):
            for number in range(cases):
                case, observation = made(number, texts, random.Random(number), chance)
                suite.write(json.dumps(case) + "\n")
                if observation is not None:
                    seen.write(json.dumps(observation) + "\n")
    work = [
        ASSAY,
        "run",
        "cases.eval.jsonl",
        "-q",
        "--min-coverage",
        "0",
        "--confirm",
        "0",
        "--target",
    ]
    subprocess.run([*work, "replay:before.jsonl"], cwd=root, check=False)
    subprocess.run([ASSAY, "baseline", "set", "main", "latest"], cwd=root, check=True)
    subprocess.run([*work, "replay:now.jsonl", "--baseline", "main"], cwd=root, check=False)


def passages() -> Iterator[str]:
    """Sentences of about 100 to 400 characters from docstrings and comments."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(library.glob("*.py")):
        text = file.read_text(encoding="utf-8", errors="replace")
        for found in re.findall(r'"""(.*?)"""', text, re.DOTALL):
            for paragraph in re.split(r"\n\s*\n", found):
                words = " ".join(paragraph.split())
                if len(words) > 100:
                    yield words[:400]


def made(
    number: int, texts: list[str], own: random.Random, chance: random.Random
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A case, and what the agent did; it depends on `own`, and a little on `chance`."""
    name = f"{own.choice(TAGS)}-{number:06}"
    word = f"ticket-{number}"
    case = {
        "id": name,
        "description": own.choice(texts)[:60],
        "input": own.choice(texts),
        "tags": sorted({own.choice(TAGS), own.choice(TAGS)}),
        "evaluators": [
            {"type": "contains", "value": word},
            {"type": "regex", "value": r"\w+"},
        ],
    }
    answer = f"{own.choice(texts)} {own.choice(texts)}"
    outcome = own.random() + 0.02 * chance.random()
    calls = [
        {
            "name": own.choice(("search", "lookup", "refund", "notify")),
            "params": {"query": own.choice(texts)[:40], "limit": own.randrange(100)},
            "result": own.choice(texts)[:80],
            "duration_ms": round(own.uniform(1, 900), 1),
        }
        for _ in range(own.randrange(7))
    ]
    if outcome > 0.99:
        return case, None
    observation = {
        "id": name,
        "response": answer if outcome > 0.87 else f"{answer} {word}",
        "tool_calls": calls,
        "duration_ms": round(own.uniform(50, 9000), 3),
        "cost_usd": round(own.uniform(0.0001, 0.05), 6),
        "usage": {"input_tokens": own.randrange(2000), "output_tokens": own.randrange(500)},
    }
    return case, observation


def write_report(root: Path, file: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([ASSAY, "report", "-o", str(file)], cwd=root, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{spent:8.1f} s    CPU to write the report")
    print(f"{after.ru_maxrss / 1024:8.0f} MB   peak memory, also of what came before")
    at_most("size", file.stat().st_size / MEGABYTE, 20, "MB")


def look(file: Path) -> None:
    """Open the report in Chromium and use it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--enable-precise-memory-info"],
        )
        page = browser.new_page()
        page.on("pageerror", lambda error: print("error:", error))
        client = page.context.new_cdp_session(page)
        client.send("Performance.enable", {"timeDomain": "threadTicks"})

        def used() -> float:
            """The seconds of CPU that the page has taken."""
            metrics = client.send("Performance.getMetrics")["metrics"]
            return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))

        start = time.perf_counter()
        page.goto(f"file://{os.path.abspath(file)}", wait_until="commit")
        page.wait_for_selector(READY, state="attached")
        print(f"{time.perf_counter() - start:8.1f} s    until the list is there")
        at_most("CPU until then", used(), 3, "s")
        client.send("HeapProfiler.collectGarbage")
        heap = client.send("Runtime.getHeapUsage")["usedSize"]
        at_most("heap", heap / MEGABYTE, 100, "MB")
        page.wait_for_load_state()
        steps = (
            ("filter outcome:failed", "filter=outcome:failed", 300),
            ("filter tag and score", "filter=tag:billing -tag:slow score<0.6", 300),
            ("filter id", "filter=id:refund-*9", 300),
            ("show all cases", "", 300),
            ("sort by time", "sort=-latency", 300),
            ("sort by id", "sort=id", 300),
            ("open a case", "case=12345", 100),
            ("open another case", "case=54321", 100),
            ("search all texts", "filter=zeichen", 7000),
            ("filter what was found", "filter=zeichen outcome:failed", 300),
        )
        for name, address, limit in steps:
            before = used()
            waited = page.evaluate(_SHOW, address)
            spent = 1000 * (used() - before)
            at_most(f"CPU to {name} ({waited:.0f} ms until it is drawn)", spent, limit, "ms")
        browser.close()


#: Changes the address, and returns how long it took until the page has drawn what it leads to.
_SHOW = """async (address) => {
  const start = performance.now();
  const shown = new Promise((resolve) => addEventListener("report-shown", resolve, { once: true }));
  location.hash = "#" + address;
  await shown;
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - start;
}"""


def at_most(name: str, found: float, limit: float, unit: str) -> None:
    verdict = "ok" if found <= limit else "MISSED"
    print(f"{found:8.1f} {unit:4} {name}; at most {limit:g}: {verdict}")


if __name__ == "__main__":
    main()
