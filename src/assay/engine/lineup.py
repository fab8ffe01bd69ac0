"""Lineup: the targets of a run, each looked up once, before the first question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from assay.engine.job import Job
from assay.engine.plan import Plan, Planned
from assay.engine.recorded import was_asked
from assay.errors import MAX_PROBLEMS, UsageError
from assay.model.run import TrialRecord
from assay.roster.retries import Retrying
from assay.roster.targets import Roster


class Lineup:
    """The targets of a job, by the names that its options and cases call them."""

    def __init__(self, job: Job, roster: Roster) -> None:
        self._job, self._roster = job, roster
        self._targets: dict[str | None, Retrying] = {}

    def of(self, planned: Planned) -> Retrying:
        """Who is asked: the flag wins over the case, the case over its suite and the project."""
        name = None
        if self._job.target is None:
            name = self._job.options.target or planned.case.target or self._only()
        return self._named(name)

    def of_streams(self) -> Retrying:
        """Whose recorded answers belong to the suites that are read as a stream."""
        return self._named(self._job.options.target)

    def of_suite(self, index: int) -> str:
        """The name of the target of a suite's first case; empty when none is asked."""
        suite = self._job.suites[index]
        if suite.streamed:
            return self.of_streams().name
        case = next(iter(suite.cases), None)
        if case is None or case.skip is not None:
            return ""
        return self.of(Planned(0, index, case, 1)).name

    @property
    def names(self) -> list[str]:
        """All targets that were looked up so far."""
        return sorted({target.name for target in self._targets.values()})

    @property
    def live(self) -> bool:
        """Is anybody really asked? Else all answers were recorded before."""
        return not all(target.recorded for target in self._targets.values())

    def unused(self, plan: Plan) -> Iterator[str]:
        """What targets say about answers of theirs that no case of the plan needs."""
        for target in self._targets.values():
            hook = getattr(target.target, "unused", None)
            if hook is not None and (lines := hook(p.case.id for p in plan)):
                yield unused_lines(target.name, lines)

    def broken(self) -> Iterator[str]:
        """What recorded answers cannot be read, of each target in one sentence."""
        for target in self._targets.values():
            if target.recorded:
                hook = getattr(target.target, "problems", None)
                if hook is not None and (problems := hook()):
                    yield broken_lines(target.name, problems)

    def remarks(self) -> Iterator[str]:
        """What targets have to say about their answers once all are given."""
        for target in self._targets.values():
            hook = getattr(target.target, "remarks", None)
            yield from hook() if hook is not None else ()

    def faults(self, plan: Plan, trials: Callable[[], Iterator[TrialRecord]]) -> Iterator[str]:
        """What all answers together show to be wrong with the settings of a target."""
        for target in self._targets.values():
            hook = getattr(target.target, "faults", None)
            if hook is not None:
                own = (t for t in trials() if self.of(plan.at(t.position)) is target)
                kept = (msgspec.json.decode(t.observation) for t in own if was_asked(t))
                answers = (answer for answer in kept if "error" not in answer)
                yield from (f"{target.name}: {fault}" for fault in hook(answers))

    def _named(self, name: str | None) -> Retrying:
        if name not in self._targets:
            known = self._job.target
            self._targets[name] = (
                self._roster.adopt(known) if known is not None else self._roster.target(str(name))
            )
        return self._targets[name]

    def _only(self) -> str:
        targets = self._job.settings.config.targets
        if len(targets) == 1:
            return targets[0].name
        known = ", ".join(target.name for target in targets)
        hint = f"known: {known}" if known else "for example python:my_agent:answer"
        told = "no target is named: give --target, or target= in Python"
        listed = "" if known else ", or list one under 'targets' in assay.yaml"
        raise UsageError(f"{told} ({hint}){listed}")


def broken_lines(target: str, problems: Sequence[str]) -> str:
    count = f"{len(problems):,}" if len(problems) <= MAX_PROBLEMS else f"more than {MAX_PROBLEMS:,}"
    noun = "line" if len(problems) == 1 else "lines"
    return f"{target}: {count} {noun} cannot be read; the first: {problems[0]}"


def unused_lines(target: str, lines: int) -> str:
    noun = "line has" if lines == 1 else "lines have"
    return f"{target}: {lines:,} {noun} an id that no selected case has"
