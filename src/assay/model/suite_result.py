"""EvalSuiteResult: the result of a suite in one run, and its JSON.

A suite may have a million cases. They are never kept in memory: they are read one by one each
time, and the document is written in chunks.
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
    """The stored result of one case over all repeats: an entry of a result file."""

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
        """The file and line of the case; an empty name when unknown."""
        file, _, line = str(self.details.get("source", "")).rpartition(":")
        return (file, int(line)) if line.isdigit() else ("", 0)

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Every repeat: its `outcome`, `score`, `durationMs` and `error`."""
        return list(self.details.get("trials", ()))


#: Decodes the JSON of a `CaseResult`.
decode_case = msgspec.json.Decoder(CaseResult).decode


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """Counts of cases. `coverage` is judged / planned; None when nothing is planned, or unknown.

    `selected` is how many cases the run was to ask, if it did not reach all of them.
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
        """The JSON of a result file, without nulls except for the coverage."""
        result: dict[str, Any] = msgspec.to_builtins(self)
        return {k: v for k, v in result.items() if v is not None or k == "coverage"}


class Written(Protocol):
    """The cases of a suite and their comparability keys as in a result file, in any chunks."""

    def entries(self) -> Iterator[bytes]: ...
    def keys(self) -> Iterator[bytes]: ...
    def becomes(self, file: Path, head: bytes, tail: Iterator[bytes]) -> bool:
        """Turn it into the file, with what precedes and follows the cases; False if it cannot."""
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
    """A case and its comparability key, as in a result file."""
    return b'%b:"%b"' % (msgspec.json.encode(identity), key.encode())


class EvalSuiteResult(Record, frozen=True):
    """The result of a suite. `entries` reads the JSON of every case, in file order.

    `comparability` reads the id and the comparability key of every case. `written` has both as in
    a result file, if they were spooled. `regressions` and the other lists of ids refer to the
    baseline, and are empty without one.
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
        """A short form for notebooks: the fields would fill a page."""
        counts = f"{self.summary.passed} of {self.summary.total_cases} passed"
        return f"<EvalSuiteResult {printable(self.name)}: {counts}>"

    @property
    def cases(self) -> Iterator[CaseResult]:
        """The results, read one by one."""
        return map(decode_case, self.entries())

    @property
    def passed(self) -> bool:
        """Did every planned case pass?"""
        return self.summary.passed == self.summary.planned

    def chunks(self) -> Iterator[bytes]:
        """The JSON document in chunks."""
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
        """The whole document, with all cases in memory."""
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
