"""The answers of an earlier run as a target, for grading again without asking a target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from assay.errors import TargetError
from assay.model.case import EvalCase
from assay.model.observation import Observation
from assay.model.run import RunRecord, TrialRecord, only
from assay.observations.reading import read_json
from assay.ports import Request, Store
from assay.redaction import MARK
from assay.text import count


class StoredAnswers:
    """The observations of a stored run, by case and repeat."""

    #: Nothing is called, so there is no time to measure.
    recorded = True

    def __init__(self, run: RunRecord, store: Store) -> None:
        self.name = run.target
        self.identity = f"run:{run.id}"
        self._run, self._store = run.id, store
        self._is_complete = run.status == "finished"
        self._positions: dict[tuple[str, str], int] = {
            (trial.suite, trial.case_id): trial.position for trial in store.facts(run.id)
        }
        #: How many observations had secrets removed, and so are not the original text.
        self.redacted = 0

    def has(self, suite: str, case: EvalCase) -> bool:
        """Was the case in the run? `suite` is the file of its suite."""
        return (suite, case.id) in self._positions

    async def ask(self, request: Request) -> Observation:
        if request.case is None:
            raise TargetError("only answers to cases are recorded, and this request has no case")
        position = self._positions.get((request.suite, request.case.id))
        if position is None:
            raise TargetError(f"the run {self._run} has no such case")
        for trial in self._store.trials(self._run, positions=only(position)):
            if trial.repeat == request.repeat and not trial.confirms:
                return self._read(trial)
        raise TargetError(f"the run {self._run} has no repeat {request.repeat + 1} of the case")

    async def close(self) -> None:
        pass

    def remarks(self) -> Iterator[str]:
        """Notes on the answers, once all are given."""
        yield f"the observations are those of the run {self._run}; no target was asked"
        if not self._is_complete:
            yield f"the run {self._run} did not finish: cases that it did not reach are left out"
        if self.redacted:
            graded = count(self.redacted, "observation was", "observations were")
            reason = "secrets were removed before it was recorded"
            yield f"{graded} graded as redacted text: {reason}"

    def _read(self, trial: TrialRecord) -> Observation:
        if not was_asked(trial):
            raise TargetError("the case was not asked in that run")
        if MARK.encode() in trial.observation:
            self.redacted += 1
        return read_json(trial.observation)


def was_asked(trial: TrialRecord) -> bool:
    """Does the trial have an observation? Not if the run gave up, or the case was skipped."""
    if trial.outcome == "skipped":
        record: dict[str, Any] = msgspec.json.decode(trial.observation)
        return record != {"id": trial.case_id, "response": ""}
    return trial.final
