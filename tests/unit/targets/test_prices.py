"""What tokens cost: known models and their dated snapshots, and no others."""

from __future__ import annotations

from datetime import date

import pytest

from assay.model.observation import Usage
from assay.model.target import Price
from assay.targets.prices import AS_OF, TABLE, cost

MILLIONS = Usage(1_000_000, 2_000_000)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("gpt-6-sol", 2 + 20),
        ("gpt-6-sol-2026-09-22", 2 + 20),
        ("gpt-6-luna-2026-09-22", 0.1 + 1),
        ("claude-opus-5-20260724", 5 + 50),
        ("claude-opus-5-5-20260901", 4 + 40),
        ("claude-sonnet-5-latest", 2 + 20),
    ],
)
def test_a_snapshot_costs_what_its_model_costs_unless_it_has_its_own_price(
    model: str, usd: float
) -> None:
    assert cost(model, MILLIONS, {}) == pytest.approx(usd)


@pytest.mark.parametrize(
    "model",
    ["gpt-6-sol-audio", "gpt-6", "gpt-5.6", "gpt-6-sol-pro", "o3-pro", "claude-opus-5-9",
     "claude-opus", "my-gpt-6-sol", "gpt-6-sol-2026-09", "llama-3", ""],
)  # fmt: skip
def test_a_model_that_is_not_in_the_table_has_no_cost(model: str) -> None:
    assert cost(model, MILLIONS, {}) is None


@pytest.mark.parametrize("usage", [None, Usage(), Usage(5, None), Usage(None, 5)])
def test_without_tokens_there_is_no_cost(usage: Usage | None) -> None:
    assert cost("gpt-6-sol", usage, {}) is None


def test_own_prices_win_and_reach_snapshots_and_unknown_models() -> None:
    own = {"gpt-6-sol": Price(input=1.0, output=1.0), "llama-3": Price(input=0.0, output=0.0)}
    assert cost("gpt-6-sol", MILLIONS, own) == 3
    assert cost("gpt-6-sol-2026-09-22", MILLIONS, own) == 3
    assert cost("llama-3", MILLIONS, own) == 0
    assert cost("gpt-6-luna", MILLIONS, own) == pytest.approx(0.1 + 1)


def test_the_table_is_dated_and_output_costs_more_than_input() -> None:
    date.fromisoformat(AS_OF)
    assert all(0 < price_in < price_out for price_in, price_out in TABLE.values())
