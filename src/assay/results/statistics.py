"""The statistics of a suite or a run, computed in one pass without holding the cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from assay.model.comparison import CaseRef
from assay.model.result import JUDGED
from assay.model.run import TrialFacts, TrialRecord
from assay.model.trials import mean_score
from assay.stats.distributions import interval_z
from assay.stats.estimates import Estimate
from assay.stats.means import DRAWS, FEW_CLUSTERS
from assay.stats.proportions import rate_bounds, wilson, wilson_limits
from assay.stats.repeats import Attempts
from assay.stats.sums import Clusters, Moments

#: The most flaky cases that are listed.
MAX_FLAKY = 1000
#: pass@k and pass^k are given for every k up to this, and for the number of repeats.
MAX_K = 10
LEVEL = 0.95


class AttemptCounts(NamedTuple):
    """How many times a case was asked, judged and passed."""

    asked: int
    judged: int
    passed: int

    def as_if(self, missing_pass: bool) -> Attempts:
        """The attempts, if those without a verdict had all passed, or all failed."""
        return Attempts(self.passed + missing_pass * (self.asked - self.judged), self.asked)


class ClusterSums(msgspec.Struct):
    """The cases of a cluster: how many, how many passed, and the scores of those that have one."""

    cases: int = 0
    passed: int = 0
    scored: int = 0
    score: float = 0.0
    squares: float = 0.0


class Measure(msgspec.Struct):
    """Sums over cases, from which the statistics are computed."""

    passed: int = 0
    judged: int = 0
    scores: Moments = msgspec.field(default_factory=Moments)
    graded: bool = False
    clusters: dict[str, ClusterSums] = {}
    tries: dict[AttemptCounts, int] = {}
    flaky: list[CaseRef] = []

    def add(self, trials: Sequence[TrialFacts | TrialRecord], outcome: str) -> None:
        """Add a case: its repeats, and their combined outcome."""
        first = trials[0]
        score = first.score
        if len(trials) > 1:
            if outcome != "skipped":
                self._add_repeats(trials)
            score = mean_score(trials)
        if outcome not in JUDGED:
            return
        self.judged += 1
        self.passed += outcome == "passed"
        if score is not None:
            self.scores.add(score)
            if not self.graded and 0 < score < 1:
                # A mean between 0 and 1 is not enough: the attempts may all have 0 or 1.
                self.graded = any(0 < (trial.score or 0) < 1 for trial in trials)
        if first.cluster is not None:
            self._add_to_cluster(first.cluster, outcome == "passed", score)

    def join(self, other: Measure) -> None:
        """Add the sums of another suite."""
        self.passed += other.passed
        self.judged += other.judged
        self.scores.join(other.scores)
        self.graded = self.graded or other.graded
        for name, unit in other.clusters.items():
            mine = self.clusters.setdefault(name, ClusterSums())
            for part in ClusterSums.__struct_fields__:
                setattr(mine, part, getattr(mine, part) + getattr(unit, part))
        for tries, count in other.tries.items():
            self.tries[tries] = self.tries.get(tries, 0) + count
        self.flaky += other.flaky[: MAX_FLAKY - len(self.flaky)]

    def statistics(
        self, planned: int, *, whole: bool = False, draws: int = DRAWS
    ) -> dict[str, Any]:
        """The statistics as in a result file; for a `whole` run flaky cases include their suite.

        `draws` is the number of bootstrap draws, the only expensive part.
        """
        found: dict[str, Any] = {
            "passRate": _dict(self.pass_rate()),
            "coverage": self._coverage(planned),
            "score": self._score(draws),
        }
        if self.tries:
            found["repeats"] = self._repeat_statistics(whole, draws)
        if self.clusters:
            found["clusters"] = self._cluster_statistics()
        return found

    def _add_repeats(self, trials: Sequence[TrialFacts | TrialRecord]) -> None:
        outcomes = [trial.outcome for trial in trials]
        passed = outcomes.count("passed")
        tries = AttemptCounts(len(trials), passed + outcomes.count("failed"), passed)
        self.tries[tries] = self.tries.get(tries, 0) + 1
        if 0 < passed < tries.judged and len(self.flaky) < MAX_FLAKY:
            self.flaky.append(CaseRef(trials[0].suite, trials[0].case_id))

    def _add_to_cluster(self, name: str, passed: bool, score: float | None) -> None:
        unit = self.clusters.get(name)
        if unit is None:
            unit = self.clusters[name] = ClusterSums()
        unit.cases += 1
        unit.passed += passed
        if score is not None:
            unit.scored += 1
            unit.score += score
            unit.squares += score * score

    def pass_rate(self) -> Estimate | None:
        """The share of the judged cases that passed; None if none was judged."""
        if not self.clusters:
            return wilson(self.passed, self.judged)
        named = [(float(unit.passed), unit.cases) for unit in self.clusters.values()]
        passed = self.passed - sum(unit.passed for unit in self.clusters.values())
        return Clusters(named, self._unclustered, passed, passed).rate()

    @property
    def _unclustered(self) -> int:
        """How many judged cases are in no cluster."""
        return self.judged - sum(unit.cases for unit in self.clusters.values())

    def _score(self, draws: int) -> dict[str, Any] | None:
        if self.clusters:
            found = self._clustered_score()
        elif self.graded or self.tries:
            found = self.scores.estimate(draws=draws)
        else:  # only 0 and 1: a rate
            found = wilson(round(self.scores.mean * self.scores.count), self.scores.count)
        return None if found is None else found.to_dict() | {"graded": self.graded}

    def _clustered_score(self) -> Estimate | None:
        units, scores = [u for u in self.clusters.values() if u.scored], self.scores
        total = scores.mean * scores.count - sum(unit.score for unit in units)
        squares = scores.squares + scores.count * scores.mean**2
        squares -= sum(unit.squares for unit in units)
        alone = scores.count - sum(unit.scored for unit in units)
        named = [(unit.score, unit.scored) for unit in units]
        return Clusters(named, alone, total, squares).estimate()

    def _coverage(self, planned: int) -> dict[str, Any]:
        found: dict[str, Any] = {"judged": self.judged, "planned": planned}
        bounds = rate_bounds(self.passed, self.judged, planned)
        if bounds is not None:
            found |= {"worst": bounds.low, "best": bounds.high}
        return found

    def _cluster_statistics(self) -> dict[str, Any]:
        count = len(self.clusters) + self._unclustered
        found: dict[str, Any] = {"count": count}
        if warning := few_clusters(count):
            found["warning"] = warning
        return found

    def _repeat_statistics(self, whole: bool, draws: int) -> dict[str, Any]:
        n = min(tries.asked for tries in self.tries)
        every = sorted(self.tries.items())
        ks = [k for k in range(1, n + 1) if k <= MAX_K or k == n]
        # The same cases for every k; otherwise values for different k would not be comparable.
        complete = [(Attempts(t.passed, t.judged), count) for t, count in every if t.judged >= n]
        found: dict[str, Any] = {"n": n, "cases": sum(self.tries.values())}
        found["complete"] = sum(count for _, count in complete)
        for name, of in (("passHatK", Attempts.pass_hat_k), ("passAtK", Attempts.pass_at_k)):
            shares = {str(k): _mean_over(complete, of, k).mean for k in ks}
            found[name] = shares if complete else {}
        headline = _pass_hat_k(_mean_over(complete, Attempts.pass_hat_k, n), draws)
        found["headline"] = None if headline is None else {"k": n} | headline.to_dict()
        for name, missing_pass in (("worst", False), ("best", True)):
            judged = [(t.as_if(missing_pass), count) for t, count in every]
            found[name] = _mean_over(judged, Attempts.pass_hat_k, n).mean
        found["flaky"] = [str(ref) if whole else ref.id for ref in self.flaky]
        found["flakyCount"] = sum(count for t, count in every if 0 < t.passed < t.judged)
        return found


def _mean_over(cases: list[tuple[Attempts, int]], of: Any, k: int) -> Moments:
    """pass@k or pass^k over cases that all have at least k attempts."""
    found = Moments()
    for case, count in cases:
        found.join(Moments.of(of(case, k), count))
    return found


def _pass_hat_k(shares: Moments, draws: int) -> Estimate | None:
    """pass^k with its interval: Wilson's if all cases are equal, as they show no variance then."""
    if shares.squares or shares.count < 2:
        return shares.estimate(draws=draws)
    limits = wilson_limits(shares.mean, shares.count, interval_z(LEVEL))
    return Estimate(shares.mean, limits.low, limits.high, LEVEL, "wilson")


def few_clusters(count: int) -> str:
    """The warning about an interval based on this many clusters; empty if they are enough."""
    if count >= FEW_CLUSTERS:
        return ""
    few = f"the cases fall into {count} clusters; with fewer than {FEW_CLUSTERS} the interval"
    return f"{few} is unreliable"


def _dict(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate.to_dict()
