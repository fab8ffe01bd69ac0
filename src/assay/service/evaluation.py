"""Grades one recorded observation of a case, without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from assay.blocking import wait_for
from assay.engine.grading import Preparation
from assay.errors import UsageError
from assay.model.case import EvalCase
from assay.model.result import EvalCaseResult
from assay.observations.reading import read
from assay.ports import Resources, Target
from assay.seed_manifest import Seeds
from assay.service.project import project
from assay.targets.pool.target_pool import TargetPool
from assay.wire.validation_errors import shown


def evaluate(
    case: EvalCase, observation: Any, *, judge: str | Target | None = None
) -> EvalCaseResult:
    """Grade one recorded observation of a case; only judges are asked.

    docs/observations.md lists the shapes that an observation may have. `judge` is a target or the
    name of one; the default is the project's judge.
    """
    return wait_for(lambda: aevaluate(case, observation, judge=judge))


async def aevaluate(
    case: EvalCase, observation: Any, *, judge: str | Target | None = None
) -> EvalCaseResult:
    """`evaluate` in a running event loop."""
    if not isinstance(case, EvalCase):
        message = (
            f"the case is {shown(case)}, not an EvalCase; `assay.load` gives the cases of files"
        )
        raise UsageError(message)
    observed = read(observation)
    settings = project().for_file(Path(case.origin.file))
    settings.prepend_to_sys_path()
    async with TargetPool(settings, judge) as pool:
        resources = Resources(pool.judge, {"seed": Seeds(settings).data})
        result = await Preparation(resources).grader(case).graded(observed)
    # Results of an evaluator may share a full score, and callers may change its details.
    own = tuple(replace(score, details=dict(score.details)) for score in result.scores)
    return replace(result, scores=own)
