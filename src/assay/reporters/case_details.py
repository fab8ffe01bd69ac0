"""CaseDetails: what a person reads of one case, in words, as the script of a report shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from assay.model.case_view import CaseView, TrialView
from assay.model.checks import Check
from assay.model.score import EvaluatorEntry
from assay.redaction import cut
from assay.reporters.case_words import (
    answer_title,
    checks_of,
    expectations_of,
    facts_of,
    observed,
    question_of,
    reasons_of,
    shown_trial,
)
from assay.reporters.trajectory_rows import CallRow, rows_of
from assay.reporters.word_diff import MAX_CHARACTERS, Sign, marked
from assay.text import count, duration

#: The most characters of an answer or a message, and of other texts.
MAX_ANSWER, MAX_TEXT = 100_000, 4_000
#: The most messages, hits, calls or attempts of a case.
MAX_LISTED = 200
#: The same where a page shows many cases at once.
MAX_BRIEF, MAX_BRIEFLY_LISTED = 1_500, 12

Labelled = list[tuple[str, str]]


class CheckDetails(msgspec.Struct, omit_defaults=True):
    """What an evaluator said. `kind` is its verdict in one word, `rows` are its aligned calls."""

    name: str
    kind: str
    verdict: str
    criterion: str = ""
    judge: str = ""
    reasoning: str = ""
    hits: list[str] = []
    misses: list[str] = []
    rows: list[tuple[str, list[CallRow]]] = []


class Attempt(msgspec.Struct, omit_defaults=True):
    """One of several trials of a case."""

    title: str
    outcome: str
    facts: str
    answer: str = ""


class CaseDetails(msgspec.Struct, omit_defaults=True, rename="camel"):
    """Everything about a case; texts are cut, but not escaped.

    `standing` is how it compares with the baseline. `before` is the answer of the baseline; in a
    file `diff` may take its place, which has the words of both answers.
    """

    facts: Labelled
    answer_title: str = ""
    description: str = ""
    source: str = ""
    standing: str = ""
    question: Labelled = []
    expected: Labelled = []
    answer: str = ""
    before: str | None = None
    diff: list[tuple[Sign, str]] = []
    error: str = ""
    checks: list[CheckDetails] = []
    reasons: list[str] = []
    calls: Labelled = []
    attempts: list[Attempt] = []
    #: How many attempts passed, of all that were made: the list may have fewer.
    attempted: str = ""
    #: How many entries of the lists were left out.
    left_out: int = 0


def details_of(view: CaseView, description: str, standing: str, before: str | None) -> CaseDetails:
    """The details of a case."""
    trial = shown_trial(view)
    seen = observed(trial)
    calls = seen.tool_calls or ()
    entries = trial.details.evaluators
    checks = [_check(check, entry) for check, entry in zip(checks_of(view), entries, strict=True)]
    listed = (calls, entries, view.trials, view.content.input)
    return CaseDetails(
        facts=[(label, cut(text, MAX_TEXT, "both")) for label, text in facts_of(view)],
        answer_title=answer_title(view),
        description=cut(description, MAX_TEXT),
        source=view.source,
        standing=cut(standing, MAX_TEXT),
        question=_cut_pairs(question_of(view.content)),
        expected=_cut_pairs(list(expectations_of(view.content))),
        answer=cut(seen.response, MAX_ANSWER, "both"),
        before=None if before is None else cut(before, MAX_ANSWER, "both"),
        error=cut(seen.error or "", MAX_TEXT, "both"),
        checks=checks[:MAX_LISTED],
        reasons=_cut_all(reasons_of(view)),
        calls=[(call.text, call.ending) for call in calls[:MAX_LISTED]],
        attempts=list(_attempts(view))[:MAX_LISTED],
        attempted=_attempted(view) if len(view.trials) > 1 else "",
        left_out=sum(max(len(given) - MAX_LISTED, 0) for given in listed),
    )


def with_diff(found: CaseDetails) -> CaseDetails:
    """The details with the words of both answers, if these have some in common."""
    before, answer = found.before, found.answer
    if not before or not answer or before == answer:
        return found
    if max(len(before), len(answer)) > MAX_CHARACTERS:
        return found  # the difference would not have all of them
    diff = marked(before, answer)
    return replace(found, before=None, diff=diff) if diff else found


def brief(found: CaseDetails) -> CaseDetails:
    """The details with shorter texts and lists, for a page with many cases."""
    return replace(
        found,
        facts=found.facts[1:],
        question=_shorter(found.question),
        expected=_shorter(found.expected),
        answer=cut(found.answer, MAX_BRIEF, "both"),
        before=None if found.before is None else cut(found.before, MAX_BRIEF, "both"),
        checks=[_brief_check(check) for check in found.checks[:MAX_BRIEFLY_LISTED]],
        reasons=[cut(text, MAX_BRIEF, "both") for text in found.reasons[:MAX_BRIEFLY_LISTED]],
        calls=_shorter(found.calls),
        attempts=[],
    )


def _brief_check(check: CheckDetails) -> CheckDetails:
    most = MAX_BRIEFLY_LISTED
    return replace(
        check,
        reasoning=cut(check.reasoning, MAX_BRIEF, "both"),
        hits=[],
        misses=[cut(text, MAX_BRIEF, "both") for text in check.misses[:most]],
        rows=[(name, rows[:most]) for name, rows in check.rows],
    )


def _shorter(pairs: Labelled) -> Labelled:
    return [(label, cut(text, MAX_BRIEF, "both")) for label, text in pairs[:MAX_BRIEFLY_LISTED]]


def _check(check: Check, entry: EvaluatorEntry) -> CheckDetails:
    return CheckDetails(
        check.name,
        "errored" if entry.error else "skipped" if entry.skipped else str(entry.verdict or ""),
        cut(check.verdict, MAX_TEXT, "both"),
        cut(check.criterion, MAX_TEXT),
        check.judge,
        cut(check.reasoning, MAX_TEXT, "both"),
        _cut_all(check.hits),
        _cut_all(check.misses),
        list(rows_of(entry.name, entry.type, entry.details)),
    )


def _attempts(view: CaseView) -> Iterator[Attempt]:
    """Every trial with its answer, if there are several."""
    if len(view.trials) < 2:
        return
    numbers = {False: 0, True: 0}
    for trial in view.trials:
        numbers[trial.confirms] += 1
        title = f"{'Re-ask' if trial.confirms else 'Repeat'} {numbers[trial.confirms]}"
        answer = cut(observed(trial).response, MAX_TEXT, "both")
        yield Attempt(title, trial.outcome, _facts_of_attempt(trial), answer)


def _attempted(view: CaseView) -> str:
    """`2 of 3 passed; 0 of 1 re-ask passed`: re-asks are not among the repeats."""
    said = []
    for confirms, noun in ((False, ""), (True, "re-ask")):
        made = [trial.outcome for trial in view.trials if trial.confirms is confirms]
        if made:
            passed = made.count("passed")
            of = count(len(made), noun) if noun else f"{len(made):,}"
            said.append(f"{passed:,} of {of} passed")
    return "; ".join(said)


def _facts_of_attempt(trial: TrialView) -> str:
    score = "" if trial.score is None else f"score {trial.score:.3g}"
    return ", ".join(filter(None, (score, duration(trial.duration_ms))))


def _cut_pairs(pairs: Labelled) -> Labelled:
    return [(label, cut(text, MAX_ANSWER, "both")) for label, text in pairs[:MAX_LISTED]]


def _cut_all(texts: Sequence[str]) -> list[str]:
    """The texts, each of them cut; of very many the last says how many there are."""
    found = [cut(text, MAX_TEXT, "both") for text in texts[:MAX_LISTED]]
    if len(texts) > MAX_LISTED:
        found.append(f"and {count(len(texts) - MAX_LISTED, 'more')}")
    return found
