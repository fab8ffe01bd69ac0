"""The time and memory of loading, relative to a floor.

    python benchmarks/load.py [--cases 10000] [--lines 1000000]

Prints ratios: absolute times depend on the machine, ratios hardly do. Every figure is the best
of several rounds, in which floor and work alternate.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from yaml.events import (
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

import assay

CASE = """\
  - id: case-{i}
    description: "Case number {i} of the load benchmark"
    expected_outcome: The agent answers question {i} with the right city
    input:
      - role: system
        content: You are a helpful geography assistant
      - role: user
        content: "What is the capital of country {i}?"
    expected_output:
      - role: assistant
        tool_calls:
          - tool: search
            input: {{query: "capital of country {i}", limit: 5}}
        content: Let me look
      - role: assistant
        content: The capital is City {i}
    evaluators:
      - name: mentions
        type: contains
        value: City {i}
        weight: 2
      - name: path
        type: tool_trajectory
        mode: in_order
        expected:
          - tool: search
            args: {{query: "capital of country {i}"}}
      - type: regex
        value: "[Cc]ity [0-9]+"
    tags: [geo, "batch-{batch}"]
    metadata:
      owner: team-{batch}
      n: {i}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=10_000, help="cases of the YAML file")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the JSONL file")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        yaml_load(options.cases, options.rounds)
        jsonl_stream(options.lines)
        start_up(options.rounds)


def yaml_load(cases: int, rounds: int) -> None:
    file = Path("big.eval.yaml")
    body = "".join(CASE.format(i=i, batch=i % 7) for i in range(cases))
    file.write_text("description: load benchmark\ncases:\n" + body, encoding="utf-8")
    text = file.read_text(encoding="utf-8")
    assay.load(file)  # import everything once
    floors, ours = [], []
    for _ in range(rounds):
        floors.append(timed(lambda: bare_events(text)))
        ours.append(timed(lambda: assay.load(file)))
    report(
        f"YAML, {cases:,} cases, {len(text) / 1e6:.1f} MB: load and validate / bare event builder",
        min(ours) / min(floors),
        1.5,
        f"{min(ours):.2f} s / {min(floors):.2f} s",
    )


_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


def bare_events(text: str) -> tuple[Any, Any]:
    """The floor: builds plain data from libyaml's events, with the mark of every key and item.

    YAML 1.2 scalars, but no anchors, limits, check for duplicate keys, or validation.
    """
    next_event: Callable[[], Any] = yaml.CSafeLoader(text).get_event
    next_event(), next_event()
    stack: list[Any] = []
    container: Any = None
    marks: Any = None
    key: Any = None
    has_key = in_mapping = False
    while True:
        event = next_event()
        kind = type(event)
        if kind is ScalarEvent:
            value, mark = event.value, event.start_mark
            if event.implicit[0]:
                if value in _WORDS:
                    value = _WORDS[value]
                elif value[0] in "0123456789-+.":
                    if _INT.match(value):
                        value = int(value)
                    elif _FLOAT.match(value):
                        value = float(value)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            stack.append((container, marks, key, has_key, in_mapping))
            in_mapping, has_key = kind is MappingStartEvent, False
            container, marks = ({} if in_mapping else []), [event.start_mark]
            continue
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            value, mark = container, marks
            container, marks, key, has_key, in_mapping = stack.pop()
            if container is None:
                return value, mark
        marks.append(mark)
        if not in_mapping:
            container.append(value)
        elif has_key:
            container[key] = value
            has_key = False
        else:
            key, has_key = value, True


def jsonl_stream(lines: int) -> None:
    small, large = Path("small.eval.jsonl"), Path("large.eval.jsonl")
    for file, count in ((small, 1_000), (large, lines)):
        with file.open("w", encoding="utf-8") as stream:
            for i in range(count):
                stream.write(json.dumps(jsonl_case(i)) + "\n")
    code = (
        "import assay, re, sys\n"
        "suite, = assay.load(sys.argv[1])\n"
        "count = sum(1 for case in suite.cases)\n"
        # not ru_maxrss: a child inherits that of its parent
        "status = open('/proc/self/status').read()\n"
        "print(count, re.search(r'VmHWM:\\s+(\\d+)', status)[1])\n"
    )
    peaks = {}
    for file, count in ((small, 1_000), (large, lines)):
        started = time.perf_counter()
        output = subprocess.run(
            [sys.executable, "-c", code, str(file)], check=True, capture_output=True, text=True
        ).stdout.split()
        assert int(output[0]) == count
        peaks[count] = int(output[1]) / 1024
        elapsed = time.perf_counter() - started
    size = large.stat().st_size / 1e6
    report(
        f"JSONL, {lines:,} lines, {size:.0f} MB: peak memory / 150 MB",
        peaks[lines] / 150,
        1.0,
        f"{peaks[lines]:.0f} MB; {peaks[1_000]:.0f} MB at 1,000 lines; "
        f"validated and read again in {elapsed:.0f} s",
    )


def jsonl_case(i: int) -> dict[str, Any]:
    return {
        "id": f"case-{i}",
        "input": f"What is the capital of country {i}?",
        "expected_output": f"City {i}",
        "evaluators": [
            {"type": "contains", "value": f"City {i}"},
            {"type": "not-contains", "value": "I don't know"},
        ],
        "tags": ["geo"],
    }


def start_up(rounds: int) -> None:
    Path("one.eval.yaml").write_text(
        "cases:\n  - id: one\n    input: Hi\n    expected_output: Hello\n", encoding="utf-8"
    )
    command = str(Path(sys.executable).with_name("assay"))
    tries = 5 * rounds
    bare = min(cpu([sys.executable, "-c", "pass"]) for _ in range(tries))
    version = min(cpu([command, "--version"]) for _ in range(tries))
    report("assay --version / python -c pass, CPU", version / bare, 3.0, f"{version * 1e3:.0f} ms")
    validate = min(cpu([command, "validate", "one.eval.yaml"]) for _ in range(tries))
    report("assay validate one.yaml / 0.5 s of CPU", validate / 0.5, 1.0, f"{validate:.2f} s")


def timed(work: Callable[[], object]) -> float:
    """Seconds of one call, without garbage collection and without freeing the result."""
    gc.collect()
    gc.disable()
    started = time.perf_counter()
    result = work()
    elapsed = time.perf_counter() - started
    gc.enable()
    del result
    return elapsed


def cpu(command: list[str]) -> float:
    """CPU seconds of a child process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report(what: str, ratio: float, bar: float, detail: str) -> None:
    verdict = "ok" if ratio <= bar else "OVER"
    print(f"{ratio:6.2f} x   (bar {bar:.2f}, {verdict})   {what}   [{detail}]", flush=True)


if __name__ == "__main__":
    main()
