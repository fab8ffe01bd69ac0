"""The answers that a run gave to some of its cases, from the store or from a result file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from assay.comparison.outcomes import find_run, names_file
from assay.errors import NotInStore
from assay.model.comparison import CaseRef, Comparison
from assay.model.observed import decode_observed
from assay.model.run import only
from assay.model.trials import shown_trial
from assay.ports import Store
from assay.service.project import project, working_directory
from assay.service.store import store_to_read


class ChangedAnswer(NamedTuple):
    """The answers to a case in two runs; None if a run has none."""

    ref: CaseRef
    before: str | None
    now: str | None

    def to_dict(self) -> dict[str, str | None]:
        return {
            "suite": self.ref.suite,
            "id": self.ref.id,
            "before": self.before,
            "now": self.now,
        }


def changed_answers(
    base: str, candidate: str, found: Comparison, most: int, *, store: str | None = None
) -> list[ChangedAnswer]:
    """The answers to the first cases that were lost, accepted or passed anew, `most` of each."""
    lists = (
        [loss.ref for loss in found.losses],
        [case.ref for case in found.accepted],
        found.new_passes,
    )
    refs = dict.fromkeys(ref for listed in lists for ref in listed[:most])
    with ExitStack() as stack:
        opened = None
        if not (names_file(base) and names_file(candidate)):
            opened = stack.enter_context(closing(store_to_read(project(), store)))
        before, now = (_answers(name, refs, opened) for name in (base, candidate))
    return [ChangedAnswer(ref, before.get(ref), now.get(ref)) for ref in refs]


def _answers(reference: str, refs: Collection[CaseRef], store: Store | None) -> dict[CaseRef, str]:
    if store is not None and not names_file(reference):
        with suppress(NotInStore):  # it is a file of another name
            return dict(_stored(find_run(reference, store).id, refs, store))
    found = _in_file(working_directory() / reference)
    return {ref: answer for ref, answer in found if ref in refs}


def _stored(run_id: str, refs: Collection[CaseRef], store: Store) -> Iterator[tuple[CaseRef, str]]:
    places = {
        CaseRef(trial.suite, trial.case_id): trial.position
        for trial in store.facts(run_id)
        if not trial.repeat and (trial.suite, trial.case_id) in refs
    }
    for ref, position in places.items():
        trials = list(store.trials(run_id, positions=only(position)))
        yield ref, decode_observed(shown_trial(trials).observation).response


def _in_file(file: Path) -> Iterator[tuple[CaseRef, str]]:
    """The answers in a result file or an export of ours; other tools keep theirs elsewhere."""
    content = file.read_bytes()
    for document in content.splitlines() if file.suffix == ".jsonl" else [content]:
        found: Any = msgspec.json.decode(document)
        for suite in found.get("suites") or [found]:
            for case in suite.get("cases") or [suite]:
                answer = (case.get("details") or case).get("response")
                if isinstance(answer, str) and isinstance(case.get("id"), str):
                    yield CaseRef(str(suite.get("file", "")), case["id"]), answer
