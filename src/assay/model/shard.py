"""The part of a shard's document that makes it a whole run again, together with the other shards.

The results of a case combine its trials, so they are not enough: the document of a shard also has
its run and every trial as they are stored. `assay runs merge` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw
from msgspec.structs import asdict

from assay.model.run import RunRecord, RunStatus, SuiteHeader, TrialFacts, TrialRecord

Moment = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
_FACTS = TrialFacts.__struct_fields__
_TEXTS = ("result", "observation", "content")


class ShardRun(msgspec.Struct, frozen=True, rename="camel"):
    """The run of a shard: its record without the summary."""

    id: str
    started_at: Moment
    finished_at: Moment | None
    status: RunStatus
    target: str
    plan: dict[str, Any]
    options: dict[str, Any]
    environment: dict[str, Any]
    suites: list[SuiteHeader]

    @classmethod
    def of(cls, record: RunRecord) -> ShardRun:
        return cls(*(getattr(record, name) for name in cls.__struct_fields__))

    def record(self) -> RunRecord:
        return RunRecord(**asdict(self))


class ShardTrial(TrialFacts, frozen=True):
    """A trial of a shard; `result` and the others are JSON values here, not texts."""

    result: Raw
    observation: Raw
    content: Raw

    @classmethod
    def of(cls, trial: TrialRecord) -> ShardTrial:
        texts = {name: Raw(getattr(trial, name) or b"null") for name in _TEXTS}
        return cls(**{name: getattr(trial, name) for name in _FACTS} | texts)

    def record(self, run_id: str) -> TrialRecord:
        fields = asdict(self)
        texts = {name: bytes(fields[name]) for name in _TEXTS}
        content = texts["content"].removeprefix(b"null")
        return TrialRecord(run_id, **fields | texts | {"content": content})


def chunks_of(record: RunRecord, trials: Iterable[TrialRecord]) -> Iterator[bytes]:
    """The JSON of a shard: an object with its run and its trials, in chunks."""
    yield b'{"run":' + msgspec.json.encode(ShardRun.of(record)) + b',"trials":['
    for index, trial in enumerate(trials):
        encoded = msgspec.json.encode(ShardTrial.of(trial))
        yield b",\n" + encoded if index else encoded
    yield b"]}"
