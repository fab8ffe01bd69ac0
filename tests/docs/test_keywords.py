"""The keyword arguments of the Python interface say what the shapes say."""

from __future__ import annotations

import keywords


def test_the_generated_types_are_fresh() -> None:
    assert keywords.is_fresh(), "run `make docs`"
