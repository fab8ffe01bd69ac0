"""Lines, blocks and tables that fit a terminal."""

from __future__ import annotations

import io

from assay.reporters.page import MAX_CHARACTERS, Page, fitted, text_lines
from assay.reporters.terminal import Terminal
from assay.text import cut_middle


def test_a_diff_is_painted_and_escaped_and_breaks_at_spaces() -> None:
    out = io.StringIO()
    page = Page(out, Terminal(colour=True, width=40))
    page.diff(
        "  ", [("=", "one two three four five six "), ("-", "se\x1bven"), ("+", "eight nine")]
    )
    assert out.getvalue() == (
        "  one two three four five six \x1b[31;9mse\\x1bven\x1b[0m\n  \x1b[32meight nine\x1b[0m\n"
    )


def test_a_long_name_is_wrapped_with_its_text() -> None:
    out = io.StringIO()
    Page(out, Terminal(width=40)).prose("  " + "name " * 6 + ": ", "failed")
    assert out.getvalue() == "  name name name name name name : failed\n"


def test_a_table_that_is_too_wide_truncates_its_widest_cells_in_the_middle() -> None:
    out = io.StringIO()
    rows = [["#", "Case", "Suite"], ["10", "short", "evals/a-very-long-name.eval.yaml"]]
    Page(out, Terminal(width=30)).table(rows, right=[0], shrink=[1, 2])
    [head, row] = out.getvalue().splitlines()
    assert head == " #  Case   Suite"
    assert row == "10  short  evals/a-...val.yaml"
    assert fitted(rows, 10, [1, 2]) == [2, 5, 8], "no narrower than that"


def test_names_are_truncated_in_the_middle() -> None:
    assert cut_middle("evals/conversations.eval.yaml", 15) == "evals/...l.yaml"
    assert cut_middle("short", 15) == "short"
    assert cut_middle("日本語の長い答え", 9) == "日本...え"


def test_the_middle_of_a_long_text_is_left_out_and_counted() -> None:
    assert list(text_lines("a\tb\r\nc")) == ["a    b", "c"]
    lines = list(text_lines("\n".join(map(str, range(100))), 10))
    assert lines[4:7] == ["4", "[... 90 lines left out ...]", "95"]
    first, middle, last = text_lines("x" * (MAX_CHARACTERS + 5))
    assert (len(first), len(last)) == (MAX_CHARACTERS // 2,) * 2
    assert middle == "[... 5 characters left out ...]"
