"""Work orders of runs: a run described by plain data, and its grader built from that anywhere.

Settings of targets and the password of the store are not part of an order: a worker reads them
where it works, from the configuration and the environment.
"""

from __future__ import annotations

import json
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
from assay.model.events import Notice
from assay.model.options import RunOptions
from assay.model.run import RunRecord
from assay.ports import RecordedAnswers, Resources, Store, Target, WorkOrder
from assay.redaction import Redactor
from assay.service.options import default_evaluators
from assay.service.secrets import secrets_of
from assay.service.store import open_store
from assay.settings import Settings
from assay.suites.discovery import loader_for
from assay.work_orders import keep


class RunOrder(msgspec.Struct, frozen=True):
    """What a process needs to grade the cases of one of the streamed suites of a run.

    `modules` register evaluators. With a `store`, the worker saves its trials there.
    """

    run_id: str
    root: str
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


def with_work(job: RunSpec, url: str) -> RunSpec:
    """The job with an executor, and the description of its streamed suites.

    `url` is that of the job's store, with its password.
    """
    named = job.options.executor
    if named is not None:
        registry.executors.get(named)  # an unknown name is reported, even if it is not needed
    if not any(suite.streamed for suite in job.suites):
        return job
    chosen = named or ("processes" if "fork" in get_all_start_methods() else "local")
    if chosen != "local" and (reason := _bound_to_process(job)):
        if named is not None:
            job.listen(Notice(f"the executor is 'local' instead of {named!r}: {reason}"))
        chosen = "local"
    saves = chosen != "local" and _is_shared(job.store)
    describe = partial(_describe, job, url, saves=saves)
    return msgspec.structs.replace(job, executor=chosen, describe=describe)


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


def _describe(job: RunSpec, url: str, record: RunRecord, suite: int, *, saves: bool) -> WorkOrder:
    """The order of a streamed suite; this process has its worker already."""
    own = {source.partition(":")[0] for source in registry.evaluators.added.values()}
    order = RunOrder(
        run_id=record.id,
        root=str(job.settings.root),
        modules=[*job.settings.config.plugins, *sorted(filter(_is_importable, own))],
        suite=suite,
        file=job.suites[suite].file,
        files=[header.file for header in record.suites],
        options=job.options.shown(),
        sources=dict(job.sources),
        store=_without_password(url) if saves else "",
    )
    # Not by msgspec: names of files and tokens may have surrogates.
    details = json.dumps(msgspec.to_builtins(order)).encode()
    described = WorkOrder(f"{__name__}:{make_grader.__name__}", details)
    store = _LazyStore(job.settings, url) if saves else None
    keep(described, _grader(order, job.settings, job.judge, store, store or job.store))
    return described


def make_grader(details: bytes) -> ChunkGrader:
    """The worker of an order; reads the project that it names."""
    order = msgspec.convert(json.loads(details), RunOrder)
    settings = Settings.find(Path(order.root))
    settings.prepend_to_sys_path()
    for module in order.modules:
        import_module(module)
    store = _LazyStore(settings, _with_password(order.store, settings)) if order.store else None
    return _grader(order, settings, None, store, store)


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
