"""`assay compare` with groups: the targets of one, or the same targets in two."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec
from click.core import ParameterSource
from msgspec.structs import replace

from assay.cli.json import echo_json
from assay.cli.preference import preferred
from assay.cli.report_output import ReportOutput
from assay.comparison.outcomes import names_file
from assay.errors import UsageError
from assay.model.comparison import Comparison
from assay.model.options import Gate
from assay.reporters.group_text import write_comparison
from assay.reporters.group_words import named
from assay.reporters.page import Page
from assay.reporters.preference import write_preference
from assay.reporters.terminal import safe
from assay.service.groups import (
    ComparedGroups,
    Group,
    compare_groups,
    compared_group,
    group_comparison,
    named_group,
    runs_of,
    show_group,
)
from assay.service.preferences import PreferenceRequest

#: Prints the comparison of two runs, given their names.
PrintOne = Callable[[Comparison, str, str], None]


class Comparing(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command."""

    gate: Gate
    margin: float
    strict: bool
    as_json: bool
    answers: bool
    pairs: bool
    store: str | None
    request: PreferenceRequest | None

    @property
    def rules(self) -> dict[str, Any]:
        """The arguments of the comparison of two runs or two groups."""
        names = ("gate", "margin", "strict", "store")
        return {name: getattr(self, name) for name in names}


def groups_of(base: str, candidate: str | None, store: str | None) -> tuple[Group, Group] | None:
    """The two groups that are named; None for runs. Raises UsageError for one of each."""
    if candidate is None:
        return None
    one, other = (
        None if names_file(name) else named_group(name, store=store) for name in (base, candidate)
    )
    if one is not None and other is not None:
        return one, other
    for group, name in ((one, candidate), (other, base)):
        if group is not None:
            message = f"{name!r} is a run, and {group.id!r} a group: compare two of a kind"
            raise UsageError(f"{message}; {runs_of(group)}")
    return None


def compare_targets(reference: str, asked: Comparing, files: ReportOutput) -> int:
    """Show which targets of a group are best; returns the exit code."""
    for name in ("gate", "margin", "strict", "answers"):
        _refuse(name, "is about two runs: name a second one to compare with")
    try:
        found = group_comparison(reference, store=asked.store)
    except UsageError as error:
        if asked.request is None or not asked.request.criteria:
            raise
        message = f"{error}; the criteria of --preference are {asked.request.criteria!r}"
        raise UsageError(f"{message}: write these after both runs") from None
    judged = asked.request and preferred((found.group_id,), asked.request, asked.store)
    if files.has_files:
        group = show_group(found.group_id, store=asked.store)
        files.write_files(replace(group, preference=judged))
    if asked.as_json:
        echo_json(found.to_dict() | ({"preference": judged.to_dict()} if judged else {}))
    else:
        page = Page(sys.stdout)
        write_comparison(page, found, all_pairs=asked.pairs)
        for target in found.targets:
            page.whole(safe(f"run {target.run_id} is of {target.target}"))
        if judged:
            page.line()
            write_preference(judged, page)
    return judged.exit_code if judged else 0


def compare_same_targets(
    base: Group,
    candidate: Group,
    asked: Comparing,
    files: ReportOutput,
    print_one: PrintOne,
) -> int:
    """Compare the same targets of two groups; returns the worst exit code."""
    for name in ("answers", "preference"):
        _refuse(name, f"is about two runs or one group; {runs_of(candidate)}")
    found = compare_groups(base, candidate, **asked.rules)
    if files.has_files:
        files.write_files(
            compared_group(found, base, candidate, margin=asked.margin, store=asked.store)
        )
    if asked.as_json:
        echo_json(found.to_dict())
    else:
        _print_targets(found, print_one)
    return found.exit_code


def _refuse(name: str, why: str) -> None:
    """Raise UsageError if this option is given."""
    if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
        raise UsageError(f"--{name} {why}")


def _print_targets(found: ComparedGroups, print_one: PrintOne) -> None:
    page = Page(sys.stdout)
    for each in found.targets:
        page.line(f"--- {safe(each.target)}", "bold")
        print_one(each.comparison, each.comparison.base, each.comparison.candidate)
        page.line()
    for where, names in (("base", found.only_base), ("candidate", found.only_candidate)):
        if names:
            page.prose("", safe(f"only in the {where}: {named(names)}"))
    verdicts = (f"{each.target}: {each.comparison.verdict}" for each in found.targets)
    page.prose("", safe("; ".join(verdicts)), "bold")
