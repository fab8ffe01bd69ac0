"""RunTargets: the targets of a run, each looked up once, before the first case is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from assay.engine.plan import Plan, PlannedCase
from assay.engine.recorded import was_asked
from assay.engine.run_spec import RunSpec
from assay.errors import UsageError
from assay.model.case import EvalCase
from assay.model.options import TIMEOUT_SECONDS, WORKERS, RunOptions
from assay.model.run import TrialRecord
from assay.model.target import RateLimits
from assay.ports import Target
from assay.problems import MAX_PROBLEMS
from assay.settings import Settings
from assay.store_parts import Permits
from assay.targets.pool.retries import RetryingTarget, RetryPolicy
from assay.targets.pool.target_pool import TargetPool
from assay.text import count


def pool_for(
    settings: Settings,
    options: RunOptions,
    judge: Target | None = None,
    allowed: Collection[str] | None = None,
    workers: int | None = None,
    permits: Permits | None = None,
) -> TargetPool:
    """The pool of a run; a `judge` that is given as an object overrides that of the options."""
    return TargetPool(
        settings,
        judge or options.judge,
        allowed,
        policy=RetryPolicy(max_retries=options.max_retries, timeout=TIMEOUT_SECONDS),
        limits=RateLimits(
            workers=options.workers,
            requests_per_minute=options.requests_per_minute,
            tokens_per_minute=options.tokens_per_minute,
        ),
        workers=workers or WORKERS,
        seed=options.seed,
        permits=permits,
    )


class RunTargets:
    """The targets of a run, by the names that its options and cases use."""

    def __init__(self, spec: RunSpec, pool: TargetPool) -> None:
        self._spec, self._pool = spec, pool
        self._targets: dict[str | None, RetryingTarget] = {}

    def target_of(self, planned: PlannedCase) -> RetryingTarget:
        """A case's target: the option overrides the case, the case its suite and project."""
        name = None
        if self._spec.target is None:
            name = target_name(planned.case, self._spec.options, self._spec.settings)
        return self._look_up(name)

    def target_of_run(self) -> RetryingTarget:
        """The target of the run itself, which no case can change: of streams and of a group."""
        return self._look_up(self._spec.options.target)

    def target_name_of(self, index: int) -> str:
        """The name of the target of a suite's first case; empty if that has none."""
        suite = self._spec.suites[index]
        if suite.streamed:
            return self.target_of_run().name
        case = next(iter(suite.cases), None)
        if case is None or case.skip is not None:
            return ""
        return self.target_of(PlannedCase(0, index, case, 1)).name

    @property
    def known(self) -> Iterable[RetryingTarget]:
        """All targets looked up so far."""
        return self._targets.values()

    @property
    def names(self) -> list[str]:
        """The names of all targets looked up so far, sorted."""
        return sorted({target.name for target in self._targets.values()})

    @property
    def is_live(self) -> bool:
        """Is any target really called? If not, all answers are recorded ones."""
        return not all(target.recorded for target in self._targets.values())

    def unused(self, plan: Plan) -> Iterator[str]:
        """A note for each target with recorded answers that no case of the plan needs."""
        for target in self._targets.values():
            hook = getattr(target.target, "unused", None)
            if hook is not None and (lines := hook(p.case.id for p in plan)):
                yield unused_answers(target, lines)

    def unreadable(self) -> Iterator[str]:
        """A note for each target with recorded answers that cannot be read."""
        for target in self._targets.values():
            if target.recorded:
                hook = getattr(target.target, "problems", None)
                if hook is not None and (problems := hook()):
                    yield _unreadable_lines(target.name, problems)

    def remarks(self) -> Iterator[str]:
        """The targets' own notes on their answers, once all are given."""
        for target in self._targets.values():
            hook = getattr(target.target, "remarks", None)
            yield from hook() if hook is not None else ()

    def faults(self, plan: Plan, trials: Callable[[], Iterator[TrialRecord]]) -> Iterator[str]:
        """Mistakes in the settings of targets, which only all answers together reveal."""
        for target in self._targets.values():
            hook = getattr(target.target, "faults", None)
            if hook is not None:
                own = (t for t in trials() if self.target_of(plan.at(t.position)) is target)
                decoded = (msgspec.json.decode(t.observation) for t in own if was_asked(t))
                answers = (answer for answer in decoded if "error" not in answer)
                yield from (f"{target.name}: {fault}" for fault in hook(answers))

    def _look_up(self, name: str | None) -> RetryingTarget:
        if name not in self._targets:
            given = self._spec.target
            self._targets[name] = (
                self._pool.adopt(given) if given is not None else self._pool.target(str(name))
            )
        return self._targets[name]


def target_name(case: EvalCase, options: RunOptions, settings: Settings) -> str:
    """The name of a case's target: the option overrides the case, the case the project."""
    return options.target or case.target or only_target(settings)


def only_target(settings: Settings) -> str:
    """The name of the configured target, if there is no other; raises UsageError otherwise."""
    names = settings.target_names
    if len(names) == 1:
        return names[0]
    known = ", ".join(names)
    hint = f"known: {known}" if known else "for example python:my_agent:answer"
    problem = "no target is named: give --target, or target= in Python"
    advice = "" if known else ", or list one under 'targets' in assay.yaml"
    raise UsageError(f"{problem} ({hint}){advice}")


def _unreadable_lines(target: str, problems: Sequence[str]) -> str:
    more = "more than " if len(problems) > MAX_PROBLEMS else ""
    lines = count(min(len(problems), MAX_PROBLEMS), "line")
    return f"{target}: {more}{lines} cannot be read; the first: {problems[0]}"


def unused_answers(target: RetryingTarget, number: int) -> str:
    noun = getattr(target.target, "counted", "line")
    have = count(number, f"{noun} has", f"{noun}s have")
    return f"{target.name}: {have} an id that no selected case has"
