"""The verbs of `assay calibrate`: choose answers to label, and compare labels with a judge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from assay.comparison.outcomes import find_run
from assay.errors import AssayError, UsageError
from assay.judges import calibrations, labels
from assay.judges.judgements import Judgement, judgements, uses_of
from assay.judges.labels import Label
from assay.model.calibration import Calibration, JudgeUse
from assay.model.comparison import CaseRef
from assay.model.names import normal_name, same_name
from assay.model.run import RunRecord, only
from assay.ports import Store
from assay.service import eval_files
from assay.service.project import project
from assay.service.store import store_to_read
from assay.settings import Settings, shown_path
from assay.stats.calibration import (
    Confusion,
    agreement,
    corrected_rate,
    kappa,
    majority_baseline,
    sensitivity,
    specificity,
)
from assay.stats.estimates import Estimate
from assay.stats.proportions import wilson


class Answer(msgspec.Struct, frozen=True):
    """An answer to label, as a person sees it: without the verdict of the judge."""

    ref: CaseRef
    description: str
    question: str
    answer: str


class Calibrated(msgspec.Struct, frozen=True):
    """A judge compared with labels. It passed `passed` of the `judged` answers of the run.

    `unknown` is the number of labels for answers that it did not judge in the run.
    """

    run_id: str
    judge: JudgeUse
    table: Confusion
    passed: int
    judged: int
    unknown: int
    file: str

    @property
    def estimates(self) -> dict[str, Estimate | None]:
        """All measures, by their keys in JSON."""
        table = self.table
        return {
            "agreement": agreement(table),
            "kappa": kappa(table),
            "sensitivity": sensitivity(table),
            "specificity": specificity(table),
            "passRate": wilson(self.passed, self.judged),
            "corrected": corrected_rate(self.passed, self.judged, table),
        }

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `assay calibrate --json`."""
        found = {name: e and e.to_dict() for name, e in self.estimates.items()}
        return {
            "runId": self.run_id,
            "judge": self.judge.to_dict(),
            "labels": self.table.n,
            "unknownLabels": self.unknown,
            "table": self.table.to_dict(),
            "majorityBaseline": majority_baseline(self.table),
            **found,
        }


class Desk:
    """Calibrates a judge of a run with a file of labels."""

    def __init__(
        self,
        file: str | os.PathLike[str],
        run: str = "latest",
        evaluator: str | None = None,
        *,
        store: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings, self._file, self._now = project(), Path(file), now
        labels.check_file(self._file)
        self._url = store
        with closing(self._store()) as opened:
            self.record = find_run(run, opened)
            self.judge = _select_judge(self.record, evaluator)
            self._verdicts: dict[CaseRef, Judgement] = {
                found.ref: found
                for found in judgements(opened, self.record.id)
                if (found.judge_id, found.evaluator) == (self.judge.id, self.judge.evaluator)
            }

    def unlabelled(self, size: int, seed: int = 0) -> list[Answer]:
        """The answers of a random sample that have no label yet; the seed determines the sample."""
        refs = sorted(self._verdicts)
        sample = Random(seed).sample(refs, min(size, len(refs)))
        known, _ = _match(labels.read(self._file), self._verdicts, self._file)
        missing = [ref for ref in sample if ref not in known]
        with closing(self._store()) as opened:
            return _answers(missing, self._verdicts, self.record, opened, self._settings)

    def label(self, answer: Answer, passed: bool) -> None:
        """Record the label of a person; it is on disk when this returns."""
        labels.append(self._file, Label(*answer.ref, passed))

    def calibrate(self) -> Calibrated:
        """Compare all labels with the judge, and store the calibration."""
        if not self._file.exists():
            where = f"there is no file of labels {shown_path(self._file)}"
            raise UsageError(f"{where}: write one, or let --sample 50 ask for labels")
        known, unknown = _match(labels.read(self._file), self._verdicts, self._file)
        if not known:
            where = f"{shown_path(self._file)} has no label of an answer that"
            raise UsageError(
                f"{where} {self.judge.evaluator!r} judged in the run {self.record.id}:"
                " --sample 50 asks for some"
            )
        pairs = ((label.passed, self._verdicts[ref].passed) for ref, label in known.items())
        passed = sum(verdict.passed for verdict in self._verdicts.values())
        found = Calibrated(
            self.record.id,
            self.judge,
            Confusion.of(pairs),
            passed,
            len(self._verdicts),
            unknown,
            shown_path(self._file),
        )
        calibrations.keep(self._settings.root, self._calibration(found))
        return found

    def _calibration(self, found: Calibrated) -> Calibration:
        judge, table, root = self.judge, found.table, self._settings.root
        file = self._file.absolute()
        relative = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
        moment = self._now().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return Calibration(
            *(judge.id, judge.evaluator, judge.type, judge.judge),
            *(relative, found.run_id, moment),
            *(table.right_passes, table.wrong_passes),
            *(table.wrong_failures, table.right_failures),
        )

    def _store(self) -> Store:
        return store_to_read(self._settings, self._url)


def _select_judge(record: RunRecord, evaluator: str | None) -> JudgeUse:
    """The judge of the evaluator, or the only one of the run."""
    uses = uses_of(record)
    found = [use for use in uses if evaluator in (None, use.evaluator)]
    if not uses:
        raise UsageError(f"no judge judged in the run {record.id}: there is nothing to calibrate")
    names = ", ".join(repr(use.evaluator) for use in uses)
    if not found:
        raise UsageError(f"no judge of the run is called {evaluator!r}; there are {names}")
    if len(found) > 1:
        hint = "name one with --evaluator" if evaluator is None else "rename one of them"
        raise UsageError(f"the run has several judges ({names}): {hint}")
    return found[0]


def _match(
    given: Sequence[Label], verdicts: dict[CaseRef, Judgement], file: Path
) -> tuple[dict[CaseRef, Label], int]:
    """The labels by answer, and how many belong to none."""
    by_id: dict[str, list[CaseRef]] = {}
    for ref in verdicts:
        by_id.setdefault(normal_name(ref.id), []).append(ref)
    matched: dict[CaseRef, Label] = {}
    unknown = 0
    for label in given:
        refs = by_id.get(normal_name(label.id), [])
        refs = [ref for ref in refs if not label.suite or same_name(label.suite, ref.suite)]
        if len(refs) > 1:
            suites = ", ".join(ref.suite for ref in refs)
            message = f"{label.id!r} is a case of {suites}: write which in a column 'suite'"
            raise UsageError(f"{shown_path(file)}:{label.line}: {message}")
        if not refs:
            unknown += 1
            continue
        before = matched.setdefault(refs[0], label)  # one may name the suite, another may not
        if before.passed != label.passed:
            message = f"{label.id!r} is labelled otherwise on line {before.line}: keep one of them"
            raise UsageError(f"{shown_path(file)}:{label.line}: {message}")
    return matched, unknown


def _answers(
    refs: Iterable[CaseRef],
    verdicts: dict[CaseRef, Judgement],
    record: RunRecord,
    store: Store,
    settings: Settings,
) -> list[Answer]:
    refs = list(refs)
    asked = _questions({ref.suite for ref in refs}, settings)
    found = []
    for ref in refs:
        trial = next(store.trials(record.id, positions=only(verdicts[ref].position)))
        entry: dict[str, Any] = msgspec.json.decode(trial.entry)
        answer = str(entry["details"].get("response", ""))
        found.append(Answer(ref, entry["description"], asked.get(ref, ""), answer))
    return found


def _questions(files: set[str], settings: Settings) -> dict[CaseRef, str]:
    """The questions of those files that can still be loaded."""
    found: dict[CaseRef, str] = {}
    for file in files:
        try:
            (suite,) = eval_files.load(settings.root / file)
        except (AssayError, ValueError):  # missing or invalid by now; show the answer alone
            continue
        for case in suite:
            found[CaseRef(file, case.id)] = case.question
    return found
