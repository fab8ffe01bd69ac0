"""Asks a judge which of two answers is better, in both orders."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from assay.evaluators.judge import Judge, Question, Spending, closed
from assay.evaluators.prompt import Material
from assay.wire.validation_errors import shown

#: To be raised when the prompt changes, as replies and calibrations no longer apply then.
VERSION = 1
_BETTER = ("first", "second", "tie")
_HEADINGS = {
    "question": "What the agents were asked:",
    "expected_outcome": "What a good answer achieves:",
    "reference_answer": "A reference answer that is known to be correct:",
    "first_answer": "The first answer:",
    "second_answer": "The second answer:",
}
_ALWAYS = ("first_answer", "second_answer")
_TASK = """Two agents answered the same question. Decide which answer is better by these criteria:

{criteria}

The order of the answers says nothing about them. Length, style and confidence alone \
earn no credit. If neither answer is clearly better, it is a tie."""


class PreferenceForm:
    """Asks which of two answers is better, and why."""

    described = """{"reasoning": "...", "better": "first"}
`better` is "first", "second" or "tie". `reasoning` is one or two sentences."""

    def __init__(self) -> None:
        self.reply: dict[str, Any] = {}

    def schema(self) -> dict[str, Any]:
        return closed(
            {"reasoning": {"type": "string"}, "better": {"type": "string", "enum": list(_BETTER)}}
        )

    def fault(self, reply: dict[str, Any]) -> str:
        if "better" not in reply:
            return "it has no 'better'"
        if reply["better"] not in _BETTER:
            return f"its 'better' is {shown(reply['better'])}, not 'first', 'second' or 'tie'"
        reasoning = reply.get("reasoning")
        if reasoning is not None and not isinstance(reasoning, str):
            return f"its 'reasoning' is {shown(reasoning)}, not a text"
        return ""

    def take(self, reply: dict[str, Any]) -> str:
        self.reply = reply
        return ""

    @property
    def better(self) -> Literal["first", "second", "tie"]:
        found: Literal["first", "second", "tie"] = self.reply["better"]
        return found

    @property
    def reasoning(self) -> str:
        return self.reply.get("reasoning") or ""


class AnswerPair(msgspec.Struct, frozen=True):
    """Two answers to a question, and what is known of a good one."""

    question: str
    a: str
    b: str
    expected_outcome: str = ""
    reference_answer: str = ""

    def material(self, *, swapped: bool) -> Material:
        """What the judge sees: the answers without the names of their targets."""
        first, second = (self.b, self.a) if swapped else (self.a, self.b)
        pieces = {
            "question": self.question,
            "expected_outcome": self.expected_outcome,
            "reference_answer": self.reference_answer,
            "first_answer": first,
            "second_answer": second,
        }
        return Material({name: text for name, text in pieces.items() if text or name in _ALWAYS})


class Choice(NamedTuple):
    """The better answer of a pair by both orders, and the reasons that the judge gave."""

    better: Literal["a", "b", "tie"]
    flipped: bool
    reasons: tuple[str, str]


def question_about(
    pair: AnswerPair, criteria: str, form: PreferenceForm, *, swapped: bool
) -> Question:
    """The question to the judge; `swapped` shows the answer `b` first."""
    material = pair.material(swapped=swapped)
    sections = [f"{_HEADINGS[name]}\n{material.fenced(name)}" for name in material.pieces]
    task = "\n\n".join([_TASK.format(criteria=criteria), *sections])
    return Question(form, task, material)


async def choose(judge: Judge, pair: AnswerPair, criteria: str, spending: Spending) -> Choice:
    """Ask in both orders; raises JudgeFault if a reply cannot be used.

    Orders that name different answers make a tie: the judge went by the order.
    """
    one, other = PreferenceForm(), PreferenceForm()
    for form, swapped in ((one, False), (other, True)):
        await judge.fill_in(question_about(pair, criteria, form, swapped=swapped), spending)
    reasons = (one.reasoning, other.reasoning)
    if (one.better, other.better) == ("first", "second"):
        return Choice("a", False, reasons)
    if (one.better, other.better) == ("second", "first"):
        return Choice("b", False, reasons)
    return Choice("tie", one.better == other.better != "tie", reasons)


def judge_id(judge: Judge, criteria: str) -> str:
    """A hash of the judge and its instructions; a calibration applies to it."""
    identity = getattr(judge.target, "identity", judge.target.name)
    parts = [str(VERSION), str(identity), _TASK, PreferenceForm.described, criteria]
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
