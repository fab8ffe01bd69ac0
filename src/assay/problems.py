"""Problems in eval files and configuration, and the slug of each kind.

A `Problem` is a value: what was found, where, and what would be right. Errors and warnings
are both problems; only errors are raised (see `errors.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

import msgspec

from assay.record import Record
from assay.text import printable

#: The longest message or hint, in characters.
MAX_MESSAGE = 500
#: How many errors, and how many warnings, are reported for one file.
MAX_PROBLEMS = 1000

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
    "bad-token": "A {{...}} token is malformed, unknown, or is used where tokens are not replaced.",
    "unused-name": "A name is declared in `vars`, and nothing uses it.",
    "snapshot-token": "A regression case may not depend on a snapshot.",
    # meaning
    "no-cases": "The file holds no case.",
    "two-sidecars": "A JSONL file has two sidecars.",
    "duplicate-id": "Two cases of one file have the same id.",
    "asserts-nothing": "The case has nothing that could fail.",
    "needs-expected": "The evaluator compares with an expected output that is missing.",
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
    "unreachable-stub": "An entry of a stub is never used, as an earlier one answers its calls.",
    "unresolved-seed": "A seed token has no value in the seed manifest.",
    # lint
    "few-golden-values": "A golden case should check at least two exact values.",
    "echoed-prompt": "Every expected text is already in the prompt.",
    "ambiguous-one-way": "An ambiguous case should accept more than one set of tools.",
    "edge-no-negative": "An edge case should say what must not happen.",
    "duplicate-prompt": "Two cases have the same prompt.",
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
