"""Work orders of runs: a run described by plain data, and its grader built from that anywhere.

Settings of targets and the password of the store are not part of an order: a worker reads them
where it works, from the configuration and the environment.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_all_start_methods
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from assay import registry
from assay.engine.grading import CACHED_OF_STREAM, Preparation
from assay.engine.plan import Plan
from assay.engine.redaction import RedactedJudge, SecretFreeCache
from assay.engine.run_spec import RunSpec
from assay.engine.run_targets import pool_for
from assay.engine.stream import ChunkGrader
from assay.engine.trial import TrialRunner
from assay.errors import ExecutorError, UsageError
from assay.model.events import Notice
from assay.model.options import RunOptions
from assay.model.run import RunRecord
from assay.ports import (
    Executor,
    RecordedAnswers,
    Resources,
    Store,
    Target,
    Worker,
    WorkOrder,
)
from assay.redaction import Redactor
from assay.service.bundle import hash_of, packed, unpacked
from assay.service.options import default_evaluators
from assay.service.secrets import secrets_of
from assay.service.store import open_store
from assay.settings import Settings
from assay.suites.discovery import loader_for
from assay.work_orders import keep


class RunOrder(msgspec.Struct, frozen=True):
    """What a process needs to grade the cases of one of the streamed suites of a run.

    `root` is the project, or empty if the order has its `bundle`, of which this is the hash.
    `folder` is the working directory, which paths are relative to, and relative to the root if
    it is inside. `modules` register evaluators. With a `store`, the worker saves its trials there.
    """

    run_id: str
    root: str
    folder: str
    modules: list[str]
    #: The suite: its number in the run, and its file.
    suite: int
    file: str
    #: The files of all suites, as results name them.
    files: list[str]
    options: dict[str, Any]
    #: The data of tokens, which are captured once for a run.
    sources: dict[str, Any]
    store: str = ""
    bundle: str = ""


def with_work(job: RunSpec, url: str) -> RunSpec:
    """The job with an executor, and the description of its streamed suites.

    `url` is that of the job's store, with its password.
    """
    named = job.options.executor
    name, _, address = (named or _default_executor()).partition("://")
    chosen: Any = registry.executors.get(name)  # an unknown one is reported, even if not needed
    is_remote = getattr(chosen, "remote", False)
    if is_remote and not _is_shared(job.store):
        raise UsageError(
            f"the executor {name!r} needs a store in PostgreSQL: its workers save trials "
            f"themselves, and {url.partition(':')[0]!r} is a store of this machine only"
        )
    if not any(suite.streamed for suite in job.suites):
        return job
    reason = _bound_to_process(job) if name != "local" else ""
    if reason and is_remote:
        raise UsageError(f"the executor {name!r} cannot do this run: {reason}")
    if reason:
        if named is not None:
            job.listen(Notice(f"the executor is 'local' instead of {named!r}: {reason}"))
        name, chosen = "local", registry.executors.get("local")
    saves = name != "local" and _is_shared(job.store)
    describe = partial(
        _describe, job, url, saves=saves, is_remote=is_remote, travels=is_remote and bool(address)
    )
    executor = _placed(name, chosen, address, job.options.workers_per_machine)
    return msgspec.structs.replace(job, executor=executor, describe=describe, workers_save=saves)


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


def _describe(
    job: RunSpec,
    url: str,
    record: RunRecord,
    suite: int,
    *,
    saves: bool,
    is_remote: bool,
    travels: bool,
) -> WorkOrder:
    """The order of a streamed suite; unless it is remote, this process has its worker already.

    If it `travels`, the project is sent to the workers, unless they all see its folder.
    """
    settings, here = job.settings, Path.cwd()
    bundle = packed(settings) if travels and not settings.config.shared_folder else b""
    own = {source.partition(":")[0] for source in registry.evaluators.added.values()}
    file = job.suites[suite].file
    order = RunOrder(
        run_id=record.id,
        root="" if bundle else str(settings.root),
        folder=str(here.relative_to(settings.root) if here.is_relative_to(settings.root) else here),
        modules=[*settings.config.plugins, *sorted(filter(_is_importable, own))],
        suite=suite,
        file=os.path.relpath(file) if Path(file).is_relative_to(settings.root) else file,
        files=[header.file for header in record.suites],
        options=job.options.shown(),
        sources=dict(job.sources),
        store=_without_password(url) if saves else "",
        bundle=hash_of(bundle) if bundle else "",
    )
    # Not by msgspec: names of files and tokens may have surrogates. JSON has no line break.
    details = json.dumps(msgspec.to_builtins(order)).encode() + b"\n" + bundle
    described = WorkOrder(f"{__name__}:{make_grader.__name__}", details)
    if not is_remote:
        store: Any = _LazyStore(settings, url) if saves else None
        keep(described, _grader(order, settings, job.judge, store, store or job.store))
    return described


class _Visit:
    """The stay of a worker in a process that it does not own: what it has to leave behind it."""

    def __init__(self, order: RunOrder, bundle: bytes) -> None:
        self._path, self._here = [*sys.path], Path.cwd()
        self._unpacked = unpacked(bundle, order.bundle) if order.bundle else None
        self.root = Path(self._unpacked.name if self._unpacked else order.root)
        self.worker: Worker
        self.store: _LazyStore | None = None

    def __call__(self, piece: bytes) -> bytes:
        return self.worker(piece)

    def close(self) -> None:
        """Forget also the modules of the project: for the next run they may have changed."""
        self.worker.close()
        if self.store is not None:
            self.store.close()
        own = {name for name, module in sys.modules.items() if _is_of(self.root, module)}
        registry.evaluators.forget(own)
        for name in own:
            del sys.modules[name]
        sys.path[:] = self._path
        os.chdir(self._here)
        if self._unpacked is not None:
            self._unpacked.cleanup()


def _is_of(root: Path, module: Any) -> bool:
    """Is it a module of the project, and not a package that is installed inside its folder?"""
    file = Path(getattr(module, "__file__", None) or "/")
    return file.is_relative_to(root) and not file.is_relative_to(sys.prefix)


def make_grader(details: bytes) -> Worker:
    """The worker of an order; reads the project that it names, or brings."""
    described, _, bundle = details.partition(b"\n")
    order = msgspec.convert(json.loads(described), RunOrder)
    visit = _Visit(order, bundle)
    _enter(visit.root / order.folder, order)
    settings = Settings.find(visit.root)
    settings.prepend_to_sys_path()
    for module in order.modules:
        import_module(module)
    if order.store:
        visit.store = _LazyStore(settings, _with_password(order.store, settings))
    visit.worker = _grader(order, settings, None, visit.store, visit.store)
    return visit


def _enter(folder: Path, order: RunOrder) -> None:
    """Make it the working directory; raises ExecutorError if it or the eval file is missing."""
    if order.bundle:  # git knows no empty folders
        folder.mkdir(parents=True, exist_ok=True)
        fix = "add it to git, or list it under 'bundle' in assay.yaml"
    else:
        fix = "mount it at the same path, or remove 'shared_folder' from assay.yaml to send it"
    try:
        os.chdir(folder)
        os.stat(order.file)
    except OSError as error:
        found = f"this worker has no {error.filename!s} ({error.strerror})"
        raise ExecutorError(f"{found}: {fix}") from None


def _grader(
    order: RunOrder,
    settings: Settings,
    judge: Target | None,
    store: Store | None,
    cache: Store | None,
) -> ChunkGrader:
    options = RunOptions.model_validate(order.options)
    pool = pool_for(settings, options, judge)
    redactor = Redactor(secrets_of(settings))
    resources = Resources(
        lambda target, model: RedactedJudge(pool.judge(target, model), redactor),
        order.sources,
        SecretFreeCache(cache, redactor) if options.cache and cache is not None else None,
    )
    preparation = Preparation(resources, CACHED_OF_STREAM)
    target = pool.target(str(options.target))
    trials = TrialRunner(order.run_id, order.files, lambda planned: target, preparation, redactor)
    file = Path(order.file)
    loader: Any = loader_for(file)
    suite = loader.stream(file, settings.for_file(file))
    plan = Plan((suite,), options, default_evaluators(options, settings))
    answers = cast("RecordedAnswers", target.target)
    grader = ChunkGrader(order.suite, suite.cases, plan, trials, answers, pool.close, store)
    try:
        grader.warm_up()
    except BaseException:
        grader.close()
        raise
    return grader


class _LazyStore:
    """A store that is opened when it is first used: a fork must not inherit its connections."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings, self._url = settings, url

    @cached_property
    def _store(self) -> Store:
        return open_store(self._settings, self._url)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        if "_store" in vars(self):
            self._store.close()


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    if parts.password is None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}@{host}").geturl()


def _with_password(url: str, settings: Settings) -> str:
    """The configured URL if it is the same store; else the database finds its own password."""
    configured = settings.config.store
    return configured if _without_password(configured) == url else url
