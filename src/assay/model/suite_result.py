"""EvalSuiteResult: what became of a suite in one run, and how it is written as JSON.

A suite may have a million cases. They are never held: whoever wants them reads them anew, one
by one, and the document is written in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from assay.errors import printable
from assay.model.case import Tier
from assay.model.result import Outcome
from assay.model.score import Verdict
from assay.record import Record


class CaseResult(msgspec.Struct, frozen=True, rename="camel"):
    """The recorded result of one case, all repeats together: an entry of a result file."""

    id: str
    description: str
    passed: bool
    duration_ms: float
    error: str | None = None
    details: dict[str, Any] = {}

    @property
    def outcome(self) -> Outcome:
        outcome: Outcome = self.details["outcome"]
        return outcome

    @property
    def score(self) -> float | None:
        return self.details.get("score")

    @property
    def verdict(self) -> Verdict | None:
        return self.details.get("verdict")

    @property
    def failures(self) -> list[str]:
        """Every reason why it did not pass."""
        return list(self.details.get("failures", ()))

    @property
    def source(self) -> tuple[str, int]:
        """The file and line it was written at; an empty name when that is not known."""
        file, _, line = str(self.details.get("source", "")).rpartition(":")
        return (file, int(line)) if line.isdigit() else ("", 0)

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Every repeat: its `outcome`, `score`, `durationMs` and `error`."""
        return list(self.details.get("trials", ()))


_CASE = msgspec.json.Decoder(CaseResult)


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """Counts of cases. `coverage` is judged / planned, None when that is nothing or not known.

    `selected` is how many cases the run was to ask, where it did not come to all of them.
    """

    total_cases: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    skipped_assertions: int = 0
    total_duration_ms: float = 0.0
    coverage: float | None = None
    estimated_cost_usd: float | None = None
    judge_cost_usd: float | None = None
    selected: int | None = None

    @property
    def judged(self) -> int:
        return self.passed + self.failed

    @property
    def planned(self) -> int:
        """The cases that should have been judged."""
        return max(self.total_cases, self.selected or 0) - self.skipped

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a result file; what is not known is not there, the coverage aside."""
        result: dict[str, Any] = msgspec.to_builtins(self)
        return {k: v for k, v in result.items() if v is not None or k == "coverage"}


class Written(Protocol):
    """The cases of a suite and their keys as a result file has them, in any pieces."""

    def entries(self) -> Iterator[bytes]: ...
    def keys(self) -> Iterator[bytes]: ...
    def becomes(self, file: Path, head: bytes, tail: Iterator[bytes]) -> bool:
        """Make it the file, with what stands before and after the cases; false if it cannot be."""
        ...


def head_of(
    run_id: str,
    timestamp: str,
    tier: Tier,
    tool_name: str,
    metadata: Mapping[str, Any],
    staleness_warnings: Sequence[str],
) -> bytes:
    """A result file up to its first case."""
    head = {
        "runId": run_id,
        "timestamp": timestamp,
        "tier": tier,
        "toolName": tool_name,
        "metadata": metadata,
        "stalenessWarnings": staleness_warnings,
    }
    return msgspec.json.encode(head)[:-1] + b',"cases":['


def pair_of(identity: str, key: str) -> bytes:
    """A case and its comparability key, as a result file has them."""
    return b'%b:"%b"' % (msgspec.json.encode(identity), key.encode())


class EvalSuiteResult(Record, frozen=True):
    """What became of a suite. `entries` gives the JSON of every case anew, in file order.

    `comparability` gives the key of every case by its id. `written` has both as a result file
    has them, where they were noted. `regressions` and the other lists of ids are
    about the baseline, and empty when there is none.
    """

    run_id: str
    timestamp: str
    name: str
    file: str
    tier: Tier
    tool_name: str
    metadata: Mapping[str, Any]
    entries: Callable[[], Iterator[bytes]]
    summary: Summary
    staleness_warnings: Sequence[str] = ()
    baseline_run_id: str | None = None
    regressions: Sequence[str] = ()
    new_passes: Sequence[str] = ()
    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    not_comparable: Sequence[str] = ()
    unjudged: Sequence[str] = ()
    target: str = ""
    options: Mapping[str, Any] = {}
    environment: Mapping[str, Any] = {}
    statistics: Mapping[str, Any] = {}
    comparability: Callable[[], Iterator[tuple[str, str]]] = lambda: iter(())
    notes: Sequence[str] = ()
    written: Written | None = None

    def __repr__(self) -> str:
        """One line, as a notebook shows it: the fields would fill a page."""
        counts = f"{self.summary.passed} of {self.summary.total_cases} passed"
        return f"<EvalSuiteResult {printable(self.name)}: {counts}>"

    @property
    def cases(self) -> Iterator[CaseResult]:
        """The results, read one by one."""
        return map(_CASE.decode, self.entries())

    @property
    def passed(self) -> bool:
        """Has every case that was to be judged passed?"""
        return self.summary.passed == self.summary.planned

    def chunks(self) -> Iterator[bytes]:
        """The JSON document in pieces."""
        yield self.head()
        yield from self._entries() if self.written is None else self.written.entries()
        yield from self.tail()

    def head(self) -> bytes:
        """The document up to its first case."""
        return head_of(
            self.run_id,
            self.timestamp,
            self.tier,
            self.tool_name,
            self.metadata,
            self.staleness_warnings,
        )

    def tail(self) -> Iterator[bytes]:
        """The document after its last case."""
        yield b'],"summary":' + msgspec.json.encode(self.summary.to_dict())
        yield b"," + msgspec.json.encode(self._tail())[1:-1] + b',"comparability":{'
        yield from self._keys() if self.written is None else self.written.keys()
        yield b"}}"

    def _entries(self) -> Iterator[bytes]:
        for index, entry in enumerate(self.entries()):
            yield b",\n" + entry if index else entry

    def _keys(self) -> Iterator[bytes]:
        for index, (identity, key) in enumerate(self.comparability()):
            yield b"," + pair_of(identity, key) if index else pair_of(identity, key)

    def to_dict(self) -> dict[str, Any]:
        """The whole document; it holds all cases at once."""
        document: dict[str, Any] = msgspec.json.decode(b"".join(self.chunks()))
        return document

    def _tail(self) -> dict[str, Any]:
        baseline = {"baselineRunId": self.baseline_run_id} if self.baseline_run_id else {}
        return baseline | {
            "regressions": self.regressions,
            "newPasses": self.new_passes,
            "added": self.added,
            "removed": self.removed,
            "notComparable": self.not_comparable,
            "unjudged": self.unjudged,
            "suite": self.name,
            "file": self.file,
            "target": self.target,
            "options": self.options,
            "environment": self.environment,
            "statistics": self.statistics,
        }
