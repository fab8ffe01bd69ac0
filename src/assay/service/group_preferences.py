"""The step after a run of several targets: a judge compares their answers, if configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from assay.engine.cancellation import Cancellation
from assay.engine.plan import Plan
from assay.engine.run_targets import pool_for
from assay.errors import UsageError
from assay.model.events import Notice
from assay.model.group_result import GroupResult
from assay.model.preference import Preference, PreferenceSettings
from assay.ports import Store, Target
from assay.service.answer_pairs import AnsweredRun
from assay.service.options import options_of
from assay.service.preferences import NO_CRITERIA, PreferenceRequest, preference_of
from assay.service.runs import RunRequest, as_target
from assay.settings import Settings
from assay.text import count

#: The options of a run that are also about the judge of preferences.
_OPTIONS = (
    *("cache", "workers", "max_retries", "timeout_seconds"),
    *("requests_per_minute", "tokens_per_minute", "budget_usd"),
)


class PreferenceStep(msgspec.Struct, frozen=True):
    """What the configuration says about the step, and the options of the runs before it."""

    configured: PreferenceSettings
    settings: Settings
    request: RunRequest
    options: dict[str, Any]

    @classmethod
    def of(
        cls, settings: Settings, request: RunRequest, given: Mapping[str, Any]
    ) -> PreferenceStep | None:
        """The step, unless it is not configured or left out."""
        configured = settings.config.preference
        wanted = {name: given[name] for name in ("preference",) if name in given}
        if configured is None:
            if wanted.get("preference"):
                raise UsageError(NO_CRITERIA)
            return None
        if not options_of(wanted, settings).preference:
            return None
        options = {name: given[name] for name in _OPTIONS if name in given}
        if configured.judge is not None:
            options["judge"] = configured.judge
        elif "judge" in given:
            options["judge"] = given["judge"]
        return cls(configured, settings, request, options)

    @property
    def judge(self) -> Target | None:
        """The judge, if a caller in Python gave one and the configuration has no other."""
        given = None if "judge" in self.options else self.request.judge
        return None if given is None or isinstance(given, str) else as_target(given)

    async def judge_name(self) -> str:
        """The name of the judge; raises UsageError if there is none."""
        options = options_of(dict(self.options), self.settings)
        async with pool_for(self.settings, options, self.judge) as pool:
            return pool.judge_of_preferences().name

    @staticmethod
    def announcement(name: str, plans: Sequence[Plan]) -> str:
        """How many calls the judge of this name will get at most."""
        cases = sum(planned.case.skip is None for planned in plans[0])
        calls = len(plans) * (len(plans) - 1) * cases
        return f"then the judge {name!r} compares the answers: at most {count(calls, 'call')}"

    async def preference(self, group: GroupResult, store: Store) -> Preference | None:
        """What the judge prefers; None if the answers are not compared, which a notice explains."""
        hooks = self.request.hooks
        if len(group.runs) < 2:
            return None
        if any(run.record.status != "finished" for run in group.runs):
            hooks.listen(Notice("the answers are not compared, as not all runs are finished"))
            return None
        runs = [AnsweredRun(run.target, run.record, store) for run in group.runs]
        cancellation = hooks.cancellation or Cancellation()
        request = PreferenceRequest(
            self.configured.criteria,
            options=self.options,
            listen=hooks.listen,
            spent_usd=_spent(group),
            stop=lambda: cancellation.requests > 0,
        )
        with cancellation.observed(cancellation.requests + 1):
            try:
                return await preference_of(runs, request, self.judge)
            except UsageError as error:  # the judge is known, so there is nothing to compare
                hooks.listen(Notice(f"the answers are not compared: {error}"))
                return None


def _spent(group: GroupResult) -> float:
    """What the targets and the judges of the runs have cost, as far as it is known."""
    targets = group.comparison.targets
    return sum((each.cost_usd or 0.0) + (each.judge_cost_usd or 0.0) for each in targets)
