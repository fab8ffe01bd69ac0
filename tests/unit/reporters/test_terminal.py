"""What a stream can show, and what is safe to show on it."""

from __future__ import annotations

import fcntl
import io
import json
import os
import struct
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from assay.cli.report_output import print_report
from assay.reporters.terminal import (
    Terminal,
    escape_controls_in_json,
    escaping,
    safe,
    wrap,
)
from assay.text import columns, cut
from unit.sample_runs import entry, run, suite


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """A real terminal of 72 columns."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
    with os.fdopen(ours, "rb"), os.fdopen(theirs, "w", encoding="utf-8") as out:
        yield out


def test_a_terminal_has_colour_and_a_width(screen: TextIO) -> None:
    assert Terminal.of(screen) == Terminal(True, True, 72, "utf-8")


def test_no_color_leaves_only_the_colour_out(
    screen: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert Terminal.of(screen) == Terminal(True, False, 72, "utf-8")
    monkeypatch.setenv("NO_COLOR", "")  # as its convention says, empty is as good as not set
    assert Terminal.of(screen).colour


def test_a_dumb_terminal_cannot_draw_anew(screen: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert Terminal.of(screen) == Terminal(False, False, 72, "utf-8")


def test_a_terminal_that_does_not_know_its_width_has_the_usual_one(screen: TextIO) -> None:
    fcntl.ioctl(screen.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
    assert Terminal.of(screen).width == 100


def test_a_pipe_is_plain() -> None:
    assert Terminal.of(io.StringIO()) == Terminal(False, False, 100, "utf-8")


def test_paint_needs_colour() -> None:
    assert Terminal(colour=True).paint("a", "red", "bold") == "\x1b[31;1ma\x1b[0m"
    assert Terminal(colour=True).paint("", "red") == ""
    assert Terminal().paint("a", "red") == "a"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc..."),
        ("日本語", 6, "日本語"),
        ("日本語!", 6, "日..."),
        ("e\u0301" * 6, 6, "e\u0301" * 6),
        ("e\u0301" * 7, 6, "e\u0301" * 3 + "..."),
        ("abc", 2, ".."),
        ("abc", 0, ""),
    ],
)
def test_a_text_is_cut_by_columns(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown
    assert columns(shown) <= width


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("short", ["short"]),
        ("one two three", ["one two", "three"]),
        ("see https://a.example/b at once", ["see", "https://a.example/b", "at once"]),
        ("is a-b-c-d", ["is", "a-b-c-d"]),
        ("wide 日本語の答え", ["wide 日", "本語の答", "え"]),
        ("quiet ::e::x", ["quiet", ": :e::x"]),
    ],
)
def test_a_text_is_folded_by_columns_and_no_line_of_it_is_a_command(
    text: str, lines: list[str]
) -> None:
    assert wrap(text, 8) == lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("##[error]a ##vso[x] ## not [this]", "# #[error]a # #vso[x] ## not [this]"),
        ("::error::a::b", ": :error::a::b"),
        ("  ::error::a", "  : :error::a"),
        ("a::b", "a::b"),
    ],
)
def test_what_others_wrote_does_nothing(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_a_huge_text_is_cut_before_it_is_looked_at() -> None:
    assert safe("\n" * 10_000_000, 10) == "\\n\\n\\n\\..."


# Documents on a terminal

OBEYED = "\x7f \x9b2J \x85 \u2028 \u202egnp"


def test_json_on_a_terminal_is_the_same_json_and_obeyed_by_nobody() -> None:
    text = json.dumps({"ü": OBEYED + "\x1b"}, ensure_ascii=False)
    told = escape_controls_in_json(text)
    assert json.loads(told) == json.loads(text)
    assert told.isprintable()
    assert "ü" in told


def test_what_is_written_to_a_screen_is_escaped_on_the_way() -> None:
    out = io.BytesIO()
    screen = escaping(out)
    assert screen.write("a\x1b\tß\r\n\x9b".encode()) == 9
    screen.flush()
    assert out.getvalue().decode() == "a\\u001b\tß\r\n\\u009b"


class FakeTerminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_the_document_of_a_run_is_escaped_on_a_terminal_only() -> None:
    result, raw = run(suite(entry("a", response=OBEYED))), io.BytesIO()
    on_terminal, in_pipe = FakeTerminal(raw, encoding="utf-8"), io.StringIO()
    for out in (on_terminal, in_pipe):
        print_report(result, out, as_json=True)
    told = raw.getvalue().decode()
    assert "\x9b" in in_pipe.getvalue()
    assert json.loads(told) == json.loads(in_pipe.getvalue())
    assert told.replace("\n", "").isprintable()
