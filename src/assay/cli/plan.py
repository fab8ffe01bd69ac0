"""`assay plan`: what a run could show and cost, before it is paid for."""

from __future__ import annotations

from collections.abc import Iterator

import click

from assay.cli.completion import files
from assay.cli.json import echo_json
from assay.cli.report_output import store_option
from assay.service import plan
from assay.service.plan import Forecast, PlanRequest
from assay.text import count, duration, exact_points, money, percent, points, printable


@click.command("plan")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=files)
@click.option("--cases", type=click.IntRange(1), help="What can this many cases show?")
@click.option(
    "--difference",
    type=click.FloatRange(0, 1, min_open=True),
    help="How many cases does this difference need? 0.05 is 5 points.",
)
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="How likely a real difference is to be found.",
)
@click.option("--repeat", type=click.IntRange(1), help="How many times each case is asked.")
@click.option("--run", metavar="RUN", help="A run that shows how much cases change by chance.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@store_option
def command(
    paths: tuple[str, ...],
    cases: int | None,
    difference: float | None,
    power: float,
    repeat: int | None,
    run: str | None,
    as_json: bool,
    store: str | None,
) -> None:
    """Show what a run could prove, and what it would cost, before it is paid for.

    The smallest difference that some cases can show, and how many cases a difference needs. With
    PATHs also what asking them takes, as far as the last runs of these suites tell. --run takes
    the noise from a recorded run: from its baseline, from its repeats, or at worst from its
    pass rate.

    \b
    Examples:
      assay plan --cases 100
      assay plan --difference 0.05 --run latest
      assay plan evals/ --repeat 5
    """
    request = PlanRequest(cases, difference, power, repeat, run)
    forecast = plan.plan(request, paths, store=store)
    if as_json:
        echo_json(forecast.to_dict())
        return
    for line in (*_power(forecast), *_scores(forecast), *_costs(forecast)):
        click.echo(printable(line))


def _power(found: Forecast) -> Iterator[str]:
    share = f"{percent(found.discordant)} of the cases change between two runs"
    yield f"{share} ({found.noise_model.source})"
    chance = f"found {exact_points(found.request.power)} times out of 100"
    if found.cases is not None and found.detectable is None:
        yield f"{count(found.cases, 'case')}: too few to show any difference of the pass rate"
    elif found.cases is not None and found.detectable is not None:
        shown = f"{points(found.detectable)} points of the pass rate"
        yield f"{count(found.cases, 'case')}: a difference of {shown}, {chance}"
    if found.request.difference is not None:
        shown = f"{exact_points(found.request.difference)} points"
        needed = "no number of cases" if found.needed is None else count(found.needed, "case")
        yield f"a difference of {shown}: {needed}, {chance}"


def _scores(found: Forecast) -> Iterator[str]:
    """Repeats narrow the interval of a mean score, but not below the variance between cases."""
    if not found.by_scores:
        return
    if found.scores_alike:
        yield "mean score: unknown, as all scores of the run are equal"
        return
    attempts = count(found.repeat, "attempt")
    if found.score_detectable is not None:
        shown = f"a difference of {found.score_detectable:.3f} of the mean score"
        yield f"{attempts} at each case, averaged: {shown}"
    if found.score_needed is not None:
        shown = f"{found.request.difference:g} of the mean score"
        needed = count(found.score_needed, "case")
        yield f"{attempts} at each case, averaged: {shown} needs {needed}"


def _costs(found: Forecast) -> Iterator[str]:
    if not found.suites:
        return
    trials = sum(suite.trials for suite in found.suites)
    yield f"{count(trials, 'trial')} in {count(len(found.suites), 'suite')}"
    if found.cost_usd is not None:
        yield f"about {money(found.cost_usd)}"
    if found.duration_ms is not None:
        yield f"about {duration(found.duration_ms)} with {count(found.workers, 'worker')}"
    unknown = [suite.file for suite in found.suites if suite.run_id is None]
    if unknown:
        yield f"no estimate, as no finished run has it: {', '.join(unknown)}"
    unpriced = any(suite.run_id and suite.cost_usd is None for suite in found.suites)
    if unpriced:
        yield "cost unknown: not every target reports it"
