"""Loading makes no garbage to speak of: it is not collected until all files are loaded."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path

import assay

CASES = 200
#: Bytes for a case at the most; looking at the signature of one default takes twice as many.
MOST = 30_000


def test_a_case_with_an_expect_block_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "many.eval.jsonl"
    case = {"input": "How warm is it?", "expect": {"response_contains": ["21"]}}
    lines = (json.dumps({"id": f"c{number}", **case}) for number in range(CASES))
    file.write_text("\n".join(lines), encoding="utf-8")
    assay.load(file)  # what is imported and made once does not count
    tracemalloc.start()
    try:
        suites = assay.load(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(suites[0]) == CASES
    assert peak / CASES < MOST


class Loop:
    """Garbage that only a search for it finds."""

    def __init__(self) -> None:
        self.own = self


def test_garbage_of_others_goes_on_to_be_collected_between_loads(tmp_path: Path) -> None:
    file = tmp_path / "one.eval.yaml"
    file.write_text("cases: [{id: a, input: hi, expected_output: ho}]", encoding="utf-8")
    for _ in range(100):
        assay.load(file)
        for _ in range(300):  # too few for a search by themselves
            Loop()
    assert sum(type(thing) is Loop for thing in gc.get_objects()) < 10_000
