"""Asks a target one case, without a run."""

from __future__ import annotations

from assay.blocking import wait_for
from assay.errors import UsageError
from assay.model.case import EvalCase
from assay.model.observation import Observation
from assay.ports import Request, Target
from assay.service.project import project
from assay.service.runs import AnyTarget, as_target, separate
from assay.targets.pool.target_pool import TargetPool


def ask(target: AnyTarget, case: EvalCase) -> Observation:
    """What a target does when it is asked a case; raises a TargetError if it gives no answer.

    `target` is the name of a target, one written inline, a function or a Target.
    """

    async def asked() -> Observation:
        async with separate(target) as made:
            return await _ask(made, case)

    return wait_for(asked)


async def aask(target: AnyTarget, case: EvalCase) -> Observation:
    """`ask` in a running event loop, in which a function is called."""
    return await _ask(target if isinstance(target, str) else as_target(target), case)


async def _ask(target: str | Target | None, case: EvalCase) -> Observation:
    if target is None:
        raise UsageError("there is no target to ask: give a function, a Target or a name")
    settings = project()
    settings.prepend_to_sys_path()
    async with TargetPool(settings) as pool:
        asked = pool.target(target) if isinstance(target, str) else pool.adopt(target)
        return await asked.ask(Request(case.input_messages, case))
