"""Every exception Assay raises on purpose, and the problems it reports.

    AssayError           3     the base; each has a slug (see docs/errors.md) and an exit code
      UsageError         2     a wrong argument
        UnknownName      2     a name that no registry, file or command knows
        FilterError      2     a filter of cases that cannot be read
        ToolRegistryError 2    the registry of tools cannot be read
        RunHeld          2     another process is working on the run
      ConfigError        2     assay.yaml or [tool.assay] is wrong
      EvalFileError      2     one Problem of an eval file
      LedgerError        2     a locked regression case was changed or removed
      BadPattern         2     a regular expression that cannot be compiled
      PluginError        3     a plugin could not be loaded, or failed
        FunctionError    2     a function that does not exist, or cannot be an evaluator
      TargetError        3     a target gave no answer
      SnapshotError      3     the snapshot failed; 2 if its function or program is missing
      StoreError         3     the store could not be read or written
        CommitInDoubt    3     the connection was lost during a commit
        NotInStore       2     a run, baseline or test case that the store does not have
        DuplicateId      2     an id that a test case has or had
        Outdated         2     a test case that was changed in the meantime
        InvalidText      2     a text that cannot be stored
      BaselineRefused    1     a run that may not become the baseline
      ResultFileError    2     a file of results that cannot be read
      ExecutorError      3     a worker process died
      ObservationError   2     a record of what a target did that cannot be read
      EvalFileErrors     2     all EvalFileErrors of a load, as an exception group

A `Problem` is a value: what was found, where, and what would be right. Errors and warnings
are both problems; only errors are raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from assay.record import Record
from assay.text import count

#: The longest message or hint, in characters.
MAX_MESSAGE = 500
#: How many errors, and how many warnings, are reported for one file.
MAX_PROBLEMS = 1000
#: How many reasons the message of a refused baseline has.
MAX_REASONS = 20

Severity = Literal["error", "warning"]

#: Every slug of a problem, with the sentence that heads its entry in docs/errors.md.
SLUGS: dict[str, str] = {
    # reading the file
    "not-found": "The path does not exist.",
    "not-a-file": "The path is not a regular file.",
    "unreadable": "The file could not be read.",
    "symlink-loop": "A symbolic link leads back to where it started.",
    "unknown-format": "The file name is not one that Assay can load.",
    "no-eval-files": "The path holds no eval file.",
    "encoding": "The file, or its name, is not UTF-8.",
    "bad-character": "The text has a character that cannot be stored.",
    "too-large": "The file, line or value is larger than the limit.",
    "too-deep": "The document is nested deeper than the limit.",
    "too-many-problems": "The file has more problems than are shown.",
    # syntax
    "yaml-syntax": "The file is not valid YAML.",
    "yaml-tag": "YAML tags are not supported.",
    "yaml-alias": "A YAML alias is cyclic, unknown, or expands too far.",
    "yaml-key": "A YAML key is not text.",
    "multiple-documents": "The file holds more than one YAML document.",
    "json-syntax": "The file or line is not valid JSON.",
    "toml-syntax": "The file is not valid TOML.",
    "csv-syntax": "The file is not valid CSV.",
    "duplicate-key": "A key appears twice in one mapping.",
    "bad-number": "A number is not finite or does not fit 64 bits.",
    # shape
    "unknown-key": "The key is not known here.",
    "missing-key": "A required key is missing.",
    "wrong-type": "The value has the wrong type.",
    "wrong-value": "The value has the right type but is not allowed.",
    "unknown-evaluator": "No evaluator has this type.",
    "plugin-failed": "A plugin, or what it registers, could not be loaded.",
    "conflicting-keys": "Two keys exclude each other.",
    "bad-id": "The id does not have the format of its tier.",
    "bad-date": "The value is not an ISO 8601 date.",
    "bad-regex": "The regular expression does not compile.",
    "bad-token": "A {{...}} token is malformed, unknown, or stands where nothing replaces it.",
    "snapshot-token": "A regression case may not depend on a snapshot.",
    # meaning
    "no-cases": "The file holds no case.",
    "two-sidecars": "A JSONL file has two sidecars.",
    "duplicate-id": "Two cases of one file have the same id.",
    "asserts-nothing": "The case has nothing that could fail.",
    "needs-expected": "The evaluator compares with an expected output that is not there.",
    "not-importable": "A test case cannot express what the entry checks or asks.",
    "file-changed": "The file changed after it was loaded.",
    "file-not-found": "A referenced file does not exist.",
    "program-not-found": "A program or script that an evaluator runs does not exist.",
    "outside-root": "A referenced path or a linked folder leaves the project root.",
    "regression-changed": "A locked regression case was changed.",
    "regression-gone": "A locked regression case was removed.",
    "ledger-broken": "The regression lock file cannot be read.",
    # warnings
    "ignored-alias": "A key and its alias are both given; the alias is ignored.",
    "deprecated-key": "The key no longer has an effect.",
    "unlocked-regression": "A regression case is not locked yet.",
    "unchecked-expectation": "No evaluator of the case reads something that it expects.",
    "unresolved-seed": "A seed token has no value in the seed manifest.",
    # lint
    "few-golden-values": "A golden case should check at least two exact values.",
    "echoed-prompt": "Every expected text is already in the prompt.",
    "ambiguous-one-way": "An ambiguous case should accept more than one set of tools.",
    "edge-no-negative": "An edge case should say what must not happen.",
    "duplicate-prompt": "Two cases ask the same.",
    "lonely-synonym": "A synonym group has one member.",
    "passes-without-tool": "The case could pass although no tool was called.",
    "cannot-fail": "The case passes whatever the agent answers.",
    "cannot-pass": "The case fails whatever the agent answers.",
    "foreign-tool-id": "The id names another tool than the file.",
    "regression-description": "A regression case should be described as 'regression — ...'.",
}


class Problem(Record, frozen=True):
    """One thing wrong in one place. Lines and columns count from 1; 0 means the whole file."""

    file: str
    line: int
    column: int
    severity: Severity
    code: str
    message: str
    hint: str = ""

    def __post_init__(self) -> None:
        """Shorten the texts: they may quote something huge."""
        for name in ("message", "hint"):
            text = getattr(self, name)
            if len(text) > MAX_MESSAGE:
                from assay.redaction import cut  # few messages are that long

                msgspec.structs.force_setattr(self, name, cut(text, MAX_MESSAGE, keep="both"))

    def to_dict(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)

    @property
    def place(self) -> str:
        return self.file + (f":{self.line}:{self.column}" if self.line else "")

    @property
    def advice(self) -> str:
        """The message with its hint."""
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.severity}[{self.code}]: {self.advice}")


class Problems:
    """The problems of one file: at most MAX_PROBLEMS errors and as many warnings are kept.

    Whether there are more is kept too. A file with a million problems costs little memory.
    """

    def __init__(self, file: str, found: Iterable[Problem] = ()) -> None:
        self.file = file
        self._kept: list[Problem] = []
        self._counts: dict[Severity, int] = {"error": 0, "warning": 0}
        self += found

    def append(self, problem: Problem) -> None:
        self._counts[problem.severity] += 1
        if self._counts[problem.severity] <= MAX_PROBLEMS:
            self._kept.append(problem)

    def __iadd__(self, found: Iterable[Problem]) -> Self:
        """Append all; a generator is not read any further once the errors are `full`."""
        for problem in found:
            self.append(problem)
            if self.full:
                break
        return self

    @property
    def errors(self) -> int:
        return self._counts["error"]

    @property
    def full(self) -> bool:
        """Are there more errors than are reported? Then reading on is pointless."""
        return self.errors > MAX_PROBLEMS

    def __bool__(self) -> bool:
        return bool(self._kept)

    def sorted(self) -> list[Problem]:
        """The problems in file order; at the end, if so, one that says that there are more."""
        files = list(dict.fromkeys(p.file for p in self._kept))
        listed = sorted(self._kept, key=lambda p: (files.index(p.file), p.line, p.column))
        for severity, found in self._counts.items():
            if found > MAX_PROBLEMS:
                message = (
                    f"there are more than {MAX_PROBLEMS:,} {severity}s; these were found first"
                )
                hint = "fix these first" if severity == "error" else ""
                listed.append(
                    Problem(self.file, 0, 0, severity, "too-many-problems", message, hint)
                )
        return listed


class AssayError(Exception):
    """Base of everything we raise on purpose; `slug` is its entry in docs/errors.md."""

    slug = "assay"
    exit_code = 3

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The error as problems, for machine-readable output."""
        return (Problem("", 0, 0, "error", self.slug, str(self)),)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle completely, whatever arguments the class takes."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(cls: type[AssayError], args: tuple[Any, ...], state: dict[str, Any]) -> AssayError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class UsageError(AssayError):
    """The caller asked for something that makes no sense."""

    slug = "usage"
    exit_code = 2


class UnknownName(UsageError):
    """Nothing has this name; `hint` is the caller's, or else suggests the nearest name."""

    slug = "unknown-name"

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        self.hint = hint or nearest(name, self.known)
        super().__init__(f"no {kind} is called {name!r}" + (f" ({self.hint})" if self.hint else ""))


class FilterMistake(NamedTuple):
    """A mistake in a filter of cases; columns count from 1."""

    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"column {self.column}: {self.message}{hint}"


class FilterError(UsageError):
    """A filter of cases that cannot be read; `mistakes` has all of its mistakes."""

    slug = "bad-filter"

    def __init__(self, text: str, mistakes: Sequence[FilterMistake]) -> None:
        self.text, self.mistakes = text, tuple(mistakes)
        super().__init__("\n".join(f"filter, {mistake}" for mistake in mistakes))


class ToolRegistryError(UsageError):
    """The function or program that lists the tools failed, or listed none."""

    slug = "tool-registry"


class RunHeld(UsageError):
    """Another process is working on the run."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"the run {run_id} is running in another process")


class ConfigError(AssayError):
    """The project's configuration is wrong; `problems` says where."""

    slug = "config"
    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in problems))

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._problems


class LedgerError(AssayError):
    """A locked regression case must not be changed or removed."""

    slug = "ledger"
    exit_code = 2


class PluginError(AssayError):
    """A registered plugin is broken; the message names its distribution and the cause."""

    slug = "plugin-failed"
    exit_code = 3


class FunctionError(PluginError):
    """A function that is named as an evaluator does not exist, or cannot be one."""

    exit_code = 2


class TargetError(AssayError):
    """A target gave no answer; `retryable` if another attempt may succeed.

    `retry_after` is how many seconds the target asked to wait. `unreachable` means that the
    connection failed or timed out, `overloaded` that the target asked for fewer requests.
    """

    slug = "target-failed"
    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        unreachable: bool = False,
        overloaded: bool = False,
    ) -> None:
        self.retryable, self.retry_after = retryable, retry_after
        self.unreachable, self.overloaded = unreachable, overloaded
        super().__init__(message)

    def reworded(self, message: str) -> TargetError:
        """The same error with another message."""
        return TargetError(
            message,
            retryable=self.retryable,
            retry_after=self.retry_after,
            unreachable=self.unreachable,
            overloaded=self.overloaded,
        )


class SnapshotError(AssayError):
    """The function or program that captures the snapshot failed, or returned no JSON object."""

    slug = "snapshot-failed"
    exit_code = 3


class StoreError(AssayError):
    """The store could not be opened, read or written; acknowledged writes are not lost."""

    slug = "store-failed"
    exit_code = 3


class CommitInDoubt(StoreError):
    """The connection was lost during a commit: what was written may be stored or not."""


class NotInStore(StoreError):
    """A run, baseline or test case that the store does not have."""

    slug = "not-in-store"
    exit_code = 2

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.kind, self.name, self.hint = kind, name, nearest(name, known)
        hint = f" ({self.hint})" if self.hint else ""
        super().__init__(f"the store has no {kind} {name!r}{hint}")


def kept_by_baseline(run_id: str, name: str, *, current: bool) -> StoreError:
    """The error for deleting a run that a baseline needs."""
    role = "the" if current else "the first run of the"
    return StoreError(f"the run {run_id!r} is {role} baseline {name!r}; remove that first")


class DuplicateId(StoreError):
    """A new test case has an id that another one has, or had before it was deleted."""

    slug = "id-taken"
    exit_code = 2

    def __init__(self, case_id: str) -> None:
        self.id = case_id
        super().__init__(
            f"there is, or was, a test case {case_id!r}; leave the id out or choose another"
        )


class Outdated(StoreError):
    """A change is based on a version of a test case that is no longer the latest."""

    slug = "outdated"
    exit_code = 2

    def __init__(self, case_id: str, modified_at: str) -> None:
        self.modified_at = modified_at
        super().__init__(
            f"the test case {case_id!r} was changed at {modified_at}; read it again, then change it"
        )


class InvalidText(StoreError):
    """A text with NUL or half of a surrogate pair, which databases cannot store."""

    slug = "bad-character"
    exit_code = 2

    def __init__(self, field: str, code: int, place: int) -> None:
        self.field = field
        what = f"{field!r} has the character U+{code:04X} at place {place}"
        super().__init__(f"{what}: it cannot be stored, leave it out")


class BaselineRefused(AssayError):
    """A run that does not become the baseline unless that is accepted, for these `reasons`."""

    slug = "baseline-refused"
    exit_code = 1

    def __init__(self, name: str, run_id: str, reasons: Sequence[str]) -> None:
        self.head = f"the run {run_id} is refused as the baseline {name!r}"
        self.reasons = tuple(reasons)
        shown = list(reasons[:MAX_REASONS])
        if len(reasons) > MAX_REASONS:
            shown.append(f"and {len(reasons) - MAX_REASONS:,} more")
        super().__init__(f"{self.head}: {'; '.join(shown)}")


class ResultFileError(AssayError):
    """A result file with an unknown format, or a broken one."""

    slug = "bad-result-file"
    exit_code = 2


class ExecutorError(AssayError):
    """Worker processes died before their work was done."""

    slug = "executor-failed"
    exit_code = 3


class ObservationError(AssayError):
    """A record of what a target did with an unknown format, or a broken one."""

    slug = "bad-observation"
    exit_code = 2


class BadPattern(AssayError):
    """A regular expression that no engine can compile."""

    slug = "bad-regex"
    exit_code = 2


class EvalFileError(AssayError):
    """One problem in an eval file, as an exception."""

    exit_code = 2

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.slug = problem.code
        super().__init__(str(problem))

    @property
    def problems(self) -> tuple[Problem, ...]:
        return (self.problem,)


class EvalFileErrors(ExceptionGroup[EvalFileError], AssayError):
    """All errors of a load in one group; `problems` has the warnings too, in file order."""

    slug = "eval-files"
    exit_code = 2
    _problems: tuple[Problem, ...]

    def __new__(cls, problems: Sequence[Problem]) -> EvalFileErrors:
        errors = [EvalFileError(p) for p in problems if p.severity == "error"]
        message = f"{count(len(errors), 'problem')} in the eval files"
        group = super().__new__(cls, message, errors)
        group._problems = tuple(problems)
        return group

    def __init__(self, problems: Sequence[Problem]) -> None:
        """The group is built by __new__; ExceptionGroup takes no arguments here."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._problems

    def __reduce__(self) -> tuple[Any, ...]:
        return EvalFileErrors, (self._problems,)

    def derive(self, excs: Sequence[Any]) -> EvalFileErrors:  # type: ignore[override]
        return EvalFileErrors([e.problem for e in excs])

    def __str__(self) -> str:
        return "\n".join([self.message + ":", *(str(p) for p in self.problems)])


def error_for(problems: Sequence[Problem], *, strict: bool = False) -> EvalFileErrors | None:
    """The error to raise; None when there are only warnings, unless `strict` counts those."""
    if any(problem.severity == "error" for problem in problems):
        return EvalFileErrors(problems)
    if strict and problems:
        return EvalFileErrors([replace(problem, severity="error") for problem in problems])
    return None


@contextmanager
def wrap_errors(
    what: str, failure: type[AssayError] = PluginError, *others: type[Exception]
) -> Iterator[None]:
    """Turn what foreign code raises into `failure`; AssayErrors and `others` pass unchanged.

    `what` names the code in the message.
    """
    passing: tuple[type[Exception], ...] = (AssayError, *others)
    try:
        yield
    except passing:
        raise
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        raise failure(f"{what}: {cause_of(error)}") from error


def cause_of(error: BaseException) -> str:
    """The type and the message of an exception."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


@contextmanager
def reading_results() -> Iterator[None]:
    """Results are decoded where they are used: if one cannot be decoded, its store is damaged."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        damaged = f"the store is damaged: a result in it cannot be read: {unreadable(error)}"
        todo = "put a copy of the store in its place, or move it away"
        raise StoreError(f"{damaged}\n{todo}") from error


def unreadable(error: Exception) -> str:
    """Why a text or its JSON cannot be read, for messages about damaged data."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8: {error.reason} at byte {error.start}"
    return str(error)


def printable(text: str) -> str:
    """Escape what would move the cursor, ring a bell or reverse the text of a terminal."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    )


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A hint with the nearest known name; empty when none is near."""
    return _nearest(name, tuple(known), cutoff) if len(name) <= 60 else ""


@lru_cache(maxsize=1024)
def _nearest(name: str, known: tuple[str, ...], cutoff: float) -> str:
    import difflib  # only needed for errors

    folded = {k.lower().replace("-", "_"): k for k in known}
    close = difflib.get_close_matches(name.lower().replace("-", "_"), folded, n=1, cutoff=cutoff)
    return f"did you mean {folded[close[0]]!r}?" if close else ""
