"""What the page of `/label/{run}` shows of an answer, and of the labels so far."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from assay.charts.calibration import corrected_rates
from assay.charts.intervals import rate_words
from assay.charts.markup import Chart, Html
from assay.charts.squares import confusion_square
from assay.model.case_content import message_text
from assay.model.case_view import CaseView
from assay.model.comparison import CaseRef
from assay.model.label import AnswerLabel
from assay.model.observed import Observed, decode_observed
from assay.service.calibration import why_not_corrected
from assay.service.labelling import NEXT, Criterion, LabelQueue, LabelResult, criteria
from assay.stats.calibration import agreement, kappa, sensitivity, specificity
from assay.stats.estimates import Estimate
from assay.text import count, points
from assay.web.content import answer_html


class ShownAnswer(msgspec.Struct, frozen=True):
    """An answer as a person sees it: nothing of what any evaluator said."""

    position: int
    mark: str
    id: str
    question: list[tuple[str, str]]
    criteria: list[Criterion]
    observed: Observed
    drawn: Html
    label: AnswerLabel | None


class Standing(msgspec.Struct, frozen=True):
    """How the judge compares with the labels so far; `mine` of them are the author's."""

    mine: int
    labels: int
    square: Chart
    rates: Chart
    corrected: str
    outlook: str
    facts: list[tuple[str, str]]


def answer_of(view: CaseView, queue: LabelQueue, labels: dict[CaseRef, AnswerLabel]) -> ShownAnswer:
    """The first answer to a case, which is the one that the judge is compared on."""
    first = next(trial for trial in view.trials if not trial.repeat and not trial.confirms)
    observed = decode_observed(msgspec.json.encode(first.observation))
    ref = queue.answers[view.row.position].ref
    return ShownAnswer(
        view.row.position,
        mark_of(ref),
        ref.id,
        [(str(m.get("role", "user")), message_text(m)) for m in view.content.input],
        criteria(view.content, queue.judge.evaluator),
        observed,
        answer_html(observed.response),
        labels.get(ref),
    )


def mark_of(ref: CaseRef) -> str:
    """Tells a form which case it is about: in a run at work, positions may still move."""
    return sha256(msgspec.json.encode([ref.suite, ref.id])).hexdigest()[:16]


def standing_of(
    queue: LabelQueue, labels: dict[CaseRef, AnswerLabel], author: str
) -> Standing | None:
    """How the judge compares with the labels; None without any."""
    result = queue.so_far(labels)
    raw, table = result.raw, result.table
    if raw is None or not table.n:
        return None
    corrected, agreed = result.corrected, table.right_passes + table.right_failures
    return Standing(
        sum(label.author == author for label in labels.values()),
        table.n,
        confusion_square(table),
        corrected_rates(raw, corrected, result.judged, table.n),
        f"{rate_words(corrected)} of {count(result.judged, 'answer')}"
        if corrected
        else f"not known: {why_not_corrected(table)}",
        _outlook(result),
        [
            ("both say the same", f"{agreed:,} of {table.n:,}: {rate_words(agreement(table))}"),
            ("kappa, where 0 is guessing and 1 is full agreement", _numbers(kappa(table))),
            ("of the good answers, the judge passes", rate_words(sensitivity(table))),
            ("of the bad answers, the judge fails", rate_words(specificity(table))),
        ],
    )


def _outlook(result: LabelResult) -> str:
    """What the next labels would bring."""
    if result.gain is None or result.corrected is None:
        return ""
    width, gain = points(result.corrected.high - result.corrected.low), points(result.gain)
    if gain == "0.0":
        more = "More labels are not expected to narrow it: the judge is hardly better than chance."
    else:
        more = f"{NEXT} more labels would make it about {gain} points narrower."
    return f"The interval of the corrected rate is {width} points wide. {more}"


def _numbers(found: Estimate | None) -> str:
    if found is None:
        return "not known: all labels and verdicts are the same"
    return f"{found.estimate:.2f} ({found.low:.2f} to {found.high:.2f})"
