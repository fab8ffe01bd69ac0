"""The verb of `assay plan`: what a run could detect, and what it would cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

import msgspec

from assay.comparison.outcomes import find_run, outcomes_of, stored
from assay.comparison.pairs import pair
from assay.engine.plan import Plan
from assay.errors import AssayError, UsageError
from assay.model.case import EvalCase
from assay.model.comparison import CaseOutcome, comparable
from assay.model.options import WORKERS
from assay.model.result import JUDGED
from assay.model.run import RunRecord, TrialFacts
from assay.model.trials import by_case, repeats_of
from assay.ports import Store
from assay.service import eval_files
from assay.service.costs import SuiteCost, suite_costs
from assay.service.eval_files import Paths, as_paths
from assay.service.options import options_of
from assay.service.project import project, working_directory
from assay.service.store import store_to_read
from assay.settings import Settings
from assay.stats.planning import (
    Aim,
    Variances,
    cases_needed,
    detectable_difference,
    one_way_difference,
    score_cases_needed,
    score_detectable_difference,
)
from assay.stats.sums import Moments
from assay.targets.pool.target_pool import TargetPool

#: The assumed share of cases that change between two runs.
DISCORDANT = 0.2


class NoiseModel(msgspec.Struct, frozen=True):
    """How much two equally good runs differ, and where that is known from.

    `discordant` is the share of cases that change, `variances` are those of their scores.
    """

    discordant: float
    variances: Variances
    source: str
    cases: int | None = None
    graded: bool = False


class PlanRequest(msgspec.Struct, frozen=True):
    """The parameters of a plan."""

    cases: int | None = None
    difference: float | None = None
    power: float = 0.8
    repeat: int | None = None
    run: str | None = None


class Forecast(msgspec.Struct, frozen=True):
    """What `cases` can detect, and how many `difference` needs; None if that is impossible."""

    request: PlanRequest
    noise_model: NoiseModel
    cases: int | None
    suites: tuple[SuiteCost, ...] = ()
    workers: int = WORKERS

    @property
    def repeat(self) -> int:
        return self.request.repeat or 1

    @property
    def aim(self) -> Aim:
        return Aim(power=self.request.power)

    @property
    def discordant(self) -> float:
        """The share of cases that change, which is at least the difference."""
        return max(self.noise_model.discordant, abs(self.request.difference or 0.0))

    @property
    def detectable(self) -> float | None:
        """The smallest difference of pass rates that the cases can detect."""
        if self.cases is None:
            return None
        found = detectable_difference(self.cases, self.discordant, self.aim)
        # With few cases, more of them than usual have to change, and all in one direction.
        return one_way_difference(self.cases, self.aim) if found is None else found

    @property
    def needed(self) -> int | None:
        """How many cases the difference of pass rates needs."""
        if self.request.difference is None:
            return None
        return cases_needed(self.request.difference, self.discordant, self.aim)

    @property
    def by_scores(self) -> bool:
        """Are mean scores worth reporting? They are if cases are repeated or graded."""
        return self.repeat > 1 or self.noise_model.graded

    @property
    def scores_alike(self) -> bool:
        """Are all known scores equal? Then their variance cannot be estimated."""
        return not self.noise_model.variances.total()

    @property
    def score_detectable(self) -> float | None:
        if self.cases is None or self.scores_alike:
            return None
        repeats = (self.repeat, self.repeat)
        found = score_detectable_difference(
            self.cases, self.noise_model.variances, *repeats, self.aim
        )
        return None if found is None or found > 1 else found

    @property
    def score_needed(self) -> int | None:
        if not self.request.difference or self.scores_alike:
            return None
        repeats = (self.repeat, self.repeat)
        return score_cases_needed(
            self.request.difference, self.noise_model.variances, *repeats, self.aim
        )

    @property
    def cost_usd(self) -> float | None:
        """The cost of all suites for which it is known."""
        return _total(suite.cost_usd for suite in self.suites)

    @property
    def duration_ms(self) -> float | None:
        """The duration with this number of workers, of all suites for which it is known."""
        whole = _total(suite.duration_ms for suite in self.suites)
        return None if whole is None else whole / self.workers

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `assay plan --json`."""
        found: dict[str, Any] = {
            "cases": self.cases,
            "difference": self.request.difference,
            "power": self.request.power,
            "repeat": self.repeat,
            "discordant": self.discordant,
            "source": self.noise_model.source,
            "detectableDifference": self.detectable,
            "casesNeeded": self.needed,
        }
        if self.by_scores:
            found["score"] = {
                "detectableDifference": self.score_detectable,
                "casesNeeded": self.score_needed,
            }
        if self.suites:
            found |= {"workers": self.workers, "costUsd": self.cost_usd}
            found |= {"durationMs": self.duration_ms}
            found["suites"] = [suite.to_dict() for suite in self.suites]
        return found


def plan(
    request: PlanRequest,
    paths: Paths = (),
    *,
    store: str | None = None,
    given: Mapping[str, Any] | None = None,
) -> Forecast:
    """Which difference the cases of paths, of a run, or a number of cases could detect.

    `given` are more options of the run that is planned.
    """
    settings = project()
    with closing(store_to_read(settings, store)) as opened:
        noise_model = _noise_model(request, opened)
        if not as_paths(paths):
            cases = request.cases or noise_model.cases
            if cases is None and request.difference is None:
                message = "there is nothing to plan"
                raise UsageError(f"{message}: give --cases, --difference, --run, or eval files")
            return Forecast(request, noise_model, cases)
        repeat = {"repeat": request.repeat} if request.repeat else {}
        options = options_of({**(given or {}), **repeat}, settings, None)
        chosen = Plan(eval_files.load(paths), options).select()
        costs = suite_costs(chosen, settings, opened)
        asked = [planned.case for planned in chosen if planned.case.skip is None]
        workers = options.workers or _workers(asked, chosen, settings)
        return Forecast(request, noise_model, request.cases or len(asked), costs, workers)


def _workers(asked: Iterable[EvalCase], chosen: Plan, settings: Settings) -> int:
    """How many trials run concurrently, given the settings of suites and targets."""
    targets = settings.target_names
    only = targets[0] if len(targets) == 1 else None
    names = {chosen.options.target or case.target or only for case in asked}
    default = chosen.workers or WORKERS
    allowed = [_workers_of_target(name, settings) or default for name in names if name]
    most = max(allowed, default=default)
    return min(chosen.workers or most, most)


def _workers_of_target(target: str, settings: Settings) -> int | None:
    with suppress(AssayError):  # reported by the run
        return TargetPool(settings).spec(target).workers
    return None


def _total(parts: Iterable[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _noise_model(request: PlanRequest, store: Store) -> NoiseModel:
    if request.run is None:
        assumed = Variances(0.0, DISCORDANT / 2, DISCORDANT / 2)
        return NoiseModel(DISCORDANT, assumed, "assumed; --run takes it from a recorded run")
    record = find_run(request.run, store)
    noise = _NoiseSamples()
    for trials in by_case(store.facts(record.id)):
        noise.add([t for t in repeats_of(trials) if t.outcome in JUDGED])
    if not noise.cases:
        raise UsageError(
            f"no case was judged in the run {record.id}: there is nothing to estimate from"
        )
    return _with_baseline(record, noise, store) or noise.alone(record.id)


class _NoiseSamples:
    """Collects how much the repeats of a case differ, and how much the cases of a run differ."""

    def __init__(self) -> None:
        self.cases = self.passed = 0
        self.flips, self.within, self.scores = Moments(), Moments(), Moments()
        self.attempts = Moments()
        self.graded = False

    def add(self, trials: Sequence[TrialFacts]) -> None:
        if not trials:
            return
        self.cases += 1
        passes = sum(t.outcome == "passed" for t in trials)
        self.passed += passes == len(trials)
        n = len(trials)
        own = Moments()
        for score in (t.score for t in trials if t.score is not None):
            own.add(score)
            self.graded = self.graded or 0 < score < 1
        if own.count:
            self.scores.add(own.mean)
        if n > 1:
            self.attempts.add(n)
            self.flips.add(2 * passes * (n - passes) / (n * (n - 1)))
            self.within.add(own.variance or 0.0)

    def alone(self, run_id: str) -> NoiseModel:
        """From this run only: from its repeats, or else as if two runs were independent."""
        least = 1 / self.cases
        if self.attempts.count:
            noise = Variances(0.0, self.within.mean, self.within.mean)
            source = f"from the repeats of the run {run_id}"
            return NoiseModel(max(self.flips.mean, least), noise, source, self.cases, self.graded)
        rate = self.passed / self.cases
        found = f"at worst, from the pass rate of the run {run_id}"
        source = f"{found}; repeats would give a better estimate"
        worst = Variances(2 * (self.scores.variance or 0.0))
        return NoiseModel(max(2 * rate * (1 - rate), least), worst, source, self.cases, self.graded)


def _with_baseline(record: RunRecord, noise: _NoiseSamples, store: Store) -> NoiseModel | None:
    """From the run and its baseline, if it had one that still exists."""
    name = record.verdict.baseline
    if name is None:
        return None
    try:
        base = outcomes_of(name, store, working_directory())
    except AssayError:  # missing by now; use the run alone
        return None
    moved, scores = Moments(), Moments()
    for before, now in pair(base, stored(record, store)):
        if before is not None and now is not None and _comparable(before, now):
            moved.add(float(before.outcome != now.outcome))
            if before.score is not None and now.score is not None:
                scores.add(now.score - before.score)
    if not moved.count:
        return None
    within, attempts = noise.within.mean, noise.attempts.mean or 1.0
    between = max((scores.variance or 0.0) - 2 * within / attempts, 0.0)
    return NoiseModel(
        max(moved.mean, 1 / moved.count),
        Variances(between, within, within),
        f"from the run {record.id} and its baseline {base.name}",
        moved.count,
        noise.graded,
    )


def _comparable(before: CaseOutcome, now: CaseOutcome) -> bool:
    judged = before.outcome in JUDGED and now.outcome in JUDGED
    return judged and comparable(before.comparability, now.comparability)
