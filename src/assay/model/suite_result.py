"""EvalSuiteResult: the result of a suite in one run, and the result file that it becomes.

A suite may have a million cases. They are never kept in memory: they are read one by one each
time, and the file is written in chunks. `ResultFile` is the whole of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from assay.model.case import Tier
from assay.model.result import CaseResult, Count, decode_case
from assay.model.run import SuiteMetadata, TrialRecord
from assay.model.score import Amount, Share
from assay.record import Record
from assay.text import printable


class Summary(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Counts of cases: totalCases = passed + failed + errored + skipped.

    `coverage` is judged / planned; None when nothing is planned, or unknown. `selected` is how many
    cases the run was to ask, if it did not reach all of them. `comparability` is a hash of what all
    cases ask and expect: pass rates with the same one compare as a whole.
    """

    total_cases: Count
    passed: Count
    failed: Count
    errored: Count
    skipped: Count
    skipped_assertions: Count
    total_duration_ms: Amount
    coverage: Share | None
    estimated_cost_usd: Amount | None = None
    judge_cost_usd: Amount | None = None
    selected: Count | None = None
    comparability: str | None = None

    @property
    def judged(self) -> int:
        return self.passed + self.failed

    @property
    def planned(self) -> int:
        """The cases that should have been judged."""
        return max(self.total_cases, self.selected or 0) - self.skipped

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a result file."""
        result: dict[str, Any] = msgspec.to_builtins(self)
        return result


class ResultHead(Record, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The keys of a result file that precede its cases."""

    run_id: Annotated[str, Meta(description="a UUID, the same for all suites of a run")]
    timestamp: Annotated[str, Meta(description="ISO 8601")]
    tier: Tier
    tool_name: str
    metadata: SuiteMetadata
    staleness_warnings: Sequence[str]

    def head(self) -> bytes:
        """A result file up to its first case."""
        return _encoded(ResultHead, self)[:-1] + b',"cases":['


class ResultBody(ResultHead, frozen=True, kw_only=True):
    """All keys of a result file, except for those that have a value for each case."""

    summary: Summary
    baseline_run_id: str | None = None
    regressions: Annotated[Sequence[str], Meta(description="passed in the baseline, fail now")]
    new_passes: Annotated[Sequence[str], Meta(description="failed in the baseline, pass now")]
    added: Sequence[str]
    removed: Sequence[str]
    not_comparable: Sequence[str]
    unjudged: Sequence[str]
    name: str = field(name="suite")
    file: str
    target: str
    options: dict[str, Any]
    environment: dict[str, Any]
    statistics: dict[str, Any]


class ResultFile(ResultBody, frozen=True, kw_only=True):
    """The results of a suite in one run."""

    cases: Sequence[CaseResult]
    comparability: Annotated[
        dict[str, str], Meta(description="by case: results compare when it is the same")
    ]


def _encoded(part: type[ResultHead], result: ResultHead) -> bytes:
    """The JSON of the keys that `part` has."""
    return msgspec.json.encode(part(**{n: getattr(result, n) for n in part.__struct_fields__}))


def pair_of(identity: str, key: str) -> bytes:
    """A case and its comparability key, as in a result file."""
    return b'%b:"%b"' % (msgspec.json.encode(identity), key.encode())


class EvalSuiteResult(ResultBody, frozen=True, kw_only=True):
    """The result of a suite. `entries` reads the JSON of every case, in file order.

    `records` reads every entry with the trials of its case; it is None if only the entries are
    known. `comparability` reads the id and the comparability key of every case. `regressions` and
    the other lists of ids refer to the baseline, and are empty without one.
    """

    entries: Callable[[], Iterator[bytes]]
    records: Callable[[], Iterator[tuple[bytes, list[TrialRecord]]]] | None = None
    comparability: Callable[[], Iterator[tuple[str, str]]] = lambda: iter(())
    notes: Sequence[str] = ()

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
        yield from self._entries()
        yield from self.tail()

    def tail(self) -> Iterator[bytes]:
        """The document after its last case."""
        keys = _encoded(ResultBody, self)[len(_encoded(ResultHead, self)) - 1 : -1]
        yield b"]" + keys + b',"comparability":{'
        yield from self._keys()
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
