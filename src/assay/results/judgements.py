"""The verdicts of a run's judges on each answer, read from its stored results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from assay.model.calibration import Calibration
from assay.model.comparison import CaseRef
from assay.model.result import JUDGED, decode_trial
from assay.model.run import RunRecord, place_of
from assay.ports import Store
from assay.results.calibrations import statistics_of


class Judgement(NamedTuple):
    """Whether a judge passed the first answer to a case; `position` is that of the case."""

    ref: CaseRef
    position: int
    judge_id: str
    evaluator: str
    passed: bool


def judgements(store: Store, run_id: str) -> Iterator[Judgement]:
    """Every verdict of a judge on the first attempt at a case."""
    for trial in store.trials(run_id, JUDGED):
        if trial.repeat or trial.confirms:
            continue
        for found in decode_trial(trial.result).details.evaluators:
            judge_id = found.details.get("judgeId")  # a plugin's evaluator may write anything here
            if isinstance(judge_id, str) and judge_id and found.verdict is not None:
                ref = CaseRef(trial.suite, trial.case_id)
                passed = found.verdict == "pass" and not found.failed_gate
                yield Judgement(ref, trial.position, judge_id, found.name, passed)


class JudgeStatistics:
    """How often each judge of a run passed an answer, by suite and in total."""

    def __init__(self, store: Store, record: RunRecord, known: Sequence[Calibration]) -> None:
        self._uses, self._known = record.judges, known
        self._counts: dict[tuple[int, str, str], list[int]] = {}
        for found in judgements(store, record.id) if self._uses else ():
            key = (place_of(found.position)[0], found.judge_id, found.evaluator)
            count = self._counts.setdefault(key, [0, 0])
            count[0] += found.passed
            count[1] += 1

    def of(self, suite: int | None = None) -> dict[str, Any]:
        """The judges' part of the statistics of a suite, or of the run; empty without judges."""
        listed = []
        for use in self._uses:
            counts = [
                count
                for (place, judge_id, name), count in self._counts.items()
                if (judge_id, name) == (use.id, use.evaluator) and suite in (None, place)
            ]
            judged = sum(count[1] for count in counts)
            if judged or suite is None:
                passed = sum(count[0] for count in counts)
                listed.append(statistics_of(use, passed, judged, self._known))
        return {"judges": listed} if listed else {}
