"""People's labels, in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from assay.model.label import AnswerLabel, LabelKey

_KEY = LabelKey.__struct_fields__


class MemoryLabels:
    """Behaves like labels in a database. `open_` returns the lock, if the store is open."""

    def __init__(self, open_: Callable[[], AbstractContextManager[object]]) -> None:
        self._open = open_
        self._labels: dict[tuple[str | int, ...], AnswerLabel] = {}

    def put(self, *labels: AnswerLabel) -> None:
        with self._open():
            self._labels |= {_key(label): label for label in labels}

    def remove(self, key: LabelKey) -> bool:
        with self._open():
            return self._labels.pop(_key(key), None) is not None

    def of_run(self, run_id: str) -> list[AnswerLabel]:
        with self._open():
            return [label for _, label in sorted(self._labels.items()) if label.run_id == run_id]


def _key(label: LabelKey) -> tuple[str | int, ...]:
    return tuple(getattr(label, name) for name in _KEY)
