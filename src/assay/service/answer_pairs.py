"""The answers of two runs to the same case, for a judge that compares them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from typing import NamedTuple

import msgspec

from assay.model.case_content import CaseContent, decode_content, message_text
from assay.model.comparison import CaseRef, comparable
from assay.model.observed import decode_observed
from assay.model.preference import AnswerPair
from assay.model.result import JUDGED
from assay.model.run import RunRecord, TrialRecord, only
from assay.ports import Store


class AnsweredRun(msgspec.Struct, frozen=True):
    """A recorded run whose answers are compared, by the name of its target."""

    name: str
    record: RunRecord
    store: Store


class PairToJudge(NamedTuple):
    """A case that two runs answered; they are named by their place."""

    ref: CaseRef
    a: int
    b: int
    identical: bool


class _Place(NamedTuple):
    position: int
    repeat: int
    comparability: str
    answer: bytes


class LeftOut(NamedTuple):
    """How many pairs of answers are not compared: a run lacks one, or the case has changed."""

    unanswered: int
    changed: int


class AnsweredCases:
    """The cases of some runs, and the first judged answer of each run to each of them."""

    def __init__(self, runs: Sequence[AnsweredRun]) -> None:
        self.clusters: dict[CaseRef, str] = {}
        # In the order of the first run that has them, also if no trial was judged.
        self._cases: dict[CaseRef, None] = {}
        self.left_out = LeftOut(0, 0)
        self._runs = runs
        self._places = [self._read(run) for run in runs]
        # The answers of a case to several others are needed one after the other.
        self._answer = lru_cache(maxsize=4 * len(runs))(self._read_answer)

    def _read(self, run: AnsweredRun) -> dict[CaseRef, _Place]:
        found: dict[CaseRef, _Place] = {}
        for trial in run.store.trials(run.record.id):
            ref = CaseRef(trial.suite, trial.case_id)
            if trial.outcome != "skipped":
                self._cases.setdefault(ref)
            if trial.outcome in JUDGED and not trial.confirms and ref not in found:
                answer = _hash(decode_observed(trial.observation).response)
                place = _Place(trial.position, trial.repeat, trial.comparability, answer)
                found[ref] = place
            if trial.cluster is not None:
                self.clusters.setdefault(ref, trial.cluster)
        return found

    def pairs(self) -> list[PairToJudge]:
        """Every case that two runs judged and that has not changed between them."""
        pairs, unanswered, changed = list[PairToJudge](), 0, 0
        for ref in self._cases:
            found = [places.get(ref) for places in self._places]
            for a, b in combinations(range(len(found)), 2):
                one, other = found[a], found[b]
                if one is None or other is None:
                    unanswered += 1
                elif comparable(one.comparability, other.comparability):
                    pairs.append(PairToJudge(ref, a, b, one.answer == other.answer))
                else:
                    changed += 1
        self.left_out = LeftOut(unanswered, changed)
        return pairs

    def answers(self, pair: PairToJudge) -> AnswerPair:
        """What the judge sees of a pair."""
        one, other = self._answer(pair.a, pair.ref), self._answer(pair.b, pair.ref)
        content = decode_content(one.content)
        return AnswerPair(
            _question(content),
            decode_observed(one.observation).response,
            decode_observed(other.observation).response,
            content.expected_outcome or "",
            "\n".join(map(message_text, content.expected_messages)),
        )

    def _read_answer(self, run: int, ref: CaseRef) -> TrialRecord:
        place, answered = self._places[run][ref], self._runs[run]
        trials = answered.store.trials(answered.record.id, positions=only(place.position))
        return next(trial for trial in trials if trial.repeat == place.repeat)


def _question(content: CaseContent) -> str:
    """What was asked; of a conversation, who said what."""
    if len(content.input) < 2:
        return content.question
    said = ((str(message.get("role", "user")), message_text(message)) for message in content.input)
    return "\n\n".join(f"{role}: {text}" for role, text in said)


def _hash(answer: str) -> bytes:
    """Equal for answers that are the same but for the space around them."""
    return sha256(answer.strip().encode("utf-8", "surrogatepass")).digest()
