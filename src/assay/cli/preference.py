"""The options of `assay compare` for preferences, and what it prints about them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import click
from msgspec.structs import replace

from assay.cli import streams
from assay.cli.completion import files
from assay.cli.execution import signals_to
from assay.engine.cancellation import Cancellation
from assay.model.events import Event, Notice
from assay.model.options import RunOptions
from assay.model.preference import Preference
from assay.reporters.terminal import safe
from assay.service.preferences import PreferenceRequest, answered_runs, prefer_runs

#: The value of `--preference` without criteria: those of the configuration count.
CONFIGURED = "\0"
_OPTIONS = RunOptions.model_fields


def preference_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--preference` and the options of its judge."""
    criteria = click.option(
        "--preference",
        is_flag=False,
        flag_value=CONFIGURED,
        metavar="[CRITERIA]",
        help="Let a judge decide which answers are better by these criteria.",
    )
    judge = click.option("--judge", metavar="TARGET", help="The judge of --preference.")
    labels = click.option(
        "--labels",
        metavar="FILE",
        shell_complete=files,
        help="Calibrate the judge of --preference with these labels.",
    )
    budget = click.option(
        "--budget-usd",
        type=click.FloatRange(min=0, min_open=True),
        help=_OPTIONS["budget_usd"].description,
    )
    cache = click.option(
        "--cache/--no-cache", default=None, help="Take replies from the cache, and put them there."
    )
    return criteria(judge(labels(budget(cache(command)))))


def request_of(preference: str | None, **given: Any) -> PreferenceRequest | None:
    """What the options request; raises UsageError if they need --preference."""
    named = {name: value for name, value in given.items() if value is not None}
    if preference is None:
        for name in named:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{flag} is about --preference, which is not given")
        return None
    judge, labels = named.pop("judge", None), named.pop("labels", None)
    criteria = "" if preference == CONFIGURED else preference
    return PreferenceRequest(criteria, judge, named, _notice, labels)


def preferred(runs: tuple[str, ...], request: PreferenceRequest, store: str | None) -> Preference:
    """Let the judge compare the answers; its notices are on stderr. Ctrl-C ends the judging."""
    cancellation = Cancellation()
    request = replace(request, stop=lambda: cancellation.requests > 0)
    with ExitStack() as stack, streams.stdout_redirected():
        opened = answered_runs(runs, stack, store)
        with signals_to(cancellation), cancellation.observed(requests=1):
            return prefer_runs(opened, request)


def _notice(event: Event) -> None:
    if isinstance(event, Notice):
        click.echo(safe(event.text), err=True)
