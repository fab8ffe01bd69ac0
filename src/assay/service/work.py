"""Work orders of runs: which executor does what of a run, described by plain data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from importlib.util import find_spec
from multiprocessing import get_all_start_methods
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from assay import registry
from assay.engine.run_spec import RunSpec
from assay.errors import UsageError
from assay.model.events import Notice
from assay.model.run import PYTHON_SUITE, TEST_CASES, RunRecord
from assay.ports import Executor, Store, WorkOrder
from assay.redaction import Redactor
from assay.service.bundle import hash_of, packed
from assay.service.secrets import secrets_of
from assay.service.store import store_to_read
from assay.service.workers import (
    LazyStore,
    RunOrder,
    grader,
    make_asker,
    make_checker,
    make_grader,
    without_password,
)
from assay.settings import OVERRIDES, Settings, environment
from assay.work_orders import keep


def with_work(job: RunSpec, url: str) -> RunSpec:
    """The job with an executor, and the description of what that does of it.

    `url` is that of the job's store, with its password.
    """
    named = job.options.executor
    name, _, address = (named or _default_executor()).partition("://")
    chosen: Any = registry.executors.get(name)  # an unknown one is reported, even if not needed
    is_remote = getattr(chosen, "remote", False) and "regraded" not in job.origin
    if not is_remote and not any(suite.streamed for suite in job.suites):
        return job
    reason = _bound_to_process(job) if name != "local" else ""
    if is_remote:
        _check_remote(job, name, url, reason)
    elif reason:
        if named is not None:
            job.listen(Notice(f"the executor is 'local' instead of {named!r}: {reason}"))
        name, chosen = "local", registry.executors.get("local")
    saves = name != "local" and _is_shared(job.store)
    description = _Description(job, url, saves, is_remote, is_remote and bool(address))
    return msgspec.structs.replace(
        job,
        executor=_placed(name, chosen, address, job.options.workers_per_machine),
        describe=description.streamed,
        describe_live=description.live if is_remote else None,
        workers_save=saves,
    )


def _check_remote(job: RunSpec, name: str, url: str, reason: str) -> None:
    """Raise UsageError if the workers of other machines cannot do this run."""
    _check_shared(job.store, name, url)
    if job.target is not None:
        reason = f"the target {job.target.name!r} is an object of this process"
    for suite in job.suites:
        if suite.file.startswith((TEST_CASES, PYTHON_SUITE)):
            reason = f"{suite.name!r} is not in an eval file, which workers could read"
    if reason:
        raise UsageError(f"the executor {name!r} cannot do this run: {reason}")


def _check_shared(store: Store, name: str, url: str) -> None:
    if not _is_shared(store):
        raise UsageError(
            f"the executor {name!r} needs a store in PostgreSQL: its workers save trials "
            f"themselves, and {url.partition(':')[0]!r} is a store of this machine only"
        )


def _default_executor() -> str:
    return "processes" if "fork" in get_all_start_methods() else "local"


def _placed(name: str, chosen: Any, address: str, workers: int | None) -> Executor:
    """The executor at an address, with so many workers per machine."""
    if hasattr(chosen, "at"):
        executor: Executor = chosen.at(address, workers)
        return executor
    if address:
        raise UsageError(f"the executor {name!r} has no address, and {address!r} is one")
    return cast("Executor", chosen())


def _bound_to_process(job: RunSpec) -> str:
    """Why no other process can do the work of this run; empty if others can."""
    if job.judge is not None:
        return f"the judge {job.judge.name!r} is an object of this process"
    if job.options.cache and not _is_shared(job.store):
        return "the store with the cached replies is open in this process"
    for name, source in registry.evaluators.added.items():
        if not _is_importable(source):
            return f"the evaluator {name!r} is defined in {source.partition(':')[0]}"
    return ""


def _is_shared(store: Store) -> bool:
    """Do other processes write to the store at the same time without waiting for each other?"""
    return getattr(store, "remote", False)


def _is_importable(source: str) -> bool:
    """Can another process import the function, written as `module:function`?"""
    module, _, function = source.partition(":")
    with suppress(ImportError, ValueError):
        return module != "__main__" and "<" not in function and find_spec(module) is not None
    return False


class _Description(NamedTuple):
    """Describes the work of a run. If it `travels`, the project is sent with it."""

    job: RunSpec
    url: str
    saves: bool
    is_remote: bool
    travels: bool

    def streamed(self, record: RunRecord, suite: int) -> WorkOrder:
        """The order of a streamed suite; unless it is remote, this process has its worker."""
        order, described = self._order(record, [suite], make_grader)
        if not self.is_remote:
            settings = self.job.settings
            store: Any = LazyStore(settings, self.url) if self.saves else None
            cache = store or self.job.store
            keep(described, grader(order, settings, self.job.judge, store, cache))
        return described

    def live(self, record: RunRecord) -> WorkOrder:
        """The order for all trials that are asked."""
        return self._order(record, range(len(self.job.suites)), make_asker)[1]

    def _order(
        self, record: RunRecord, suites: Iterable[int], maker: Callable[..., Any]
    ) -> tuple[RunOrder, WorkOrder]:
        job = self.job
        order = _project_order(
            job.settings,
            self.url if self.saves else "",
            filter(_is_importable, _registering()),
            run_id=record.id,
            group=record.group,
            suites={n: _relative(job.suites[n].file, job.settings.root) for n in suites},
            files=[header.file for header in record.suites],
            options=job.options.shown(),
            sources=dict(job.sources),
        )
        return _with_project(order, job.settings, maker, travels=self.travels)


def order_to_check(settings: Settings, url: str, name: str) -> tuple[Executor, WorkOrder] | None:
    """What checks the workers of an executor, written as for a run; None if it has none to check.

    `url` is that of the store. Raises UsageError if no run could use them.
    """
    name, _, address = name.partition("://")
    chosen: Any = registry.executors.get(name)
    executor = _placed(name, chosen, address, None)
    if not getattr(chosen, "remote", False):
        return None
    with closing(store_to_read(settings, url)) as store:
        _check_shared(store, name, url)
    order = _project_order(settings, url)
    _, described = _with_project(order, settings, make_checker, travels=bool(address))
    return executor, described


def _registering() -> list[str]:
    """The modules that have registered evaluators."""
    return sorted({source.partition(":")[0] for source in registry.evaluators.added.values()})


def _project_order(
    settings: Settings, url: str, modules: Iterable[str] = (), **values: Any
) -> RunOrder:
    """An order for the project, which is at the same path everywhere."""
    root, here = settings.root, Path.cwd()
    empty: dict[str, Any] = {"run_id": "", "suites": {}, "files": [], "options": {}, "sources": {}}
    return RunOrder(
        root=str(root),
        folder=str(here.relative_to(root) if here.is_relative_to(root) else here),
        modules=[*settings.config.plugins, *modules],
        store=without_password(url),
        variables=_variables(settings),
        **{**empty, **values},
    )


def _variables(settings: Settings) -> dict[str, str]:
    """The variables that override settings here; empty ones override nothing.

    That of the store is left out, as the order has its URL, and so are those with secrets.
    """
    redact = Redactor(frozenset(secrets_of(settings))).text
    names = set(OVERRIDES.values()) - {OVERRIDES["store"]}
    found = dict.fromkeys(sorted(names), "") | environment(names)
    return {name: text for name, text in found.items() if redact(text) == text}


def _with_project(
    order: RunOrder, settings: Settings, maker: Callable[..., Any], *, travels: bool
) -> tuple[RunOrder, WorkOrder]:
    """The order, encoded; with the files of the project if it `travels` and they are not shared."""
    bundle = b""
    if travels and not settings.config.shared_folder:
        bundle = packed(settings)
        order = msgspec.structs.replace(order, root="", bundle=hash_of(bundle))
    # Not by msgspec: names of files and tokens may have surrogates. JSON has no line break.
    details = json.dumps(msgspec.to_builtins(order)).encode() + b"\n" + bundle
    return order, WorkOrder(f"{maker.__module__}:{maker.__name__}", details)


def _relative(file: str, root: Path) -> str:
    """The path from the working directory, if it is inside the project."""
    return os.path.relpath(file) if Path(file).is_relative_to(root) else file
