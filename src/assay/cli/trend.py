"""`assay trend`: the pass rate over runs, with a chart."""

from __future__ import annotations

import sys

import click

from assay.cli.documents import store_option
from assay.cli.json import echo_json
from assay.service import trends
from assay.service.trends import Point
from assay.terminal import Terminal, columns, cut, safe

#: The chart is at most so wide: more would say no more.
MAX_CHART, MIN_CHART = 60, 12
_MAX_TARGET = 20
#: So much of an id is the time to the millisecond; less of it is that of several runs.
_ID = 13


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
    for line in drawn(points, Terminal.of(sys.stdout).width):
        click.echo(line)


def drawn(points: list[Point], width: int) -> list[str]:
    """One line a run: when, which, who, the rate, and a chart from 0 to 100 %."""
    rows = [_row(point) for point in points]
    widths = [max(columns(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = sum(widths) + 2 * len(widths)
    room = min(max(width - left - 2, MIN_CHART), MAX_CHART)
    head = " " * left + "0 %" + "100 %".rjust(room - 1)
    lines = [head]
    for point, row in zip(points, rows, strict=True):
        cells = [
            cell + " " * (size - columns(cell)) for cell, size in zip(row, widths, strict=True)
        ]
        lines.append("  ".join(cells) + "  |" + chart(point, room) + "|")
    return lines


def _row(point: Point) -> tuple[str, ...]:
    when = point.started_at[:16].replace("T", " ")
    rate = point.rate
    share = f"{100 * rate.estimate:5.1f} % of {point.judged:,}"
    spread = f"({100 * rate.low:.1f} to {100 * rate.high:.1f})"
    return when, point.run_id[:_ID], cut(safe(point.target), _MAX_TARGET), share, spread


def chart(point: Point, room: int) -> str:
    """The interval as a line, and the rate on it: `   ----o--  `."""

    def place(share: float) -> int:
        return min(int(share * room), room - 1)

    low, middle, high = (place(s) for s in (point.rate.low, point.rate.estimate, point.rate.high))
    cells = [" "] * room
    cells[low : high + 1] = "-" * (high + 1 - low)
    cells[middle] = "o"
    return "".join(cells)
