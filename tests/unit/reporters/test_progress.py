"""Progress: what is drawn, how often, and that a run survives a closed stream."""

from __future__ import annotations

import io

import pytest

from assay.model.events import Notice, RunFinished, RunStarted, TrialFinished
from assay.model.result import Outcome
from assay.reporters.progress import Progress


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now, self.asked = 100.0, 0

    def __call__(self) -> float:
        self.asked += 1
        return self.now


class Stream(io.StringIO):
    """Counts what is written; it may be a terminal, and it may break."""

    def __init__(self, live: bool = False) -> None:
        super().__init__()
        self.live, self.writes = live, 0

    def isatty(self) -> bool:
        return self.live

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


class Broken(Stream):
    def write(self, text: str) -> int:
        self.writes += 1
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


def trial(
    outcome: Outcome = "passed", cost: float | None = None, cached: bool = False
) -> TrialFinished:
    return TrialFinished(0, 0, "evals/a.yaml", "a", outcome, 10.0, cost, cached)


def started(planned: int | None = 10, done: int = 0) -> RunStarted:
    return RunStarted("run", "echo", planned, done)


def test_plain_lines_come_every_few_seconds_and_at_the_end() -> None:
    clock, out = Clock(), Stream()
    progress = Progress(out, clock)
    progress(started())
    for second in range(1, 11):
        clock.now = 100.0 + second
        progress(trial("failed" if second == 3 else "passed", cost=0.01))
    progress(RunFinished("finished"))
    assert out.getvalue().splitlines() == [
        "5 of 10 trials: 4 passed, 1 failed, $0.0500, 1.0/s, 5.0 s left",
        "10 of 10 trials: 9 passed, 1 failed, $0.1000, 1.0/s",
        "10 of 10 trials, finished after 10.0 s: 9 passed, 1 failed, $0.1000",
    ]


def test_a_terminal_has_one_line_that_is_drawn_anew() -> None:
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress(started(planned=4))
    for step in range(1, 5):
        clock.now = 100.0 + step
        progress(trial("errored" if step == 2 else "passed"))
    progress(RunFinished("finished"))
    assert out.getvalue().split("\r\x1b[K") == [
        "[--------------------] 0 of 4 trials",
        "[#####---------------] 1 of 4 trials  1 passed, 1.0/s, 3.0 s left",
        "[##########----------] 2 of 4 trials  1 passed, 1 errored, 1.0/s, 2.0 s left",
        "[###############-----] 3 of 4 trials  2 passed, 1 errored, 1.0/s, 1.0 s left",
        "[####################] 4 of 4 trials  3 passed, 1 errored, 1.0/s",
        "4 of 4 trials, finished after 4.0 s: 3 passed, 1 errored\n",
    ]


def test_it_is_drawn_at_most_ten_times_a_second() -> None:
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress(started(planned=1000))
    for step in range(1000):
        clock.now = 100.0 + step / 1000
        progress(trial())
    assert 8 <= out.writes <= 10


def test_nothing_is_drawn_and_the_clock_is_asked_once_while_no_time_passes() -> None:
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress(started(planned=None))
    before, written = clock.asked, out.writes
    for _ in range(1000):
        progress(trial())
    assert out.writes == written
    assert clock.asked - before == 1000


def test_colours_are_those_of_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    clock.now += 1
    progress(trial("failed"))
    assert out.getvalue() == "1 trial  \x1b[31m1 failed\x1b[0m, 1.0/s"


def test_a_line_never_wraps() -> None:
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress(started(planned=10**30, done=10**30 - 1))
    clock.now += 1
    progress(trial(cost=1e9))
    line = out.getvalue().split("\x1b[K")[-1]
    assert len(line) == 99
    assert line.endswith("...")


def test_where_there_is_no_room_for_both_the_numbers_come_before_the_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.reporters.terminal._width", lambda out: 50)
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress(started(planned=300))
    clock.now += 1
    progress(trial())
    assert out.getvalue().endswith("\x1b[K1 of 300 trials  1 passed, 1.0/s, 4 min 59 s left")


def test_it_is_there_before_the_first_answer() -> None:
    out = Stream(live=True)
    Progress(out, Clock())(started())
    assert out.getvalue() == "[--------------------] 0 of 10 trials"


def test_a_resumed_run_begins_where_it_was_and_cached_trials_cost_nothing() -> None:
    clock, out = Clock(), Stream()
    progress = Progress(out, clock)
    progress(started(planned=10, done=6))
    clock.now += 10
    progress(trial(cost=5.0, cached=True))
    progress(trial(cost=0.5))
    progress(RunFinished("interrupted"))
    assert out.getvalue().splitlines() == [
        "7 of 10 trials: 1 passed, 6 from before, 1 cached, 0.1/s, 30.0 s left",
        "8 of 10 trials, interrupted after 10.0 s: 2 passed, 6 from before, 1 cached, $0.5000",
    ]


def test_a_stream_of_unknown_length_has_no_bar_and_no_end() -> None:
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress(started(planned=None))
    clock.now += 2
    progress(trial())
    assert out.getvalue() == "0 trials\r\x1b[K1 trial  1 passed, 0.5/s"


def test_a_run_without_trials_ends_too() -> None:
    clock, out = Clock(), Stream()
    progress = Progress(out, clock)
    progress(started(planned=0))
    progress(RunFinished("finished"))
    assert out.getvalue() == "0 of 0 trials, finished after 0 ms\n"


def test_while_nothing_comes_it_says_how_long_it_waits() -> None:
    clock, out = Clock(), Stream()
    progress = Progress(out, clock)
    progress.tick()
    progress(started(planned=2))
    for _ in range(6):
        clock.now += 1
        progress.tick()
    progress(trial())
    for _ in range(9):
        clock.now += 1
        progress.tick()
    progress(RunFinished("interrupted"))
    clock.now += 60
    progress.tick()
    assert out.getvalue().splitlines() == [
        "0 of 2 trials: waiting for 5.0 s",
        "1 of 2 trials: 1 passed, waiting for 4.0 s",
        "1 of 2 trials: 1 passed, waiting for 9.0 s",
        "1 of 2 trials, interrupted after 15.0 s: 1 passed",
    ]


def test_a_line_that_waits_is_drawn_anew() -> None:
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress(started(planned=2))
    for _ in range(4):
        clock.now += 1
        progress.tick()
    assert out.getvalue().split("\r\x1b[K") == [
        *["[--------------------] 0 of 2 trials"] * 3,
        "[--------------------] 0 of 2 trials  waiting for 3.0 s",
        "[--------------------] 0 of 2 trials  waiting for 4.0 s",
    ]


def test_a_notice_stands_above_the_line_and_does_nothing() -> None:
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress(started(planned=2))
    clock.now += 1
    progress(trial())
    progress(Notice("::error::rate limit \x1b[2J\nof openai"))
    assert out.getvalue().split("\r\x1b[K")[-1].splitlines() == [
        ": :error::rate limit \\x1b[2J\\nof openai",
        "[##########----------] 1 of 2 trials  1 passed, 1.0/s, 1.0 s left",
    ]


def test_closing_erases_a_line_that_is_still_there() -> None:
    clock, out = Clock(), Stream(live=True)
    progress = Progress(out, clock)
    progress.close()
    assert out.getvalue() == ""
    clock.now += 1
    progress(trial())
    progress.close()
    assert out.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("live", [True, False])
def test_a_broken_stream_silences_it_and_nothing_else(live: bool) -> None:
    clock, out = Clock(), Broken(live)
    progress = Progress(out, clock)
    for _ in range(3):
        clock.now += 10
        progress(trial())
    progress(Notice("hello"))
    progress(RunFinished("finished"))
    progress.close()
    assert out.writes == 1


def test_no_stream_or_a_closed_one_will_do() -> None:
    closed = Stream(live=True)
    closed.close()
    for out in (None, closed):
        clock = Clock()
        progress = Progress(out, clock)
        clock.now += 10
        progress(trial())
        progress(RunFinished("finished"))
