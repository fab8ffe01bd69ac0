"""Excerpts: as much of a case that did not pass as a person wants to read.

A run may have a million cases and an answer a million characters. What is kept here is small,
and what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from assay.model.diff import render_diff
from assay.model.result import Outcome
from assay.model.run_result import RunResult
from assay.model.suite_result import CaseResult, EvalSuiteResult
from assay.model.values import cut
from assay.reporters.words import count

#: How many cases of an outcome are told in full.
MAX_CASES = 100
#: How many reasons a case has, how long each is, and how many steps of a trajectory are drawn.
MAX_REASONS, MAX_REASON, MAX_STEPS = 20, 1000, 40
#: How many different reasons for skipping are told.
MAX_SKIPS = 20


class Excerpt(msgspec.Struct, frozen=True):
    """A case that did not pass; its texts are cut to size, and not yet escaped.

    `diffs` are trajectories drawn line by line, each under the name of its evaluator.
    """

    suite: str
    file: str
    line: int
    id: str
    description: str
    outcome: Outcome
    again: str
    reasons: tuple[str, ...]
    diffs: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Excerpts(msgspec.Struct):
    """The cases of a run that did not pass: the first of each outcome."""

    failed: list[Excerpt] = []
    errored: list[Excerpt] = []
    #: How many cases were skipped for each reason.
    skipped: dict[str, int] = {}


class _Details(msgspec.Struct):
    outcome: Outcome


class _Glance(msgspec.Struct):
    """Enough of an entry to see whether it is worth reading."""

    details: _Details


_glance = msgspec.json.Decoder(_Glance)
_read = msgspec.json.Decoder(CaseResult)


def gather(run: RunResult, most: int = MAX_CASES) -> Excerpts:
    """Look through the cases once; a suite is left as soon as nothing more is to be found."""
    found = Excerpts()
    for suite in run.suites:
        for case in _not_passed(suite, found, most):
            if case.outcome == "skipped":
                _count_skip(found.skipped, case)
            else:
                listed = found.failed if case.outcome == "failed" else found.errored
                listed.append(excerpt(suite, case))
    return found


def _not_passed(suite: EvalSuiteResult, found: Excerpts, most: int) -> Iterator[CaseResult]:
    summary = suite.summary
    left = {"failed": summary.failed, "errored": summary.errored, "skipped": summary.skipped}
    listed: dict[str, list[Excerpt]] = {"failed": found.failed, "errored": found.errored}

    def wanted(outcome: str) -> bool:
        return left.get(outcome, 0) > 0 and len(listed.get(outcome, ())) < most

    entries = suite.entries() if any(map(wanted, left)) else iter(())
    for entry in entries:
        outcome = _glance.decode(entry).details.outcome
        if outcome == "passed" or not wanted(outcome):
            continue
        left[outcome] -= 1
        yield _read.decode(entry)
        if not any(map(wanted, left)):
            return


def _count_skip(skipped: dict[str, int], case: CaseResult) -> None:
    reason = reasons_of(case)[0]
    if reason not in skipped and len(skipped) >= MAX_SKIPS:
        reason = "other reasons"
    skipped[reason] = skipped.get(reason, 0) + 1


def excerpt(suite: EvalSuiteResult, case: CaseResult) -> Excerpt:
    """As much of a case as a person wants to read."""
    file, line = case.source
    return Excerpt(
        suite.name,
        file or suite.file,
        line,
        case.id,
        case.description[:MAX_REASON],
        case.outcome,
        _again(case),
        reasons_of(case),
        tuple(_diffs(case.details.get("evaluators", ()))),
    )


def reasons_of(case: CaseResult) -> tuple[str, ...]:
    """Why the case did not pass: never nothing, and never too much."""
    reasons = case.failures or [case.error or "no reason was given"]
    told = [cut(reason, MAX_REASON) for reason in reasons[:MAX_REASONS]]
    if len(reasons) > MAX_REASONS:
        told.append(f"and {count(len(reasons) - MAX_REASONS, 'more reason')}")
    return tuple(told)


def _again(case: CaseResult) -> str:
    """How often it passed when a regression was confirmed; its reasons tell of its repeats."""
    trials = [trial for trial in case.trials if trial.get("confirms", False)]
    passed = sum(trial["outcome"] == "passed" for trial in trials)
    return f"{passed} of {len(trials)} passed when it was asked again" if trials else ""


def _diffs(
    evaluators: Iterable[Mapping[str, Any]], path: str = ""
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The trajectories that are not as expected, those of the members of composites too."""
    for evaluator in evaluators:
        name, details = path + evaluator["name"], evaluator.get("details", {})
        if evaluator["type"] == "composite":
            yield from _diffs(details.get("members", ()), f"{name}: ")
        elif evaluator["type"] == "tool_trajectory":
            steps = details.get("diff", ())
            if any(step["status"] != "matched" for step in steps):
                yield name, tuple(_drawn(steps))


def _drawn(steps: list[dict[str, Any]]) -> Iterator[str]:
    yield from (line.removeprefix("  ") for line in render_diff(islice(steps, MAX_STEPS)))
    if len(steps) > MAX_STEPS:
        yield f"and {count(len(steps) - MAX_STEPS, 'more step')}"
