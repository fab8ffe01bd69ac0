"""Label files of preferences: which of two answers a person found better, one case per line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from assay.errors import UsageError, nearest
from assay.model.calibration import Calibration, JudgeUse
from assay.model.names import same_name
from assay.model.preference import JudgedPair, PreferenceLabels, Preferred
from assay.service import labels
from assay.settings import shown_path
from assay.stats.calibration import Confusion, kappa
from assay.stats.proportions import wilson

TIE = "tie"


class PairLabel(NamedTuple):
    """A person's choice in one case; `suite` may be empty."""

    suite: str
    id: str
    better: Preferred
    line: int


class PairLabels:
    """The choices of people between the answers of two targets."""

    def __init__(self, file: Path, targets: Sequence[str]) -> None:
        if len(targets) != 2:
            message = f"{shown_path(file)}: labels are about two runs, and {len(targets)} are given"
            raise UsageError(message)
        self._file = file
        self._given: dict[tuple[str, str], PairLabel] = {}
        for line, row in labels.rows(file, "better"):
            suite, case_id = labels.case_of(row, line, file)
            label = PairLabel(suite, case_id, self._choice(row.get("better"), line, targets), line)
            first = self._given.setdefault((suite, case_id), label)
            if first.better != label.better:
                message = f"{case_id!r} has a different label on line {first.line}"
                raise labels.wrong_line(file, line, f"{message}: keep one of them")
        if not self._given:
            message = f"{shown_path(file)} has no labels"
            raise UsageError(f"{message}: it needs lines with `id` and `better`, a target or tie")

    def _choice(self, given: object, line: int, targets: Sequence[str]) -> Preferred:
        name = str(given or "").strip()
        if name.lower() == TIE:
            return "tie"
        for choice, target in zip(("a", "b"), targets, strict=True):
            if same_name(name, target):
                return "a" if choice == "a" else "b"
        hint = nearest(name, [*targets, TIE]) or f"write {targets[0]!r}, {targets[1]!r} or 'tie'"
        raise labels.wrong_line(self._file, line, f"'better' is {given!r}; {hint}")

    def compared(self, cases: Sequence[JudgedPair]) -> PreferenceLabels:
        """How far the judge agrees with the labels."""
        pairs = self._pairs(cases)
        table = _table(pairs)
        same = sum(person == judge for person, judge in pairs)
        return PreferenceLabels(
            labels=len(pairs),
            unknown=len(self._given) - len(pairs),
            decided=table.n,
            agreement=wilson(same, len(pairs)),
            kappa=kappa(table),
        )

    def calibration(
        self, use: JudgeUse, cases: Sequence[JudgedPair], about: str, root: Path
    ) -> Calibration:
        """The labels as the calibration of a judge; `about` names the runs."""
        file = self._file.absolute()
        relative = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
        moment = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        table = _table(self._pairs(cases))
        return Calibration(
            *(use.id, use.evaluator, use.type, use.judge),
            *(relative, about, moment),
            *(table.right_passes, table.wrong_passes),
            *(table.wrong_failures, table.right_failures),
        )

    def _pairs(self, cases: Sequence[JudgedPair]) -> list[tuple[Preferred, Preferred]]:
        """The choices of the person and of the judge in the same cases."""
        found = []
        for case in cases:
            named, anywhere = self._given.get((case.suite, case.id)), self._given.get(("", case.id))
            label = named or anywhere
            if label is not None and case.preferred is not None and not case.identical:
                found.append((label.better, case.preferred))
        return found


def _table(pairs: Sequence[tuple[Preferred, Preferred]]) -> Confusion:
    """The choices without ties; one of the second target counts as a pass."""
    decided = [(person, judge) for person, judge in pairs if "tie" not in (person, judge)]
    return Confusion.of((person == "b", judge == "b") for person, judge in decided)
