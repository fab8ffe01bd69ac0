"""What workers of a run do: built from plain data in any process, on any machine.

Settings of targets and the password of the store are not part of an order: a worker reads them
where it works, from the configuration and the environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from socket import gethostname
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from assay import registry
from assay.engine.grading import CACHED_OF_STREAM, Preparation
from assay.engine.live_pieces import LiveWorker
from assay.engine.plan import Plan
from assay.engine.redaction import RedactedJudge, SecretFreeCache
from assay.engine.run_targets import pool_for, target_name
from assay.engine.stream import ChunkGrader
from assay.engine.trial import TrialRunner
from assay.errors import ExecutorError, NotInStore, error_for
from assay.model.options import RunOptions
from assay.ports import RecordedAnswers, Resources, Store, Target, Worker
from assay.redaction import Redactor
from assay.service.bundle import unpacked
from assay.service.eval_files import load_file
from assay.service.options import default_evaluators
from assay.service.secrets import secrets_of
from assay.service.store import open_store
from assay.settings import Settings, environment
from assay.suites.discovery import loader_for
from assay.targets.pool.target_pool import TargetPool

#: Not a valid name of a baseline, so removing it is a write that changes nothing.
NO_BASELINE = "\x00doctor"


class RunOrder(msgspec.Struct, frozen=True):
    """What a process needs to do a part of a run.

    `root` is the project, or empty if the order has its `bundle`, of which this is the hash.
    `folder` is the working directory, which paths are relative to, and relative to the root if
    it is inside. `modules` register evaluators. With a `store`, the worker saves its trials there.
    `variables` of the environment override settings in place of those of the worker.
    """

    run_id: str
    root: str
    folder: str
    modules: list[str]
    #: The suites to load: their numbers in the run, and their files.
    suites: dict[int, str]
    #: The files of all suites, as results name them.
    files: list[str]
    options: dict[str, Any]
    #: The data of tokens, which are captured once for a run.
    sources: dict[str, Any]
    store: str = ""
    bundle: str = ""
    group: str | None = None
    variables: dict[str, str] = {}


#: Makes the worker of an order, with the settings and the store of its process.
MakeWorker = Callable[[RunOrder, Settings, "LazyStore | None"], Worker]


class _Visit:
    """The stay of a worker in a process that it does not own: what it has to leave behind it."""

    def __init__(self, order: RunOrder, bundle: bytes) -> None:
        self._path, self._here = [*sys.path], Path.cwd()
        self._before = dict.fromkeys(order.variables, "") | environment(order.variables)
        self._unpacked = unpacked(bundle, order.bundle) if order.bundle else None
        self.root = Path(self._unpacked.name if self._unpacked else order.root)
        self.worker: Worker | None = None
        self.store: LazyStore | None = None

    def begin(self, order: RunOrder, make: MakeWorker) -> None:
        os.environ.update(order.variables)
        _enter(self.root / order.folder, order)
        settings = Settings.find(self.root)
        settings.prepend_to_sys_path()
        for module in order.modules:
            import_module(module)
        if order.store:
            self.store = LazyStore(settings, _with_password(order.store, settings))
        self.worker = make(order, settings, self.store)

    def __call__(self, piece: bytes) -> bytes:
        return cast("Worker", self.worker)(piece)

    def close(self) -> None:
        """Forget also the modules of the project: for the next run they may have changed."""
        if self.worker is not None:
            self.worker.close()
        if self.store is not None:
            self.store.close()
        own = {name for name, module in sys.modules.items() if _is_of(self.root, module)}
        registry.evaluators.forget(own)
        for name in own:
            del sys.modules[name]
        sys.path[:] = self._path
        os.chdir(self._here)
        os.environ.update(self._before)
        if self._unpacked is not None:
            self._unpacked.cleanup()


def _is_of(root: Path, module: Any) -> bool:
    """Is it a module of the project, and not a package that is installed inside its folder?"""
    file = Path(getattr(module, "__file__", None) or "/")
    return file.is_relative_to(root) and not file.is_relative_to(sys.prefix)


def make_grader(details: bytes) -> Worker:
    """The worker that grades a streamed suite; reads the project that the order names, or has."""

    def make(order: RunOrder, settings: Settings, store: LazyStore | None) -> Worker:
        return grader(order, settings, None, store, store)

    return _made(details, make)


def make_asker(details: bytes) -> Worker:
    """The worker that asks live targets."""
    return _made(details, _asker)


def make_checker(details: bytes) -> Worker:
    """The worker that checks whether runs could be done in its process."""
    return _made(details, lambda order, settings, store: _Checker(store))


class _Checker:
    """Writes to the store, and returns the names of its machine and process."""

    def __init__(self, store: LazyStore | None) -> None:
        self._store: Any = store

    def __call__(self, piece: bytes) -> bytes:
        with suppress(NotInStore):
            self._store.remove_baseline(NO_BASELINE)
        return f"{gethostname()} {os.getpid()}".encode()

    def close(self) -> None:
        """There is nothing to close."""


def _made(details: bytes, make: MakeWorker) -> Worker:
    described, _, bundle = details.partition(b"\n")
    order = msgspec.convert(json.loads(described), RunOrder, strict=False)
    visit = _Visit(order, bundle)
    try:
        visit.begin(order, make)
    except BaseException:
        visit.close()  # for the next order
        raise
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
        for file in order.suites.values():
            os.stat(file)
    except OSError as error:
        found = f"this worker has no {error.filename!s} ({error.strerror})"
        raise ExecutorError(f"{found}: {fix}") from None


def grader(
    order: RunOrder,
    settings: Settings,
    judge: Target | None,
    store: Store | None,
    cache: Store | None,
) -> ChunkGrader:
    """The worker for the only suite of an order; with a `store`, it saves trials there."""
    options = RunOptions.model_validate(order.options)
    pool = pool_for(settings, options, judge)
    redactor = Redactor(secrets_of(settings))
    preparation = Preparation(_resources(order, options, pool, redactor, cache), CACHED_OF_STREAM)
    target = pool.target(str(options.target))
    trials = TrialRunner(order.run_id, order.files, lambda planned: target, preparation, redactor)
    ((number, name),) = order.suites.items()
    file = Path(name)
    loader: Any = loader_for(file)
    suite = loader.stream(file, settings.for_file(file))
    plan = Plan((suite,), options, default_evaluators(options, settings))
    answers = cast("RecordedAnswers", target.target)
    made = ChunkGrader(number, suite.cases, plan, trials, answers, pool.close, store)
    try:
        made.warm_up()
    except BaseException:
        made.close()
        raise
    return made


def _asker(order: RunOrder, settings: Settings, store: Any) -> Worker:
    options = RunOptions.model_validate(order.options)
    suites = []
    for _, name in sorted(order.suites.items()):
        suite, problems = load_file(Path(name), settings.for_file(Path(name)))
        if suite is None:
            raise error_for(problems) or ExecutorError(f"this worker cannot load {name!r}")
        suites.append(suite)
    plan = Plan(suites, options, default_evaluators(options, settings))
    pool = pool_for(settings, options, None, None, plan.workers, store.permits)
    redactor = Redactor(secrets_of(settings))
    resources = _resources(order, options, pool, redactor, store)
    trials = TrialRunner(
        order.run_id,
        order.files,
        lambda planned: pool.target(target_name(planned.case, options, settings)),
        Preparation(resources),
        redactor,
        resources.cache,
        options.timeout_seconds,
    )
    return LiveWorker(plan, trials, store, pool.close, order.group or order.run_id)


def _resources(
    order: RunOrder,
    options: RunOptions,
    pool: TargetPool,
    redactor: Redactor,
    cache: Store | None,
) -> Resources:
    return Resources(
        lambda target, model: RedactedJudge(pool.judge(target, model), redactor),
        order.sources,
        SecretFreeCache(cache, redactor) if options.cache and cache is not None else None,
    )


class LazyStore:
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


def without_password(url: str) -> str:
    parts = urlsplit(url)
    if parts.password is None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}@{host}").geturl()


def _with_password(url: str, settings: Settings) -> str:
    """The configured URL if it is the same store; else the database finds its own password."""
    configured = settings.config.store
    return configured if without_password(configured) == url else url
