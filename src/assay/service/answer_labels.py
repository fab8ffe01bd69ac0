"""Labels of answers in the store, and the label files of `assay calibrate`.

No judge sees them: they are neither part of a case nor of an observation.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from assay.errors import NotInStore
from assay.model.label import AnswerLabel, LabelKey
from assay.model.run import RunRecord, TrialRecord, timestamp
from assay.ports import Store
from assay.service import labels as files
from assay.service.cases import trials_at
from assay.service.labels import Label


class Labelled(msgspec.Struct, frozen=True):
    """What a person says of an answer: `evaluator` and `criterion` say about what."""

    passed: bool
    author: str
    evaluator: str = ""
    criterion: str = ""
    repeat: int = 0


def hash_of_answer(trial: TrialRecord) -> str:
    """The hash by which the same answer is recognised."""
    response = msgspec.json.decode(trial.observation).get("response", "")
    return sha256(msgspec.json.encode(response)).hexdigest()


def put_label(
    store: Store, record: RunRecord, position: int, given: Labelled, now: datetime
) -> AnswerLabel:
    """Label an answer, anew if its author has done so before; raises NotInStore without it."""
    trials = trials_at(store, record, [position]).get(position, [])
    trial = next((one for one in trials if one.repeat == given.repeat), None)
    if trial is None:
        raise NotInStore("case", str(position))
    label = _label(record, trial, given, now)
    store.labels.put(label)
    return label


def remove_label(store: Store, record: RunRecord, position: int, given: Labelled) -> None:
    """Remove the label of an author; raises NotInStore if there is none."""
    trials = trials_at(store, record, [position]).get(position)
    if trials:
        case = (record.id, trials[0].suite, trials[0].case_id, given.repeat)
        if store.labels.remove(LabelKey(*case, given.evaluator, given.criterion, given.author)):
            return
    raise NotInStore("label", str(position))


def export_labels(store: Store, record: RunRecord, file: Path, evaluator: str = "") -> int:
    """Append the labels of a run for one judge to a label file; returns how many.

    Of several labels of a case the newest counts. Labels that the file has are not added again.
    """
    known = {(label.suite, label.id, label.run) for label in files.read(file)}
    newest: dict[tuple[str, str], AnswerLabel] = {}
    for label in sorted(store.labels.of_run(record.id), key=lambda label: label.created_at):
        if label.evaluator == evaluator and not label.criterion:
            newest[label.suite, label.case_id] = label
    added = [key for key in newest if (*key, record.id) not in known]
    for suite, case_id in added:
        passed = newest[suite, case_id].passed
        files.append(file, Label(suite, case_id, passed, run=record.id))
    return len(added)


def import_labels(
    store: Store, record: RunRecord, file: Path, given: Labelled, now: datetime
) -> int:
    """Add the labels of a label file for a run; returns how many. `given.passed` has no meaning."""
    wanted = [label for label in files.read(file) if label.run in ("", record.id)]
    by_case = {(label.suite, label.id): label for label in wanted}
    found = []
    for trial in store.trials(record.id):
        label = by_case.get((trial.suite, trial.case_id)) or by_case.get(("", trial.case_id))
        if label is not None and trial.repeat == given.repeat:
            said = msgspec.structs.replace(given, passed=label.passed)
            found.append(_label(record, trial, said, now))
    store.labels.put(*found)
    return len(found)


def _label(record: RunRecord, trial: TrialRecord, given: Labelled, now: datetime) -> AnswerLabel:
    return AnswerLabel(
        record.id,
        trial.suite,
        trial.case_id,
        trial.repeat,
        given.evaluator,
        given.criterion,
        given.author,
        given.passed,
        hash_of_answer(trial),
        timestamp(now),
    )
