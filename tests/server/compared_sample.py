"""Two runs of a store in memory that differ in every way that a comparison knows."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from assay.model.case_content import CaseContent
from assay.model.json_encoding import as_json
from assay.model.result import Outcome
from assay.model.run import SuiteHeader, TrialRecord
from assay.ports import Store
from assay.testing.stores import make_run, make_trial, saved
from unit.sample_runs import entry, trajectory

SUITE = "evals/weather.eval.yaml"
BASE, CANDIDATE = "01938c4e-0000-7000-8000-00000000000a", "01938c4e-0000-7000-8000-00000000000b"
#: The outcomes of both runs by the id of the case; a run without an outcome does not have it.
OUTCOMES: dict[str, tuple[Outcome | None, Outcome | None]] = {
    "stays": ("passed", "passed"),
    "lost": ("passed", "failed"),
    "gained": ("failed", "passed"),
    "bad": ("failed", "failed"),
    "edited": ("passed", "failed"),
    "broken": ("passed", "errored"),
    "new": (None, "passed"),
    "gone": ("passed", None),
}


def trial(
    run_id: str,
    position: int,
    case_id: str,
    outcome: Outcome,
    answer: str,
    *,
    call: str = "",
    question: str = "",
    comparability: str = "k",
) -> TrialRecord:
    """A trial that answered; one that failed missed what a trajectory expects."""
    checks: dict[str, Any] = {"hits": ["call 1 is get_alerts()"]}
    if outcome == "failed":
        checks = {"misses": [f"call 1 is {call}(), expected get_alerts()"]}
    said = trajectory() | {"verdict": "pass" if outcome == "passed" else "fail"} | checks
    result = entry(case_id, outcome, evaluators=[said])
    seen: dict[str, Any] = {"response": answer}
    if call:
        seen["toolCalls"] = [{"name": call, "params": {"city": "Oslo"}, "result": "ice"}]
    messages = [{"role": "user", "content": question or f"What about {case_id}?"}]
    content = as_json(CaseContent(input=messages, tags=["alerts"]))
    return make_trial(
        position,
        run_id=run_id,
        suite=SUITE,
        case_id=case_id,
        outcome=outcome,
        score=float(outcome == "passed"),
        result=json.dumps(result).encode(),
        observation=json.dumps(seen).encode(),
        content=content,
        comparability=comparability,
    )


def fill(store: Store, outcomes: dict[str, tuple[Outcome | None, Outcome | None]]) -> None:
    """Two finished runs with these outcomes; the first is the baseline `main`."""
    for side, run_id in enumerate((BASE, CANDIDATE)):
        header = SuiteHeader("weather", SUITE, cases=len(outcomes))
        store.begin(replace(make_run(run_id), suites=[header]))
        made = []
        for position, (case_id, both) in enumerate(outcomes.items()):
            if (outcome := both[side]) is None:
                continue
            edited = "edited" in case_id and side == 1
            made.append(
                trial(
                    run_id,
                    position,
                    case_id,
                    outcome,
                    f"{('Yes: ice, until noon.', 'Yes: ice, until night.')[side]} {case_id}",
                    call="get_alerts" if outcome == "passed" else "get_weather",
                    question="What is it now?" if edited else "",
                    comparability=f"k{edited}",
                )
            )
        saved(store, *made)
        counts = [sum(each.outcome == name for each in made) for name in ("passed", "failed")]
        summary = {"passed": counts[0], "failed": counts[1], "verdict": {}}
        store.finish(run_id, "finished", "2026-01-31T12:01:00Z", summary)
    store.set_baseline("main", BASE)
