"""The decision of a comparison, from which cases passed and failed alone, and in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from assay.model.comparison import (
    Decision,
    ScoreDifference,
    ScoreTest,
    SignificanceTest,
    WorseTest,
)
from assay.stats.distributions import t_two_sided
from assay.stats.estimates import Estimate, PValue
from assay.stats.means import clustered_error, clustered_t, mean
from assay.stats.paired import (
    Pairs,
    holm,
    mcnemar,
    mcnemar_worse,
    newcombe,
    score_difference,
    score_test,
)
from assay.stats.planning import cases_needed
from assay.stats.sequential import Sequential
from assay.text import count, exact_points, percent, points

#: Differences with a p-value below this are significant.
ALPHA = 0.05
_MAX_CASES = 10_000_000
#: The name of the test that may be evaluated after every case.
E_PROCESS = "e-process"
_NOT_SIGNIFICANT = PValue(1.0, E_PROCESS)


class Finding(msgspec.Struct, frozen=True):
    """The counts, and what follows from them."""

    pairs: Pairs
    decision: Decision
    difference: Estimate | None = None
    test: PValue | None = None
    sequential: Sequential | None = None

    @property
    def significance(self) -> SignificanceTest | None:
        """The test, with the counts that it is based on."""
        if self.test is None:
            return None
        counts = self.sequential or self.pairs
        e_value = UNSET if self.sequential is None else self.sequential.e_value
        return SignificanceTest(
            self.test.method, self.test.value, (counts.lost, counts.gained), e_value
        )


def decide(
    pairs: Pairs,
    margin: float,
    changes: Sequence[int] = (),
    clusters: Sequence[int] = (),
    sequential: Sequential | None = None,
) -> Finding:
    """Decide. `changes` (-1, 0 or 1) and `clusters` of all pairs are needed if any has a cluster.

    Cases of a cluster are not independent. With clusters, the larger of the plain and the
    clustered p-value counts, and the interval covers both intervals.
    """
    difference = newcombe(pairs)
    if difference is None:
        return Finding(pairs, "not_comparable")
    test = mcnemar(pairs.lost, pairs.gained)
    if clusters:
        test, difference = _clustered(test, difference, changes, clusters)
    if sequential is not None:
        # No other test is valid after checking at every case.
        test = PValue(min(1.0, 1 / sequential.e_value), E_PROCESS)
        decision = sequential.verdict or _decision(pairs, difference, _NOT_SIGNIFICANT, margin)
        return Finding(pairs, decision, difference, test, sequential)
    return Finding(pairs, _decision(pairs, difference, test, margin), difference, test)


def _decision(pairs: Pairs, difference: Estimate, test: PValue, margin: float) -> Decision:
    if not pairs.discordant:
        return "unchanged"
    if test.value < ALPHA:
        return "regressed" if pairs.lost > pairs.gained else "improved"
    if -margin <= difference.low and difference.high <= margin:
        return "unchanged"
    return "inconclusive"


def _clustered(
    test: PValue, difference: Estimate, changes: Sequence[int], clusters: Sequence[int]
) -> tuple[PValue, Estimate]:
    wide, error = clustered_t(changes, clusters), clustered_error(changes, clusters)
    if wide is None or error == 0:  # all pairs are equal: the spread is unknown
        return test, difference
    p = 1.0
    if error is not None:
        p = t_two_sided((mean(changes) or 0.0) / error, len(set(clusters)) - 1)
    if p > test.value:
        test = PValue(p, "student-t-clustered")
    low, high = min(wide.low, difference.low), max(wide.high, difference.high)
    joined = replace(difference, low=low, high=high, method="newcombe-clustered")
    return test, joined.clipped(-1.0, 1.0)


def worse_test(
    lost: int,
    gained: int,
    changes: Sequence[int] = (),
    clusters: Sequence[int] = (),
    sequential: Sequential | None = None,
) -> WorseTest:
    """The one-sided test of the gate: are there more losses than chance explains?

    With clusters, the larger of the plain and the clustered p-value counts. A sequential test
    replaces both.
    """
    if sequential is not None:
        p = min(1.0, 1 / sequential.e_value) if sequential.lost > sequential.gained else 1.0
        return WorseTest(E_PROCESS, p, sequential.verdict == "regressed")
    found = mcnemar_worse(lost, gained)
    if clusters and (error := clustered_error(changes, clusters)) != 0:
        p = 1.0
        if error is not None:
            t = (mean(changes) or 0.0) / error
            half = t_two_sided(t, len(set(clusters)) - 1) / 2
            p = half if t < 0 else 1 - half
        if p > found.value:
            found = PValue(p, "student-t-clustered-worse")
    return WorseTest(found.method, found.value, found.value < ALPHA)


@lru_cache(maxsize=1024)
def more_cases(pairs: Pairs, margin: float) -> int | None:
    """How many more cases like these would settle it; None if no realistic number would.

    Settled means that the difference is significant with a power of 80 %, or that the interval
    lies within the margin.
    """
    difference, share = pairs.difference or 0.0, pairs.discordant / pairs.n
    significant = cases_needed(difference, share) if difference else None
    within = _cases_within(pairs, margin) if abs(difference) < margin else None
    found = [cases - pairs.n for cases in (significant, within) if cases is not None]
    return max(min(found), 1) if found else None


def _cases_within(pairs: Pairs, margin: float) -> int | None:
    """How many cases with the same shares bring the interval within the margin."""

    def fits(cases: int) -> bool:
        parts = (pairs.both, pairs.lost, pairs.gained, pairs.neither)
        found = newcombe(Pairs(*(round(part * cases / pairs.n) for part in parts)))
        return found is not None and -margin <= found.low and found.high <= margin

    low, high = pairs.n, 2 * pairs.n
    while not fits(high):
        low, high = high, 2 * high
        if high > _MAX_CASES:
            return None
    while high - low > max(low // 100, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def scores_of(differences: Mapping[str, Sequence[float]]) -> tuple[ScoreDifference, ...]:
    """The differences of graded scores by suite, with p-values adjusted for multiple tests."""
    found = []
    for suite, values in differences.items():
        estimate, test = score_difference(values), score_test(values)
        if estimate is not None and test is not None:
            found.append((suite, len(values), estimate, test))
    adjusted = holm([test.value for *_, test in found])
    return tuple(
        ScoreDifference(suite, pairs, estimate, ScoreTest(test.value, test.method, value))
        for (suite, pairs, estimate, test), value in zip(found, adjusted, strict=True)
    )


def explain(finding: Finding, margin: float, unpaired: Mapping[str, int]) -> str:
    """The finding in two sentences, for readers without statistics."""
    if finding.difference is None or finding.test is None:
        return _nothing_to_compare(unpaired)
    pairs = finding.pairs
    moved = f"{pairs.discordant:,} of {count(pairs.n, 'case')} changed"
    moved += f", {pairs.lost:,} for the worse and {pairs.gained:,} for the better"
    if finding.decision == "inconclusive":
        first = f"Too early to tell: {moved}, and {_chance(finding.test.value)}."
        return f"{first} {_settling(pairs, margin)}"
    if finding.decision == "unchanged" and not pairs.discordant:
        first = f"Nothing changed: {count(pairs.n, 'case')} had the same outcome in both runs."
        return f"{first} Judging by this many cases, the difference lies " + (
            f"{between(finding.difference)}."
        )
    if finding.decision == "unchanged":
        first = f"Nothing that matters changed: {moved}."
        return f"{first} The difference lies {between(finding.difference)}, which is within " + (
            f"the margin of {exact_points(margin)} points."
        )
    if finding.sequential is not None:
        return _stopped(finding, finding.sequential)
    word = "worse" if finding.decision == "regressed" else "better"
    first = f"The candidate is {word}: {rates(pairs)}."
    return f"{first} This is unlikely to be luck: {_chance(finding.test.value)}."


def _stopped(finding: Finding, test: Sequential) -> str:
    """As `explain`, for a sequential test that decided while the run went on."""
    word = "worse" if finding.decision == "regressed" else "better"
    moved = f"{test.lost:,} stopped passing and {test.gained:,} started to"
    first = f"The candidate is {word}: {moved}, which decided it."
    often = f"in fewer than {math.ceil(1000 * test.alpha):,} of 1,000 comparisons"
    return f"{first} However often it is checked, two equally good runs differ by as much {often}."


def _nothing_to_compare(unpaired: Mapping[str, int]) -> str:
    parts = [f"{count:,} {what}" for what, count in unpaired.items() if count]
    found = f": {', '.join(parts)}" if parts else ", as neither has a case"
    first = f"The runs have no case that can be compared{found}."
    return f"{first} Run the cases of the base again with the candidate to learn more."


def _settling(pairs: Pairs, margin: float) -> str:
    cases = more_cases(pairs, margin)
    if cases is None:
        return "No realistic number of cases would settle it: the runs are too much alike."
    return f"About {count(rounded(cases), 'more case')} like these would settle it."


def _chance(p: float) -> str:
    """A p-value in words, as a frequency."""
    if p < 0.001:
        share = "fewer than 1 of 1,000"
    elif p < 0.05:
        share = f"about {max(round(p * 1000), 1)} of 1,000"
    elif p < 0.99:
        share = f"about {round(p * 100)} of 100"
    else:
        share = "nearly all"
    return f"two equally good runs differ by as much in {share} comparisons"


def rates(pairs: Pairs) -> str:
    """Both pass rates, and the counts behind them."""
    before, now = (pairs.both + pairs.lost) / pairs.n, (pairs.both + pairs.gained) / pairs.n
    moved = f"{pairs.lost:,} stopped passing and {pairs.gained:,} started to"
    return f"of {count(pairs.n, 'case')}, {moved}, from {percent(before)} to {percent(now)}"


def between(difference: Estimate) -> str:
    low, high = points(difference.low, "+"), points(difference.high, "+")
    return f"between {low} and {high} points"


def rounded(count: int) -> int:
    """Rounded up to two digits: more would suggest too much precision."""
    step: int = 10 ** max(len(str(count)) - 2, 0)
    return math.ceil(count / step) * step
