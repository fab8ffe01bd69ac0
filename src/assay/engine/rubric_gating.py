"""Rubric cases are asked only when the deterministic cases of their tool have passed."""

from __future__ import annotations

from assay.engine.plan import Plan
from assay.model.comparison import Reasks
from assay.model.run import place_of
from assay.model.trials import by_case, outcome_of, repeats_of
from assay.ports import Store
from assay.text import count

DETERMINISTIC = ("golden", "labeled", "regression")


def rubric_skip_reasons(plan: Plan, store: Store, run_id: str) -> dict[str, str]:
    """Why the rubric cases of a tool are skipped, by tool; tools whose cases may run are absent.

    A case that passed when it was asked again counts as passed here: a flaky case must not keep
    the rubric cases from being judged.
    """
    suites = plan.suites
    with_rubrics = {suite.tool_name for suite in suites if suite.tier == "rubric"}
    tools = {
        index: suite.tool_name
        for index, suite in enumerate(suites)
        if suite.tier in DETERMINISTIC and suite.tool_name in with_rubrics and plan.selected[index]
    }
    if not tools:
        return {}
    unpassed: dict[str, int] = {}
    for trials in by_case(store.facts(run_id)):
        tool = tools.get(place_of(trials[0].position)[0])
        if tool is None or outcome_of(repeats_of(trials)) not in ("failed", "errored"):
            continue
        reasks = Reasks.of(trial.outcome for trial in trials if trial.confirms)
        if not reasks.excuse(critical=trials[0].critical):
            unpassed[tool] = unpassed.get(tool, 0) + 1
    return {tool: _reason(tool, count) for tool, count in unpassed.items()}


def ungated_rubrics(plan: Plan) -> list[int]:
    """The rubric suites whose tool has no deterministic case in this run."""
    gated = {
        suite.tool_name
        for suite, selected in zip(plan.suites, plan.selected, strict=True)
        if suite.tier in DETERMINISTIC and selected
    }
    return [
        index
        for index, suite in enumerate(plan.suites)
        if suite.tier == "rubric" and suite.tool_name not in gated
    ]


def _reason(tool: str, failed: int) -> str:
    return f"{count(failed, 'deterministic case')} of {tool} did not pass"
