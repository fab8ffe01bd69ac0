"""What a package outside Assay looks like: nothing here is known to Assay beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import assay
from assay.model.target import TargetSpec
from assay.ports import Request


class PoliteEvaluator(assay.EvaluatorSpec):
    """The answer has at least one of the polite words."""

    words: tuple[str, ...] = ("please", "thank")

    def evaluate(self, context: assay.Context) -> assay.EvaluationScore:
        answer = context.response.lower()
        found = tuple(word for word in self.words if word in answer)
        if found:
            return assay.EvaluationScore(1.0, hits=found)
        return assay.EvaluationScore(0.0, misses=("no polite word",))


@assay.evaluator
def short(response: str, most: int = 100) -> bool:
    """The answer has at most so many characters."""
    return len(response) <= most


class ParrotTarget(TargetSpec):
    """Says one thing to everybody."""

    inline_key: ClassVar[str] = "says"
    says: str

    def connect(self) -> Parrot:
        return Parrot(self.label, self.says)


@dataclass
class Parrot:
    name: str
    says: str

    async def ask(self, request: Request) -> assay.Observation:
        return assay.Observation(self.says, tool_calls=())

    async def close(self) -> None:
        """It holds nothing."""
