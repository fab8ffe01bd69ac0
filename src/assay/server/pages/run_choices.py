"""The runs that can be picked to be compared, and those that are compared by default."""

from __future__ import annotations

from datetime import datetime

import msgspec

from assay.model.run import RunRecord, short_id
from assay.ports import Store
from assay.service.compared_runs import ComparedRuns
from assay.text import percent

#: How many of the latest runs can be picked.
PICKED = 50


class Choice(msgspec.Struct, frozen=True):
    """A run that can be picked."""

    value: str
    label: str
    selected: bool


def default_pair(store: Store, base: str, candidate: str) -> tuple[str, str]:
    """The newest finished run and its baseline, or else the run before it."""
    finished = [run for run in store.runs(PICKED) if run.status == "finished"]
    if not candidate and finished:
        candidate = finished[0].id
    if not base:
        names = {run_id: name for name, run_id in store.baselines().items()}
        newest = next((run for run in finished if run.id == candidate), None)
        known = {run.id for run in finished}
        before = None if newest is None else newest.verdict.baseline
        if before is not None and before in known:
            return names.get(before, before), candidate
        base = next((names.get(run.id, run.id) for run in finished if run.id != candidate), "")
    return base, candidate


def choices_of(store: Store, found: ComparedRuns) -> list[tuple[str, str, list[Choice]]]:
    """The runs that can be picked as base and as candidate."""
    baselines = store.baselines()
    names = {run_id: name for name, run_id in baselines.items()}
    runs = {run.id: run for run in (*store.runs(PICKED), found.base, found.candidate)}
    picked = []
    for label, field, asked, run in (
        ("Base", "base", found.asked[0], found.base),
        ("Candidate", "candidate", found.asked[1], found.candidate),
    ):
        chosen = asked if asked in baselines else run.id
        choices = [Choice(name, f"{name} (baseline)", name == chosen) for name in baselines]
        choices += [
            Choice(run_id, _described(runs[run_id], names), run_id == chosen)
            for run_id in sorted(runs, reverse=True)
            if runs[run_id].status != "running"
        ]
        picked.append((label, field, choices))
    return picked


def _described(run: RunRecord, names: dict[str, str]) -> str:
    """A run in a line: when, of which target, its pass rate."""
    summary = run.summary or {}
    passed = summary.get("passed", 0)
    judged = passed + summary.get("failed", 0)
    rate = f"{percent(passed / judged)} of {judged:,}" if judged else "no case judged"
    try:
        started = datetime.fromisoformat(run.started_at).strftime("%-d %b %H:%M")
    except ValueError:
        started = run.started_at
    parts = [short_id(run.id), started, run.target, rate, names.get(run.id, "")]
    return ", ".join(filter(None, parts))
