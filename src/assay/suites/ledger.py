"""The regression ledger: a hash per case, kept in git, so that no case changes unnoticed.

`<tool>.regression.lock.json` has the hashes, `<tool>.regression.archive.json` the cases that no
longer apply. Checking never writes; only `lock`, `archive` and `add` do.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from assay.atomic_files import replacing, try_lock
from assay.errors import EvalFileErrors, LedgerError, nearest
from assay.problems import Problem, Problems
from assay.settings import shown_path
from assay.wire import json as documents
from assay.wire import validation
from assay.wire.document import Document
from assay.wire.json_editing import with_item, without_item
from assay.wire.text_files import is_absent, read_text
from assay.wire.validation_context import ValidationContext

if TYPE_CHECKING:
    from assay.model.expect import Expect

SUFFIX, LOCK_SUFFIX = ".regression.json", ".regression.lock.json"
#: How long to wait for another process that changes a ledger, which takes milliseconds.
LOCK_TIMEOUT_SECONDS = 30.0
#: How the description of a regression case begins.
PREFIX = "regression — "
Status = Literal["locked", "unlocked", "changed", "gone", "archived"]


#: Looks at the `expect` block of a new case; raises if it should not be added.
Verify = Callable[["Expect"], None]


class LedgerEntry(msgspec.Struct, frozen=True):
    """A case of a regression file, of its lock or of its archive."""

    id: str
    status: Status
    created_at: str = ""
    bug_ref: str = ""
    description: str = ""


class Bug(msgspec.Struct, frozen=True):
    """A bug that must not come back: the prompt, what is expected, and where it was fixed."""

    prompt: str
    expect: Mapping[str, Any]
    description: str
    bug_ref: str


def locked_file(lock: Path) -> Path | None:
    """The regression file of a lock; None when the file is not a lock."""
    name = lock.name.removesuffix(LOCK_SUFFIX)
    return None if name == lock.name else lock.with_name(name + SUFFIX)


def lock_file(file: Path) -> Path:
    return file.with_name(file.name.removesuffix(".json") + ".lock.json")


def archive_file(file: Path) -> Path:
    return file.with_name(file.name.removesuffix(".json") + ".archive.json")


def case_hash(raw: Any) -> str:
    """The hash of a case's content, whatever its layout and the order of its keys."""
    text = json.dumps(raw, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    import hashlib  # most projects have no ledger

    return hashlib.sha256(text.encode()).hexdigest()


def check(file: Path) -> list[Problem]:
    """The problems that the ledger finds with a regression file that loads, or is missing."""
    return _check(_Ledger(file))


def _check(ledger: _Ledger) -> list[Problem]:
    problems = Problems(ledger.document.file)
    hint = "restore it; if it no longer applies, then run 'assay regression archive {}'"
    for index, (identity, raw) in enumerate(ledger.cases):
        line, column = ledger.document.position((*ledger.base, index))
        place = (ledger.document.file, line, column)
        status = ledger.status(identity, raw)
        if status == "changed":
            message = f"the locked case {identity!r} was changed; regression cases never change"
            problems.append(
                Problem(*place, "error", "regression-changed", message, hint.format(identity))
            )
        elif ledger.is_archived(identity) and not ledger.is_archived(identity, raw):
            message = f"the id {identity!r} belongs to an archived case; take the next number"
            problems.append(Problem(*place, "error", "duplicate-id", message))
        elif status == "unlocked":
            message = f"the case {identity!r} is not locked"
            fix = f"run 'assay regression lock {ledger.document.file}'"
            problems.append(Problem(*place, "warning", "unlocked-regression", message, fix))
    for identity in ledger.gone():
        message = (
            f"the locked case {identity!r} is gone; regression cases are archived, not deleted"
        )
        place = ledger.place_of_gone(identity)
        problems.append(Problem(*place, "error", "regression-gone", message, hint.format(identity)))
    return problems.sorted()


def _raise_errors(ledger: _Ledger) -> None:
    if broken := [p for p in _check(ledger) if p.severity == "error"]:
        raise LedgerError("\n".join(str(p) for p in broken))


def entries(file: Path) -> list[LedgerEntry]:
    """All cases of the file, its lock and its archive."""
    ledger = _Ledger(file)
    result = [_entry(identity, ledger.status(identity, raw), raw) for identity, raw in ledger.cases]
    result += [LedgerEntry(identity, "gone") for identity in ledger.gone()]
    result += [_entry(str(raw.get("id")), "archived", raw) for raw in ledger.archived]
    return result


def lock(file: Path) -> list[str]:
    """Lock the unlocked cases; raises LedgerError when a locked one was changed."""
    with _exclusive(file):
        ledger = _Ledger(file)
        _raise_errors(ledger)
        added = [identity for identity, _ in ledger.cases if identity not in ledger.hashes]
        if added:
            hashes = dict(ledger.hashes)
            hashes.update({identity: case_hash(raw) for identity, raw in ledger.cases})
            _write(lock_file(file), _lock_text(hashes))
        return added


def archive(file: Path, identity: str) -> Path:
    """Move a case to the archive.

    A crash in between leaves it in both files, or in the lock; archiving again completes it.
    """
    with _exclusive(file):
        return _archive(file, _Ledger(file), identity)


def _archive(file: Path, ledger: _Ledger, identity: str) -> Path:
    target = archive_file(file)
    index = next((i for i, (known, _) in enumerate(ledger.cases) if known == identity), None)
    if index is not None:
        raw = ledger.cases[index][1]
        if ledger.status(identity, raw) == "changed":
            message = f"the case {identity!r} was changed after it was locked: restore it first"
            raise LedgerError(message)
        if not ledger.is_archived(identity):
            archived = [*ledger.archived, raw]
            _write(target, json.dumps(archived, indent=2, ensure_ascii=False) + "\n")
        elif not ledger.is_archived(identity, raw):
            raise LedgerError(f"another case {identity!r} is archived: take the next number")
        _write(file, without_item(ledger.text, ledger.document, ledger.base, index))
    elif not (identity in ledger.hashes and ledger.is_archived(identity)):
        raise LedgerError(_no_such_case(ledger, identity))
    if identity in ledger.hashes:
        kept = {k: v for k, v in ledger.hashes.items() if k != identity}
        _write(lock_file(file), _lock_text(kept))
    return target


def add(file: Path, bug: Bug, today: date, verify: Verify = lambda block: None) -> str:
    """Append a case for a bug to a regression file that loads, or is new, and lock it.

    Returns the id, which has the next number that no case of the tool ever had. `verify` is given
    the valid block of the case, and may raise before anything is written. A crash in between
    leaves the case unlocked.
    """
    with _exclusive(file):
        ledger = _Ledger(file)
        _raise_errors(ledger)
        case, block = _new_case(ledger.next_id(file), bug, today)
        if known := ledger.same_bug(case):
            found = f"{ledger.document.file} has {known} already, with the same bug reference"
            raise LedgerError(f"{found}, prompt and expectations")
        verify(block)
        _write(file, with_item(ledger.text, ledger.document, ledger.base, case))
        _write(lock_file(file), _lock_text({**ledger.hashes, case["id"]: case_hash(case)}))
        return str(case["id"])


def _new_case(identity: str, bug: Bug, today: date) -> tuple[dict[str, Any], Expect]:
    """The new case and its `expect` block; raises EvalFileErrors when it would not load."""
    description = bug.description.strip()
    case = {
        "id": identity,
        "description": PREFIX + description.removeprefix(PREFIX.strip()).strip(),
        "difficulty": "regression",
        "createdAt": today.isoformat(),
        "bugRef": bug.bug_ref,
        "input": {"message": bug.prompt},
        "expect": dict(bug.expect),
    }
    if case["description"] == PREFIX:
        raise LedgerError("the new case has no description: say what the bug was")
    try:
        document = documents.parse(json.dumps(case, allow_nan=False), "the new case")
    except (TypeError, ValueError, RecursionError) as error:
        raise LedgerError(f"the new case cannot be written as JSON: {error}") from None
    from assay.model.tiers import RegressionEvalCase  # importing shapes is slow

    context = ValidationContext()
    found, problems = validation.check(RegressionEvalCase, document, (), document.data, context)
    if found is not None and not found.expect.asserted():
        problems.append(document.problem(("expect",), "asserts-nothing", "it asserts nothing"))
    wrong = [p for p in (*document.problems, *problems) if p.severity == "error"]
    if wrong or found is None:
        raise EvalFileErrors(wrong)
    written: dict[str, Any] = document.data
    return written, found.expect


#: Two cases with the same values of these keys are about the same bug.
_BUG_KEYS = ("bugRef", "input", "expect")


class _Ledger:
    """A regression file with its lock and its archive; if the file is missing, it has no cases."""

    def __init__(self, file: Path) -> None:
        self.lost = is_absent(file)
        self.text = "[]\n" if self.lost else read_text(file, shown_path(file))
        self.document: Document = documents.parse(self.text, shown_path(file))
        data = self.document.data
        self.base: tuple[str, ...] = ("cases",) if isinstance(data, dict) else ()
        raw_cases = data.get("cases", []) if isinstance(data, dict) else data
        self.cases: list[tuple[str, Any]] = [
            (str(raw.get("id")), raw) for raw in raw_cases if isinstance(raw, dict)
        ]
        self.lock = _read_lock(lock_file(file))
        self.hashes: dict[str, str] = self.lock.data["cases"]
        self.archived = _read_archive(archive_file(file))

    def status(self, identity: str, raw: Any) -> Status:
        if identity not in self.hashes:
            return "unlocked"
        return "locked" if self.hashes[identity] == case_hash(raw) else "changed"

    def gone(self) -> list[str]:
        """Locked cases that are neither in the file nor archived unchanged."""
        kept = {identity for identity, _ in self.cases}
        kept |= {
            str(c.get("id"))
            for c in self.archived
            if self.hashes.get(str(c.get("id"))) == case_hash(c)
        }
        return [identity for identity in self.hashes if identity not in kept]

    def place_of_gone(self, identity: str) -> tuple[str, int, int]:
        """The position to report for a case that is gone: its hash if the file is missing too."""
        if not self.lost:
            return self.document.file, 1, 1
        return self.lock.file, *self.lock.position(("cases", identity), key=True)

    def next_id(self, file: Path) -> str:
        """The id after the highest one in the file, the lock and the archive."""
        data = self.document.data
        metadata = data.get("metadata") if isinstance(data, dict) else None
        tool = (metadata or {}).get("toolName") or file.name.removesuffix(SUFFIX)
        known = [identity for identity, _ in self.cases]
        known += [*self.hashes, *(str(case.get("id")) for case in self.archived)]
        numbered = re.compile(rf"rg-{re.escape(tool)}-([0-9]{{3,18}})")
        numbers = [int(match[1]) for match in map(numbered.fullmatch, known) if match]
        return f"rg-{tool}-{max(numbers, default=0) + 1:03}"

    def same_bug(self, case: dict[str, Any]) -> str:
        """The id of a case with the same bug, prompt and expectations; empty if there is none."""
        bug = [case[key] for key in _BUG_KEYS]
        same = (known for known, raw in self.cases if [raw.get(key) for key in _BUG_KEYS] == bug)
        return next(same, "")

    def is_archived(self, identity: str, raw: Any = None) -> bool:
        """Is a case with this id, and this content if given, archived?"""
        found = [case for case in self.archived if case.get("id") == identity]
        return bool(found) if raw is None else raw in found


def _entry(identity: str, status: Status, raw: Any) -> LedgerEntry:
    texts = (str(raw.get(key, "")) for key in ("createdAt", "bugRef", "description"))
    return LedgerEntry(identity, status, *texts)


def _read_lock(file: Path) -> Document:
    if not os.path.lexists(file):
        return documents.parse(_lock_text({}), shown_path(file))
    document = _document(file)
    hashes = document.data.get("cases") if isinstance(document.data, dict) else None
    if not isinstance(hashes, dict) or not all(isinstance(h, str) for h in hashes.values()):
        raise _broken(file, "it has no 'cases' with a hash each")
    return document


def _read_archive(file: Path) -> list[dict[str, Any]]:
    if not os.path.lexists(file):
        return []
    data = _document(file).data
    if not isinstance(data, list) or not all(isinstance(case, dict) for case in data):
        raise _broken(file, "it is not a list of cases")
    return data


def _document(file: Path) -> Document:
    document = documents.parse(read_text(file, shown_path(file)), shown_path(file))
    if document.problems:
        raise EvalFileErrors(document.problems)
    return document


def _broken(file: Path, message: str) -> EvalFileErrors:
    hint = "restore it from version control"
    return EvalFileErrors(
        [Problem(shown_path(file), 1, 1, "error", "ledger-broken", message, hint)]
    )


def _lock_text(hashes: dict[str, str]) -> str:
    return json.dumps({"version": 1, "cases": dict(sorted(hashes.items()))}, indent=2) + "\n"


def _no_such_case(ledger: _Ledger, identity: str) -> str:
    known = [known for known, _ in ledger.cases]
    hint = nearest(identity, known)
    if any(case.get("id") == identity for case in ledger.archived):
        hint = "it is archived already"
    return f"{ledger.document.file} has no case {identity!r}" + (f" ({hint})" if hint else "")


@contextmanager
def _exclusive(file: Path) -> Iterator[None]:
    """Locks the ledgers of a folder: two processes would take the same number.

    The folder itself is locked, because its files get replaced.
    """
    folder = None
    with suppress(OSError):  # reading or writing there will raise a better error
        folder = os.open(file.parent, os.O_RDONLY)
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while folder is not None and not try_lock(folder):
            if time.monotonic() >= deadline:
                where = shown_path(file.parent)
                found = f"another process is changing regression cases in {where}"
                raise LedgerError(f"{found}: try again when it has ended")
            time.sleep(0.01)
        yield
    finally:
        if folder is not None:
            os.close(folder)


def _write(file: Path, text: str) -> None:
    """Write a file atomically."""
    try:
        with replacing(file) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise LedgerError(f"cannot write {shown_path(file)}: {error.strerror or error}") from None
