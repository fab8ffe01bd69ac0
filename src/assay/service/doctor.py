"""The verb of `assay doctor`: checks whether a run has everything that it needs.

Targets are not asked anything; only their addresses are tried.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from assay.blocking import wait_for
from assay.engine.provenance import environment_of
from assay.errors import AssayError, ConfigError, EvalFileErrors, NotInStore, StoreError
from assay.model.target import Need, TargetSpec
from assay.ports import Executor, WorkOrder
from assay.redaction import Redactor
from assay.seed_manifest import Seeds
from assay.service.project import find_settings, plugins
from assay.service.secrets import secrets_of
from assay.service.store import open_store
from assay.service.work import order_to_check
from assay.service.workers import NO_BASELINE
from assay.settings import Settings, shown_path
from assay.suites.staleness import load_registry
from assay.targets.pool.agentv import targets_file
from assay.targets.pool.needs import program_path, shortfall
from assay.targets.pool.target_pool import TargetPool, connected
from assay.text import count

State = Literal["ok", "warning", "problem"]

#: How long a server may take to accept a connection.
CONNECT_TIMEOUT_SECONDS = 3.0
#: Less free space than this is a warning, or a problem.
LOW_DISK_BYTES, FULL_DISK_BYTES = 1 << 30, 50 << 20
#: How many times each worker of a cluster is asked, so that most of them are reached.
_CHECKS_PER_WORKER = 4


class Finding(msgspec.Struct, frozen=True):
    """The result of a check, and how to fix it."""

    area: str
    name: str
    state: State
    message: str
    fix: str = ""
    exit_code: int = 0

    def to_dict(self) -> dict[str, Any]:
        names = ("area", "name", "state", "message", "fix")
        return {name: getattr(self, name) for name in names}


def _reach(host: str, port: int) -> None:
    socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_SECONDS).close()


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


class Probe(msgspec.Struct, frozen=True):
    """Access to the system: `reach` raises OSError if nothing listens, `free` returns bytes."""

    reach: Callable[[str, int], None] = _reach
    free: Callable[[Path], int] = _free


def examine(
    target: str | None = None,
    probe: Probe | None = None,
    *,
    store: str | None = None,
    executor: str | None = None,
) -> list[Finding]:
    """Check everything; `target`, `store` and `executor` replace the configured ones."""
    probe = probe or Probe()
    try:
        settings = find_settings()
    except ConfigError as error:
        return list(_error_findings("config", "configuration", error))
    redact = Redactor(frozenset(secrets_of(settings))).text
    url = store or settings.config.store
    found = [
        *_everything(settings, target, url, probe),
        *_executor(settings, url, executor or settings.config.defaults.executor),
    ]
    return [
        Finding(f.area, f.name, f.state, redact(f.message), redact(f.fix), f.exit_code)
        for f in found
    ]


def exit_code(findings: list[Finding]) -> int:
    """2 if something is set up wrong, else 3 if something cannot be reached, else 0."""
    codes = {finding.exit_code for finding in findings}
    return 2 if 2 in codes else max(codes, default=0)


def _everything(
    settings: Settings, target: str | None, store: str, probe: Probe
) -> Iterator[Finding]:
    yield from _project(settings)
    yield from _plugins()
    settings.prepend_to_sys_path()
    yield from _targets(settings, target, probe)
    yield from _judge(settings, probe)
    yield from _store(settings, store, probe)
    yield from _seed_manifest(settings)
    yield from _tools(settings)
    yield _git(settings)


def _error_findings(area: str, name: str, error: AssayError) -> Iterator[Finding]:
    """An error as findings, one per problem."""
    code = 2 if error.exit_code == 2 else 3
    if isinstance(error, (ConfigError, EvalFileErrors)):
        for problem in error.problems:
            message = f"{problem.place}: {problem.message}"
            yield Finding(area, name, "problem", message, problem.hint, code)
    else:
        yield Finding(area, name, "problem", str(error), "", code)


def _project(settings: Settings) -> Iterator[Finding]:
    root = str(settings.root)
    if settings.document is not None:
        yield Finding("project", "root", "ok", root)
        yield Finding("project", "configuration", "ok", settings.document.file)
        return
    if (settings.root / ".git").exists():
        yield Finding("project", "root", "ok", f"{root}, where .git is")
    else:
        fix = "`assay init` writes an assay.yaml, which marks the root"
        yield Finding("project", "root", "warning", f"{root}, the working directory", fix)
    yield Finding("project", "configuration", "ok", "there is none; the defaults apply")


def _plugins() -> Iterator[Finding]:
    entries = plugins()
    for entry in entries:
        if entry.fault:
            fix = "repair or uninstall it"
            yield Finding("plugins", entry.name, "problem", entry.fault, fix, 2)
    usable = sum(not entry.fault for entry in entries)
    yield Finding("plugins", "registered", "ok", f"{usable} plugins available")


def _targets(settings: Settings, only: str | None, probe: Probe) -> Iterator[Finding]:
    pool = TargetPool(settings)
    if only is not None:
        yield from _target("target", only, partial(pool.spec, only), probe)
        return
    names = settings.target_names
    for name in names:
        yield from _target("target", name, partial(pool.spec, name), probe)
    try:
        _, foreign = targets_file(settings.root)
    except ConfigError as error:
        yield from _error_findings("target", ".agentv", error)
        foreign = []
    for entry in foreign:
        if entry.name not in names:
            found = _target("target", entry.name, partial(pool.spec, entry.name), probe)
            # Only warnings, as these targets belong to another tool.
            yield from (_as_warning(finding) for finding in found)
    if not names and not foreign:
        fix = "list some under 'targets' in assay.yaml, or give `assay run` a --target"
        yield Finding("target", "-", "warning", "no target is configured", fix)


def _as_warning(finding: Finding) -> Finding:
    if finding.state != "problem":
        return finding
    message = f"{finding.message} (of .agentv/targets.yaml)"
    return Finding(finding.area, finding.name, "warning", message, finding.fix)


def _target(
    area: str, name: str, get_spec: Callable[[], TargetSpec | None], probe: Probe
) -> Iterator[Finding]:
    """Check the settings, then connecting, then what the target needs."""
    try:
        spec: Any = get_spec()
        wait_for(connected(spec).close)
    except AssayError as error:
        yield from _error_findings(area, name, error)
        return
    needs = [_need(area, name, need, probe) for need in spec.needs()]
    yield from needs
    if not any(finding.state == "problem" for finding in needs):
        yield Finding(area, name, "ok", f"{spec.provider}: settings are valid")


def _need(area: str, name: str, need: Need, probe: Probe) -> Finding:
    if need.kind == "address":
        return _address(area, name, need.what, probe)
    lack, fix = shortfall(need)
    if lack:
        return Finding(area, name, "problem", f"it {lack}", fix, 2)
    known = "has an API key" if need.kind == "key" else f"has a program: {program_path(need.what)}"
    return Finding(area, name, "ok", f"it {known}")


def _address(area: str, name: str, url: str, probe: Probe) -> Finding:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        probe.reach(host, port)
    except OSError as error:
        reason = error.strerror or str(error) or "it does not answer"
        fix = "start the server, or correct the address"
        message = f"{host}:{port} cannot be reached: {reason}"
        return Finding(area, name, "problem", message, fix, 3)
    return Finding(area, name, "ok", f"{host}:{port} accepts connections")


def _judge(settings: Settings, probe: Probe) -> Iterator[Finding]:
    judge = settings.config.judge
    if judge is None:
        fix = "write 'judge: openai:MODEL' in assay.yaml, if cases need one"
        yield Finding("judge", "-", "warning", "none is set; rubrics cannot be judged", fix)
        return
    name = judge if isinstance(judge, str) else "judge"
    yield from _target("judge", name, TargetPool(settings).judge_spec, probe)


def _store(settings: Settings, url: str, probe: Probe) -> Iterator[Finding]:
    scheme, _, path = url.partition(":")
    try:
        free = probe.free(settings.root)
        if free < LOW_DISK_BYTES:
            state: State = "problem" if free < FULL_DISK_BYTES else "warning"
            message = f"only {free >> 20:,} MiB free"
            yield Finding(
                "store", "disk", state, message, "free some space", 3 * (state == "problem")
            )
        else:
            yield Finding("store", "disk", "ok", f"{free >> 30:,} GiB free")
    except OSError as error:
        yield Finding(
            "store", "disk", "warning", f"free space cannot be determined: {error.strerror}"
        )
    if scheme == "sqlite" and not (settings.root / path).exists():
        yield _new_store(settings.root / path)
        return
    try:
        with closing(open_store(settings, url)) as store:
            version = getattr(store, "schema_version", None)
            with suppress(NotInStore):
                store.remove_baseline(NO_BASELINE)  # a write that changes nothing
    except AssayError as error:
        yield from _error_findings("store", scheme, error)
        return
    schema = "" if version is None else f", schema {version}"
    yield Finding("store", scheme, "ok", f"it can be read and written{schema}")


def _executor(settings: Settings, url: str, name: str | None) -> Iterator[Finding]:
    """Lets workers of a cluster load the project and write to the store."""
    if name is None:
        return
    try:
        found = order_to_check(settings, url, name)
    except AssayError as error:
        yield from _error_findings("executor", name, error)
        return
    if found is None:
        yield Finding("executor", name, "ok", "it works on this machine")
        return
    try:
        workers = wait_for(lambda: _workers(*found))
    except StoreError as error:
        fix = "its password comes from the environment there: set PGPASSWORD or ASSAY_STORE"
        yield Finding("executor", name, "problem", f"a worker cannot use {error}", fix, 3)
        return
    except AssayError as error:
        yield from _error_findings("executor", name, error)
        return
    machines = count(len({worker.partition(" ")[0] for worker in workers}), "machine")
    reached = f"reached {count(len(workers), 'worker')} on {machines}"
    yield Finding("executor", name, "ok", f"{reached}: same version, store can be written")


async def _workers(executor: Executor, order: WorkOrder) -> set[str]:
    """The machine and process of the workers that were reached."""

    def pieces() -> Iterator[bytes]:
        yield from [b""] * _CHECKS_PER_WORKER * getattr(executor, "processes", 1)

    async with aclosing(executor.run(order, pieces())) as results:
        return {result.decode() async for result in results}


def _new_store(file: Path) -> Finding:
    """A store that does not exist yet: can the first run create it?"""
    folder = next(parent for parent in file.parents if parent.exists())
    if os.access(folder, os.W_OK):
        return Finding("store", "sqlite", "ok", f"the first run creates {shown_path(file)}")
    message = f"{shown_path(file)} cannot be created: {shown_path(folder)} is not writable"
    return Finding("store", "sqlite", "problem", message, "set another 'store' in assay.yaml", 3)


def _seed_manifest(settings: Settings) -> Iterator[Finding]:
    seeds = Seeds(settings)
    for problem in seeds.faults:
        message = f"{problem.place}: {problem.message}"
        yield Finding("seed manifest", seeds.name, "problem", message, problem.hint, 2)
    if seeds.faults:
        return
    if seeds.file.is_file():
        yield Finding("seed manifest", seeds.name, "ok", f"{len(seeds.data)} entries")
    elif "seed_manifest" in settings.config.model_fields_set:
        fix = "create it, or remove 'seed_manifest' from the configuration"
        yield Finding("seed manifest", seeds.name, "warning", "the file does not exist", fix)
    else:
        yield Finding("seed manifest", "-", "ok", "there is none; {{seed:...}} tokens need one")


def _tools(settings: Settings) -> Iterator[Finding]:
    try:
        registry = load_registry(settings)
    except AssayError as error:
        yield from _error_findings("tools", "registry", error)
        return
    if registry is None:
        yield Finding("tools", "registry", "ok", "none is named; staleness is not checked")
    else:
        yield Finding("tools", "registry", "ok", count(len(registry), "tool"))


def _git(settings: Settings) -> Finding:
    found = environment_of(settings.root).get("git")
    if found is None:
        fix = "run `git init`, so that results record their revision"
        return Finding("git", "revision", "warning", "the project is not in a git repository", fix)
    changes = ", with uncommitted changes" if found["dirty"] else ""
    return Finding("git", "revision", "ok", found["revision"][:12] + changes)
