"""Names to objects, filled lazily from entry points. Built-ins enter like strangers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import Distribution, EntryPoint, EntryPoints, distributions, entry_points
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from assay.errors import PluginError, UnknownName, cause_of

if TYPE_CHECKING:
    from assay.model.evaluator import EvaluatorSpec
    from assay.model.target import TargetSpec
    from assay.ports import Executor, Loader, Reporter, StoreOpener

T = TypeVar("T")
#: What is wrong with something that was loaded, to follow its name; empty when nothing is.
Fault = Callable[[Any], str]


class Registered(NamedTuple):
    """One name of a registry: where it comes from, and why it cannot be used."""

    kind: str
    name: str
    source: str
    fault: str


class Registry(Generic[T]):
    """What is registered under one entry-point group; nothing is imported until asked for."""

    def __init__(self, group: str, kind: str, fault: Fault = lambda found: "") -> None:
        self.group, self.kind = group, kind
        self._fault = fault
        self._loaded: dict[str, T] = {}
        self._added: dict[str, str] = {}

    @cached_property
    def _entries(self) -> dict[str, list[EntryPoint]]:
        entries: dict[str, list[EntryPoint]] = {}
        for entry in _installed().select(group=self.group):
            same = entries.setdefault(self._spelled(entry.name), [])
            if all(entry.value != other.value for other in same):
                same.append(entry)
        return entries

    def _spelled(self, name: str) -> str:
        """A name as it is looked up."""
        return name

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._added

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._entries, *self._added}))

    def get(self, name: str) -> T:
        """The object called `name`; raises UnknownName, or PluginError when it is broken."""
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def add(self, name: str, value: T, source: str) -> None:
        """Register an object of a project's own module; the same source may do so again."""
        name = self._spelled(name)
        if any(entry.value == source for entry in self._entries.get(name, ())):
            return  # it is an entry point too and is being loaded as one
        if name in self._entries or self._added.get(name, source) != source:
            owner = self._added.get(name) or _distribution(self._entries[name][0])
            raise PluginError(f"the {self.kind} {name!r} of {source} is there already: {owner}")
        self._loaded[name], self._added[name] = value, source

    def usable(self) -> dict[str, T]:
        """All that can be loaded; what is broken is left out."""
        found = {}
        for name in self:
            with suppress(PluginError):
                found[name] = self.get(name)
        return found

    def listed(self) -> Iterator[Registered]:
        """Everything that is registered; each is loaded to see whether it can be."""
        for name in self:
            entries = self._entries.get(name, [])
            sources = [_distribution(entry) for entry in entries] or [self._added[name]]
            fault = ""
            try:
                self.get(name)
            except PluginError as error:
                fault = str(error)
            yield Registered(self.kind, name, ", ".join(sources), fault)

    def _load(self, name: str) -> T:
        entries = self._entries.get(name, [])
        if not entries:
            raise UnknownName(self.kind, name, self)
        if len(entries) > 1:
            both = " and ".join(sorted(_distribution(entry) for entry in entries))
            raise PluginError(f"the {self.kind} {name!r} is registered by {both}")
        cause: BaseException | None = None
        try:
            found = self._meant(entries[0].load())
            fault = self._fault(found)
        # whatever a stranger's module does when it is imported or looked at
        except (Exception, SystemExit) as error:
            cause, fault = error, f"failed to load: {cause_of(error)}"
        if fault:
            what = f"the {self.kind} {name!r} of {_distribution(entries[0])}"
            raise PluginError(f"{what} {fault}") from cause
        return cast(T, found)

    def _meant(self, loaded: Any) -> Any:
        """What an entry point stands for."""
        return loaded


class _Evaluators(Registry["type[EvaluatorSpec]"]):
    """Evaluators are classes; a function with `@assay.evaluator` stands for its class."""

    def get(self, name: str) -> type[EvaluatorSpec]:
        """A function that is named in place, `python:module:function`, is called by one class."""
        return super().get("python" if name.startswith("python:") else name)

    def _spelled(self, name: str) -> str:
        """In files a type may have either sign; here it has one."""
        return name.replace("-", "_")

    def _meant(self, loaded: Any) -> Any:
        return getattr(loaded, "__assay_spec__", loaded)


@cache
def _installed() -> EntryPoints:
    """All entry points that there are: to find them, every installed package is looked at."""
    try:
        return cast(EntryPoints, entry_points())  # Python 3.11 wraps them, they `select` alike
    except Exception:  # what one package has in its metadata is no concern of all others
        return EntryPoints(_one_by_one())


def _one_by_one() -> Iterator[EntryPoint]:
    """The entry points of every package whose own can be read; the first of a name counts."""
    met: set[str] = set()
    for distribution in distributions():
        name = re.sub(r"[-_.]+", "-", _name(distribution)).lower()
        if name and name in met:
            continue
        met.add(name)
        with suppress(Exception):  # whatever stands in the files of a stranger
            yield from distribution.entry_points


def _distribution(entry: EntryPoint) -> str:
    """What messages call the package; one without a readable name, by what it registers."""
    return _name(entry.dist) or entry.value


def _name(distribution: Distribution | None) -> str:
    with suppress(Exception):  # what it says of itself may be anything, or gone
        metadata: Any = distribution.metadata if distribution is not None else {}
        return str(metadata.get("Name") or "")  # `[...]` warns where there is none
    return ""


def _no_evaluator(found: Any) -> str:
    from assay.model.evaluator import EvaluatorSpec

    if not _is_class(found, EvaluatorSpec):
        wanted = "neither a subclass of EvaluatorSpec nor a function with @assay.evaluator"
        return f"is {_shown(found)}, {wanted}"
    if _has(found, "evaluate") or _has(found, "prepare"):
        return ""
    return f"is {_shown(found)}, which has neither 'evaluate' nor 'prepare'"


def _no_target(found: Any) -> str:
    from assay.model.target import TargetSpec

    if not _is_class(found, TargetSpec):
        return f"is {_shown(found)}, not a subclass of TargetSpec"
    return "" if _has(found, "connect") else f"is {_shown(found)}, which has no 'connect'"


def _no_opener(found: Any) -> str:
    return "" if callable(found) else f"is {_shown(found)}, not a function that opens a store"


def _no_executor(found: Any) -> str:
    if _is_class(found, object) and _has(found, "run"):
        return ""
    return f"is {_shown(found)}, not a class with 'run'"


def _without(*names: str) -> Fault:
    """The fault of what lacks one of these functions: modules and objects may have them."""

    def fault(found: Any) -> str:
        missing = " and ".join(repr(name) for name in names if not _has(found, name))
        if missing:
            return f"is {_shown(found)}, which has no function {missing}"
        if any(_wants_self(found, name) for name in names):
            return f"is {_shown(found)}, not an object of it"
        return ""

    return fault


def _is_class(found: Any, base: type) -> bool:
    return isinstance(found, type) and issubclass(found, base)


def _has(found: Any, name: str) -> bool:
    return callable(getattr(found, name, None))


def _wants_self(found: Any, name: str) -> bool:
    """Is it a method of a class that nobody made an object of?"""
    if not isinstance(found, type) or not isinstance(getattr(found, name), FunctionType):
        return False
    home = next((cls for cls in found.__mro__ if name in vars(cls)), None)
    return home is not None and not isinstance(vars(home)[name], staticmethod)


def _shown(found: Any) -> str:
    kind = "class" if isinstance(found, type) else type(found).__name__
    name = getattr(found, "__name__", None)
    return f"the {kind} {name}" if name else f"an object of type {kind}"


evaluators: Registry[type[EvaluatorSpec]] = _Evaluators(
    "assay.evaluators", "evaluator", _no_evaluator
)
loaders: Registry[Loader] = Registry("assay.loaders", "loader", _without("load", "recognises"))
targets: Registry[type[TargetSpec]] = Registry("assay.targets", "target provider", _no_target)
stores: Registry[StoreOpener] = Registry("assay.stores", "store", _no_opener)
executors: Registry[type[Executor]] = Registry("assay.executors", "executor", _no_executor)
reporters: Registry[Reporter] = Registry("assay.reporters", "reporter", _without("write"))
