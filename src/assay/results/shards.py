"""Reads the document that `assay run --shard i/n` writes, with all of its trials."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from assay.errors import ResultFileError
from assay.model.case_content import CaseContent
from assay.model.result import decode_trial
from assay.model.run import RunRecord, SuiteHeader, place_of
from assay.model.shard import ShardRun, ShardTrial
from assay.results.files import read_document
from assay.settings import shown_path
from assay.text import printable

#: The largest number in a trial: any store can hold it.
_MAX_NUMBER = 2**53
_TOO_LARGE = "use more shards, or record all of them in one store"


class _Shard(msgspec.Struct):
    run: ShardRun
    trials: list[ShardTrial]


class _Document(msgspec.Struct):
    shard: _Shard | None = None


_decode_document = msgspec.json.Decoder(_Document).decode


class ShardFile(msgspec.Struct, frozen=True):
    """The run of a file, and a function that reads its trials."""

    record: RunRecord
    trials: Callable[[], Iterator[ShardTrial]]


def read_shard(file: Path) -> ShardFile:
    """Open the document of a shard; raises ResultFileError if it is something else, or broken.

    The file is read again for the trials, so that those of many files need not be held at once.
    """
    shard, name = _read(file), shown_path(file)
    record = shard.run.record()
    with _wrap_errors(f"{name}: the judges of the shard"):
        _ = record.judges
    deque(_checked(shard, name), maxlen=0)
    return ShardFile(record, partial(_trials, file))


def _trials(file: Path) -> Iterator[ShardTrial]:
    return _checked(_read(file), shown_path(file))


def _read(file: Path) -> _Shard:
    found = read_document(file, _decode_document, _TOO_LARGE)
    if found.shard is None:
        wanted = "the document of a shard, written by `assay run --shard i/n -o FILE.json`"
        raise ResultFileError(f"{shown_path(file)}: there is no 'shard': expected {wanted}")
    return found.shard


def _checked(shard: _Shard, name: str) -> Iterator[ShardTrial]:
    """The trials, each as our stores keep it."""
    for number, trial in enumerate(shard.trials, 1):
        with _wrap_errors(f"{name}: trial {number} of the shard"):
            _check_facts(trial, shard.run.suites)
            decode_trial(trial.result)
            result: dict[str, Any] = msgspec.json.decode(trial.result)
            observation = msgspec.json.decode(trial.observation, type=dict[str, Any])
            content = msgspec.json.decode(trial.content, type=CaseContent | None)
        # A file may have been laid out anew. Stores expect compact JSON, with the details last.
        ordered = result | {"details": result.pop("details")}
        yield replace(
            trial,
            result=Raw(msgspec.json.encode(ordered)),
            observation=Raw(msgspec.json.encode(observation)),
            content=Raw(msgspec.json.encode(content)),
        )


@contextmanager
def _wrap_errors(place: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError) as error:  # those of msgspec are ValueErrors
        raise ResultFileError(f"{place}: {printable(str(error))}") from None


def _check_facts(trial: ShardTrial, suites: list[SuiteHeader]) -> None:
    numbers = (trial.position, trial.repeat, trial.skipped_assertions)
    if not all(0 <= number <= _MAX_NUMBER for number in numbers):
        raise ValueError(f"a number is not from 0 to {_MAX_NUMBER:,}")
    suite = place_of(trial.position)[0]
    if suite >= len(suites) or trial.suite != suites[suite].file:
        raise ValueError(f"{trial.suite!r} is not suite {suite + 1} of the run")
