"""AnswerLabel: a person's verdict on an answer, for the calibration of judges."""

from __future__ import annotations

import msgspec


class LabelKey(msgspec.Struct, frozen=True, rename="camel"):
    """What a label is about, and its author. An author has one label of a kind for an answer.

    `evaluator` is the judge, `criterion` one of its criteria; both are empty for the whole answer.
    """

    run_id: str
    suite: str
    case_id: str
    repeat: int
    evaluator: str
    criterion: str
    author: str


class AnswerLabel(LabelKey, frozen=True):
    """A label. `answer_hash` is that of the answer, as `hash_of_answer` makes it."""

    passed: bool
    answer_hash: str
    created_at: str
