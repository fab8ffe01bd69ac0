"""Comparisons of recorded runs with their tables, and as runs for reports."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.comparison.gate import GateRules
from assay.comparison.outcomes import Outcomes, find_run, outcomes_of, stored
from assay.comparison.tables import tables
from assay.model.comparison import Comparison
from assay.model.comparison_tables import ComparisonTables
from assay.model.run import RunRecord
from assay.ports import Store
from assay.results import calibrations
from assay.results.run import result_of
from assay.service.cases import case_rows
from assay.service.history import compare_stored
from assay.service.project import project, working_directory
from assay.service.result import Run
from assay.service.store import store_to_read
from assay.version import __version__


def compare_with_tables(base: str, candidate: str, store: Store, rules: GateRules) -> bytes:
    """The JSON of a comparison of two runs of a store, with its `tables`."""
    one, other = find_run(base, store), find_run(candidate, store)
    before, after = stored(one, store, base), stored(other, store, candidate)
    key = _key(before, store, rules)
    finished = one.status == other.status == "finished"
    if finished and (kept := store.case_index.comparison(one.id, other.id, key)) is not None:
        return kept
    found: dict[str, Any] = compare_stored(before, after, store, rules).to_dict()
    found["tables"] = comparison_tables(one, other, store)
    encoded = msgspec.json.encode(found)
    if finished:
        store.case_index.keep_comparison(one.id, other.id, key, encoded)
    return encoded


def compared_run(
    found: Comparison, base: str, candidate: str, *, margin: float, store: str | None = None
) -> Run:
    """The candidate of a comparison with the verdict of that, for reports."""
    settings = project()
    opened = store_to_read(settings, store)
    try:
        record = find_run(candidate, opened)
        # Reports name the base as it was given, and draw the margin.
        given = {"baseline": base, "margin": margin}
        record = replace(record, options=record.options | given)
        known = calibrations.read(settings.root)
        result = result_of(opened, record, comparison=found, calibrations=known)
        reasons = (*found.gate_failures, *found.undecided)
        result = replace(result, exit_code=found.exit_code, reasons=reasons)
        return Run.of(result, opened, outcomes_of(base, opened, working_directory()))
    except BaseException:
        opened.close()
        raise


def comparison_tables(base: RunRecord, candidate: RunRecord, store: Store) -> ComparisonTables:
    """The pairs of two runs, by suite and by tag."""
    rows = case_rows(store, candidate)
    return tables(stored(base, store), stored(candidate, store), (row.tags for row in rows))


def _key(base: Outcomes, store: Store, rules: GateRules) -> str:
    """A hash of all that a comparison depends on, besides the runs.

    A baseline is also compared with its first run. Accepted losses may expire.
    """
    history = store.baseline_history(base.baseline)[:1] if base.baseline else []
    today = str(rules.today) if rules.accepted else ""
    accepted = [entry.model_dump_json() for entry in rules.accepted]
    gate = (rules.gate, rules.margin, rules.strict)
    parts = [__version__, base.baseline, history, gate, accepted, today]
    return blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
