"""Every exception that Assay raises on purpose.

AssayError           3     the base; each has a slug (see docs/errors.md) and an exit code
  UsageError         2     a wrong argument
    UnknownName      2     a name that is not in a registry, a file or the command line
    FilterError      2     a filter of cases that cannot be read
    NoSuchCase       5     a case that a recorded run does not have
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
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from assay.problems import Problem
from assay.text import count

#: How many reasons the message of a refused baseline has.
MAX_REASONS = 20


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
    """An argument is wrong, or the arguments contradict each other."""

    slug = "usage"
    exit_code = 2


#: At most this many names are listed when none is near the unknown one.
_FEW_NAMES = 12


class UnknownName(UsageError):
    """Nothing has this name. Without a `hint`, the nearest name or a short list is suggested."""

    slug = "unknown-name"

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        few = f"known: {', '.join(self.known)}" if 0 < len(self.known) <= _FEW_NAMES else ""
        self.hint = hint or nearest(name, self.known) or few
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


class NoSuchCase(UsageError):
    """No case of a recorded run has this id or text."""

    slug = "no-such-case"
    exit_code = 5


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
            f"a test case {case_id!r} exists or was deleted; leave the id out or choose another"
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
        what = f"{field!r} has the character U+{code:04X} at position {place}"
        super().__init__(f"{what}: it cannot be stored; remove it")


class BaselineRefused(AssayError):
    """A run is refused as the baseline, for these `reasons`, unless the caller accepts them."""

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

    @property
    def fault(self) -> str:
        """What is wrong, for a message that calls it an invalid observation itself."""
        return str(self).removeprefix("invalid observation: ")


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
    """Turns decode errors into a StoreError: results are decoded where they are used."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        damaged = f"the store is damaged: a result in it cannot be read: {unreadable(error)}"
        todo = "restore the store from a backup, or move it away"
        raise StoreError(f"{damaged}\n{todo}") from error


def unreadable(error: Exception) -> str:
    """Why a text or its JSON cannot be read, for messages about damaged data."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8: {error.reason} at byte {error.start}"
    return str(error)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A hint with the nearest known name; empty when none is near."""
    return _nearest(name, tuple(known), cutoff) if len(name) <= 60 else ""


@lru_cache(maxsize=1024)
def _nearest(name: str, known: tuple[str, ...], cutoff: float) -> str:
    import difflib  # only needed for errors

    folded = {k.lower().replace("-", "_"): k for k in known}
    close = difflib.get_close_matches(name.lower().replace("-", "_"), folded, n=1, cutoff=cutoff)
    return f"did you mean {folded[close[0]]!r}?" if close else ""
