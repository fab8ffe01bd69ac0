"""ComparisonTables: how many cases passed in both runs, in one of them or in none."""

from __future__ import annotations

import msgspec

from assay.model.result import Count
from assay.stats.estimates import Estimate


class PairCounts(msgspec.Struct, frozen=True, rename="camel"):
    """The pairs of a suite, of a tag or of all: cases that both runs judged and that compare.

    `difference` is that of the pass rates, with Newcombe's interval; None without pairs.
    """

    name: str
    pairs: Count
    both_passed: Count
    regressed: Count
    fixed: Count
    both_failed: Count
    difference: Estimate | None


class ComparisonTables(msgspec.Struct, frozen=True, rename="camel"):
    """The counts of all pairs, and those of each suite and each tag, sorted by name."""

    total: PairCounts
    suites: list[PairCounts]
    tags: list[PairCounts]
