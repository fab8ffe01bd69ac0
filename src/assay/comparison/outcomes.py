"""Finds a run by id, name or file, and reads its outcomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from assay.comparison.tally import fold
from assay.errors import NotInStore, UnknownName, UsageError, nearest
from assay.model.comparison import CaseOutcome
from assay.model.names import normal_name, same_name
from assay.model.options import CONFIRM
from assay.model.run import RunRecord
from assay.ports import Store
from assay.results.files import read_results
from assay.settings import shown_path

LATEST = "latest"
SUFFIXES = (".json", ".jsonl")
#: The shortest prefix of an id by which a run is found.
SHORTEST = 6
MAX_NAME = 100
_ID_PREFIX = re.compile(r"[0-9a-f-]+")
#: The names that `check_name` accepts, except that it also refuses unprintable characters.
NAME_PATTERN = rf"^(?!\s*$)(?!{LATEST}$)(?!.*\.jsonl?$)"
NAME_PATTERN += rf"(?!(?=[A-Fa-f]*[0-9-])[0-9A-Fa-f-]{{{SHORTEST},}}$).+$"
_PAGE = 50


class Outcomes(msgspec.Struct, frozen=True):
    """The cases of a run, which can be read repeatedly, and its name in comparisons.

    `partial` says why the run does not have all cases, and is empty if it has. `baseline` is the
    name of the baseline by which it was found.
    """

    label: str
    run_id: str
    read: Callable[[], Iterator[CaseOutcome]]
    partial: str = ""
    baseline: str = ""

    def __iter__(self) -> Iterator[CaseOutcome]:
        return self.read()

    def not_empty(self) -> Outcomes:
        """This object; raises UsageError if there is no case, as comparing would be meaningless."""
        if next(self.read(), None) is None:
            raise UsageError(f"the run {self.name} has no case results")
        return self

    @property
    def name(self) -> str:
        """The name of the run in comparisons."""
        return self.run_id or self.label

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"the run {self.name} is partial: {self.partial}",) if self.partial else ()


def names_file(reference: str) -> bool:
    """Is it a file, judging by its name? Then no store is needed."""
    return reference.endswith(SUFFIXES)


def outcomes_of(reference: str, store: Store, root: Path) -> Outcomes:
    """The run that a reference means; raises NotInStore, UsageError or ResultFileError.

    A name that ends with .json or .jsonl is a file, relative to `root`. Otherwise it is `latest`,
    the name of a baseline, the id of a run or a prefix of one, or else a file of another name.
    """
    if not names_file(reference):
        try:
            return stored(find_run(reference, store), store, reference)
        except NotInStore:
            if not (root / reference).is_file():
                raise
    return in_file(root / reference)


def in_file(file: Path) -> Outcomes:
    """The run in a result file."""
    results = read_results(file)
    chosen = results.narrowing
    partial = f"it asked only the cases of {chosen}" if chosen else ""
    return Outcomes(shown_path(file), results.run_id, results.read, partial)


def stored(run: RunRecord, store: Store, label: str = "") -> Outcomes:
    """A run in the store."""
    baseline = _stored_name(label, store.baselines()) or ""

    def read() -> Iterator[CaseOutcome]:
        cases = fold(store.facts(run.id))
        compared = run.status == "finished" or run.verdict.baseline is not None
        return cases if compared else _with_missing_reasks(cases, run)

    return Outcomes(label or run.id, run.id, read, run.partial, baseline)


def _with_missing_reasks(cases: Iterator[CaseOutcome], run: RunRecord) -> Iterator[CaseOutcome]:
    """The cases of a run that is asking losses again, or was killed while it did.

    It has not recorded the re-asks that it has yet to make; they count as errored.
    """
    chosen = run.options.get("confirm")
    times = chosen if isinstance(chosen, int) else CONFIRM
    for case in cases:
        found = case.reasks
        if found and not found.settle(times, critical=case.critical):
            errored = max(times - found.judged, found.errored)
            case = case._replace(reasks=replace(found, errored=errored))
        yield case


def find_run(reference: str, store: Store) -> RunRecord:
    """Find a run by `latest`, the name of a baseline, its id or a prefix of that.

    `latest:gpt` is the run of the target `gpt` in the group of that run; so are the others, and the
    id of a group.
    """
    if reference == LATEST:
        return _latest(store)
    baselines = store.baselines()
    if (name := _stored_name(reference, baselines)) is not None:
        return store.run(baselines[name])
    # Databases cannot store other texts, and some raise errors of their own for them.
    if "\0" not in reference and reference.isprintable():
        with suppress(NotInStore):
            return store.run(reference)
        if found := _by_prefix(reference.lower(), store):
            return found
        if found := _by_target(reference, store):
            return found
        _refuse_group(reference, store)
    raise NotInStore("run or baseline", reference, [*baselines, LATEST])


def _refuse_group(reference: str, store: Store) -> None:
    """Raise UsageError if it is the id of a group, which stands for several runs."""
    with suppress(NotInStore):
        names = with_targets(store.group(reference.lower()))
        raise UsageError(f"{reference!r} is a group, not a run: name one of its runs: {names}")


def with_targets(runs: Iterable[RunRecord]) -> str:
    """The ids of runs, each with its target, for messages."""
    return ", ".join(f"{run.id} ({run.target})" for run in runs)


def _by_target(reference: str, store: Store) -> RunRecord | None:
    """The run of a target in a group, by `GROUP:TARGET` or by `RUN:TARGET`."""
    named, _, target = reference.partition(":")
    if not (named and target):
        return None
    try:
        runs = store.group(named.lower())
    except NotInStore:
        try:
            run = find_run(named, store)
        except NotInStore:
            return None
        runs = [run] if run.group is None else store.group(run.group)
    found = {each.target: each for each in runs}
    if (name := _stored_name(target, found)) is None:
        hint = nearest(target, found) or f"there is {', '.join(found)}"
        raise UnknownName(f"target of {named}", target, found, hint)
    return found[name]


def baseline_name(name: str, store: Store) -> str:
    """The name as the store has it, which may encode accents differently; else in NFC."""
    return _stored_name(name, store.baselines()) or normal_name(name)


def _stored_name(name: str, known: Collection[str]) -> str | None:
    if name in known:
        return name
    return next((other for other in known if same_name(other, name)), None)


def check_name(name: str) -> None:
    """Raise UsageError for a baseline name that is invalid, or could mean something else."""
    wrong = ""
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
        wrong = f"a name has 1 to {MAX_NAME} printable characters"
    elif name == LATEST:
        wrong = "it means the newest run"
    elif names_file(name):
        wrong = "it would be taken for a file"
    elif len(name) >= SHORTEST and _ID_PREFIX.fullmatch(name.lower()) and not name.isalpha():
        wrong = "it would be taken for the id of a run"
    if wrong:
        raise UsageError(f"a baseline cannot be called {name!r}: {wrong}")


def newest_first(store: Store) -> Iterator[RunRecord]:
    """All runs of a store, newest first, read page by page."""
    before: str | None = None
    while page := store.runs(_PAGE, before):
        yield from page
        before = page[-1].id


def _latest(store: Store) -> RunRecord:
    """The newest finished run with at least one case."""
    for run in newest_first(store):
        if run.status == "finished" and (run.summary or {}).get("totalCases", 1):
            return run
    raise UsageError("the store has no finished run; `assay run` makes one")


def _by_prefix(prefix: str, store: Store) -> RunRecord | None:
    """The only run whose id starts with the prefix."""
    if len(prefix) < SHORTEST or not _ID_PREFIX.fullmatch(prefix):
        return None
    # Ids have only hexadecimal digits and hyphens, so `prefix + "g"` sorts after all matches.
    found = [run for run in store.runs(2, before=f"{prefix}g") if run.id.startswith(prefix)]
    if len(found) > 1:
        raise UsageError(f"more than one run starts with {prefix!r}: write more of its id")
    return found[0] if found else None
