"""RunOptions: the options of a run. Each is defined here and nowhere else.

The command line, the configuration, REST and Python take them from these fields: the name, the
type, the default, the help text and the traits.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from assay.errors import FilterError
from assay.model.case import Tier
from assay.model.case_filter import parse_filter
from assay.wire.fields import AtLeastOne, Count, Flag, Positive, Rate, Several, Text
from assay.wire.key_names import Key
from assay.wire.shape import Shape
from assay.wire.validation_errors import problem

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
        message = f"{value!r} is not a shard"
        raise problem("wrong-value", message, "for example 1/4, the first of four")
    return value


def _check_filter(value: str) -> str:
    try:
        parse_filter(value)
    except FilterError as error:
        raise problem("bad-filter", "; ".join(map(str, error.mistakes))) from None
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
#: A text, or a list of texts; always a tuple when it is read.
OneOrSeveral = Annotated[
    tuple[Text, ...],
    BeforeValidator(_as_list, json_schema_input_type=Text | tuple[Text, ...]),
    Field(min_length=1),
]
Tiers = Annotated[
    tuple[Tier, ...], BeforeValidator(_as_list, json_schema_input_type=Tier | tuple[Tier, ...])
]
Entries = Annotated[
    tuple[dict[str, Any], ...],
    BeforeValidator(_as_entries, json_schema_input_type=_Entry | tuple[_Entry, ...]),
]


Interface = Literal["run", "regrade", "request"]
DerivedRun = Literal["rerun", "regrade"]
_ALL_INTERFACES: tuple[Interface, ...] = ("run", "regrade", "request")
_NO_REGRADE: tuple[Interface, ...] = ("run", "request")
_ALL_DERIVED: tuple[DerivedRun, ...] = ("rerun", "regrade")


class OptionTraits(NamedTuple):
    """The properties of an option in addition to its type, default and help text.

    `interfaces` offer it: `assay run`, `assay regrade`, and the `options` of a request over REST.
    `inherited_by` names the runs that inherit it from the run that they are based on: a rerun or a
    merged run, and a regraded one. It `plans` if it decides which trials there are and what is
    asked, and `narrows` if it selects some of the cases. `flag` is its name on the command line.
    If `once`, it may be given only once: click would silently use the last value.
    """

    flag: str
    metavar: str | None = None
    interfaces: tuple[Interface, ...] = _ALL_INTERFACES
    inherited_by: tuple[DerivedRun, ...] = _ALL_DERIVED
    plans: bool = False
    narrows: bool = False
    once: bool = False


def Option(default: Any, meaning: str, *aliases: str, **traits: Any) -> Any:  # noqa: N802
    """A field with its help text and traits; its flag is its first alias, or its name."""
    field = Key(default, aliases=aliases, description=meaning)
    field.metadata.append(OptionTraits(aliases[0] if aliases else "", **traits))
    return field


def traits_of(name: str, shape: type[RunOptions] | None = None) -> OptionTraits:
    """The traits of an option of a run, or of another shape."""
    found = next(
        m for m in (shape or RunOptions).model_fields[name].metadata if isinstance(m, OptionTraits)
    )
    return found._replace(flag="--" + (found.flag or name).replace("_", "-"))


def options_where(holds: Callable[[OptionTraits], bool]) -> tuple[str, ...]:
    """The names of the options with these traits."""
    return tuple(name for name in RunOptions.model_fields if holds(traits_of(name)))


class RunOptions(Shape):
    """The options of a run. None leaves the decision to the case, the suite or the target."""

    target: Text | None = Option(
        None,
        "The target to ask: its name, or one written inline.",
        metavar="TARGET",
        interfaces=("run",),
        inherited_by=("rerun",),
        plans=True,
        once=True,
    )
    judge: Text | None = Option(
        None,
        "The judge to use instead of the configured one.",
        metavar="TARGET",
        plans=True,
        once=True,
    )
    workers: Several | None = Option(None, "How many trials run at once (10).")
    executor: Text | None = Option(
        None,
        "The executor that grades large suites of recorded answers (processes).",
        metavar="NAME",
        interfaces=("run",),
        inherited_by=("rerun",),
        once=True,
    )
    workers_per_machine: AtLeastOne | None = Option(
        None,
        "How many worker processes an executor starts on this machine (one for each core).",
        interfaces=("run",),
        inherited_by=("rerun",),
    )
    repeat: Several | None = Option(
        None, "How many times each case is asked (1).", interfaces=_NO_REGRADE, plans=True
    )
    timeout_seconds: Positive | None = Option(
        None,
        "Seconds for all attempts of a trial, not counting waits for rate limits (120).",
        "timeout",
        interfaces=_NO_REGRADE,
    )
    max_retries: Count = Option(3, "How many times a failed request is retried.")
    requests_per_minute: Positive | None = Option(None, "At most this many requests per minute.")
    tokens_per_minute: Positive | None = Option(None, "At most this many tokens per minute.")
    budget_usd: Positive | None = Option(
        None,
        "Stop asking once this many US dollars are spent.",
        interfaces=_NO_REGRADE,
        inherited_by=("rerun",),
    )
    max_failures: AtLeastOne | None = Option(
        None,
        "Stop asking after this many failed cases.",
        interfaces=_NO_REGRADE,
        inherited_by=("rerun",),
    )
    filter: Texts = Option(
        (),
        "Only cases whose id matches the pattern, such as 'weather-*'.",
        metavar="GLOB",
        plans=True,
        narrows=True,
    )
    tag: Texts = Option((), "Only cases with this tag.", metavar="TAG", plans=True, narrows=True)
    tier: Tiers = Option((), "Only cases of this tier.", plans=True, narrows=True)
    select: Annotated[Text, AfterValidator(_check_filter)] | None = Option(
        None,
        "Only cases that match the filter, such as 'tag:billing -id:slow-*'.",
        metavar="FILTER",
        plans=True,
        narrows=True,
        once=True,
    )
    of: Text | None = Option(
        None,
        "Select among the cases of this run by their results, such as 'outcome:failed'.",
        metavar="RUN",
        plans=True,
        narrows=True,
        once=True,
    )
    limit: AtLeastOne | None = Option(
        None, "Only the first cases, at most this many.", plans=True, narrows=True
    )
    shard: Annotated[Text, AfterValidator(_check_shard), _SHARD_SCHEMA] | None = Option(
        None,
        "Only part of the cases: 1/4 is the first of four.",
        metavar="I/N",
        plans=True,
        narrows=True,
    )
    seed: Count = Option(
        0,
        "The seed for the order in which a live target is asked.",
        interfaces=_NO_REGRADE,
        plans=True,
    )
    cache: Flag = Option(False, "Take answers from the cache, and put new ones there.", plans=True)
    evaluators: Entries = Option(
        (),
        "The type of the evaluator for cases that name none.",
        "evaluator",
        metavar="TYPE",
        interfaces=("run", "regrade"),
        plans=True,
    )
    baseline: Text | None = Option(
        None,
        "Compare with this run: an id, the name of a baseline, or a result file.",
        metavar="RUN",
        inherited_by=(),
        once=True,
    )
    gate: Gate = Option("regression", "What fails a run that has a baseline.", inherited_by=())
    margin: Rate = Option(0.02, "The difference in pass rate that does not matter.")
    confirm: Count | None = Option(
        None,
        "How many times a live target is asked again about a case that got worse (5).",
        interfaces=_NO_REGRADE,
    )
    stop_when: Literal["decided"] | None = Option(
        None,
        "Stop asking when the comparison with the baseline is decided.",
        interfaces=_NO_REGRADE,
        inherited_by=(),
    )
    preference: Flag = Option(
        True,
        "After a run of several targets, let the judge of `preference` compare their answers.",
        interfaces=("run",),
        inherited_by=("rerun",),
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
        return self.model_dump(
            mode="json",
            include={*options_where(lambda option: option.plans)},
            exclude_defaults=True,
        )

    def shown(self) -> dict[str, Any]:
        """The options that were set, as recorded in results."""
        return self.model_dump(mode="json", exclude_defaults=True)


class RequestOptions(RunOptions):
    """The options of a request, which becomes one run for each of its targets."""

    target: OneOrSeveral | None = Option(  # type: ignore[assignment]  # the run has one of them
        None,
        "The target to ask: its name, or one written inline. Several are compared.",
        metavar="TARGET",
        interfaces=("run",),
        inherited_by=("rerun",),
        plans=True,
    )


def narrowing(options: Mapping[str, Any]) -> str:
    """The recorded options that selected some of the cases, as flags; empty if there are none."""
    flags = []
    for name in options_where(lambda option: option.narrows):
        given = options.get(name) or ()
        values = given if isinstance(given, (list, tuple)) else (given,)
        flags += [f"--{name} {shlex.quote(str(value))}" for value in values]
    return " ".join(flags)


#: The defaults when neither an option, the case, the suite nor the target sets it.
WORKERS = 10
TIMEOUT_SECONDS = 120.0
CONFIRM = 5
