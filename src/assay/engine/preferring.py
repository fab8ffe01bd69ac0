"""Asks a judge about pairs of answers, several at once, within a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from assay.evaluators.judge import Judge, JudgeFault, Spending
from assay.evaluators.preference import AnswerPair, Choice, choose
from assay.redaction import redacted

#: After this many errors and not one choice, no more is asked: the judge does not work.
MAX_ERRORS = 10

T = TypeVar("T")


class Preferring(Generic[T]):
    """One pass over pairs of answers; `answers` reads a pair when its turn comes."""

    def __init__(
        self,
        judge: Judge,
        criteria: str,
        answers: Callable[[T], AnswerPair],
        budget_usd: float | None = None,
    ) -> None:
        self.spending = Spending()
        #: Why not all pairs were judged; empty if they were.
        self.stopped = ""
        self._judge, self._criteria, self._answers = judge, criteria, answers
        self._budget = budget_usd
        self._choices = self._errors = 0

    async def run(self, pairs: Sequence[T], workers: int) -> dict[T, Choice | str]:
        """The choice of each pair that was judged, or the reason why there is none."""
        found: dict[T, Choice | str] = {}
        waiting = iter(pairs)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(workers, len(pairs))):
                group.create_task(self._work(waiting, found))
        return found

    @property
    def cost_usd(self) -> float:
        """What the calls cost as far as the judge reports it."""
        return sum(cost for cost in self.spending.costs if cost is not None)

    async def _work(self, waiting: Iterator[T], found: dict[T, Choice | str]) -> None:
        while not self._stop():
            pair = next(waiting, None)
            if pair is None:
                return
            answers = self._answers(pair)
            try:
                choice = await choose(self._judge, answers, self._criteria, self.spending)
            except JudgeFault as fault:
                found[pair] = redacted(str(fault))
                self._errors += 1
            else:
                reasons = (redacted(choice.reasons[0]), redacted(choice.reasons[1]))
                found[pair] = choice._replace(reasons=reasons)
                self._choices += 1

    def _stop(self) -> bool:
        if self._budget is not None and self.cost_usd >= self._budget:
            self.stopped = f"the budget of ${self._budget:g} is spent"
        elif self._errors >= MAX_ERRORS and not self._choices:
            self.stopped = f"the judge failed {self._errors} times and never gave a verdict"
        return bool(self.stopped)
