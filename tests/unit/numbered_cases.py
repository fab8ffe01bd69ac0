"""A small suite of numbered cases in the working directory, and agents that answer it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(*cases: dict[str, Any]) -> None:
    """Write the suite `s.eval.jsonl`, whose cases expect the answer `good`."""
    lines = [json.dumps({"expected_output": "good", **case}) + "\n" for case in cases]
    Path("s.eval.jsonl").write_text("".join(lines))


def numbered(count: int, **more: Any) -> list[dict[str, Any]]:
    """Cases c0, c1 and so on, each asked by its id."""
    return [{"id": f"c{i}", "input": f"c{i}", **more} for i in range(count)]


def good_but(*bad: str) -> Callable[[str], Any]:
    """An agent that answers `good`, except for these cases."""
    return lambda message: "bad" if message in bad else "good"
