"""One case of a run in words, the same on a terminal and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import msgspec

from assay.model.case_content import CaseContent, message_text
from assay.model.case_rows import Facets
from assay.model.case_view import CaseView, TrialView
from assay.model.checks import Check, check_of
from assay.model.observation import Usage
from assay.model.observed import Observed, ObservedCall
from assay.model.result import Outcome
from assay.text import count, duration, money


def shown_trial(view: CaseView) -> TrialView:
    """The trial whose answer stands for the case: the first with the outcome of the case."""
    repeats = [trial for trial in view.trials if not trial.confirms] or view.trials
    return next((trial for trial in repeats if trial.outcome == view.row.outcome), repeats[0])


def observed(trial: TrialView) -> Observed:
    """What the target did in a trial."""
    return msgspec.convert(trial.observation, Observed, strict=False)


def answer_of(view: CaseView) -> str:
    return observed(shown_trial(view)).response


def question_of(content: CaseContent) -> list[tuple[str, str]]:
    """The role and the text of each input message."""
    return [(str(message.get("role", "user")), _said(message)) for message in content.input]


def expectations_of(content: CaseContent) -> Iterator[tuple[str, str]]:
    """What the case expects besides its evaluators, each with its label."""
    if content.expected_outcome:
        yield "outcome", content.expected_outcome
    for message in content.expected_messages:
        yield str(message.get("role", "answer")), _said(message)


def _said(message: Mapping[str, Any]) -> str:
    """The text of a message, and its calls."""
    calls = (
        ObservedCall(str(call.get("tool", "")), call.get("input")).text
        for call in message.get("tool_calls") or ()
    )
    return "\n".join(filter(None, (message_text(message), *calls)))


def checks_of(view: CaseView) -> list[Check]:
    """What each evaluator said of the answer that is shown."""
    return [check_of(entry, view.content) for entry in shown_trial(view).details.evaluators]


def reasons_of(view: CaseView) -> list[str]:
    """Why it did not pass, except for what its evaluators say themselves."""
    trial = shown_trial(view)
    said = [observed(trial).error or ""]
    for entry in trial.details.evaluators:
        said += (*entry.misses, entry.reasoning, entry.failed_gate, entry.error)
    said = list(filter(None, said))
    return [r for r in trial.details.failures if not any(text in r for text in said)]


def facts_of(view: CaseView) -> Iterator[tuple[str, str]]:
    """What there is to say of a case besides its question, its answer and its checks."""
    row, content, trial = view.row, view.content, shown_trial(view)
    yield "Run", view.run_id
    yield "Suite", f"{row.suite}, position {row.position}"
    if row.tags:
        yield "Tags", ", ".join(row.tags)
    if row.score is not None:
        least = "" if content.threshold is None else f" (threshold {content.threshold:g})"
        yield "Score", f"{row.score:.3g}{least}"
    if row.changed is not None:
        yield "Changed", f"{row.changed.replace('-', ' ')}, compared with the baseline of the run"
    yield from _repeats(view)
    seen = observed(trial)
    if usage := _tokens(seen.usage):
        yield "Tokens", usage
    if row.cost_usd is not None:
        yield "Cost", money(row.cost_usd)
    judges = [t.judge_cost_usd for t in view.trials if t.judge_cost_usd is not None]
    if judges:
        yield "Judge cost", money(sum(judges))
    each = " on average" if sum(not trial.confirms for trial in view.trials) > 1 else ""
    yield "Time", duration(row.latency_ms) + each
    for note in seen.notes:
        yield "Note", note


def _repeats(view: CaseView) -> Iterator[tuple[str, str]]:
    """How many of the repeats passed, and of the trials that asked a lost case again."""
    for label, confirms in (("Repeats", False), ("Re-asks", True)):
        trials = [trial for trial in view.trials if trial.confirms is confirms]
        if len(trials) > 1 or (trials and confirms):
            passed = sum(trial.outcome == "passed" for trial in trials)
            outcomes = ", ".join(trial.outcome for trial in trials[:20])
            more = ", ..." if len(trials) > 20 else ""
            flaky = "; flaky" if view.row.flaky and not confirms else ""
            yield label, f"{passed} of {len(trials)} passed ({outcomes}{more}){flaky}"


def _tokens(usage: Usage | None) -> str:
    if usage is None:
        return ""
    pairs = ((usage.input_tokens, "input"), (usage.output_tokens, "output"))
    return ", ".join(f"{number:,} {kind}" for number, kind in pairs if number is not None)


def answer_title(view: CaseView) -> str:
    """`Answer`, and which repeat gave it if there are several."""
    repeats = [trial for trial in view.trials if not trial.confirms]
    trial = shown_trial(view)
    if len(repeats) < 2:
        return "Answer"
    return f"Answer of repeat {trial.repeat + 1} of {len(repeats)}"


def totals(shown: int, facets: Facets) -> str:
    """`50 of 153 cases shown; 100 passed, 50 failed, 3 errored`."""
    counts = (
        f"{n:,} {outcome}" for outcome in get_args(Outcome) if (n := facets.outcome.get(outcome))
    )
    few = f"{shown:,} of {count(facets.total, 'case')} shown"
    cases = few if shown < facets.total else count(facets.total, "case")
    return "; ".join(filter(None, (cases, ", ".join(counts))))
