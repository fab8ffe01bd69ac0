"""Names to objects: entry points, loaded lazily, and functions of a project.

Built-ins are registered in the same way as plugins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
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
import os
import traceback
from importlib import import_module

from assay.errors import AssayError, nearest
from assay.problems import MAX_MESSAGE
from assay.redaction import cut
from assay.text import printable

T = TypeVar("T")
#: Says what is wrong with a loaded object, as the rest of a sentence; empty when it is valid.
FindFault = Callable[[Any], str]


class Registered(NamedTuple):
    """One name of a registry: where it comes from, and why it cannot be used, if so."""

    kind: str
    name: str
    source: str
    fault: str


class Registry(Generic[T]):
    """The objects of one entry-point group; each is imported when it is first needed."""

    def __init__(self, group: str, kind: str, find_fault: FindFault = lambda loaded: "") -> None:
        self.group, self.kind = group, kind
        self._find_fault = find_fault
        self._loaded: dict[str, T] = {}
        #: The sources of the names that did not come from entry points.
        self._added: dict[str, str] = {}

    @cached_property
    def _entries(self) -> dict[str, list[EntryPoint]]:
        entries: dict[str, list[EntryPoint]] = {}
        for entry in _installed().select(group=self.group):
            same = entries.setdefault(self._normalized(entry.name), [])
            if all(entry.value != other.value for other in same):
                same.append(entry)
        return entries

    def _normalized(self, name: str) -> str:
        """The name as a key of this registry."""
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
        """Register an object of a project's own module. The same source may register it again."""
        name = self._normalized(name)
        if any(entry.value == source for entry in self._entries.get(name, ())):
            return  # it is an entry point too, and is being loaded as that
        if name in self._entries or self._added.get(name, source) != source:
            owner = self._added.get(name) or _distribution(self._entries[name][0])
            raise PluginError(
                f"the {self.kind} {name!r} of {source} is already registered: {owner}"
            )
        self._loaded[name], self._added[name] = value, source

    def forget(self, modules: Collection[str]) -> None:
        """Undo what these modules have registered."""
        for name in [n for n, s in self._added.items() if s.partition(":")[0] in modules]:
            del self._added[name], self._loaded[name]

    @property
    def added(self) -> Mapping[str, str]:
        """The names of objects that did not come from entry points, each with its source."""
        return self._added

    def usable(self) -> dict[str, T]:
        """All objects that can be loaded, by name."""
        found = {}
        for name in self:
            with suppress(PluginError):
                found[name] = self.get(name)
        return found

    def listed(self) -> Iterator[Registered]:
        """All names that are registered. Each is loaded to see whether it can be used."""
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
            loaded = self._unwrap(entries[0].load())
            fault = self._find_fault(loaded)
        # a plugin may do anything when it is imported or inspected
        except (Exception, SystemExit) as error:
            cause, fault = error, f"failed to load: {cause_of(error)}"
        if fault:
            what = f"the {self.kind} {name!r} of {_distribution(entries[0])}"
            raise PluginError(f"{what} {fault}") from cause
        return cast(T, loaded)

    def _unwrap(self, loaded: Any) -> Any:
        """The object to register, given what the entry point loads."""
        return loaded


class _Evaluators(Registry["type[EvaluatorSpec]"]):
    """Evaluators are classes; a function with `@assay.evaluator` is replaced by its class."""

    def get(self, name: str) -> type[EvaluatorSpec]:
        """All types of the form `python:module:function` share one class."""
        return super().get("python" if name.startswith("python:") else name)

    def _normalized(self, name: str) -> str:
        """Files may write a type with `-` or `_`."""
        return name.replace("-", "_")

    def _unwrap(self, loaded: Any) -> Any:
        return getattr(loaded, "__assay_spec__", loaded)


@cache
def _installed() -> EntryPoints:
    """All entry points, cached because finding them reads the metadata of every package."""
    try:
        return cast(EntryPoints, entry_points())  # Python 3.11 returns a similar class
    except Exception:  # broken metadata of one package must not affect the others
        return EntryPoints(_readable())


def _readable() -> Iterator[EntryPoint]:
    """The entry points of all packages that have readable ones; the first of each name counts."""
    seen: set[str] = set()
    for distribution in distributions():
        name = re.sub(r"[-_.]+", "-", _name(distribution)).lower()
        if name and name in seen:
            continue
        seen.add(name)
        with suppress(Exception):  # the metadata may be malformed
            yield from distribution.entry_points


def _distribution(entry: EntryPoint) -> str:
    """The package as messages name it: without a readable name, by what it registers."""
    return _name(entry.dist) or entry.value


def _name(distribution: Distribution | None) -> str:
    with suppress(Exception):  # the metadata may be malformed or missing
        metadata: Any = distribution.metadata if distribution is not None else {}
        return str(metadata.get("Name") or "")  # `[...]` would warn when it is missing
    return ""


def _evaluator_fault(loaded: Any) -> str:
    from assay.model.evaluator import EvaluatorSpec

    if not _is_class(loaded, EvaluatorSpec):
        wanted = "neither a subclass of EvaluatorSpec nor a function with @assay.evaluator"
        return f"is {_describe(loaded)}, {wanted}"
    if _has(loaded, "evaluate") or _has(loaded, "prepare"):
        return ""
    return f"is {_describe(loaded)}, which has neither 'evaluate' nor 'prepare'"


def _target_fault(loaded: Any) -> str:
    from assay.model.target import TargetSpec

    if not _is_class(loaded, TargetSpec):
        return f"is {_describe(loaded)}, not a subclass of TargetSpec"
    return "" if _has(loaded, "connect") else f"is {_describe(loaded)}, which has no 'connect'"


def _opener_fault(loaded: Any) -> str:
    return "" if callable(loaded) else f"is {_describe(loaded)}, not a function that opens a store"


def _executor_fault(loaded: Any) -> str:
    if _is_class(loaded, object) and _has(loaded, "run"):
        return ""
    return f"is {_describe(loaded)}, not a class with 'run'"


def _requires(*names: str) -> FindFault:
    """Checks that a module or an object has all of these functions."""

    def fault(loaded: Any) -> str:
        missing = " and ".join(repr(name) for name in names if not _has(loaded, name))
        if missing:
            return f"is {_describe(loaded)}, which has no function {missing}"
        if any(_needs_instance(loaded, name) for name in names):
            return f"is {_describe(loaded)}, not an instance of it"
        return ""

    return fault


def _is_class(loaded: Any, base: type) -> bool:
    return isinstance(loaded, type) and issubclass(loaded, base)


def _has(loaded: Any, name: str) -> bool:
    return callable(getattr(loaded, name, None))


def _needs_instance(loaded: Any, name: str) -> bool:
    """Is it a method that needs an instance, although only the class is registered?"""
    if not isinstance(loaded, type) or not isinstance(getattr(loaded, name), FunctionType):
        return False
    home = next((cls for cls in loaded.__mro__ if name in vars(cls)), None)
    return home is not None and not isinstance(vars(home)[name], staticmethod)


def _describe(loaded: Any) -> str:
    kind = "class" if isinstance(loaded, type) else type(loaded).__name__
    name = getattr(loaded, "__name__", None)
    return f"the {kind} {name}" if name else f"an object of type {kind}"


evaluators: Registry[type[EvaluatorSpec]] = _Evaluators(
    "assay.evaluators", "evaluator", _evaluator_fault
)
loaders: Registry[Loader] = Registry("assay.loaders", "loader", _requires("load", "recognises"))
targets: Registry[type[TargetSpec]] = Registry("assay.targets", "target provider", _target_fault)
stores: Registry[StoreOpener] = Registry("assay.stores", "store", _opener_fault)
executors: Registry[type[Executor]] = Registry("assay.executors", "executor", _executor_fault)
reporters: Registry[Reporter] = Registry("assay.reporters", "reporter", _requires("write"))


_ABSENT = object()


def imported(reference: str, failure: Callable[[str], AssayError]) -> Callable[..., Any]:
    """The function; raises `failure(message)` if it cannot be imported or called."""
    label = f"python:{reference}"
    module, _, names = reference.partition(":")
    try:
        found: Any = import_module(module)
        for name in names.split("."):
            home, found = found, getattr(found, name, _ABSENT)
            if found is _ABSENT:
                break
    except (Exception, SystemExit) as error:  # a project's module may raise anything on import
        if isinstance(error, ModuleNotFoundError) and _is_self_or_parent(error.name, module):
            message = f"{label}: there is no module {error.name!r}"
            raise failure(f"{message} in the project or the installed packages") from None
        raise failure(f"{label} could not be imported: {raised(error)}") from error
    if found is _ABSENT:
        raise failure(f"{label}: {module!r} has no {name!r}{_hint(name, home)}")
    if not callable(found):
        raise failure(f"{label} is {type(found).__name__}, not a function")
    function: Callable[..., Any] = found
    return function


def _hint(name: str, home: Any) -> str:
    hint = nearest(name, [known for known in dir(home) if not known.startswith("_")])
    return f" ({hint})" if hint else ""


def _is_self_or_parent(missing: str | None, module: str) -> bool:
    """Is the missing module the wanted one or a parent of it, not one that it imports?"""
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def raised(error: BaseException) -> str:
    """The type, message and line of an exception from a project's code."""
    frames = traceback.extract_tb(error.__traceback__)
    known = frames and not frames[-1].filename.startswith("<frozen")
    at = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if known else ""
    return printable(cut(cause_of(error), MAX_MESSAGE - len(at), "both")) + at
