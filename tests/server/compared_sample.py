"""Two runs of a store in memory that differ in every way that a comparison knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from assay.model.case_content import CaseContent
from assay.model.json_encoding import as_json
from assay.model.result import Outcome
from assay.model.run import SuiteHeader, TrialRecord
from assay.ports import Store
from assay.testing.stores import make_run, make_trial, saved
from unit.sample_runs import entry, trajectory

Outcomes = Mapping[str, tuple[Outcome | None, Outcome | None]]
SUITE = "evals/weather.eval.yaml"
BASE, CANDIDATE = "01938c4e-0000-7000-8000-00000000000a", "01938c4e-0000-7000-8000-00000000000b"
#: The outcomes of both runs by the id of the case; a run without an outcome does not have it.
OUTCOMES: Outcomes = {
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


def add_run(
    store: Store, run_id: str, outcomes: Mapping[str, Outcome | None], *, is_later: bool = False
) -> None:
    """A finished run; later ones answer otherwise, and ask something else of edited cases."""
    header = SuiteHeader("weather", SUITE, cases=len(outcomes))
    store.begin(replace(make_run(run_id), suites=[header]))
    answer = "Yes: ice, until night." if is_later else "Yes: ice, until noon."
    made = [
        trial(
            run_id,
            position,
            case_id,
            outcome,
            f"{answer} {case_id}",
            call="get_alerts" if outcome == "passed" else "get_weather",
            question="What is it now?" if is_later and "edited" in case_id else "",
            comparability=f"k{is_later and 'edited' in case_id}",
        )
        for position, (case_id, outcome) in enumerate(outcomes.items())
        if outcome is not None
    ]
    saved(store, *made)
    counts = {name: sum(t.outcome == name for t in made) for name in ("passed", "failed")}
    store.finish(run_id, "finished", "2026-01-31T12:01:00Z", counts | {"verdict": {}})


def fill(store: Store, outcomes: Outcomes) -> None:
    """Two finished runs with these outcomes; the first is the baseline `main`."""
    for is_later, run_id in ((False, BASE), (True, CANDIDATE)):
        side = {case_id: both[is_later] for case_id, both in outcomes.items()}
        add_run(store, run_id, side, is_later=is_later)
    store.set_baseline("main", BASE)
