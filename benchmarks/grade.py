"""The cost of grading; each figure has a limit, the bar.

    python benchmarks/grade.py [--rounds 5]

Work and floor alternate in slices of a few milliseconds, and the shortest slice of each counts:
other load disturbs both equally, and the minimum finds the quiet moments of both.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from assay.engine.grading import Grader, Preparation
from assay.evaluators.tool_trajectory import ToolTrajectoryEvaluator
from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.model.result import EvalCaseResult
from assay.model.score import EvaluationScore
from assay.observations.reading import read_json
from assay.ports import Check, Resources
from assay.registry import evaluators as registered

#: How many slices of each function a round has.
SLICES = 300
MODES = ("in_order", "any_order", "exact", "subset")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    text_assertions(options.rounds)
    recorded(options.rounds)
    short_trajectory(options.rounds)
    long_trajectories(options.rounds)


def text_assertions(rounds: int, cases: int = 100) -> None:
    """Four text assertions per case, one core, in memory; then with a trajectory of five steps.

    Answers have some 800 characters, so that the floor reaches the 200,000 cases per second on
    which the bars are based. Two assertions differ from case to case, two belong to the suite.
    The floor does the same checks with the standard library. Nine of ten answers are right.
    """
    rows = [graded_case(i) for i in range(cases)]
    preparation = Preparation(Resources())
    plain = [(preparation.grader(case(i, 4)), seen) for i, seen in enumerate(rows)]
    traced = [(preparation.grader(case(i, 5)), seen) for i, seen in enumerate(rows)]
    wanted = [(f"City {i}", f"country {i}".casefold()) for i in range(cases)]
    pattern, banned = re.compile(PATTERN), BANNED

    def bare() -> None:
        for (name, folded), seen in zip(wanted, rows, strict=True):
            text = seen.response
            found = (
                name in text,
                folded in text.casefold(),
                pattern.search(text) is not None,
                banned not in text,
            )
            sum(found) / 4

    def work(graders: list[tuple[Grader, Observation]]) -> None:
        for grader, seen in graders:
            grader.grade(seen)

    results = [grader.grade(seen) for grader, seen in traced]
    right = sum(isinstance(result, EvalCaseResult) and result.passed for result in results)
    assert right == cases - cases // 10
    floor, ours, both = interleaved(
        rounds, cases, bare, partial(work, plain), partial(work, traced)
    )
    detail = f"{ours:.1f} us / {floor:.1f} us a case"
    report("4 text assertions a case: time / 1/0.7 of the floor's", ours / floor * 0.7, 1.0, detail)
    detail = f"{both:.1f} us / {floor:.1f} us a case"
    report("the same and 5 steps: time / 2/0.7 of the floor's", both / floor * 0.35, 1.0, detail)


def recorded(rounds: int, cases: int = 100) -> None:
    """What else a run does for a recorded case: read the observation, write the result.

    The floor parses and writes the same with the standard library's `json`.
    """
    for evaluators, what in ((4, "4 text assertions"), (5, "the same and 5 steps")):
        rows = [graded_case(i) for i in range(cases)]
        kept = rows if evaluators == 5 else [Observation(row.response) for row in rows]
        lines = [
            json.dumps({"id": f"case-{i}", "durationMs": 12.5, **seen.to_dict()}).encode()
            for i, seen in enumerate(kept)
        ]
        preparation = Preparation(Resources())
        results = [preparation.grader(case(i, evaluators)).grade(s) for i, s in enumerate(rows)]
        written = [r.to_dict() for r in results if isinstance(r, EvalCaseResult)]
        slices = interleaved(
            rounds,
            cases,
            partial(each, json.loads, lines),
            partial(each, read_json, lines),
            partial(each, json.dumps, written),
            partial(each, EvalCaseResult.to_json, results),
        )
        parsed, read, dumped, encoded = slices
        detail = f"{read:.1f} us / {parsed:.1f} us a case"
        report(f"reading an observation / json.loads, {what}", read / parsed, None, detail)
        detail = f"{encoded:.1f} us / {dumped:.1f} us a case"
        report(f"writing a result / json.dumps, {what}", encoded / dumped, None, detail)


def each(function: Callable[[Any], object], values: Sequence[Any]) -> None:
    for value in values:
        function(value)


PATTERN, BANNED = r"\b[Cc]ountry [0-9]+ is\b", "I do not know"
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


def graded_case(i: int) -> Observation:
    """An answer of some 800 characters with five calls; every tenth names the wrong city."""
    city = "Nowhere" if i % 10 == 0 else f"City {i}"
    calls = tuple(ToolCall(f"tool-{n}", {"query": str(i), "limit": 5}) for n in range(5))
    return Observation(PROSE.format(i=i, city=city), tool_calls=calls)


def case(i: int, evaluators: int) -> EvalCase:
    steps = [{"tool": f"tool-{n}", "args": {"query": str(i)}} for n in range(5)]
    entries: list[dict[str, Any]] = [
        {"type": "contains", "value": f"City {i}"},
        {"type": "icontains", "value": f"Country {i}"},
        {"type": "tool_trajectory", "expected": steps},
    ]
    first, second, last = map(evaluator, entries)
    specs = (first, second, *of_the_suite(), last)[:evaluators]
    return EvalCase(f"case-{i}", (), specs, threshold=0.9)


@cache
def of_the_suite() -> tuple[EvaluatorSpec, EvaluatorSpec]:
    banned = {"type": "contains", "value": BANNED, "negate": True}
    return evaluator({"type": "regex", "value": PATTERN}), evaluator(banned)


def evaluator(entry: dict[str, Any]) -> EvaluatorSpec:
    return registered.get(entry["type"]).model_validate({"name": entry["type"], **entry})


def short_trajectory(rounds: int, steps: int = 5, calls: int = 1_000) -> None:
    """A trajectory in which every call matches, without the time for building the score."""
    names = [f"tool-{i}" for i in range(steps)]
    check = trajectory([{"tool": name, "args": {"query": name}} for name in names])
    made = context([ToolCall(name, {"query": name, "limit": 5}) for name in names])
    score = check(made)
    assert isinstance(score, EvaluationScore)
    assert score.score == 1

    def bare() -> None:
        for _ in range(calls):
            EvaluationScore(1.0, hits=score.hits, reasoning=score.reasoning, details=score.details)

    def work() -> None:
        for _ in range(calls):
            check(made)

    floor, ours = interleaved(rounds, calls, bare, work)
    what = f"trajectory of {steps} steps, all matching, beyond building the score / 5 us"
    report(what, (ours - floor) / 5, 1.0, f"{ours:.1f} us - {floor:.1f} us")


def long_trajectories(rounds: int, size: int = 200) -> None:
    """Many steps and calls of one tool, in the cases that allow no shortcut."""
    shapes: dict[str, tuple[list[Any], list[Any]]] = {
        "other arguments": (
            [{"query": f"q{i}"} for i in range(size)],
            [{"query": f"other {i}"} for i in range(size)],
        ),
        "arguments in reverse": (
            [{"query": f"q{i}"} for i in range(size)],
            [{"query": f"q{i}"} for i in reversed(range(size))],
        ),
        "no arguments, half of the calls": ([None] * size, [{}] * (size // 2)),
        "no arguments, one call more": ([None] * size, [{}] * (size + 1)),
    }
    for name, (wanted, given) in shapes.items():
        expected = [{"tool": "search"} | ({"args": args} if args else {}) for args in wanted]
        made = context([ToolCall("search", args) for args in given])
        for mode in MODES:
            work = partial(trajectory(expected, mode=mode), made)
            ours = min(timed(work) for _ in range(rounds))
            what = f"trajectory of {size} steps, one tool, {name}, {mode} / 50 ms"
            report(what, ours / 50e-3, 1.0, f"{ours * 1e3:.0f} ms")


def trajectory(expected: list[dict[str, Any]], mode: str = "in_order") -> Check:
    entry = {"type": "tool_trajectory", "mode": mode, "expected": expected}
    return ToolTrajectoryEvaluator.model_validate(entry).prepare(Resources())


def context(calls: list[ToolCall]) -> Context:
    return Context(EvalCase("case", (), ()), Observation(tool_calls=tuple(calls)))


def interleaved(rounds: int, calls: int, *works: Callable[[], object]) -> list[float]:
    """Microseconds per call of each function, which makes `calls` of them; they alternate."""
    slices = [[timed(work) for work in works] for _ in range(rounds * SLICES)]
    return [min(taken) * 1e6 / calls for taken in zip(*slices, strict=True)]


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of one call, without garbage collection."""
    gc.disable()
    started = time.process_time()
    work()
    elapsed = time.process_time() - started
    gc.enable()
    return elapsed


def report(what: str, ratio: float, bar: float | None, detail: str) -> None:
    verdict = "no bar" if bar is None else f"bar {bar:.2f}, {'ok' if ratio <= bar else 'OVER'}"
    print(f"{ratio:6.2f} x   ({verdict})   {what}   [{detail}]", flush=True)


if __name__ == "__main__":
    main()
