"""RunOptions: the options of a run. Each is defined here and nowhere else.

The command line, the configuration and Python take them from these fields: the name, the type,
the default and the help text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from assay.model.case import Tier
from assay.model.fields import AtLeastOne, Count, Flag, Positive, Rate, Several, Text
from assay.model.refusal import problem
from assay.model.shape import Shape
from assay.model.spelling import Key

Gate = Literal["regression", "strict", "non-inferiority"]

_SHARD = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")
_SHARD_SCHEMA = Field(json_schema_extra={"pattern": f"^{_SHARD.pattern}$"})


def parse_shard(value: str) -> tuple[int, int] | None:
    """The number of a shard and how many there are: (1, 4) for 1/4; None if it is not valid."""
    match = _SHARD.fullmatch(value)
    if match is None or int(match[1]) > int(match[2]):
        return None
    return int(match[1]), int(match[2])


def _check_shard(value: str) -> str:
    if parse_shard(value) is None:
        message = f"{value!r} is not a part of the cases"
        raise problem("wrong-value", message, "for example 1/4, the first of four parts")
    return value


def _as_list(raw: Any) -> Any:
    """Turn a single text into a list."""
    return [raw] if isinstance(raw, str) else raw


def _as_entries(raw: Any) -> Any:
    """Turn a single entry into a list, and a type into an entry."""
    raw = [raw] if isinstance(raw, (str, dict)) else raw
    if isinstance(raw, (list, tuple)):
        return [{"type": entry} if isinstance(entry, str) else entry for entry in raw]
    return raw


#: An entry as authors may write it.
_Entry = str | dict[str, Any]
Texts = Annotated[
    tuple[Text, ...], BeforeValidator(_as_list, json_schema_input_type=Text | tuple[Text, ...])
]
Tiers = Annotated[
    tuple[Tier, ...], BeforeValidator(_as_list, json_schema_input_type=Tier | tuple[Tier, ...])
]
Entries = Annotated[
    tuple[dict[str, Any], ...],
    BeforeValidator(_as_entries, json_schema_input_type=_Entry | tuple[_Entry, ...]),
]


def Option(default: Any, meaning: str, *aliases: str) -> Any:  # noqa: N802 - part of a field's type
    """A field with its help text."""
    return Key(default, aliases=aliases, description=meaning)


class RunOptions(Shape):
    """How a run goes. What is None is left to the case, the suite or the target."""

    target: Text | None = Option(None, "The target to ask: its name, or one written inline.")
    judge: Text | None = Option(None, "The judge to use instead of the configured one.")
    workers: Several | None = Option(None, "How many trials run at once (10).")
    repeat: Several | None = Option(None, "How many times each case is asked (1).")
    timeout_seconds: Positive | None = Option(
        None,
        "Seconds for all attempts of a trial, not counting waits for rate limits (120).",
        "timeout",
    )
    max_retries: Count = Option(3, "How many times a failed request is retried.")
    requests_per_minute: Positive | None = Option(None, "At most this many requests per minute.")
    tokens_per_minute: Positive | None = Option(None, "At most this many tokens per minute.")
    budget_usd: Positive | None = Option(None, "Stop asking once this many US dollars are spent.")
    max_failures: AtLeastOne | None = Option(None, "Stop asking after this many failed cases.")
    filter: Texts = Option((), "Only cases whose id matches the pattern, such as 'weather-*'.")
    tag: Texts = Option((), "Only cases with this tag.")
    tier: Tiers = Option((), "Only cases of this tier.")
    limit: AtLeastOne | None = Option(None, "Only the first cases, at most this many.")
    shard: Annotated[Text, AfterValidator(_check_shard), _SHARD_SCHEMA] | None = Option(
        None, "Only part of the cases: 1/4 is the first of four."
    )
    seed: Count = Option(0, "The seed for the order in which a live target is asked.")
    cache: Flag = Option(False, "Take answers from the cache, and put new ones there.")
    evaluators: Entries = Option(
        (), "The type of the evaluator for cases that name none.", "evaluator"
    )
    baseline: Text | None = Option(
        None, "Compare with this run: an id, the name of a baseline, or a result file."
    )
    gate: Gate = Option("regression", "What fails a run that has a baseline.")
    margin: Rate = Option(0.02, "The difference in pass rate that does not matter.")
    confirm: Count | None = Option(
        None, "How many times a live target is asked again about a case that got worse (5)."
    )
    stop_when: Literal["decided"] | None = Option(
        None, "Stop asking when the comparison with the baseline is decided."
    )
    min_pass_rate: Rate | None = Option(
        None, "The pass rate that a run without a baseline must reach (all cases)."
    )
    min_coverage: Rate = Option(1.0, "The share of cases that must be judged.")
    require_calibrated: Flag = Option(
        False, "Fail when a judge that counts is not calibrated (assay calibrate)."
    )
    strict: Flag = Option(
        False, "Treat warnings as failures: stale tools, unlocked cases, no clear decision."
    )

    def plan(self) -> dict[str, Any]:
        """The options that decide what is asked of which target; they must be equal on resume."""
        return self.model_dump(mode="json", include={*PLANNING}, exclude_defaults=True)

    def shown(self) -> dict[str, Any]:
        """The options that were set, as recorded in results."""
        return self.model_dump(mode="json", exclude_defaults=True)


#: The options that decide which trials there are, and what is asked.
PLANNING = (
    *("target", "judge", "repeat", "filter", "tag", "tier", "limit", "shard", "seed"),
    *("evaluators", "cache"),
)

#: The options that select some of the cases.
NARROWING = ("filter", "tag", "tier", "limit", "shard")


def narrowing(options: Mapping[str, Any]) -> str:
    """The recorded options that selected some of the cases, as flags; empty if there are none."""
    flags = []
    for name in NARROWING:
        given = options.get(name) or ()
        values = given if isinstance(given, (list, tuple)) else (given,)
        flags += [f"--{name} {value}" for value in values]
    return " ".join(flags)


#: The defaults when neither an option, the case, the suite nor the target sets it.
WORKERS = 10
TIMEOUT_SECONDS = 120.0
CONFIRM = 5
