"""What grading costs, each figure beside its bar.

    python benchmarks/grade.py [--rounds 5]

Every figure is the best of several rounds in this one invocation.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from assay.evaluators.tool_trajectory import ToolTrajectoryEvaluator
from assay.model.case import EvalCase
from assay.model.context import Context
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.ports import Check, Resources

MODES = ("in_order", "any_order", "exact", "subset")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    short_trajectory(options.rounds)
    long_trajectories(options.rounds)


def short_trajectory(rounds: int, steps: int = 5, calls: int = 20_000) -> None:
    """A trajectory in which every call is in its place, beyond building its score."""
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

    floor = min(timed(bare) for _ in range(rounds)) / calls
    ours = min(timed(work) for _ in range(rounds)) / calls
    report(
        f"trajectory of {steps} steps, all matching, beyond building the score / 5 us",
        (ours - floor) / 5e-6,
        1.0,
        f"{ours * 1e6:.1f} us - {floor * 1e6:.1f} us",
    )


def long_trajectories(rounds: int, size: int = 200) -> None:
    """Many steps and calls of one tool, in the cases in which nothing can be left out."""
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


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of one call, without the collector."""
    gc.collect()
    gc.disable()
    started = time.process_time()
    work()
    elapsed = time.process_time() - started
    gc.enable()
    return elapsed


def report(what: str, ratio: float, bar: float, detail: str) -> None:
    verdict = "ok" if ratio <= bar else "OVER"
    print(f"{ratio:6.2f} x   (bar {bar:.2f}, {verdict})   {what}   [{detail}]", flush=True)


if __name__ == "__main__":
    main()
