"""Prices of known models as of a date, in USD per million tokens.

These are the list prices. Cached input, batches and very long prompts are billed differently, so
a cost from this table is an estimate. The user's own prices take precedence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.model.observation import Usage
from assay.model.target import Price

AS_OF = "2026-09-22"

#: model -> input, output
TABLE: dict[str, tuple[float, float]] = {
    "gpt-6-astra": (10.00, 50.00),
    "gpt-6-sol": (2.00, 10.00),
    "gpt-6-luna": (0.10, 0.50),
    "gpt-5.6-terra": (2.00, 12.00),
    "gpt-5.6-luna": (0.20, 1.20),
    "claude-opus-5-5": (4.00, 20.00),
    "claude-opus-5": (5.00, 25.00),
    "claude-opus-4-8": (5.00, 25.00),
    "claude-opus-4-7": (5.00, 25.00),
    "claude-opus-4-6": (5.00, 25.00),
    "claude-sonnet-5-5": (2.00, 10.00),
    "claude-sonnet-5": (2.00, 10.00),
    "claude-sonnet-4-6": (3.00, 15.00),
}

#: The suffix of a snapshot: gpt-6-sol-2026-09-22, claude-sonnet-5-20260630, ...-latest.
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
