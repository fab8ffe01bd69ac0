"""Numbers and verdicts as text, the same in every report for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from assay.model.comparison import AcceptedCase, CaseRef, Comparison
from assay.model.run import short_id
from assay.model.run_result import RunResult
from assay.model.suite_result import EvalSuiteResult, Summary
from assay.text import count, duration, money, percent

#: Marks a case that failed in the baseline too.
FAILED_BEFORE = "failed before too"
#: How many flaky cases are named.
MAX_NAMED = 10

#: How many reasons a sentence has.
MAX_REASONS = 5

#: What an exit code means for a run.
VERDICTS = {
    0: "passed",
    1: "failed",
    2: "refused",
    3: "incomplete",
    4: "inconclusive",
    5: "nothing selected",
    130: "interrupted",
}


def verdict(run: RunResult) -> str:
    """The verdict in one word; for a run that was not judged to the end, how it ended."""
    if run.exit_code == 0:
        return run.verdict
    compared = run.comparison
    if run.exit_code == 4 and (compared is None or compared.verdict != "inconclusive"):
        return "stale"
    return VERDICTS.get(run.exit_code, f"exit code {run.exit_code}")


def tone_of(word: str) -> str:
    """How a page shows a verdict: better, worse, errored or unclear."""
    return {"passed": "better", "failed": "worse", "refused": "errored"}.get(word, "unclear")


def because(reasons: Sequence[str]) -> str:
    """The reasons of a verdict in one sentence; empty if there are none."""
    shown = "; ".join(reasons[:MAX_REASONS])
    more = len(reasons) - MAX_REASONS
    return f"{shown}; and {count(more, 'more reason')}" if more > 0 else shown


def opening(run: RunResult) -> tuple[str, list[str]]:
    """What a page says first: the sentence behind the verdict, then the counts and the rate."""
    counts, explained = headline(run), []
    if run.comparison is not None and run.comparison.explanation:
        explained = [f"Pass rate alone: {run.comparison.explanation}"]
    reasons = because(run.reasons)
    if not reasons:
        return counts, explained
    return reasons, [f"{counts[:1].upper()}{counts[1:]}.", *explained]


def headline(run: RunResult) -> str:
    """The counts behind the verdict, in one sentence."""
    summary = run.summary
    text = "no case was judged"
    if summary.judged:
        text = f"{summary.passed:,} of {count(summary.judged, 'judged case')} passed"
    if run.comparison is not None:
        text += f"; against {baseline_of(run, run.comparison)}: {moved(run.comparison)}"
    return text


def moved(comparison: Comparison) -> str:
    """`2 lost (1 repeated, 1 excused as flaky), 1 new pass`."""
    losses, found = comparison.losses, []
    names = {"repeated": "repeated", "unconfirmed": "not confirmed", "excused": "excused as flaky"}
    for status, name in names.items():
        if number := sum(loss.status == status for loss in losses):
            found.append(f"{number:,} {name}")
    lost = f"{len(losses):,} lost ({', '.join(found)})" if found else "none lost"
    accepted = f", {len(comparison.accepted):,} accepted" if comparison.accepted else ""
    passes = len(comparison.new_passes)
    return f"{lost}{accepted}, {count(passes, 'new pass', 'new passes')}"


def standings(comparison: Comparison | None) -> dict[CaseRef, str]:
    """What the comparison says about each case that does not pass now."""
    if comparison is None:
        return {}
    found: dict[CaseRef, str] = {}
    found |= dict.fromkeys(comparison.still_failing, FAILED_BEFORE)
    found |= dict.fromkeys(comparison.added, "new: it is not in the baseline")
    found |= dict.fromkeys(comparison.not_comparable, "changed since the baseline: not compared")
    found |= {loss.ref: loss.reason for loss in comparison.losses}
    found |= {case.ref: accepted(case) for case in comparison.accepted}
    return found


def accepted(case: AcceptedCase) -> str:
    until = f" (until {case.until})" if case.until else ""
    return f"accepted{until}: {case.reason}"


def interval(statistics: Mapping[str, Any]) -> str:
    """`95 % interval 55.2 % to 95.3 %, wilson`; empty if there is none."""
    rate = statistics.get("passRate") or {}
    if rate.get("low") is None or rate.get("high") is None:
        return ""
    text = f"{percent(rate['level'])} interval {percent(rate['low'])} to {percent(rate['high'])}"
    return text + (f", {rate['method']}" if rate.get("method") else "")


def rate(suite: EvalSuiteResult) -> str:
    """`83.3 % (55.2 to 95.3)`: the pass rate of a suite, and its interval if there is one."""
    if not suite.summary.judged:
        return ""
    text = percent(suite.summary.passed / suite.summary.judged)
    bounds = suite.statistics.get("passRate") or {}
    if bounds.get("low") is None or bounds.get("high") is None:
        return text
    low, high = (percent(bounds[end]).removesuffix(" %") for end in ("low", "high"))
    return f"{text} ({low} to {high})"


def asked_suites(run: RunResult) -> list[EvalSuiteResult]:
    """The suites with selected cases."""
    return [s for s in run.suites if s.summary.total_cases or s.summary.selected]


def facts(run: RunResult) -> Iterator[tuple[str, str]]:
    """What there is to say of the whole run, each with its label."""
    summary = run.summary
    yield "Run", run.id
    if run.target:
        yield "Target", run.target
    if summary.judged:
        yield "Pass rate", _pass_rate(run)
    if summary.coverage is not None:
        judged = f"{summary.judged:,} of {count(summary.planned, 'case')} judged"
        yield "Coverage", f"{percent(summary.coverage)} ({judged}){_bounds(run.statistics)}"
    yield from _measured(run.statistics)
    if summary.skipped_assertions:
        yield "Unchecked", f"{count(summary.skipped_assertions, 'assertion')} without data"
    yield "Duration", _durations(run)
    if costs := _costs(summary):
        yield "Cost", costs
    if run.folder:
        yield "Results", run.folder


def _pass_rate(run: RunResult) -> str:
    alone = run.suites[0].statistics if len(run.suites) == 1 else {}
    bounds = interval(run.statistics or alone)
    rate = percent(run.summary.passed / run.summary.judged)
    return f"{rate} ({bounds})" if bounds else rate


def _bounds(statistics: Mapping[str, Any]) -> str:
    """What the pass rate would be if all missing cases had failed, or passed."""
    coverage = statistics.get("coverage") or {}
    if coverage.get("judged") == coverage.get("planned") or coverage.get("worst") is None:
        return ""
    low, high = (percent(coverage[end]) for end in ("worst", "best"))
    return f", so the pass rate lies between {low} and {high}"


def _measured(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Graded scores, repeats, clusters and judges, if there are any."""
    score = statistics.get("score") or {}
    if score.get("graded"):
        yield "Mean score", f"{score['estimate']:.3f}{_limits(score)}"
    if repeats := statistics.get("repeats"):
        yield from _repeats(repeats)
    if warning := (statistics.get("clusters") or {}).get("warning"):
        yield "Clusters", warning
    yield from (("Judge", _judge(judge)) for judge in statistics.get("judges", ()))


def _limits(score: Mapping[str, Any]) -> str:
    if score.get("low") is None or score.get("high") is None:
        return ""
    ends = f"{score['low']:.3f} to {score['high']:.3f}"
    method = f", {score['method']}" if score.get("method") else ""
    return f" ({percent(score['level'])} interval {ends}{method})"


def _repeats(repeats: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How often all k attempts pass, a single one passes, and any of them passes."""
    if headline := repeats.get("headline"):
        k, n = headline["k"], str(headline["k"])
        text = f"{percent(headline['estimate'])} of {count(repeats['complete'], 'repeated case')}"
        bounds = interval({"passRate": headline})
        single, some = repeats["passHatK"]["1"], repeats["passAtK"][n]
        rest = f"; one attempt {percent(single)}, pass@{k} {percent(some)}{_coverage(repeats)}"
        yield f"pass^{k}", f"{text} ({bounds}){rest}" if bounds else text + rest
    elif repeats["cases"]:
        yield f"pass^{repeats['n']}", f"not known{_coverage(repeats)}"
    if flaky := repeats.get("flakyCount"):
        names = _first_names(repeats["flaky"], flaky)
        yield "Flaky", f"{count(flaky, 'case')} both passed and failed: {names}"


def _coverage(repeats: Mapping[str, Any]) -> str:
    """How many cases these numbers cover, if some have attempts without a verdict."""
    complete, cases = repeats["complete"], repeats["cases"]
    if complete == cases:
        return ""
    low, high = percent(repeats["worst"]), percent(repeats["best"])
    counted = f"; {complete:,} of {count(cases, 'case')} have {repeats['n']} judged attempts"
    return f"{counted}, over all pass^{repeats['n']} lies between {low} and {high}"


def _judge(judge: Mapping[str, Any]) -> str:
    """`quality (openai:gpt-6-sol): 82.5 % of 200 passed, corrected 89.9 % (79 to 100)`."""
    rate, calibration = judge["passRate"], judge["calibration"]
    text = f"{judge['evaluator']} ({judge['judge']}): "
    text += f"{percent(rate['estimate'])} of {rate['judged']:,} passed" if rate else "no verdict"
    if calibration["state"] == "none":
        return f"{text}; not calibrated"
    if calibration["state"] == "stale":
        return f"{text}; changed since it was calibrated on {calibration['calibratedAt'][:10]}"
    corrected = judge.get("corrected")
    if not corrected:
        return f"{text}; its labels are not enough to correct that"
    low, high = (percent(corrected[end]).removesuffix(" %") for end in ("low", "high"))
    return f"{text}, corrected {percent(corrected['estimate'])} ({low} to {high})"


def _first_names(names: Sequence[str], total: int) -> str:
    """The first names, and how many more there are."""
    shown = names[:MAX_NAMED]
    more = f" and {total - len(shown):,} more" if total > len(shown) else ""
    return ", ".join(shown) + more


def _durations(run: RunResult) -> str:
    cases = duration(run.summary.total_duration_ms)
    try:
        began = datetime.fromisoformat(run.record.started_at)
        ended = datetime.fromisoformat(run.record.finished_at or "")
        took = (ended - began).total_seconds()
    except (ValueError, TypeError):  # not finished, or a time written by another tool
        return f"cases took {cases}"
    return f"{duration(max(0.0, 1000 * took))} (cases took {cases})"


def _costs(summary: Summary) -> str:
    pairs = ((summary.estimated_cost_usd, "target"), (summary.judge_cost_usd, "judges"))
    return ", ".join(f"{money(cost)} {whose}" for cost, whose in pairs if cost is not None)


def baseline_of(run: RunResult, comparison: Comparison) -> str:
    """The baseline as it was given, with the id of the run if that was a name; ids are short."""
    asked = str(run.record.options.get("baseline") or "")
    base = short_id(comparison.base)
    return base if comparison.base.startswith(asked) else f"{asked} ({base})"


def changes(comparison: Comparison) -> Iterator[tuple[str, tuple[CaseRef, ...]]]:
    """The changes since the baseline: a heading and the cases of each list that is not empty.

    Losses are not among them: they are reported as the failed cases that they are.
    """
    lists = {
        "new passes": comparison.new_passes,
        "added": comparison.added,
        "removed": comparison.removed,
        "not comparable, as the case changed": comparison.not_comparable,
        "not judged in both runs": comparison.unjudged,
        "flaky": comparison.flaky,
    }
    return ((f"{name} ({len(refs):,})", refs) for name, refs in lists.items() if refs)


def warnings(run: RunResult) -> Iterator[tuple[str, str]]:
    """The staleness warnings and notes, with their labels."""
    for suite in run.suites:
        yield from (("Stale", f"{suite.name}: {text}") for text in suite.staleness_warnings)
    for text in run.comparison.warnings if run.comparison is not None else ():
        yield "Warning", text
    yield from (("Note", text) for text in run.notes)
    for text in run.comparison.notes if run.comparison is not None else ():
        yield "Note", text
    for suite in run.suites:
        yield from (("Note", f"{suite.name}: {text}") for text in suite.notes)
