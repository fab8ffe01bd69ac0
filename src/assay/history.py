"""The verbs of recorded runs: find, show, compare, name, export and remove them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

from assay import registry
from assay.comparing import Rules
from assay.comparing import compare as compared
from assay.errors import UsageError
from assay.model.comparison import Comparison
from assay.model.options import Gate
from assay.model.run import RunRecord
from assay.model.run_result import RunResult
from assay.outcomes import Source, check_name, find_run, in_file, names_file, outcomes_of
from assay.ports import Store
from assay.service import project, working_directory
from assay.settings import Settings


def open_store(settings: Settings, url: str | None = None) -> Store:
    """The store of the project, or of a URL; the caller closes it."""
    url = url or settings.config.store
    scheme, colon, _ = url.partition(":")
    if not colon:
        raise UsageError(f"{url!r} is no URL of a store, such as 'sqlite:.assay/assay.db'")
    return registry.stores.get(scheme)(url, settings.root)


def compare(
    base: str | os.PathLike[str] | RunResult,
    candidate: str | os.PathLike[str] | RunResult,
    *,
    gate: Gate = "regression",
    margin: float = 0.02,
    strict: bool = False,
) -> Comparison:
    """Two runs case by case: what changed, whether that is chance, and whether the gate fails.

    A run is a result of `run`, an id or the start of one, the name of a baseline, `latest`, or
    a file of results. docs/compare.md explains the words.
    """
    rules = Rules(gate, margin, strict).checked()
    with ExitStack() as stack:
        one, other = _sources((base, candidate), stack)
        names = (one.name, other.name)
        return compared(one, other, rules, names=names, notes=(*one.notes, *other.notes))


def _sources(runs: Iterable[str | os.PathLike[str] | RunResult], stack: ExitStack) -> list[Source]:
    """Where to read the runs; the store is opened once, and only when one of them is in it."""
    store: Store | None = None
    found = []
    for run in runs:
        path = None if isinstance(run, str) or not isinstance(run, os.PathLike) else Path(run)
        reference = run if isinstance(run, str) else str(getattr(run, "id", ""))
        if path is None and names_file(reference):
            path = Path(reference)
        if path is not None:
            found.append(in_file(path))
            continue
        store = store or stack.enter_context(_project_store())
        found.append(outcomes_of(reference, store, working_directory()))
    return found


def set_baseline(name: str, run: str = "latest") -> RunRecord:
    """Call a run by a name, to compare others with it; the name leaves the run that had it."""
    check_name(name)
    with _project_store() as store:
        found = find_run(run, store)
        store.set_baseline(name, found.id)
        return found


def baselines() -> dict[str, RunRecord]:
    """The runs that have a name, by their names in order."""
    with _project_store() as store:
        return {name: store.run(run_id) for name, run_id in store.baselines().items()}


def baseline(name: str) -> RunRecord:
    """The run with this name."""
    with _project_store() as store:
        return store.run(store.baseline(name))


def remove_baseline(name: str) -> None:
    """Forget the name; the run stays."""
    with _project_store() as store:
        store.remove_baseline(name)


def _project_store(url: str | None = None) -> closing[Store]:
    """The store of the project, closed at the end of the block."""
    return closing(open_store(project(), url))
