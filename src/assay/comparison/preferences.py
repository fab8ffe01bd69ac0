"""From a judge's choices to win rates and a ranking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from assay.comparison.decision import ALPHA, decide
from assay.model.comparison import CaseRef
from assay.model.preference import JudgedPair, PreferencePair, RankedTarget
from assay.stats.bradley_terry import Game, bradley_terry
from assay.stats.calibration import Confusion, corrected_rate
from assay.stats.estimates import Estimate
from assay.stats.paired import Pairs, holm
from assay.stats.proportions import win_rate

_SCORES = {"a": 1.0, "tie": 0.5, "b": 0.0}
_CHANGES = {"a": -1, "tie": 0, "b": 1}
#: The clusters of cases that have one.
Clusters = Mapping[CaseRef, str]


def preference_pairs(
    targets: Sequence[str],
    cases: Sequence[JudgedPair],
    clusters: Clusters,
    labels: Confusion | None = None,
) -> tuple[PreferencePair, ...]:
    """Each two targets, with p-values adjusted by Holm's method.

    The win rates are also corrected by `labels` of people, if the judge is calibrated.
    """
    found = []
    for a, b in combinations(targets, 2):
        own = [case for case in cases if (case.a, case.b) == (a, b)]
        found.append(_pair(a, b, own, clusters, labels))
    tested = [pair.p_value for pair in found if pair.p_value is not None]
    adjusted = iter(holm(tested))
    return tuple(
        pair if pair.p_value is None else _adjusted(pair, next(adjusted)) for pair in found
    )


def _pair(
    a: str, b: str, cases: Sequence[JudgedPair], clusters: Clusters, labels: Confusion | None
) -> PreferencePair:
    judged = [case for case in cases if case.preferred is not None]
    count = Counter(case.preferred for case in judged)
    decided = [case for case in judged if case.preferred != "tie" and case.longer]
    longer = sum(case.preferred == case.longer for case in decided)
    flipped = sum(case.flipped for case in judged)
    identical = sum(case.identical for case in judged)
    asked = len(judged) - identical
    pair = PreferencePair(
        a=a,
        b=b,
        judged=len(judged),
        wins=count["b"],
        losses=count["a"],
        ties=count["tie"],
        flipped=flipped,
        errored=sum(bool(case.error) for case in cases),
        longer_won=longer,
        shorter_won=len(decided) - longer,
        identical=identical,
        flip_rate=flipped / asked if asked else None,
    )
    return _with_win_rate(pair, judged, clusters, labels)


def _with_win_rate(
    pair: PreferencePair, judged: Sequence[JudgedPair], clusters: Clusters, labels: Confusion | None
) -> PreferencePair:
    """A win is a case gained, a loss one lost, a tie one without a change: the tests apply."""
    rate = win_rate(pair.wins, pair.losses, pair.ties)
    counts = Pairs(pair.ties, pair.losses, pair.wins, 0)
    finding = decide(counts, 0.0, *_clustered(judged, clusters))
    if rate is None or finding.difference is None or finding.test is None:
        return pair
    if clusters:
        rate = _widened(rate, finding.difference)
    corrected = None
    if labels is not None:
        corrected = corrected_rate(pair.wins, pair.wins + pair.losses, labels)
    return replace(
        pair,
        win_rate=rate,
        corrected=corrected,
        test=finding.test.method,
        p_value=finding.test.value,
    )


def _widened(rate: Estimate, difference: Estimate) -> Estimate:
    """The win rate with an interval that covers that of the difference of wins and losses."""
    low, high = (1 + difference.low) / 2, (1 + difference.high) / 2
    wide = replace(rate, low=min(rate.low, low), high=max(rate.high, high))
    return replace(wide, method=f"{rate.method}-clustered")


def _clustered(
    judged: Sequence[JudgedPair], clusters: Clusters
) -> tuple[Sequence[int], Sequence[int]]:
    """The changes and the clusters of all cases; empty if none has a cluster."""
    if not clusters:
        return (), ()
    numbers: dict[str, int] = {}
    of_cases = []
    for place, case in enumerate(judged, 1):
        name = clusters.get(CaseRef(case.suite, case.id))
        of_cases.append(-place if name is None else numbers.setdefault(name, len(numbers)))
    return [_CHANGES[case.preferred] for case in judged if case.preferred is not None], of_cases


def _adjusted(pair: PreferencePair, adjusted: float) -> PreferencePair:
    better = None
    if adjusted < ALPHA:
        better = pair.b if pair.wins > pair.losses else pair.a
    return replace(pair, adjusted=adjusted, better=better)


def ranking(
    targets: Sequence[str], cases: Iterable[JudgedPair], clusters: Clusters
) -> tuple[RankedTarget, ...]:
    """More than two targets in the order of their strengths; empty for two."""
    if len(targets) < 3:
        return ()
    places = {target: place for place, target in enumerate(targets)}
    games = [
        Game(places[case.a], places[case.b], _SCORES[case.preferred], clusters.get(ref, ref))
        for case in cases
        if case.preferred is not None
        for ref in [CaseRef(case.suite, case.id)]
    ]
    found = zip(targets, bradley_terry(games, len(targets)), strict=True)
    ranked = [RankedTarget(target, strength) for target, strength in found]
    return tuple(
        sorted(
            ranked, key=lambda each: each.strength.estimate if each.strength else -1, reverse=True
        )
    )
