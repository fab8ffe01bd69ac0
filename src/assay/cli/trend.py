"""`assay trend`: a chart of the pass rate over runs."""

from __future__ import annotations

import sys

import click

from assay.cli.documents import store_option
from assay.cli.json import echo_json
from assay.cli.runs import SHORT_ID
from assay.service import trends
from assay.service.trends import Point
from assay.terminal import Terminal, columns, cut, safe

#: The width of the chart, in columns.
MAX_CHART, MIN_CHART = 60, 12
#: The width of the column for targets; with less room than the minimum, it is left out.
_MAX_TARGET, _MIN_TARGET = 20, 8


@click.command("trend")
@click.option("--suite", metavar="SUITE", help="Only this suite, by its file or its name.")
@click.option(
    "--last",
    type=click.IntRange(1),
    default=trends.LAST,
    show_default=True,
    help="How many runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, the oldest run first.")
@store_option
def command(suite: str | None, last: int, as_json: bool, store: str | None) -> None:
    """Show the pass rate of the finished runs, the newest last, each with its interval.

    Runs need not have asked the same cases; `assay compare` tells whether two differ.

    \b
    Examples:
      assay trend
      assay trend --suite evals/weather.eval.yaml --last 10
      assay trend --json
    """
    points = trends.trend(suite, last, store=store)
    if as_json:
        rows = [point.to_dict() for point in points]
        echo_json(rows)
        return
    if not points:
        click.echo("there is no finished run yet; `assay run` makes one", err=True)
        return
    for line in draw(points, Terminal.of(sys.stdout).width):
        click.echo(line)


def draw(points: list[Point], width: int) -> list[str]:
    """One line per run: start, id, target, pass rate, and a chart from 0 to 100 %."""
    rows = [_row(point, _MAX_TARGET) for point in points]
    longest = max(columns(row[2]) for row in rows)
    room = longest + width - (_left_width(rows) + MIN_CHART + 2)
    if room < longest:
        rows = [_row(point, room if room >= _MIN_TARGET else 0) for point in points]
    widths = _widths(rows)
    left = _left_width(rows)
    room = min(max(width - left - 2, MIN_CHART), MAX_CHART)
    head = "Started (UTC)".ljust(left) + "0 %" + "100 %".rjust(room - 1)
    lines = [head]
    for point, row in zip(points, rows, strict=True):
        cells = [
            cell + " " * (size - columns(cell)) for cell, size in zip(row, widths, strict=True)
        ]
        lines.append("  ".join(cells) + "  |" + chart(point, room) + "|")
    return lines


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(columns, column)) for column in zip(*rows, strict=True)]


def _left_width(rows: list[tuple[str, ...]]) -> int:
    """The width of everything left of the chart."""
    return sum(size + 2 for size in _widths(rows))


def _row(point: Point, room: int) -> tuple[str, ...]:
    """The cells left of the chart; if there is no room for a target, there is no cell for it."""
    when = point.started_at[:16].replace("T", " ")
    rate = point.rate
    share = f"{100 * rate.estimate:5.1f} % of {point.judged:,}"
    spread = f"({100 * rate.low:.1f} to {100 * rate.high:.1f})"
    target = (cut(safe(point.target), room),) if room else ()
    return when, point.run_id[:SHORT_ID], *target, share, spread


def chart(point: Point, room: int) -> str:
    """The interval as a line with the rate marked on it: `   ----o--  `."""

    def place(share: float) -> int:
        return min(int(share * room), room - 1)

    low, middle, high = (place(s) for s in (point.rate.low, point.rate.estimate, point.rate.high))
    cells = [" "] * room
    cells[low : high + 1] = "-" * (high + 1 - low)
    cells[middle] = "o"
    return "".join(cells)
