"""`memory:`, a store that lasts as long as the process: for tests and quick experiments."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.errors import NotInStore, RunHeld, StoreError, kept_by_baseline
from assay.model.result import Outcome
from assay.model.run import RunRecord, RunStatus, SuiteHeader, TrialFacts, TrialRecord
from assay.stores.memory_cases import MemoryCaseIndex
from assay.stores.memory_labels import MemoryLabels
from assay.stores.memory_login import MemoryLoginSessions
from assay.stores.memory_test_cases import MemoryTestCases


def open_store(url: str, root: Path = Path()) -> MemoryStore:
    """A new, empty store."""
    return MemoryStore()


class MemoryStore:
    """Behaves like the persistent stores, without a disk."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._runs: dict[str, RunRecord] = {}
        #: By run, position and repeat.
        self._trials: dict[str, dict[int, dict[int, TrialRecord]]] = {}
        #: The history of each baseline; the last run is the current one.
        self._baselines: dict[str, list[str]] = {}
        self._replies: dict[str, bytes] = {}
        self._held: set[str] = set()
        self.test_cases = MemoryTestCases(self._open)
        self.case_index = MemoryCaseIndex(self._open, self.run)
        self.labels = MemoryLabels(self._open)
        self.login_sessions = MemoryLoginSessions(self._open)

    def begin(self, *runs: RunRecord) -> None:
        with self._open():
            for run in runs:
                if run.id in self._runs:
                    raise StoreError(f"a run {run.id!r} already exists")
            for run in runs:
                self._runs[run.id] = run
                self._trials[run.id] = {}

    def save(self, *trials: TrialRecord) -> Future[None]:
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()
        with self._open():
            try:
                for trial in trials:
                    self.run(trial.run_id)
            except NotInStore as error:
                future.set_exception(error)
                return future
            for trial in trials:
                known = self._trials[trial.run_id].setdefault(trial.position, {})
                if trial.repeat not in known or not known[trial.repeat].final:
                    known[trial.repeat] = trial
        future.set_result(None)
        return future

    def finish(
        self, run_id: str, status: RunStatus, finished_at: str, summary: dict[str, Any]
    ) -> None:
        with self._open():
            self._runs[run_id] = replace(
                self.run(run_id), status=status, finished_at=finished_at, summary=summary
            )

    def reopen(self, run_id: str) -> None:
        with self._open():
            self._runs[run_id] = replace(
                self.run(run_id), status="running", finished_at=None, summary=None
            )
            self.case_index.forget(run_id)

    def describe(self, run_id: str, suites: list[SuiteHeader], environment: dict[str, Any]) -> None:
        with self._open():
            self._runs[run_id] = replace(self.run(run_id), suites=suites, environment=environment)

    def run(self, run_id: str) -> RunRecord:
        with self._open():
            if run_id not in self._runs:
                raise NotInStore("run", run_id)
            return self._runs[run_id]

    def runs(self, limit: int, before: str | None = None) -> list[RunRecord]:
        with self._open():
            ids = sorted(self._runs, reverse=True)
            return [self._runs[i] for i in ids if before is None or i < before][:limit]

    def group(self, group_id: str) -> list[RunRecord]:
        with self._open():
            found = [run for _, run in sorted(self._runs.items()) if run.group == group_id]
        if not found:
            raise NotInStore("group", group_id)
        return found

    def trials(
        self,
        run_id: str,
        outcomes: Collection[Outcome] | None = None,
        positions: range | None = None,
    ) -> Iterator[TrialRecord]:
        with self._open():
            self.run(run_id)
            known = self._trials[run_id]
            # Few positions are looked up: sorting all for each case would take quadratic time.
            few = positions is not None and len(positions) < len(known)
            found = [p for p in positions or () if p in known] if few else sorted(known)
            trials = [trial for p in found for _, trial in sorted(known[p].items())]
        return (
            trial
            for trial in trials
            if (outcomes is None or trial.outcome in outcomes)
            and (positions is None or trial.position in positions)
        )

    def facts(self, run_id: str, positions: range | None = None) -> Iterator[TrialFacts]:
        names = TrialFacts.__struct_fields__
        trials = self.trials(run_id, positions=positions)
        return (TrialFacts(*(getattr(trial, name) for name in names)) for trial in trials)

    def finished(self, run_id: str) -> Iterator[tuple[int, int]]:
        return ((trial.position, trial.repeat) for trial in self.trials(run_id) if trial.final)

    def delete(self, run_id: str) -> None:
        with self._open():
            self.run(run_id)
            for name, history in sorted(self._baselines.items()):
                if run_id in (history[0], history[-1]):
                    raise kept_by_baseline(run_id, name, current=run_id == history[-1])
                history[:] = [other for other in history if other != run_id]
            del self._runs[run_id], self._trials[run_id]
            self.case_index.forget(run_id)

    @contextmanager
    def lease(self, run_id: str) -> Iterator[None]:
        with self._open():
            if run_id in self._held:
                raise RunHeld(run_id)
            self._held.add(run_id)
        try:
            yield
        finally:
            self._held.discard(run_id)

    def held(self, run_id: str) -> bool:
        with self._open():
            return run_id in self._held

    def set_baseline(self, name: str, run_id: str, *, reset_history: bool = False) -> None:
        with self._open():
            known = [] if reset_history else self._baselines.get(name, [])
            if known[-1:] != [self.run(run_id).id]:
                known = [*known, run_id]
            self._baselines[name] = known

    def move_baseline(self, name: str, run_id: str, before: str | None) -> bool:
        with self._open():
            self.run(run_id)
            if self.baselines().get(name) == before:
                self.set_baseline(name, run_id)
            return self.baselines().get(name) == run_id

    def baseline_history(self, name: str) -> list[str]:
        with self._open():
            if name not in self._baselines:
                raise NotInStore("baseline", name, self._baselines)
            return list(self._baselines[name])

    def baseline(self, name: str) -> str:
        return self.baseline_history(name)[-1]

    def baselines(self) -> dict[str, str]:
        with self._open():
            return {name: history[-1] for name, history in sorted(self._baselines.items())}

    def remove_baseline(self, name: str) -> None:
        with self._open():
            self.baseline(name)
            del self._baselines[name]

    def get(self, key: str) -> dict[str, Any] | None:
        with self._open():
            value = self._replies.get(key)
        return None if value is None else msgspec.json.decode(value, type=dict[str, Any])

    def put(self, key: str, value: dict[str, Any]) -> None:
        with self._open():
            self._replies[key] = msgspec.json.encode(value)

    keep = put

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def _open(self) -> threading.RLock:
        """The lock of the store; a StoreError when it is closed."""
        if self._closed:
            raise StoreError("the store is closed")
        return self._lock
