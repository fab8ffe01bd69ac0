"""The statistics of a suite, or of a run, counted in one pass: a few numbers, never the cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from assay.model.comparison import CaseRef
from assay.model.result import JUDGED
from assay.model.run import TrialFacts, TrialRecord
from assay.results.trials import mean_score
from assay.stats.distributions import interval_z
from assay.stats.estimates import Estimate
from assay.stats.means import DRAWS, FEW_CLUSTERS
from assay.stats.proportions import rate_bounds, wilson, wilson_limits
from assay.stats.repeats import Attempts
from assay.stats.sums import Clusters, Moments

#: So many flaky cases are named; there may be more.
MAX_FLAKY = 1000
#: pass@k and pass^k are told for every k up to this one, and for the number of repeats.
MAX_K = 10
LEVEL = 0.95


class Tries(NamedTuple):
    """How often a case was asked, how often it was judged then, and how often it passed."""

    asked: int
    judged: int
    passed: int

    def as_if(self, missing_pass: bool) -> Attempts:
        """The attempts as if those without a verdict had all passed, or all failed."""
        return Attempts(self.passed + missing_pass * (self.asked - self.judged), self.asked)


class Unit(msgspec.Struct):
    """The cases of one cluster: their number and passes, and the same for those with a score."""

    cases: int = 0
    passed: int = 0
    scored: int = 0
    score: float = 0.0
    squares: float = 0.0


class Measure(msgspec.Struct):
    """Adds up cases. `join` adds those of another suite."""

    passed: int = 0
    judged: int = 0
    scores: Moments = msgspec.field(default_factory=Moments)
    graded: bool = False
    clusters: dict[str, Unit] = {}
    tries: dict[Tries, int] = {}
    flaky: list[CaseRef] = []

    def add(self, trials: Sequence[TrialFacts | TrialRecord], outcome: str) -> None:
        """One case: its repeats, and what they come to."""
        first = trials[0]
        score = first.score
        if len(trials) > 1:
            if outcome != "skipped":
                self._repeats(trials)
            score = mean_score(trials)
        if outcome not in JUDGED:
            return
        self.judged += 1
        self.passed += outcome == "passed"
        if score is not None:
            self.scores.add(score)
            if not self.graded and 0 < score < 1:
                # The mean of some attempts lies between 0 and 1 also when no score of them does.
                self.graded = any(0 < (trial.score or 0) < 1 for trial in trials)
        if first.cluster is not None:
            self._cluster(first.cluster, outcome == "passed", score)

    def join(self, other: Measure) -> None:
        """As if the cases of the other had been added."""
        self.passed += other.passed
        self.judged += other.judged
        self.scores.join(other.scores)
        self.graded = self.graded or other.graded
        for name, unit in other.clusters.items():
            mine = self.clusters.setdefault(name, Unit())
            for part in Unit.__struct_fields__:
                setattr(mine, part, getattr(mine, part) + getattr(unit, part))
        for tries, count in other.tries.items():
            self.tries[tries] = self.tries.get(tries, 0) + count
        self.flaky += other.flaky[: MAX_FLAKY - len(self.flaky)]

    def statistics(
        self, planned: int, *, whole: bool = False, draws: int = DRAWS
    ) -> dict[str, Any]:
        """What a result file says. Of a `whole` run flaky cases are named with their suite.

        `draws` are those of a bootstrap, the only thing here that takes time.
        """
        found: dict[str, Any] = {
            "passRate": _dict(self._rate()),
            "coverage": self._coverage(planned),
            "score": self._score(draws),
        }
        if self.tries:
            found["repeats"] = self._repeated(whole, draws)
        if self.clusters:
            found["clusters"] = self._clusters()
        return found

    def _repeats(self, trials: Sequence[TrialFacts | TrialRecord]) -> None:
        outcomes = [trial.outcome for trial in trials]
        passed = outcomes.count("passed")
        tries = Tries(len(trials), passed + outcomes.count("failed"), passed)
        self.tries[tries] = self.tries.get(tries, 0) + 1
        if 0 < passed < tries.judged and len(self.flaky) < MAX_FLAKY:
            self.flaky.append(CaseRef(trials[0].suite, trials[0].case_id))

    def _cluster(self, name: str, passed: bool, score: float | None) -> None:
        unit = self.clusters.get(name)
        if unit is None:
            unit = self.clusters[name] = Unit()
        unit.cases += 1
        unit.passed += passed
        if score is not None:
            unit.scored += 1
            unit.score += score
            unit.squares += score * score

    def _rate(self) -> Estimate | None:
        if not self.clusters:
            return wilson(self.passed, self.judged)
        named = [(float(unit.passed), unit.cases) for unit in self.clusters.values()]
        passed = self.passed - sum(unit.passed for unit in self.clusters.values())
        return Clusters(named, self._alone, passed, passed).rate()

    @property
    def _alone(self) -> int:
        """How many judged cases belong to no cluster."""
        return self.judged - sum(unit.cases for unit in self.clusters.values())

    def _score(self, draws: int) -> dict[str, Any] | None:
        if self.clusters:
            found = self._clustered_score()
        elif self.graded or self.tries:
            found = self.scores.estimate(draws=draws)
        else:  # nothing but 0 and 1: it is a rate
            found = wilson(round(self.scores.mean * self.scores.count), self.scores.count)
        return None if found is None else found.to_dict() | {"graded": self.graded}

    def _clustered_score(self) -> Estimate | None:
        units, all_of = [u for u in self.clusters.values() if u.scored], self.scores
        total = all_of.mean * all_of.count - sum(unit.score for unit in units)
        squares = all_of.squares + all_of.count * all_of.mean**2
        squares -= sum(unit.squares for unit in units)
        alone = all_of.count - sum(unit.scored for unit in units)
        named = [(unit.score, unit.scored) for unit in units]
        return Clusters(named, alone, total, squares).estimate()

    def _coverage(self, planned: int) -> dict[str, Any]:
        found: dict[str, Any] = {"judged": self.judged, "planned": planned}
        bounds = rate_bounds(self.passed, self.judged, planned)
        if bounds is not None:
            found |= {"worst": bounds.low, "best": bounds.high}
        return found

    def _clusters(self) -> dict[str, Any]:
        count = len(self.clusters) + self._alone
        found: dict[str, Any] = {"count": count}
        if warning := few_clusters(count):
            found["warning"] = warning
        return found

    def _repeated(self, whole: bool, draws: int) -> dict[str, Any]:
        n = min(tries.asked for tries in self.tries)
        every = sorted(self.tries.items())
        ks = [k for k in range(1, n + 1) if k <= MAX_K or k == n]
        # The same cases for every k: else some would count in a short row and not in a long one.
        complete = [(Attempts(t.passed, t.judged), count) for t, count in every if t.judged >= n]
        found: dict[str, Any] = {"n": n, "cases": sum(self.tries.values())}
        found["complete"] = sum(count for _, count in complete)
        for name, of in (("passHatK", Attempts.pass_hat_k), ("passAtK", Attempts.pass_at_k)):
            shares = {str(k): _over(complete, of, k).mean for k in ks}
            found[name] = shares if complete else {}
        headline = _headline(_over(complete, Attempts.pass_hat_k, n), draws)
        found["headline"] = None if headline is None else {"k": n} | headline.to_dict()
        for name, missing_pass in (("worst", False), ("best", True)):
            judged = [(t.as_if(missing_pass), count) for t, count in every]
            found[name] = _over(judged, Attempts.pass_hat_k, n).mean
        found["flaky"] = [str(ref) if whole else ref.id for ref in self.flaky]
        found["flakyCount"] = sum(count for t, count in every if 0 < t.passed < t.judged)
        return found


def _over(cases: list[tuple[Attempts, int]], of: Any, k: int) -> Moments:
    """pass@k or pass^k over cases that all have k attempts."""
    found = Moments()
    for case, count in cases:
        found.join(Moments.of(of(case, k), count))
    return found


def _headline(shares: Moments, draws: int) -> Estimate | None:
    """pass^k with its interval. Cases that are all alike hide their spread, not their number."""
    if shares.squares or shares.count < 2:
        return shares.estimate(draws=draws)
    limits = wilson_limits(shares.mean, shares.count, interval_z(LEVEL))
    return Estimate(shares.mean, limits.low, limits.high, LEVEL, "wilson")


def few_clusters(count: int) -> str:
    """What to say of an interval that stands on so many clusters; empty when they are enough."""
    if count >= FEW_CLUSTERS:
        return ""
    few = f"the cases fall into {count} clusters; with fewer than {FEW_CLUSTERS} the interval"
    return f"{few} is itself a guess"


def _dict(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate.to_dict()
