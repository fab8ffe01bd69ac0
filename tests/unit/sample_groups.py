"""Groups in a store: a letter for the outcome of each case of each target makes one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from assay.model.case_content import CaseContent
from assay.model.group_result import GroupResult
from assay.model.json_encoding import as_json
from assay.model.run import RunRecord, SuiteHeader, TrialRecord
from assay.ports import Store
from assay.results.run import conclude, recorded_summary, result_of
from assay.service.groups import group_result
from assay.service.history import options_of_run
from assay.stores.memory import MemoryStore
from assay.testing.stores import make_run, make_trial, saved
from unit.case_outcomes import OUTCOMES, SUITE
from unit.sample_runs import entry

GROUP = "01938c4e-0000-7000-8000-0000000000aa"
#: The outcomes of three targets: `gpt` passes all of 12 cases, `claude` all but one, `mini` few.
TARGETS = {"gpt": "P" * 12, "claude": "P" * 11 + "F", "mini": "P" + "F" * 11}
NOTHING: Mapping[str, Any] = {}


def run_id(place: int, group: str = GROUP) -> str:
    """The id of a run of a group."""
    return f"{group[:-2]}{int(group[-2:], 16) + 1 + place:02x}"


def fill_group(
    store: Store,
    targets: Mapping[str, str | Sequence[str]] = TARGETS,
    *,
    group: str = GROUP,
    case_ids: Sequence[str] = (),
    **more: Any,
) -> list[RunRecord]:
    """A finished run for each target: a letter, or several for repeats, for each case."""
    return [
        _add_run(store, run_id(place, group), group, target, list(letters), case_ids, more)
        for place, (target, letters) in enumerate(targets.items())
    ]


def _add_run(
    store: Store,
    name: str,
    group: str,
    target: str,
    letters: list[str],
    case_ids: Sequence[str],
    more: Mapping[str, Any],
) -> RunRecord:
    header = SuiteHeader("weather", SUITE, selected=len(letters), cases=len(letters))
    begun = replace(make_run(name), target=target, group=group, suites=[header])
    store.begin(begun)
    ids = case_ids or [f"case-{place}" for place in range(len(letters))]
    made = [
        trial(name, place, repeat, ids[place], letter, target, more)
        for place, repeats in enumerate(letters)
        for repeat, letter in enumerate(repeats)
    ]
    saved(store, *made)
    ended = replace(begun, status="finished", finished_at="2026-01-31T12:01:00Z")
    result = conclude(result_of(store, ended), options_of_run(ended))
    store.finish(name, "finished", "2026-01-31T12:01:00Z", recorded_summary(result))
    return store.run(name)


def trial(
    name: str,
    place: int,
    repeat: int,
    case_id: str,
    letter: str,
    target: str,
    more: Mapping[str, Any] = NOTHING,
) -> TrialRecord:
    """An attempt of a target at a case, with a question, an answer, and why it failed."""
    outcome = OUTCOMES[letter]
    failures = () if outcome == "passed" else (f"contains: expected ice, got sun from {target}",)
    said = entry(case_id, outcome, *failures)
    content = CaseContent(input=[{"role": "user", "content": f"What about {case_id}?"}])
    return make_trial(
        place,
        repeat,
        name,
        suite=SUITE,
        case_id=case_id,
        outcome=outcome,
        score={"P": 1.0, "F": 0.0}.get(letter),
        result=json.dumps(said).encode(),
        observation=json.dumps({"response": f"{target} says {case_id}"}).encode(),
        content=as_json(content),
        duration_ms=100.0 * (1 + place),
        **more,
    )


def sample_group(targets: Mapping[str, str | Sequence[str]] = TARGETS, **more: Any) -> GroupResult:
    """The result of a group in memory."""
    store = MemoryStore()
    records = fill_group(store, targets, **more)
    runs = [conclude(result_of(store, each), options_of_run(each)) for each in records]
    return group_result(GROUP, runs, store)
