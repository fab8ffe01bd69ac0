"""Regular expressions: linear first, a time limit for the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import patterns
from assay.errors import BadPattern


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\d+ degrees", "18 degrees", True),
        ("^end$", "end\n", False),
        ("(?!x)end$", "end\n", False),
        ("(?!x)end$", "the end", True),
        (r"(?!x)[$]5\$", "$5$", True),
        ("(?!x)[[:digit:]$]+$", "5$", True),
        ("(?!x)[[:^digit:]$]$", "5\n", True),
        (r"\(?m(?=x)x$", "mx\n", False),
        (r"[(?m](?=x)x$", "mx\n", False),
        ("(?m)(?!x)end$", "end\nmore", True),
        (r"(?!x)\d", "٣", False),
        (r"(\w)\1", "aa", True),
        ("(?<year>[0-9]{4})", "in 2026", True),
        ("(?=.*a)(?=.*b)", "b a", True),
    ],
)
def test_search(pattern: str, text: str, found: bool) -> None:
    assert patterns.compile_pattern(pattern).search(text) is found


def test_the_classic_bomb_returns_at_once() -> None:
    assert patterns.compile_pattern("^(a+)+$").search("a" * 40_000 + "!") is False


def test_the_backtracking_engine_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.05)
    bomb = patterns.compile_pattern("(?!x)^(a|aa)+$")
    with pytest.raises(TimeoutError):
        bomb.search("a" * 100 + "!")


@pytest.mark.parametrize("pattern", ["(", "[a", "(?P<n", "*", "a{2,1}", "(?<=a+)b(", "\\"])
def test_a_pattern_that_neither_engine_compiles_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        patterns.compile_pattern(pattern)


@given(st.text(alphabet="ab()[]{}*+?|\\^$.-,0123456789<>=!:PRx#&~", max_size=30))
def test_any_pattern_compiles_or_is_refused(pattern: str) -> None:
    try:
        compiled = patterns.compile_pattern(pattern)
    except BadPattern:
        return
    assert compiled.search("ab") in (True, False)
