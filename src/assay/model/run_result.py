"""RunResult: a run with the results of all its suites, for reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from assay.model.comparison import CaseRef, Comparison, GateVerdict
from assay.model.comparison_tables import ComparisonTables
from assay.model.run import RunRecord, TrialRecord
from assay.model.shard import chunks_of
from assay.model.suite_result import EvalSuiteResult, Summary
from assay.record import Record

#: If several exit codes apply, the first of these is used.
PRECEDENCE = (130, 2, 5, 1, 3, 4)


class Baseline(Record, frozen=True):
    """Reads what reports show of the run that a run was compared with.

    `answer` is its answer to a case that the comparison names. `tables` counts the pairs by suite
    and by tag. Both are None if it is not in the store any more.
    """

    answer: Callable[[CaseRef], str | None]
    tables: Callable[[], ComparisonTables | None]


class RunResult(Record, frozen=True):
    """The result of a run. `reasons` explain the exit code.

    `statistics` are about all suites together. `folder` has the result files, if any were written.
    `baseline` is there if the run was compared.
    `trials` reads all trials of a shard, which its JSON document has too; None for other runs.
    """

    record: RunRecord
    suites: tuple[EvalSuiteResult, ...]
    summary: Summary
    exit_code: int = 0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    comparison: Comparison | None = None
    statistics: Mapping[str, Any] = {}
    folder: str = ""
    trials: Callable[[], Iterator[TrialRecord]] | None = None
    baseline: Baseline | None = None

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def target(self) -> str:
        return self.record.target

    @property
    def verdict(self) -> GateVerdict:
        """Failed, passed, or inconclusive, as for a run that could not be judged to the end."""
        if self.exit_code == 0:
            return "passed" if self.comparison is None else self.comparison.verdict
        return "failed" if self.exit_code == 1 else "inconclusive"

    @property
    def passed(self) -> bool:
        """Would `assay run` exit with 0?"""
        return self.exit_code == 0

    def chunks(self) -> Iterator[bytes]:
        """The JSON document of `assay run --json`, in chunks."""
        head = {"runId": self.id, "verdict": self.verdict}
        yield msgspec.json.encode(head)[:-1] + b',"suites":['
        for index, suite in enumerate(self.suites):
            if index:
                yield b","
            yield from suite.chunks()
        tail: dict[str, Any] = {"exitCode": self.exit_code}
        if self.comparison is not None:
            tail = {"comparison": self.comparison.to_dict()} | tail
        yield b"]," + msgspec.json.encode(tail)[1:-1]
        if self.trials is not None:
            yield b',"shard":'
            yield from chunks_of(self.record, self.trials())
        yield b"}"

    def to_dict(self) -> dict[str, Any]:
        """The whole document, with all cases in memory."""
        document: dict[str, Any] = msgspec.json.decode(b"".join(self.chunks()))
        return document
