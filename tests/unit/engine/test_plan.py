"""Plan: the order in which trials are asked."""

from __future__ import annotations

from assay.engine.plan import SHUFFLED_TOGETHER, Plan
from assay.model.case import EvalCase, EvalSuite
from assay.model.options import RunOptions

CASES = 3 * SHUFFLED_TOGETHER + 10
SUITE = EvalSuite("many", tuple(EvalCase(str(n), (), ()) for n in range(CASES)))


def order(seed: int, *, shuffled: bool = True) -> list[int]:
    """The positions in the order in which they are asked."""
    plan = Plan([SUITE], RunOptions(seed=seed)).select()
    return [trial.planned.position for trial in plan.trials(["suite"], (), shuffled=shuffled)]


def test_shuffled_trials_are_all_asked_in_an_order_that_the_seed_determines() -> None:
    assert sorted(order(1)) == order(1, shuffled=False) == list(range(CASES))
    assert order(1) == order(1) != order(2)


def test_any_block_may_be_asked_first() -> None:
    assert len({order(seed)[0] // SHUFFLED_TOGETHER for seed in range(20)}) > 1


def test_trials_of_a_block_are_asked_together() -> None:
    start = next(n for n, position in enumerate(order(1)) if position < SHUFFLED_TOGETHER)
    block = order(1)[start : start + SHUFFLED_TOGETHER]
    assert sorted(block) == list(range(SHUFFLED_TOGETHER)) != block
