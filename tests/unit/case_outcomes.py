"""Outcomes of cases, to compare."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.comparison import CaseOutcome, CaseRef, Reasks
from assay.model.result import Outcome

SUITE = "evals/weather.eval.yaml"
Runs = tuple[list[CaseOutcome], list[CaseOutcome]]
OUTCOMES: dict[str, Outcome] = {"P": "passed", "F": "failed", "E": "errored", "S": "skipped"}


def case(
    identity: str,
    outcome: Outcome = "passed",
    *,
    suite: str = SUITE,
    trials: tuple[int, int] | None = None,
    score: float | None = None,
    key: str = "k",
    critical: bool = False,
    cluster: str | None = None,
    reasks: tuple[int, ...] = (),
) -> CaseOutcome:
    """A case; `trials` are how many of how many passed, `reasks` passed, failed and errored."""
    judged = int(outcome in ("passed", "failed"))
    passes, judged = trials or (int(outcome == "passed"), judged)
    ref = CaseRef(suite, identity)
    return CaseOutcome(ref, outcome, passes, judged, score, key, critical, cluster, Reasks(*reasks))


def run_of(letters: str, start: int = 0) -> list[CaseOutcome]:
    """A run from one letter a case: P, F, E or S."""
    return [case(f"case-{i}", OUTCOMES[letter]) for i, letter in enumerate(letters, start)]


def runs_of(both: int, lost: int, gained: int, neither: int) -> Runs:
    """Two runs with these numbers of cases that passed in both, lost their pass, and so on."""
    before = "P" * both + "P" * lost + "F" * gained + "F" * neither
    now = "P" * both + "F" * lost + "P" * gained + "F" * neither
    return run_of(before), run_of(now)


def ids(refs: Iterable[CaseRef]) -> list[str]:
    return [ref.id for ref in refs]
