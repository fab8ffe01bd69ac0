"""Asks a judge about pairs of answers, several at once, within a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from assay.model.preference import AnswerPair, Choice
from assay.redaction import redacted
from assay.text import count, money

#: After this many errors and not one choice, no more is asked: the judge does not work.
MAX_ERRORS = 10
#: How often the progress is reported, unless there are few pairs.
_REPORTS = 10

T = TypeVar("T")


class Spent(Protocol):
    """What a judge was asked so far: calls, and replies from the cache, and the cost of each."""

    calls: int
    cached: int
    costs: list[float | None]

    @property
    def cost_usd(self) -> float | None:
        """The cost of all calls; None if that of any call is unknown."""
        ...


class AnswerJudge(Protocol):
    """A judge that compares answers by some criteria; `id` is a hash of both."""

    name: str

    @property
    def id(self) -> str: ...

    @property
    def spending(self) -> Spent: ...

    def length(self, pair: AnswerPair) -> int:
        """How many characters one question about a pair has."""
        ...

    async def choose(self, pair: AnswerPair) -> Choice | str:
        """The better answer, or why there is none."""
        ...


class Limits(NamedTuple):
    """When no more is asked: the budget, of which some is spent already, or `stop` says so."""

    budget_usd: float | None = None
    spent_usd: float = 0.0
    stop: Callable[[], bool] = lambda: False


NO_LIMITS = Limits()


class Preferring(Generic[T]):
    """One pass over pairs of answers; `answers` reads a pair when its turn comes."""

    def __init__(
        self,
        judge: AnswerJudge,
        answers: Callable[[T], AnswerPair],
        limits: Limits = NO_LIMITS,
        report: Callable[[str], None] = lambda words: None,
    ) -> None:
        #: Why not all pairs were judged; empty if they were.
        self.stopped = ""
        self._judge, self._answers, self._limits = judge, answers, limits
        self._report, self._choices, self._errors = report, 0, 0

    async def run(self, pairs: Sequence[T], workers: int) -> dict[T, Choice | str]:
        """The choice of each pair that was judged, or the reason why there is none."""
        found: dict[T, Choice | str] = {}
        waiting = iter(pairs)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(workers, len(pairs))):
                group.create_task(self._work(waiting, found, len(pairs)))
        return found

    async def _work(self, waiting: Iterator[T], found: dict[T, Choice | str], total: int) -> None:
        step = max(total // _REPORTS, _REPORTS)
        while not self._stop():
            pair = next(waiting, None)
            if pair is None:
                return
            choice = await self._judge.choose(self._answers(pair))
            if isinstance(choice, str):
                found[pair] = redacted(choice)
                self._errors += 1
            else:
                reasons = (redacted(choice.reasons[0]), redacted(choice.reasons[1]))
                found[pair] = choice._replace(reasons=reasons)
                self._choices += 1
            if len(found) % step == 0 and len(found) < total:
                self._report(f"{len(found):,} of {count(total, 'pair')}{self._cost}")

    @property
    def _cost(self) -> str:
        cost = self._judge.spending.cost_usd
        return "" if cost is None else f", {money(cost)}"

    def _stop(self) -> bool:
        costs = (cost for cost in self._judge.spending.costs if cost is not None)
        spent = self._limits.spent_usd + sum(costs)
        budget = self._limits.budget_usd
        if budget is not None and spent >= budget:
            self.stopped = f"the budget of ${budget:g} is spent"
        elif self._limits.stop():
            self.stopped = "it was cancelled"
        elif self._errors >= MAX_ERRORS and not self._choices:
            self.stopped = f"the judge failed {self._errors} times and never gave a verdict"
        return bool(self.stopped)
