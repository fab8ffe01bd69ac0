"""Every function gives what scipy and statsmodels give, by the stored table."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.stats.calibration import Confusion
from assay.stats.estimates import Estimate, PValue
from assay.stats.paired import Pairs
from assay.stats.planning import Variances

HERE = Path(__file__).parent
TABLE: list[dict[str, Any]] = json.loads((HERE / "oracle.json").read_text(encoding="utf-8"))
#: Functions whose first or second argument is a record of ours, written as a list.
RECORDS = {
    "paired.newcombe": (0, Pairs),
    "planning.score_cases_needed": (1, Variances),
    "calibration.kappa": (0, Confusion),
}


def ours(name: str, arguments: list[Any]) -> list[float]:
    module, _, function = name.rpartition(".")
    if name in RECORDS:
        at, record = RECORDS[name]
        arguments = [*arguments[:at], record(*arguments[at]), *arguments[at + 1 :]]
    found = getattr(importlib.import_module(f"assay.stats.{module}"), function)(*arguments)
    if isinstance(found, Estimate):
        return [found.estimate, found.low, found.high]
    if isinstance(found, PValue):
        return [found.value]
    return found if isinstance(found, list) else [found]


def close(one: list[float], other: list[float]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(math.isclose(a, b, rel_tol=1e-8, abs_tol=1e-12) for a, b in pairs)


@pytest.mark.parametrize(
    "entry", TABLE, ids=lambda entry: f"{entry['function']}{json.dumps(entry['arguments'])[:40]}"
)
def test_our_values_agree_with_the_oracle(entry: dict[str, Any]) -> None:
    found = ours(entry["function"], entry["arguments"])
    assert close(found, entry["value"]), f"{found} instead of {entry['value']}"


def test_every_module_with_numbers_is_in_the_table() -> None:
    assert {entry["function"].partition(".")[0] for entry in TABLE} == {
        "bradley_terry",
        "calibration",
        "distributions",
        "means",
        "paired",
        "planning",
        "proportions",
        "sequential",
    }


@pytest.mark.full
def test_the_table_agrees_with_scipy_and_statsmodels(tmp_path: Path) -> None:
    file = tmp_path / "oracle.json"
    # Apart, so that neither their warnings nor their weight reach this process.
    subprocess.run([sys.executable, str(HERE / "oracle.py"), str(file)], check=True)
    fresh: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    assert len(fresh) == len(TABLE)
    for stored, now in zip(TABLE, fresh, strict=True):
        assert (stored["function"], stored["arguments"]) == (now["function"], now["arguments"])
        assert close(stored["value"], now["value"]), stored
