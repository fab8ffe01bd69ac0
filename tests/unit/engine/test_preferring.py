"""A judge is asked about several pairs at once, within a budget, until it clearly does not work."""

from __future__ import annotations

import asyncio

import pytest

from assay.engine.preferring import MAX_ERRORS, Limits, Preferring
from assay.evaluators.preference import AnswerJudge
from assay.model.preference import AnswerPair, Choice
from assay.ports import Request, Resources
from unit import fake_judge

TIE = {"reasoning": "", "better": "tie"}


def answers(pair: int) -> AnswerPair:
    return AnswerPair("Hi", f"a{pair}", f"b{pair}")


def judge_of(target: fake_judge.Judge) -> AnswerJudge:
    return AnswerJudge(Resources(lambda name, model: target), "clarity")


def preferring(target: fake_judge.Judge, budget: float | None = None) -> Preferring[int]:
    return Preferring(judge_of(target), answers, Limits(budget))


@pytest.mark.parametrize("workers", [1, 3, 100])
def test_every_pair_is_asked_twice(workers: int) -> None:
    target = fake_judge.Judge(by=lambda request: TIE)
    judge = judge_of(target)
    work: Preferring[int] = Preferring(judge, answers)
    found = asyncio.run(work.run(range(20), workers))
    assert sorted(found) == list(range(20))
    assert len(target.asked) == judge.spending.calls == 40
    assert judge.spending.cost_usd == 40 * 0.25
    assert work.stopped == ""


def test_no_more_is_asked_when_the_budget_is_spent() -> None:
    work = preferring(fake_judge.Judge(by=lambda request: TIE), 1.0)
    found = asyncio.run(work.run(range(20), 1))
    assert list(found) == [0, 1]
    assert work.stopped == "the budget of $1 is spent"


def test_a_judge_that_never_gives_a_verdict_is_not_asked_for_ever() -> None:
    work = preferring(fake_judge.Judge(by=lambda request: RuntimeError("down")))
    found = asyncio.run(work.run(range(50), 1))
    assert len(found) == MAX_ERRORS
    assert all(isinstance(reason, str) and "down" in reason for reason in found.values())
    assert "never gave a verdict" in work.stopped


def test_errors_after_a_verdict_do_not_end_the_judging() -> None:
    def reply(request: Request) -> object:
        return TIE if "a0" in request.messages[-1].text else RuntimeError("down")

    work = preferring(fake_judge.Judge(by=reply))
    found = asyncio.run(work.run(range(30), 1))
    assert len(found) == 30
    assert isinstance(found[0], Choice)
    assert work.stopped == ""
