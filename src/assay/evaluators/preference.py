"""Asks a judge which of two answers is better, in both orders."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal

from assay.evaluators.judge import Judge, JudgeFault, Question, Spending, closed
from assay.evaluators.prompt import Material
from assay.model.preference import AnswerPair, Choice
from assay.ports import Resources
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


def material_of(pair: AnswerPair, *, swapped: bool) -> Material:
    """What the judge sees: the answers without the names of their targets."""
    first, second = (pair.b, pair.a) if swapped else (pair.a, pair.b)
    pieces = {
        "question": pair.question,
        "expected_outcome": pair.expected_outcome,
        "reference_answer": pair.reference_answer,
        "first_answer": first,
        "second_answer": second,
    }
    return Material({name: text for name, text in pieces.items() if text or name in _ALWAYS})


class AnswerJudge:
    """A judge that compares answers by some criteria, and what it was asked so far."""

    def __init__(self, resources: Resources, criteria: str) -> None:
        self._judge = Judge.find(resources, None, None)
        self._criteria = criteria
        self.name = self._judge.target.name
        self.spending = Spending()

    @property
    def id(self) -> str:
        """A hash of the judge and its instructions; a calibration applies to it."""
        identity = str(getattr(self._judge.target, "identity", self.name))
        parts = [str(VERSION), identity, _TASK, PreferenceForm.described, self._criteria]
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def question(
        self, pair: AnswerPair, form: PreferenceForm | None = None, *, swapped: bool = False
    ) -> Question:
        """What is asked about a pair; `swapped` shows the answer `b` first."""
        material = material_of(pair, swapped=swapped)
        sections = [f"{_HEADINGS[name]}\n{material.fenced(name)}" for name in material.pieces]
        task = "\n\n".join([_TASK.format(criteria=self._criteria), *sections])
        return Question(form or PreferenceForm(), task, material)

    def length(self, pair: AnswerPair) -> int:
        """How many characters one question about a pair has."""
        return sum(len(message.text) for message in self.question(pair).messages)

    async def choose(self, pair: AnswerPair) -> Choice | str:
        """The better answer, asked in both orders; or why there is none.

        Orders that name different answers make a tie: the judge went by the order.
        """
        one, other = PreferenceForm(), PreferenceForm()
        try:
            for form, swapped in ((one, False), (other, True)):
                question = self.question(pair, form, swapped=swapped)
                await self._judge.fill_in(question, self.spending)
        except JudgeFault as fault:
            return str(fault)
        reasons = (one.reasoning, other.reasoning)
        if (one.better, other.better) == ("first", "second"):
            return Choice("a", False, reasons)
        if (one.better, other.better) == ("second", "first"):
            return Choice("b", False, reasons)
        return Choice("tie", one.better == other.better != "tie", reasons)
