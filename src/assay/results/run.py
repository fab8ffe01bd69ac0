"""The result of a run, read from the store: its suites, its statistics and the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.model.calibration import Calibration
from assay.model.comparison import Comparison
from assay.model.options import RunOptions, narrowing
from assay.model.result import Outcome
from assay.model.run import (
    RunRecord,
    RunVerdict,
    SuiteHeader,
    TrialFacts,
    TrialRecord,
    positions_of,
)
from assay.model.run_result import PRECEDENCE, RunResult
from assay.model.score import reaches
from assay.model.suite_result import EvalSuiteResult, Summary
from assay.model.trials import by_case, entry_of, outcome_of, repeats_of
from assay.ports import Store
from assay.results.judgements import JudgeStatistics
from assay.results.statistics import Measure
from assay.stats.means import DRAWS
from assay.stats.sequential import Sequential
from assay.text import count, exact_percent

#: With more suites than this each gets fewer bootstrap draws, but always at least the minimum.
_MANY_SUITES, _MIN_DRAWS = 20, 1000


class Totals(msgspec.Struct):
    """Totals over the cases of a suite or a run. A cost is None until a trial reports one."""

    outcomes: dict[Outcome, int] = {}
    skipped_assertions: int = 0
    duration_ms: float = 0.0
    cost_usd: float | None = None
    judge_cost_usd: float | None = None
    #: The sum of the hashes of all comparability keys, so that the order of cases does not matter.
    keys: int = 0
    measure: Measure = msgspec.field(default_factory=Measure)

    def add(self, trials: Sequence[TrialFacts | TrialRecord]) -> None:
        repeats = trials if len(trials) == 1 else repeats_of(trials)
        outcome = outcome_of(repeats)
        self.measure.add(repeats, outcome)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.keys += _number(trials[0].comparability)
        # Not the sum: repeats skip the same assertions.
        self.skipped_assertions += max(trial.skipped_assertions for trial in repeats)
        for trial in trials:
            if not trial.confirms:
                self.duration_ms += trial.duration_ms
            if trial.cost_usd is not None:
                self.cost_usd = (self.cost_usd or 0.0) + trial.cost_usd
            if trial.judge_cost_usd is not None:
                self.judge_cost_usd = (self.judge_cost_usd or 0.0) + trial.judge_cost_usd

    def join(self, other: Totals) -> None:
        """Add the totals of another suite."""
        for outcome, cases in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + cases
        self.keys += other.keys
        self.skipped_assertions += other.skipped_assertions
        self.duration_ms += other.duration_ms
        if other.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + other.cost_usd
        if other.judge_cost_usd is not None:
            self.judge_cost_usd = (self.judge_cost_usd or 0.0) + other.judge_cost_usd
        self.measure.join(other.measure)

    def planned(self, selected: int | None) -> int:
        """How many cases should have been judged, as far as is known."""
        return max(sum(self.outcomes.values()), selected or 0) - self.outcomes.get("skipped", 0)

    def summary(self, selected: int | None) -> Summary:
        """`selected` is the number of cases that the run was to ask; None if not known yet."""
        counts = {name: self.outcomes.get(name, 0) for name in ("passed", "failed", "errored")}
        skipped, total = self.outcomes.get("skipped", 0), sum(self.outcomes.values())
        planned = self.planned(selected)
        judged = counts["passed"] + counts["failed"]
        return Summary(
            total_cases=total,
            **counts,
            skipped=skipped,
            skipped_assertions=self.skipped_assertions,
            total_duration_ms=self.duration_ms,
            coverage=judged / planned if planned and selected is not None else None,
            estimated_cost_usd=self.cost_usd,
            judge_cost_usd=self.judge_cost_usd,
            selected=selected if selected is not None and selected > total else None,
            comparability=f"{self.keys % 2**64:016x}" if total else None,
        )


def _number(key: str) -> int:
    """A 64-bit hash of a comparability key."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest())


def result_of(
    store: Store,
    record: RunRecord,
    *,
    comparison: Comparison | None = None,
    notes: tuple[str, ...] = (),
    calibrations: Sequence[Calibration] = (),
) -> RunResult:
    """The run as it is in the store now; cases are not held in memory."""
    all_counts = [_count(store, record, i) for i in range(len(record.suites))]
    judges = JudgeStatistics(store, record, calibrations)
    suites = tuple(
        _suite(store, record, i, count, comparison, judges.of(i))
        for i, count in enumerate(all_counts)
    )
    every = Totals()
    for counted in all_counts:
        every.join(counted)
    selections = [header.selected for header in record.suites if header.selected is not None]
    selected = sum(selections) if len(selections) == len(record.suites) else None
    return RunResult(
        record,
        suites,
        every.summary(selected),
        notes=notes,
        comparison=comparison,
        trials=partial(store.trials, record.id) if record.shard else None,
        statistics=every.measure.statistics(every.planned(selected), whole=True) | judges.of(),
    )


def draws_of(suites: int) -> int:
    """The bootstrap draws of a suite: fewer if there are many suites, to limit the time."""
    return DRAWS if suites <= _MANY_SUITES else max(DRAWS * _MANY_SUITES // suites, _MIN_DRAWS)


def _count(store: Store, record: RunRecord, suite: int) -> Totals:
    count = Totals()
    for trials in by_case(store.facts(record.id, positions_of(suite))):
        count.add(trials)
    return count


def _suite(
    store: Store,
    record: RunRecord,
    index: int,
    count: Totals,
    compared: Comparison | None,
    judges: dict[str, Any],
) -> EvalSuiteResult:
    header = record.suites[index]
    positions = positions_of(index)
    return EvalSuiteResult(
        run_id=record.id,
        timestamp=record.started_at,
        name=header.name,
        file=header.file,
        tier=header.tier,
        tool_name=header.tool_name or header.name,
        metadata=header.metadata,
        entries=partial(_entries, store, record.id, positions),
        records=partial(_records, store, record.id, positions),
        summary=count.summary(header.selected),
        statistics=count.measure.statistics(
            count.planned(header.selected), draws=draws_of(len(record.suites))
        )
        | judges,
        staleness_warnings=header.staleness_warnings,
        target=header.target or record.target,
        options=record.options,
        environment=record.environment,
        comparability=partial(_comparability, store, record.id, positions),
        notes=header.notes,
        **_changes(header, compared),
    )


def _changes(header: SuiteHeader, compared: Comparison | None) -> dict[str, Any]:
    """The lists of the comparison, limited to this suite's cases."""
    names = ("regressions", "new_passes", "added", "removed", "not_comparable", "unjudged")
    if compared is None:
        return dict.fromkeys(names, ())
    lists = {
        name: tuple(ref.id for ref in getattr(compared, name) if ref.suite in ("", header.file))
        for name in names
    }
    return {"baseline_run_id": compared.base, **lists}


def _entries(store: Store, run_id: str, positions: range) -> Iterator[bytes]:
    return map(entry_of, by_case(store.trials(run_id, positions=positions)))


def _records(
    store: Store, run_id: str, positions: range
) -> Iterator[tuple[bytes, list[TrialRecord]]]:
    for trials in by_case(store.trials(run_id, positions=positions)):
        yield entry_of(trials), trials


def _comparability(store: Store, run_id: str, positions: range) -> Iterator[tuple[str, str]]:
    for trial in store.facts(run_id, positions):
        if trial.repeat == 0:
            yield trial.case_id, trial.comparability


def conclude(
    result: RunResult,
    options: RunOptions,
    *,
    gave_up: str = "",
    faults: Sequence[str] = (),
    nothing: str = "",
    hint: str = "",
) -> RunResult:
    """The result with its exit code and the reasons for it.

    `gave_up` is why the run stopped early, and `faults` are errors in the configuration.
    `nothing` is why no case could be selected, if that is not due to the options; `hint` says what
    else they may have meant.
    """
    reasons: dict[int, list[str]] = {2: list(faults)} if faults else {}
    summary, comparison = result.summary, result.comparison
    interrupted = result.record.status == "interrupted" and not gave_up
    again = f"`assay run --resume {result.id}` continues it"
    if not result.record.is_resumable:
        again = "run its cases again: a run of cases that code made or selected cannot be resumed"
    if not summary.total_cases and not interrupted:
        reasons[5] = [nothing or _nothing_selected(options, hint)]
    if comparison is not None:
        reasons[comparison.exit_code] = [*comparison.gate_failures, *comparison.undecided]
    elif options.baseline is None and (failure := _failure(summary, options.min_pass_rate)):
        reasons[1] = [failure]  # with a baseline the gate decides, after the comparison
    if result.record.status == "running":
        reasons[3] = ["the run has not ended: it is still running, or its process was killed"]
    if options.require_calibrated and (unknown := _uncalibrated(result)):
        reasons.setdefault(1, []).extend(unknown)
    coverage = 1.0 if summary.coverage is None else summary.coverage
    if gave_up or not (interrupted or reaches(coverage, options.min_coverage)):
        judged = f"{summary.judged:,} of {summary.planned:,} cases were judged"
        missing = f"{judged}; {exact_percent(options.min_coverage)} required"
        reasons.setdefault(3, []).append(missing)
        if gave_up:
            reasons[3] = [gave_up, *reasons[3], again]
    if options.strict:
        stale = [f"{s.name}: {warning}" for s in result.suites for warning in s.staleness_warnings]
        if stale:
            reasons.setdefault(4, []).extend(stale)
    if interrupted:
        reasons[130] = [f"the run was interrupted; {again}"]
    code = next((code for code in PRECEDENCE if code in reasons), 0)
    ordered = tuple(reason for c in (*PRECEDENCE, 0) for reason in reasons.get(c, ()))
    return replace(result, exit_code=code, reasons=ordered)


def _uncalibrated(result: RunResult) -> list[str]:
    """The judges that count and have no calibration for their current state."""
    words = {"none": "is not calibrated", "stale": "changed since it was calibrated"}
    return [
        f"the judge of {judge['evaluator']!r} ({judge['judge']}) {words[state]}"
        for judge in result.statistics.get("judges", ())
        if judge["counts"] and (state := judge["calibration"]["state"]) in words
    ]


def _failure(summary: Summary, min_pass_rate: float | None) -> str:
    if min_pass_rate is None:
        return f"{count(summary.failed, 'case')} failed" if summary.failed else ""
    if summary.skipped and summary.skipped == summary.total_cases and min_pass_rate > 0:
        return f"no case was judged; {exact_percent(min_pass_rate)} must pass"
    rate = summary.passed / summary.judged if summary.judged else 1.0
    if reaches(rate, min_pass_rate):
        return ""
    # Not the rate: rounded, it may look like the required one.
    passed = f"{summary.passed:,} of {summary.judged:,} judged cases passed"
    return f"{passed}; {exact_percent(min_pass_rate)} required"


def _nothing_selected(options: RunOptions, meant: str) -> str:
    """Names the options that selected cases, as one was likely mistyped."""
    chosen = narrowing(options.model_dump(exclude={"limit"}))
    if not chosen:
        return "no case was selected"
    hint = "; a filter must match the whole id" if options.filter else ""
    return f"no case was selected: none matches {chosen}{hint}{meant and f' ({meant})'}"


def recorded_summary(
    result: RunResult,
    sequential: Sequential | None = None,
    *,
    narrowed: bool = False,
    unreported: bool = False,
) -> dict[str, Any]:
    """The counts and the verdict in the form that is stored, to show the run again.

    If the run was `narrowed` to some of the cases, the removed ones are stored too: they cannot
    be computed later.
    """
    verdict = RunVerdict(
        result.exit_code,
        result.reasons,
        result.notes,
        result.verdict,
        unreported=unreported or None,
    )
    if result.comparison is not None:
        verdict = replace(
            verdict,
            baseline=result.comparison.base,
            removed=result.comparison.removed if narrowed else None,
            sequential=sequential,
            regressed=len(result.comparison.regressions),
            fixed=len(result.comparison.new_passes),
        )
    # The statistics of each suite are stored so that lists of runs need not count trials.
    suites = [
        {"file": s.file, **s.summary.to_dict(), "statistics": s.statistics} for s in result.suites
    ]
    measured = {"statistics": result.statistics, "suites": suites}
    return result.summary.to_dict() | measured | {"verdict": verdict.to_dict()}
