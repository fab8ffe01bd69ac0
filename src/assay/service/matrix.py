"""The verbs of runs, of one target or of several.

CLI, server and Python API call only these. Several targets are a matrix: a request becomes one run
for each of them. The runs share a group, and they are kept in step.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from secrets import randbits
from typing import Any, Unpack, cast, overload

import msgspec
from msgspec.structs import replace

from assay.blocking import wait_for
from assay.comparison.outcomes import SHORTEST, find_run, newest_first
from assay.engine import session
from assay.engine.cancellation import Cancellation
from assay.engine.plan import Plan
from assay.engine.resuming import resumable
from assay.engine.run_spec import RunSpec, plan_of
from assay.errors import NotInStore, UsageError
from assay.model.events import Event, Listener, Notice, RunFinished, RunStarted
from assay.model.group_result import GroupResult
from assay.model.keywords import OptionKeys
from assay.model.options import RunOptions
from assay.model.run import RunRecord, new_run_id
from assay.model.run_result import RunResult
from assay.ports import Store, Target
from assay.service import runs
from assay.service.costs import announcement
from assay.service.group_baselines import GroupBaselines
from assay.service.groups import group_result
from assay.service.history import restored
from assay.service.options import default_targets
from assay.service.project import project
from assay.service.result import Run
from assay.service.run_group import RunGroup
from assay.service.runs import AnyTarget, Baseline, Cases, RunHooks, RunRequest, as_target
from assay.service.store import open_store
from assay.service.work import with_work
from assay.settings import Settings
from assay.targets.pool.target_pool import TargetPool


@overload
def run(
    cases: Cases,
    *,
    target: AnyTarget | None = None,
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | None = None,
    **options: Unpack[OptionKeys],
) -> Run: ...


@overload
def run(
    cases: Cases,
    *,
    target: list[AnyTarget],
    judge: AnyTarget | None = None,
    store: str | None = None,
    baseline: Baseline | None = None,
    **options: Unpack[OptionKeys],
) -> RunGroup: ...

