"""Names to objects, filled lazily from entry points. Built-ins enter like strangers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from assay.errors import PluginError, UnknownName

if TYPE_CHECKING:
    from assay.model.evaluator import EvaluatorSpec
    from assay.ports import Loader

T = TypeVar("T")


class Registry(Generic[T]):
    """What is registered under one entry-point group; nothing is imported until asked for."""

    def __init__(self, group: str, kind: str) -> None:
        self.group, self.kind = group, kind
        self._loaded: dict[str, T] = {}

    @cached_property
    def _entries(self) -> dict[str, list[EntryPoint]]:
        from importlib.metadata import entry_points

        entries: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=self.group):
            same = entries.setdefault(entry.name, [])
            if all(entry.value != other.value for other in same):
                same.append(entry)
        return entries

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def get(self, name: str) -> T:
        """The object called `name`; raises UnknownName, or PluginError when it is broken."""
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> T:
        entries = self._entries.get(name, [])
        if not entries:
            raise UnknownName(self.kind, name, self._entries)
        if len(entries) > 1:
            both = " and ".join(sorted(_distribution(entry) for entry in entries))
            raise PluginError(f"the {self.kind} {name!r} is registered by {both}")
        try:
            return cast(T, entries[0].load())
        except Exception as error:  # whatever a stranger's module does when it is imported
            owner = _distribution(entries[0])
            cause = f"{type(error).__name__}: {error}"
            raise PluginError(
                f"the {self.kind} {name!r} of {owner} failed to load: {cause}"
            ) from error


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


evaluators: Registry[type[EvaluatorSpec]] = Registry("assay.evaluators", "evaluator")
loaders: Registry[Loader] = Registry("assay.loaders", "loader")
