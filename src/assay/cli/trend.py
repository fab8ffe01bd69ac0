"""`assay trend`: a chart of the pass rate over runs."""

from __future__ import annotations

import sys

import click

from assay.cli.json import echo_json
from assay.cli.report_output import store_option
from assay.cli.runs import SHORT_ID
from assay.model.json_encoding import as_dict
from assay.reporters.terminal import Terminal, safe
from assay.service import trends
from assay.service.trends import Point
from assay.text import cut, percent

#: The width of the chart, in columns.
MAX_CHART, MIN_CHART = 60, 12


@click.command("trend")
@click.option("--suite", metavar="SUITE", help="Only this suite, by its file or its name.")
@click.option("--target", metavar="TARGET", help="Only runs of this target, by its name.")
@click.option(
    "--last",
    type=click.IntRange(1),
    default=trends.LAST,
    show_default=True,
    help="How many runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, target by target.")
@store_option
def command(
    suite: str | None, target: str | None, last: int, as_json: bool, store: str | None
) -> None:
    """Show the pass rate of the last finished runs of each target, the newest last.

    Runs need not have asked the same cases; `assay compare` tells whether two differ.

    \b
    Examples:
      assay trend
      assay trend --suite evals/weather.eval.yaml --last 10
      assay trend --target my-agent
      assay trend --json
    """
    points = trends.trend(suite, last, target=target, store=store)
    if as_json:
        echo_json([as_dict(point) for point in points])
        return
    if not points:
        click.echo("there is no finished run yet; `assay run` makes one", err=True)
        return
    for line in draw(points, Terminal.of(sys.stdout).width):
        click.echo(line)


def draw(points: list[Point], width: int) -> list[str]:
    """One line per run below the name of its target: start, id, pass rate, and a chart."""
    widths = _widths([_row(point) for point in points])
    left = sum(size + 2 for size in widths)
    room = min(max(width - left - 2, MIN_CHART), MAX_CHART)
    lines = ["Started (UTC)".ljust(left) + "0 %" + "100 %".rjust(room - 1)]
    for target, series in trends.by_target(points).items():
        lines.append(cut(safe(target), max(width, left)) or "no target")
        for point in series:
            cells = [cell.ljust(size) for cell, size in zip(_row(point), widths, strict=True)]
            lines.append("  ".join(cells) + "  |" + chart(point, room) + "|")
    return lines


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _row(point: Point) -> tuple[str, ...]:
    """The cells left of the chart."""
    when = point.started_at[:16].replace("T", " ")
    rate = point.pass_rate
    share = f"{percent(rate.estimate):>6} of {point.judged:,}"
    return when, point.run_id[:SHORT_ID], share, f"({percent(rate.low)} to {percent(rate.high)})"


def chart(point: Point, room: int) -> str:
    """The interval as a line with the rate marked on it: `   ----o--  `."""

    def place(share: float) -> int:
        return min(int(share * room), room - 1)

    rate = point.pass_rate
    low, middle, high = map(place, (rate.low, rate.estimate, rate.high))
    cells = [" "] * room
    cells[low : high + 1] = "-" * (high + 1 - low)
    cells[middle] = "o"
    return "".join(cells)
