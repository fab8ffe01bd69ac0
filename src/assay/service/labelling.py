"""Blind labelling: the answers that a judge judged, in random order, and how it compares so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from assay.model.calibration import JudgeUse
from assay.model.case_content import CaseContent, message_text
from assay.model.comparison import CaseRef
from assay.model.label import AnswerLabel
from assay.model.run import RunRecord
from assay.ports import Store
from assay.results.judgements import Judgement, judgements
from assay.service.cases import positions_in
from assay.stats.calibration import Confusion, corrected_rate, corrected_width
from assay.stats.estimates import Estimate
from assay.stats.proportions import wilson

#: Of how many runs that have ended the queues are kept; one of 100,000 answers takes 30 MB.
KEPT = 4
#: How many more labels the forecast is about.
NEXT = 20


class LabelQueue(msgspec.Struct, frozen=True):
    """The answers of a run that a judge judged, in an order that is random, but always the same.

    Positions are those that users see; `positions` has them by case. The judge passed `passed`.
    """

    judge: JudgeUse
    answers: dict[int, Judgement]
    positions: dict[CaseRef, int]
    passed: int

    @classmethod
    def of(cls, judge: JudgeUse, answers: dict[int, Judgement]) -> LabelQueue:
        """The queue of these answers, in their order."""
        positions = {answer.ref: at for at, answer in answers.items()}
        return cls(judge, answers, positions, sum(a.passed for a in answers.values()))

    def next_open(
        self, labels: Mapping[CaseRef, AnswerLabel], after: int | None = None
    ) -> int | None:
        """The position of the first answer without a label, behind `after` or else from the start.

        None if all have one.
        """
        order = list(self.answers)
        start = order.index(after) + 1 if after in self.answers else 0
        rest = (at for at in order[start:] + order[:start] if self.answers[at].ref not in labels)
        return next(rest, None)

    def labels(self, given: Iterable[AnswerLabel]) -> dict[CaseRef, AnswerLabel]:
        """The newest label of each of the answers."""
        found = {}
        for label in sorted(given, key=lambda label: label.created_at):
            ref = CaseRef(label.suite, label.case_id)
            about = (label.evaluator, label.criterion, label.repeat)
            if about == (self.judge.evaluator, "", 0) and ref in self.positions:
                found[ref] = label
        return found

    def so_far(self, labels: Mapping[CaseRef, AnswerLabel]) -> LabelResult:
        """The judge compared with these labels."""
        pairs = ((label.passed, self.positions[ref]) for ref, label in labels.items())
        table = Confusion.of((human, self.answers[at].passed) for human, at in pairs)
        return LabelResult(table, self.passed, len(self.answers))


class LabelResult(msgspec.Struct, frozen=True):
    """A judge that passed `passed` of its `judged` answers, compared with labels."""

    table: Confusion
    passed: int
    judged: int

    @property
    def raw(self) -> Estimate | None:
        return wilson(self.passed, self.judged)

    @property
    def corrected(self) -> Estimate | None:
        return corrected_rate(self.passed, self.judged, self.table)

    @property
    def gain(self) -> float | None:
        """By how much the next labels are expected to narrow the interval of the corrected rate."""
        given = (self.passed, self.judged, self.table)
        now, then = corrected_width(*given), corrected_width(*given, NEXT)
        return None if now is None or then is None else max(now - then, 0.0)


class LabelQueues:
    """The queues of runs. Those of a run that has ended are made once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str | None], list[LabelQueue]] = OrderedDict()

    def find(self, record: RunRecord) -> list[LabelQueue] | None:
        """The queues of a run, if they were made before."""
        return self._kept.get((record.id, record.finished_at))

    def make(self, store: Store, record: RunRecord) -> list[LabelQueue]:
        """The queues of a run, one for each of its judges; reads the whole run."""
        found = self.find(record)
        if found is None:
            found = _queues(store, record)
            if record.status != "running":
                self._kept[record.id, record.finished_at] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found


def _queues(store: Store, record: RunRecord) -> list[LabelQueue]:
    positions = positions_in(store, record)
    by_judge: dict[tuple[str, str], list[Judgement]] = {}
    for found in judgements(store, record.id):
        by_judge.setdefault((found.judge_id, found.evaluator), []).append(found)
    queues = []
    for use in record.judges:
        judged = by_judge.get((use.id, use.evaluator), [])
        Random(f"{record.id} {use.evaluator}").shuffle(judged)
        queues.append(LabelQueue.of(use, {positions.shown(j.position): j for j in judged}))
    return queues


class Criterion(msgspec.Struct, frozen=True):
    """What a judge is to judge by: a text, what kind of text it is, and how it counts."""

    kind: str
    text: str
    note: str = ""


def criteria(content: CaseContent, evaluator: str) -> list[Criterion]:
    """The criteria of a judge, as they were when the run recorded the case."""
    given = [spec for spec in content.evaluators if spec.get("name") == evaluator]
    found = [one for spec in given for one in _criteria_of(spec)]
    if content.expected_outcome and not any(one.kind == "rubric" for one in found):
        found.insert(0, Criterion("expected outcome", content.expected_outcome))
    reference = "\n".join(filter(None, map(message_text, content.expected_messages)))
    if reference:
        found.append(Criterion("reference answer", reference))
    if content.reference_data is not None:
        data = msgspec.json.format(msgspec.json.encode(content.reference_data)).decode()
        found.append(Criterion("reference data", data))
    return found


def _criteria_of(spec: Mapping[str, Any]) -> Iterator[Criterion]:
    """Those of an evaluator, or of the members of a composite."""
    for item in spec.get("rubrics") or ():
        yield Criterion("rubric", str(item.get("description", "")), _how_it_counts(item))
    if spec.get("prompt"):
        yield Criterion("prompt", str(spec["prompt"]))
    for member in spec.get("evaluators") or ():
        yield from _criteria_of(member)


def _how_it_counts(item: Mapping[str, Any]) -> str:
    ranges: Sequence[Mapping[str, Any]] = item.get("score_ranges") or ()
    levels = (f"{_range(one)}: {one.get('expected_outcome', '')}" for one in ranges)
    required = ["required"] if item.get("required") else []
    return "; ".join([*required, *levels])


def _range(found: Mapping[str, Any]) -> str:
    low, high = found["score_range"]
    return f"{low}" if low == high else f"{low} to {high}"
