"""The verbs of `assay calibrate`: choose answers to label, and compare labels with a judge."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from assay.comparison.outcomes import find_run
from assay.engine.plan import DefaultEvaluators
from assay.errors import AssayError, NotInStore, UsageError
from assay.model.calibration import Calibration, JudgeUse
from assay.model.case import EvalCase
from assay.model.comparison import CaseRef
from assay.model.context import Context
from assay.model.names import normal_name, same_name
from assay.model.observation import observed
from assay.model.result import decode_trial
from assay.model.run import RunRecord, only
from assay.observations.reading import read_json
from assay.ports import Store
from assay.results import calibrations
from assay.results.judgements import Judgement, judgements
from assay.service import eval_files, labels
from assay.service.labels import Label
from assay.service.options import default_evaluators, options_of
from assay.service.project import project
from assay.service.store import store_to_read
from assay.settings import shown_path
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
from assay.suites.staleness import eval_file_hash


class Answer(msgspec.Struct, frozen=True):
    """An answer to label, as a person sees it: what the judge saw, without its verdict.

    `pieces` are pairs of a label and a text.
    """

    ref: CaseRef
    description: str
    pieces: tuple[tuple[str, str], ...]


class Calibrated(msgspec.Struct, frozen=True):
    """A judge compared with labels. It passed `passed` of the `judged` answers of the run.

    `earlier_labels` of the labels are about answers of other runs that it judged, `unknown` more
    about answers that it did not judge. `stays` is an earlier calibration of the same judge that
    this one did not replace.
    """

    run_id: str
    judge: JudgeUse
    table: Confusion
    passed: int
    judged: int
    unknown: int
    file: str
    earlier_labels: int = 0
    stays: Calibration | None = None

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


def why_not_corrected(table: Confusion) -> str:
    """Why labels do not determine a corrected rate."""
    if not table.passes or not table.failures:
        return f"there is no label of a {'good' if not table.passes else 'bad'} answer"
    return "the judge is no better than chance"


class CalibrationSession:
    """Calibrates a judge of a run with a file of labels.

    With `has_file` a missing file is an error before the run is looked for.
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        run: str = "latest",
        evaluator: str | None = None,
        *,
        store: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        has_file: bool = False,
    ) -> None:
        self._settings, self._file, self._now = project(), Path(file), now
        labels.check_file(self._file)
        if has_file:
            self._check_exists()
        self._url = store
        with closing(self._store()) as opened:
            self.record = find_run(run, opened)
            self.judge = _select_judge(self.record, evaluator)
            self._verdicts = self._judged(self.record.id, opened)

    def _judged(self, run_id: str, store: Store) -> dict[CaseRef, Judgement]:
        """The verdicts of the judge in a run; none if the run was deleted."""
        try:
            return {
                found.ref: found
                for found in judgements(store, run_id)
                if (found.judge_id, found.evaluator) == (self.judge.id, self.judge.evaluator)
            }
        except NotInStore:
            return {}

    def unlabelled(self, size: int, seed: int = 0) -> list[Answer]:
        """The answers of a random sample that have no label yet; the seed determines the sample."""
        refs = sorted(self._verdicts)
        sample = Random(seed).sample(refs, min(size, len(refs)))
        given = [label for label in labels.read(self._file) if label.run in ("", self.record.id)]
        known, _ = _match(given, self._verdicts, self._file)
        missing = [ref for ref in sample if ref not in known]
        cases = self._cases({ref.suite for ref in missing})
        with closing(self._store()) as opened:
            return [self._answer(ref, cases.get(ref), opened) for ref in missing]

    def _answer(self, ref: CaseRef, case: EvalCase | None, store: Store) -> Answer:
        trial = next(store.trials(self.record.id, positions=only(self._verdicts[ref].position)))
        seen = read_json(trial.observation)
        description = decode_trial(trial.result).description
        judging = [
            spec
            for spec in (case.evaluators if case else ())
            if spec.name == self.judge.evaluator and hasattr(spec, "judge_sees")
        ]
        if case is None or not judging:  # show at least what the run recorded
            asked = [] if case is None else [("asked", case.question)]
            calls = [msgspec.json.encode(observed(c)).decode() for c in seen.tool_calls or ()]
            made = [("calls", "\n".join(calls))] if calls else []
            return Answer(ref, description, (*asked, *made, ("answer", seen.response)))
        return Answer(ref, description, tuple(judging[0].judge_sees(Context(case, seen))))

    def _cases(self, files: set[str]) -> dict[CaseRef, EvalCase]:
        """The cases of those files that can still be loaded, as the run judged them."""
        options = options_of({}, self._settings, self.record, None)
        defaults = DefaultEvaluators(default_evaluators(options, self._settings))
        found: dict[CaseRef, EvalCase] = {}
        for file in files:
            try:
                (suite,) = eval_files.load(self._settings.root / file)
            except (AssayError, ValueError):  # missing or invalid by now; show the answer alone
                continue
            for case in suite:
                found[CaseRef(file, case.id)] = defaults.applied(case)
        return found

    def label(self, answer: Answer, passed: bool) -> None:
        """Record the label of a person; it is on disk when this returns."""
        labels.append(self._file, Label(*answer.ref, passed, run=self.record.id))

    @property
    def has_labels(self) -> bool:
        return bool(labels.read(self._file))

    @property
    def changed_files(self) -> list[str]:
        """The eval files of the judged answers that changed since the run."""
        hashes = {suite.file: suite.metadata.eval_file_hash for suite in self.record.suites}
        files = sorted({ref.suite for ref in self._verdicts})
        settings = self._settings
        return [
            file
            for file in files
            if hashes.get(file) != eval_file_hash(settings.root / file, settings)
        ]

    def calibrate(self, *, complete: bool = True) -> Calibrated:
        """Compare all labels with the judge, and store the calibration.

        An earlier calibration of the same judge stays if labelling is not `complete`, or if it
        has more labels, from another file.
        """
        self._check_exists()
        pairs, unknown = self._pairs(labels.read(self._file))
        if not pairs:
            where = f"{shown_path(self._file)} has no label of an answer that"
            raise UsageError(
                f"{where} {self.judge.evaluator!r} judged in the run {self.record.id}:"
                " --sample 50 asks for some"
            )
        passed = sum(verdict.passed for verdict in self._verdicts.values())
        table = Confusion.of(pair for found in pairs.values() for pair in found)
        return Calibrated(
            self.record.id,
            self.judge,
            table,
            passed,
            len(self._verdicts),
            unknown,
            shown_path(self._file),
            table.n - len(pairs.get(self.record.id, ())),
            self._save(self._calibration(table), complete=complete),
        )

    def _check_exists(self) -> None:
        if not self._file.exists():
            where = f"there is no label file {shown_path(self._file)}"
            raise UsageError(f"{where}: write one, or let --sample 50 ask for labels")

    def _pairs(self, given: Sequence[Label]) -> tuple[dict[str, list[tuple[bool, bool]]], int]:
        """By run, the labels and the judge's verdicts on the same answers; and unused labels."""
        by_run: dict[str, list[Label]] = {}
        for label in given:
            by_run.setdefault(label.run or self.record.id, []).append(label)
        pairs: dict[str, list[tuple[bool, bool]]] = {}
        unknown = 0
        with closing(self._store()) as opened:
            for run_id, found in by_run.items():
                here = run_id == self.record.id
                verdicts = self._verdicts if here else self._judged(run_id, opened)
                known, others = _match(found, verdicts, self._file)
                unknown += others
                if known:
                    pairs[run_id] = [(k.passed, verdicts[ref].passed) for ref, k in known.items()]
        return pairs, unknown

    def _save(self, found: Calibration, *, complete: bool) -> Calibration | None:
        """Store a calibration, unless an earlier one stays, which is returned then."""
        root = self._settings.root
        for known in calibrations.read(root):
            if (known.judge_id, known.evaluator) == (found.judge_id, found.evaluator):
                fewer = known.labels != found.labels and found.table.n < known.table.n
                if fewer or not complete:
                    return known
        calibrations.save(root, found)
        return None

    def _calibration(self, table: Confusion) -> Calibration:
        judge, root = self.judge, self._settings.root
        file = self._file.absolute()
        relative = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
        moment = self._now().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return Calibration(
            *(judge.id, judge.evaluator, judge.type, judge.judge),
            *(relative, self.record.id, moment),
            *(table.right_passes, table.wrong_passes),
            *(table.wrong_failures, table.right_failures),
        )

    def _store(self) -> Store:
        return store_to_read(self._settings, self._url)


def _select_judge(record: RunRecord, evaluator: str | None) -> JudgeUse:
    """The judge of the evaluator, or the only one of the run."""
    uses = record.judges
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
            message = f"{label.id!r} has a different label on line {before.line}: keep one of them"
            raise UsageError(f"{shown_path(file)}:{label.line}: {message}")
    return matched, unknown
