"""Unit tests are where a reader looks for them: beside the path of their module."""

from __future__ import annotations

from pathlib import Path

import pytest

import assay

SOURCE = Path(assay.__file__).parent
UNIT = Path(__file__).parents[1] / "unit"


def module_of(test: Path) -> Path | None:
    """The module that a file of tests is about: `test_x.py`, or `test_x_more_about_it.py`."""
    folder = SOURCE / test.parent.relative_to(UNIT)
    words = test.stem.removeprefix("test_").split("_")
    for count in range(len(words), 0, -1):
        module = folder / ("_".join(words[:count]) + ".py")
        if module.is_file():
            return module
    return None


@pytest.mark.parametrize("test", sorted(UNIT.rglob("test_*.py")), ids=lambda file: file.name)
def test_every_file_of_unit_tests_is_about_one_module(test: Path) -> None:
    assert module_of(test) is not None, f"{test} has no module of its name in {SOURCE}"


def test_a_file_without_a_module_is_noticed() -> None:
    assert module_of(UNIT / "engine" / "test_plan.py") == SOURCE / "engine" / "plan.py"
    assert module_of(UNIT / "test_plan.py") is None
