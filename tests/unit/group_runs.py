"""Runs of several targets, to compare."""

from __future__ import annotations

from assay.comparison.groups import GroupRun
from assay.model.run import TrialFacts
from unit.case_outcomes import OUTCOMES, SUITE


def facts(
    place: int,
    letter: str,
    *,
    repeat: int = 0,
    key: str = "k",
    cluster: str | None = None,
    duration_ms: float = 10.0,
    cost_usd: float | None = None,
) -> TrialFacts:
    """One attempt at a case, by a letter: P, F, E or S."""
    outcome = OUTCOMES[letter]
    return TrialFacts(
        position=place,
        repeat=repeat,
        suite=SUITE,
        case_id=f"case-{place}",
        outcome=outcome,
        score={"P": 1.0, "F": 0.0}.get(letter),
        duration_ms=duration_ms,
        cost_usd=cost_usd,
        judge_cost_usd=None,
        comparability=key,
        critical=False,
        cluster=cluster,
        min_pass_rate=1.0,
        skipped_assertions=0,
        confirms=False,
        final=True,
    )


def group_run(target: str, letters: str, *, clusters: str = "", partial: str = "") -> GroupRun:
    """A run from one letter a case; `clusters` has one letter a case too."""
    trials = [
        facts(place, letter, cluster=clusters[place] if clusters else None)
        for place, letter in enumerate(letters)
    ]
    return GroupRun(f"run-{target}", target, trials, partial)
