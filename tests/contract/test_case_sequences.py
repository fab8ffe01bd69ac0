"""Random sequences of calls and requests: stores and servers answer as a plain model does."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from assay.stores.memory import MemoryStore
from assay.stores.sqlite import SqliteStore
from contract.case_model import compare
from contract.rest_model import compare_requests


def test_the_store_in_memory_answers_as_the_model_does() -> None:
    compare(MemoryStore)


def test_the_store_in_a_file_answers_as_the_model_does(tmp_path: Path) -> None:
    numbers = count()
    compare(lambda: SqliteStore(tmp_path / f"{next(numbers)}.db"))


def test_a_server_of_a_file_answers_as_the_model_does(tmp_path: Path) -> None:
    numbers = count()
    compare_requests(lambda: SqliteStore(tmp_path / f"{next(numbers)}.db"))
