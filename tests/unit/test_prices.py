"""What tokens cost: known models, their dated snapshots, and nobody else."""

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
        ("gpt-4o", 2.5 + 20),
        ("gpt-4o-2024-08-06", 2.5 + 20),
        ("gpt-4o-2024-05-13", 5 + 30),
        ("gpt-4o-mini-2024-07-18", 0.15 + 1.2),
        ("claude-opus-4-20250514", 15 + 150),
        ("claude-opus-4-5-20251101", 5 + 50),
        ("claude-3-5-haiku-latest", 0.8 + 8),
    ],
)
def test_a_snapshot_costs_what_its_model_costs_unless_it_has_its_own_price(
    model: str, usd: float
) -> None:
    assert cost(model, MILLIONS, {}) == pytest.approx(usd)


@pytest.mark.parametrize(
    "model",
    ["gpt-4o-audio-preview", "gpt-4o-mini-tts", "gpt-4-32k", "gpt-5.9", "o1-pro", "o3-pro",
     "claude-opus-4-9", "claude-opus", "my-gpt-4o", "gpt-4o-2024-08", "llama-3", ""],
)  # fmt: skip
def test_a_model_that_is_not_in_the_table_has_no_cost(model: str) -> None:
    assert cost(model, MILLIONS, {}) is None


@pytest.mark.parametrize("usage", [None, Usage(), Usage(5, None), Usage(None, 5)])
def test_without_tokens_there_is_no_cost(usage: Usage | None) -> None:
    assert cost("gpt-4o", usage, {}) is None


def test_own_prices_win_and_reach_snapshots_and_unknown_models() -> None:
    own = {"gpt-4o": Price(input=1.0, output=1.0), "llama-3": Price(input=0.0, output=0.0)}
    assert cost("gpt-4o", MILLIONS, own) == 3
    assert cost("gpt-4o-2024-08-06", MILLIONS, own) == 3
    assert cost("llama-3", MILLIONS, own) == 0
    assert cost("gpt-4o-mini", MILLIONS, own) == pytest.approx(0.15 + 1.2)


def test_the_table_is_dated_and_output_costs_more_than_input() -> None:
    date.fromisoformat(AS_OF)
    assert all(0 < price_in < price_out for price_in, price_out in TABLE.values())
