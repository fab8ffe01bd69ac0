"""Random sequences of calls: every store answers as a plain model of test cases does."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from assay.stores.memory import MemoryStore
from assay.stores.sqlite import SqliteStore
from contract.case_model import compare


def test_the_store_in_memory_answers_as_the_model_does() -> None:
    compare(MemoryStore)


def test_the_store_in_a_file_answers_as_the_model_does(tmp_path: Path) -> None:
    numbers = count()
    compare(lambda: SqliteStore(tmp_path / f"{next(numbers)}.db"))
