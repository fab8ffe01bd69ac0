"""Prices of known models as of a date, in USD per million tokens.

These are the list prices. Cached input, batches and very long prompts are billed differently, so
a cost from this table is an estimate. The user's own prices take precedence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.model.observation import Usage
from assay.model.target import Price

AS_OF = "2026-03-21"

#: model -> input, output
TABLE: dict[str, tuple[float, float]] = {
    "gpt-3.5-turbo": (0.50, 1.50),
    "gpt-3.5-turbo-0125": (0.50, 1.50),
    "gpt-4": (30.00, 60.00),
    "gpt-4-turbo": (10.00, 30.00),
    "gpt-4.1": (2.00, 8.00),
    "gpt-4.1-mini": (0.40, 1.60),
    "gpt-4.1-nano": (0.10, 0.40),
    "gpt-4o": (2.50, 10.00),
    "gpt-4o-2024-05-13": (5.00, 15.00),
    "gpt-4o-mini": (0.15, 0.60),
    "gpt-5": (1.25, 10.00),
    "gpt-5-mini": (0.25, 2.00),
    "gpt-5-nano": (0.05, 0.40),
    "o1": (15.00, 60.00),
    "o3": (2.00, 8.00),
    "o3-mini": (1.10, 4.40),
    "o4-mini": (1.10, 4.40),
    "claude-3-haiku": (0.25, 1.25),
    "claude-3-opus": (15.00, 75.00),
    "claude-3-5-haiku": (0.80, 4.00),
    "claude-3-5-sonnet": (3.00, 15.00),
    "claude-3-7-sonnet": (3.00, 15.00),
    "claude-haiku-4-5": (1.00, 5.00),
    "claude-sonnet-4": (3.00, 15.00),
    "claude-sonnet-4-5": (3.00, 15.00),
    "claude-opus-4": (15.00, 75.00),
    "claude-opus-4-1": (15.00, 75.00),
    "claude-opus-4-5": (5.00, 25.00),
}

#: The suffix of a snapshot: gpt-4o-2024-08-06, claude-sonnet-4-20250514, ...-latest.
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)\Z", re.ASCII)


def cost(model: str, usage: Usage | None, overrides: Mapping[str, Price]) -> float | None:
    """The cost in USD; None if the price or the number of tokens is unknown.

    A dated snapshot costs what its model costs, unless it has a price of its own.
    """
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    for name in (model, _SNAPSHOT.sub("", model)):
        if name in overrides:
            price = overrides[name].input, overrides[name].output
        elif name in TABLE:
            price = TABLE[name]
        else:
            continue
        return (usage.input_tokens * price[0] + usage.output_tokens * price[1]) / 1_000_000
    return None
