"""The cost of a run, relative to a floor; each figure has a limit, the bar.

    python benchmarks/run.py [--cases 100000] [--large 1000000] [--peers]

The floor of recorded cases is one process with the standard library: read the case and the
observation, do the same checks, write one JSON line with id, verdict and response. Both are whole
commands, so start-up counts. `--peers` also runs pydantic-evals on the same cases, in a new
virtual environment.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ASSAY = str(Path(sys.executable).with_name("assay"))
#: Installed packages are compiled: without bytecode, start-up would mostly be compiling.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
PROSE = (
    "Let me look at what the records say about this place. The country {i} has had the same "
    "capital since its foundation, and both the atlas and the almanac agree on the name. "
    "The capital of country {i} is {city}, a town on a river with a harbour, a university and "
    "a well-known museum. If you want to travel there, the best season is early summer, when "
    "the days are long and the evenings are mild. Trains leave the main station every hour, "
    "and most of them stop near the old market, from where it is a short walk to the harbour. "
    "Visitors from abroad need no visa for stays of up to ninety days. The currency is the one "
    "of the neighbouring countries, cards are accepted almost everywhere, and tap water is safe "
    "to drink. Tell me if you need anything else."
)
SYSTEM = (
    "You are the travel desk of a large agency. Answer questions about countries and cities from "
    "the atlas and the almanac, name the capital where it helps, and never guess: say plainly "
    "when the sources do not tell. Keep to two short paragraphs and stay friendly."
)
FOUND = (
    "Atlas, plate {i}: political map with capital, harbours and railways. Almanac, entry {i}: "
    "the capital is {city}; population, climate, currency and visa rules follow on the next page."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peers", action="store_true", help="run pydantic-evals too")
    parser.add_argument("--only", choices=("ordinary", "recorded", "live", "memory"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("assay.yaml").touch()
        if options.only in (None, "ordinary"):
            ordinary(options.cases, peers=options.peers)
        if options.only in (None, "recorded"):
            recorded(options.cases, options.rounds, peers=options.peers)
        if options.only in (None, "live"):
            live()
        if options.only in (None, "memory"):
            memory(options.large)


#: The agent under test of the ordinary path, and of its floor and peer.
AGENT = f"""
import re
PROSE = {PROSE!r}
def answer(question: str) -> str:
    i = int(re.search("country ([0-9]+)", question)[1])
    return PROSE.format(i=i, city="Nowhere" if i % 10 == 0 else f"City {{i}}")
"""


def ordinary(cases: int, *, peers: bool) -> None:
    """W1 with an in-process Python target: each case is asked, graded and durable."""
    Path("agent.py").write_text(AGENT)
    ENVIRONMENT["PYTHONPATH"] = os.getcwd()
    for count in (10_000, cases):
        name = f"ordinary-{count}"
        write(name, count, 0)
        _, floor_cpu = wall([sys.executable, __file__, "--loop", name])
        shutil.rmtree(".assay", ignore_errors=True)
        work = [ASSAY, "run", f"{name}.eval.jsonl", "--target", "python:agent:answer"]
        spent, cpu = wall(work, expected=1)
        detail = f"{cpu / count * 1e3:.3f} / {floor_cpu / count * 1e3:.3f} ms of CPU a case"
        at_most(f"ordinary path, {count:,} cases: CPU / a bare loop's", cpu / floor_cpu, 5, detail)
        if peers and count == 10_000:
            theirs = pydantic_evals(name, count)
            detail = f"{spent:.1f} s / {theirs:.1f} s"
            what = f"ordinary path, {count:,} cases: rate / pydantic-evals'"
            at_least(what, theirs / spent, 5, detail)
    shutil.rmtree(".assay", ignore_errors=True)
    small = "ordinary-10000"
    _, cpu = wall([ASSAY, "run", f"{small}.eval.jsonl", "--target", f"replay:{small}.jsonl"], 1)
    detail = f"{cpu / 10_000 * 1e3:.3f} ms"
    at_most("recorded, 10,000 cases: CPU a case / 0.12 ms", cpu / 10_000 / 0.12e-3, 1, detail)


def loop(name: str) -> None:
    """The floor of the ordinary path: read, ask, check, write one JSON line a case."""
    import re

    from agent import answer  # type: ignore[import-not-found]

    with open(f"{name}.eval.jsonl") as cases, open(f"{name}.floor.jsonl", "w") as out:
        for line in cases:
            case = json.loads(line)
            text = answer(case["input"][-1]["content"])
            passed = all(check(entry, text, [], re) for entry in case["evaluators"])
            out.write(json.dumps({"id": case["id"], "passed": passed, "response": text}) + "\n")


def recorded(cases: int, rounds: int, *, peers: bool) -> None:
    """W1: four text assertions per case over recorded observations, with durable results."""
    spent_by_us = {}
    for steps in (0, 5):
        name = f"w1-{steps}"
        write(name, cases, steps)
        work = [ASSAY, "run", f"{name}.eval.jsonl", "--target", f"replay:{name}.jsonl"]
        floor, ours, used = [], [], []
        for _ in range(rounds):
            floor.append(wall([sys.executable, __file__, "--floor", name])[0])
            shutil.rmtree(".assay", ignore_errors=True)
            spent, cpu = wall(work, expected=1)
            ours.append(spent)
            used.append(cpu)
        spent_by_us[steps] = min(ours)
        what = "4 assertions" + (f" and {steps} steps" if steps else "")
        ratio = min(floor) / min(ours)
        rates = f"{cases / min(ours):,.0f} / {cases / min(floor):,.0f} cases a second"
        detail = f"{rates}, {min(used) / cases * 1e6:.0f} us of CPU a case"
        at_least(
            f"recorded, {cases:,} cases, {what}: rate / floor's",
            ratio,
            0.35 if not steps else 0.175,
            detail,
        )
    if peers:
        theirs = pydantic_evals("w1-0", cases)
        at_least(
            f"recorded, {cases:,} cases, 4 assertions: rate / pydantic-evals'",
            theirs / spent_by_us[0],
            8,
            f"{spent_by_us[0]:.1f} s / {theirs:.1f} s",
        )
    journal = Path(".assay/assay.db").stat().st_size / 1e6
    print(f"          the store of the last run: {journal:.0f} MB")
    work = [ASSAY, "run", "w1-0.eval.jsonl", "--target", "replay:w1-0.jsonl"]
    without = min(wall([*work, "--store", "memory:"], expected=1)[0] for _ in range(rounds))
    no_bar(
        f"the journal, {cases:,} cases: time / without it, in memory",
        spent_by_us[0] / without,
        f"{spent_by_us[0]:.1f} s / {without:.1f} s",
    )


def write(name: str, cases: int, steps: int) -> None:
    with open(f"{name}.eval.jsonl", "w") as out, open(f"{name}.jsonl", "w") as seen:
        for i in range(cases):
            out.write(json.dumps(case(i, steps)) + "\n")
            seen.write(json.dumps(observation(i, steps)) + "\n")


def case(i: int, steps: int) -> dict[str, Any]:
    evaluators: list[dict[str, Any]] = [
        {"type": "contains", "value": f"City {i}"},
        {"type": "icontains", "value": f"COUNTRY {i}"},
        {"type": "regex", "value": "[Cc]apital of country [0-9]+ is"},
        {"type": "not_contains", "value": "I do not know"},
    ]
    if steps:
        expected = [{"tool": f"tool-{n}", "args": {"query": str(i)}} for n in range(steps)]
        evaluators.append({"type": "tool_trajectory", "expected": expected})
    return {
        "id": f"case-{i}",
        "description": f"The capital of country {i}, asked for plainly",
        "input": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"What is the capital of country {i}?"},
        ],
        "evaluators": evaluators,
        "threshold": 0.9,
        "tags": ["geography", "capitals"],
        "metadata": {"source": "atlas", "plate": i},
    }


def observation(i: int, steps: int) -> dict[str, Any]:
    """What a travel agent did; every tenth answer names the wrong city."""
    city = "Nowhere" if i % 10 == 0 else f"City {i}"
    calls = [
        {
            "name": f"tool-{n}",
            "params": {"query": str(i), "limit": 5},
            "result": FOUND.format(i=i, city=city),
            "success": True,
            "durationMs": 31.5,
        }
        for n in range(max(steps, 2))
    ]
    return {
        "id": f"case-{i}",
        "response": PROSE.format(i=i, city=city),
        "toolCalls": calls,
        "durationMs": 812.5,
        "usage": {"inputTokens": 412, "outputTokens": 187},
    }


def floor(name: str) -> None:
    """The floor, run as a process of its own."""
    import re

    with (
        open(f"{name}.eval.jsonl") as cases,
        open(f"{name}.jsonl") as seen,
        open(f"{name}.floor.jsonl", "w") as out,
    ):
        for line, answer in zip(cases, seen, strict=True):
            case, record = json.loads(line), json.loads(answer)
            text, held = record["response"], 0
            for entry in case["evaluators"]:
                held += check(entry, text, record["toolCalls"], re)
            passed = held == len(case["evaluators"])
            out.write(json.dumps({"id": case["id"], "passed": passed, "response": text}) + "\n")


def check(entry: dict[str, Any], text: str, calls: list[dict[str, Any]], re: Any) -> bool:
    kind = entry["type"]
    if kind == "contains":
        return entry["value"] in text
    if kind == "icontains":
        return entry["value"].casefold() in text.casefold()
    if kind == "regex":
        return re.search(entry["value"], text) is not None
    if kind == "not_contains":
        return entry["value"] not in text
    rest = iter(calls)
    return all(
        any(
            call["name"] == step["tool"]
            and all(call["params"].get(k) == v for k, v in step["args"].items())
            for call in rest
        )
        for step in entry["expected"]
    )


PYDANTIC_EVALS = """
import json, sys, time
from dataclasses import dataclass
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
import re
seen = {}
cases = []
for line, answer in zip(open(sys.argv[1] + ".eval.jsonl"), open(sys.argv[1] + ".jsonl")):
    if len(cases) == int(sys.argv[2]): break
    case, record = json.loads(line), json.loads(answer)
    seen[case["id"]] = record["response"]
    cases.append(case)
@dataclass
class Contains(Evaluator):
    value: str
    def evaluate(self, ctx: EvaluatorContext) -> bool: return self.value in ctx.output
@dataclass
class IContains(Evaluator):
    value: str
    def evaluate(self, ctx: EvaluatorContext) -> bool:
        return self.value.casefold() in ctx.output.casefold()
@dataclass
class Matches(Evaluator):
    value: str
    def evaluate(self, ctx: EvaluatorContext) -> bool:
        return re.search(self.value, ctx.output) is not None
@dataclass
class Lacks(Evaluator):
    value: str
    def evaluate(self, ctx: EvaluatorContext) -> bool: return self.value not in ctx.output
KINDS = {"contains": Contains, "icontains": IContains, "regex": Matches, "not_contains": Lacks}
dataset = Dataset(name="w1", cases=[
    Case(name=c["id"], inputs=c["id"], evaluators=tuple(
        KINDS[e["type"]](e["value"]) for e in c["evaluators"]))
    for c in cases])
async def answer(identity: str) -> str: return seen[identity]
report = dataset.evaluate_sync(answer, progress=False)
print(len(report.cases))
"""


def pydantic_evals(name: str, cases: int) -> float:
    """Seconds of the same work in pydantic-evals, which stores no results."""
    home = Path("peer")
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *quiet, "pydantic-evals"], check=True)
    spent, _ = wall([python, "-c", PYDANTIC_EVALS, name, str(cases)])
    return spent


def live(cases: int = 1000, seconds: float = 0.2, rounds: int = 3) -> None:
    """W2: an HTTP agent that takes 200 ms, 100 and 1,000 in flight.

    The floor is a bare aiohttp client: it sends the same questions with the same concurrency, and
    no answer is graded or stored. The bar excludes start-up, as importing the client alone takes
    a tenth of the ideal; whole commands are compared without a bar. Start-up is the time of a run
    of one case, less the agent's answer. The agent is a process of its own, on the same
    processors.
    """
    lines = [
        {"id": f"c{i}", "input": f"question {i}", "expected_output": f"question {i}"}
        for i in range(cases)
    ]
    Path("live.eval.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Agent(seconds) as port:
        work = [ASSAY, "run", "live.eval.jsonl", "--target", f"http://127.0.0.1:{port}/"]
        for in_flight, bar in ((100, 1.15), (1000, None)):
            whole, one, floor = [], [], []
            for _ in range(rounds):
                floor.append(bare_client(f"{port},{cases},{in_flight}"))
                whole.append(fresh([*work, "--workers", str(in_flight)]))
                one.append(fresh([*work, "--filter", "c0"]))
            started, cpu = min(one)[0] - seconds, min(cpu for _, cpu in one)
            ideal, spent = seconds * cases / in_flight, min(whole)[0]
            detail = f"{spent:.2f} s of which {started:.2f} s ({cpu:.2f} s of CPU) are start-up"
            asked, bare = (min(times) for times in zip(*floor, strict=True))
            detail += f" / {ideal:.1f} s; a bare client {asked / ideal:.2f} x"
            what = f"live, {cases:,} cases of 200 ms, {in_flight} in flight"
            ratio = (spent - started) / ideal
            if bar is None:
                no_bar(f"{what}: wall / ideal", ratio, detail)
            else:
                at_most(f"{what}: wall / ideal", ratio, bar, detail)
            whole_commands = f"{spent:.2f} s / {bare:.2f} s, {bare / ideal:.2f} x of the ideal"
            no_bar(f"{what}: whole command / a bare client's", spent / bare, whole_commands)


def fresh(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command, in a project that has no store yet."""
    shutil.rmtree(".assay", ignore_errors=True)
    return wall(command)


def bare_client(order: str) -> tuple[float, float]:
    """Seconds from the first question to the last answer, and of the whole process."""
    command = [sys.executable, __file__, "--client", order]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return float(done.stdout), time.perf_counter() - began


def client(order: str) -> None:
    """The floor of a live run, as a process of its own: `order` is port, questions, concurrency."""
    import aiohttp

    port, cases, concurrency = map(int, order.split(","))

    async def run() -> float:
        numbers = iter(range(cases))
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(
            f"http://127.0.0.1:{port}", connector=connector
        ) as session:

            async def worker() -> None:
                for i in numbers:
                    async with session.post("/", json={"message": f"question {i}"}) as reply:
                        assert (await reply.json())["response"] == f"question {i}"

            started = time.perf_counter()
            await asyncio.gather(*(worker() for _ in range(concurrency)))
            return time.perf_counter() - started

    print(asyncio.run(run()))


class Agent:
    """An agent in a process of its own that echoes the message after a delay."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> int:
        command = [sys.executable, __file__, "--agent", str(self._seconds)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait()


def serve(seconds: float) -> None:
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        message = (await request.json())["message"]
        await asyncio.sleep(seconds)
        return web.json_response({"response": message, "toolCalls": []})

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


def memory(large: int) -> None:
    """The peak memory of all processes of a run together, with shared pages counted once."""
    peaks = {}
    for cases in (1000, large):
        write("memory", cases, 0)
        # A small file is loaded whole; padding makes it large enough to be streamed.
        if cases < 20_000:
            with open("memory.eval.jsonl", "a") as stream:
                stream.write("\n" * (5 * 1024 * 1024))
        shutil.rmtree(".assay", ignore_errors=True)
        work = [ASSAY, "run", "memory.eval.jsonl", "--target", "replay:memory.jsonl"]
        peaks[cases] = peak(work)
    at_most(
        f"peak memory of {large:,} recorded cases / 200 MB",
        peaks[large] / 200e6,
        1.0,
        f"{peaks[large] / 1e6:.0f} MB",
    )
    more = (peaks[large] - peaks[1000]) / large
    at_most("bytes a case above the peak at 1,000 / 48", more / 48, 1.0, f"{more:.1f} bytes")


def peak(command: list[str]) -> float:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=ENVIRONMENT)
    most = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.05):
            most = max(most, sum(pages(pid) for pid in family(process.pid)))

    thread = threading.Thread(target=watch)
    thread.start()
    process.wait()
    done.set()
    thread.join()
    return most


def family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from family(int(child))


def pages(pid: int) -> float:
    """The proportional set size of a process: shared pages are divided among their users."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(1024.0 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def wall(command: list[str], expected: int = 0) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    os.sync()  # so that it does not pay for earlier writes
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    spent = time.perf_counter() - started
    assert done.returncode == expected, done.stderr[-2000:] + done.stdout[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, cpu


def at_most(what: str, ratio: float, bar: float, detail: str) -> None:
    report(what, ratio, bar, ratio <= bar, detail)


def at_least(what: str, ratio: float, bar: float, detail: str) -> None:
    report(what, ratio, bar, ratio >= bar, detail)


def no_bar(what: str, ratio: float, detail: str) -> None:
    print(f"{ratio:6.2f} x   (no bar)   {what}   [{detail}]", flush=True)


def report(what: str, ratio: float, bar: float, held: bool, detail: str) -> None:
    verdict = "ok" if held else "MISSED"
    print(f"{ratio:6.2f} x   (bar {bar:.2f}, {verdict})   {what}   [{detail}]", flush=True)


if __name__ == "__main__":
    roles: dict[str, Callable[[str], None]] = {
        "--floor": floor,
        "--loop": loop,
        "--agent": lambda seconds: serve(float(seconds)),
        "--client": client,
    }
    if len(sys.argv) == 3 and sys.argv[1] in roles:
        roles[sys.argv[1]](sys.argv[2])
    else:
        main()
