"""What calls are expected to cost: by earlier runs, or by prices and the length of texts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from assay.comparison.outcomes import newest_first
from assay.engine.plan import Plan
from assay.engine.run_spec import RunSpec, project_path
from assay.model.observation import Usage
from assay.model.run import positions_of
from assay.model.target import TargetSpec
from assay.ports import Store
from assay.settings import Settings
from assay.stats.means import mean
from assay.targets.pool.target_pool import TargetPool
from assay.text import count, money

#: At most this many runs are searched for one that had a suite.
_MAX_RUNS = 500
#: For costs by prices: how long texts are in tokens, if nothing better is known.
_CHARACTERS_PER_TOKEN, _REPLY_TOKENS = 4, 100
#: How many questions are read to know how long they are.
_SAMPLED = 20


class SuiteCost(msgspec.Struct, frozen=True):
    """What a suite costs, estimated from the last run that had it; None if there is none."""

    file: str
    cases: int
    trials: int
    run_id: str | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "cases": self.cases,
            "trials": self.trials,
            "runId": self.run_id,
            "costUsd": self.cost_usd,
            "durationMs": self.duration_ms,
        }


def suite_costs(
    chosen: Plan, settings: Settings, store: Store, target: str | None = None
) -> tuple[SuiteCost, ...]:
    """What each suite of a plan costs, by the newest run that had it, of this target if any."""
    trials = [0] * len(chosen.suites)
    for planned in chosen:
        trials[planned.suite] += 0 if planned.case.skip is not None else planned.repeats
    files = [project_path(suite.file, settings) for suite in chosen.suites]
    past = _past_trials(set(files), store, target)
    return tuple(
        _cost(file, chosen.selected[index], trials[index], past.get(file))
        for index, file in enumerate(files)
    )


def _cost(file: str, cases: int, trials: int, past: _PastTrial | None) -> SuiteCost:
    if past is None:
        return SuiteCost(file, cases, trials)
    cost = None if past.cost_usd is None else past.cost_usd * trials
    return SuiteCost(file, cases, trials, past.run_id, cost, past.duration_ms * trials)


class _PastTrial(msgspec.Struct, frozen=True):
    """The average cost and duration of a trial of a suite in a run."""

    run_id: str
    cost_usd: float | None
    duration_ms: float


def _past_trials(files: set[str], store: Store, target: str | None) -> dict[str, _PastTrial]:
    """The averages of each suite, from the newest finished run that asked it."""
    found: dict[str, _PastTrial] = {}
    for record in islice(newest_first(store), _MAX_RUNS):
        if target is not None and record.target != target:
            continue
        for index, header in enumerate(record.suites):
            if header.file in files and header.file not in found and record.status == "finished":
                average = _average(store, record.id, index)
                if average is not None:
                    found[header.file] = average
        if len(found) == len(files):
            break
    return found


def _average(store: Store, run_id: str, suite: int) -> _PastTrial | None:
    trials, spent, costs = 0, 0.0, 0.0
    priced = False
    for trial in store.facts(run_id, positions_of(suite)):
        if trial.outcome == "skipped" or trial.confirms:
            continue
        trials += 1
        spent += trial.duration_ms
        for cost in (trial.cost_usd, trial.judge_cost_usd):
            if cost is not None:
                costs, priced = costs + cost, True
    if not trials:
        return None
    return _PastTrial(run_id, costs / trials if priced else None, spent / trials)


def cost_of_calls(spec: TargetSpec, lengths: Sequence[float], calls: int) -> float | None:
    """The cost of calls whose prompts are about that many characters; None without a price."""
    characters = mean(lengths) or 0.0
    tokens = round(characters / _CHARACTERS_PER_TOKEN * calls)
    return spec.price_of(Usage(tokens, _REPLY_TOKENS * calls))


def announcement(specs: Sequence[RunSpec], plans: Sequence[Plan]) -> str:
    """How many calls the targets of a group will get, and what they cost as far as is known.

    Empty if all answers are recorded.
    """
    calls, costs, unknown = 0, [], []
    asked = [(spec, plan) for spec, plan in zip(specs, plans, strict=True) if not _recorded(spec)]
    names = [_name(spec) for spec, _ in asked]
    for (spec, plan), name in zip(asked, names, strict=True):
        left, cost = _expected(spec, plan, name)
        calls += left
        if cost is None:
            unknown.append(name)
        else:
            costs.append(cost)
    if not asked:
        return ""
    text = f"asking {', '.join(map(repr, names))}: {count(calls, 'call')}"
    if costs:
        text += f", about {money(sum(costs))}"
    if costs and unknown:
        text += f" (without {', '.join(map(repr, unknown))}, whose price is not known)"
    return text


def _expected(spec: RunSpec, plan: Plan, target: str) -> tuple[int, float | None]:
    """How many calls a run will make, and their cost if it is known."""
    costs = suite_costs(plan, spec.settings, spec.store, target)
    trials = left = sum(suite.trials for suite in costs)
    if spec.resumed is not None:
        left = max(trials - sum(1 for _ in spec.store.finished(spec.resumed.id)), 0)
    known = [suite.cost_usd for suite in costs if suite.cost_usd is not None]
    if known and len(known) == len(costs):
        return left, sum(known) * left / max(trials, 1)
    if spec.target is not None:
        return left, None
    texts = [
        sum(len(message.text) for message in planned.case.input_messages)
        for planned in islice(plan, _SAMPLED)
    ]
    return left, cost_of_calls(_spec_of(spec), texts, left)


def _recorded(spec: RunSpec) -> bool:
    if spec.target is not None:
        return bool(getattr(spec.target, "recorded", False))
    return _spec_of(spec).recorded


def _name(spec: RunSpec) -> str:
    return spec.target.name if spec.target is not None else _spec_of(spec).label


def _spec_of(spec: RunSpec) -> TargetSpec:
    return TargetPool(spec.settings, allowed=spec.targets).spec(str(spec.options.target))
