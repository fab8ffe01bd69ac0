"""`assay.Suite`: a list of cases that can be made in Python, run and saved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, force_setattr

from assay.errors import PluginError
from assay.model.case import EvalSuite
from assay.model.evaluator import EvaluatorSpec
from assay.registry import imported

#: What cases inherit.
_INHERITED = ("target", "evaluators", "tags", "stubs", "threshold", "repeat", "timeout_seconds")


class Suite(EvalSuite, frozen=True, kw_only=True):
    """A named list of cases, usually one file.

    suite = assay.Suite("refunds", [assay.Case("late", "Where is it?", expected_output="Oslo")])
    run = assay.run(suite, target=my_agent)

    Cases inherit `evaluators`, `threshold`, `repeat`, `timeout_seconds`, `target`, `tags` and
    `stubs`, as in eval files.
    """

    evaluators: Sequence[EvaluatorSpec] = ()
    threshold: float | None = None
    repeat: int | None = None
    timeout_seconds: float | None = None
    tags: Sequence[str] = ()
    stubs: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in _INHERITED}
        given = {name: value for name, value in given.items() if value not in (None, (), [], {})}
        if given and isinstance(self.cases, (list, tuple)):
            inheriting = imported("assay.loaders.python_cases:inheriting", PluginError)
            force_setattr(self, "cases", inheriting(self.cases, given))

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write a YAML file that loads to equal cases, in place of an earlier one."""
        from assay.service.saving import save  # few need it

        save(self, Path(file))

    @classmethod
    def of(cls, suite: EvalSuite) -> Suite:
        """A loaded suite, whose cases have what they inherit."""
        made = cls(**asdict(suite) | {"target": None})
        force_setattr(made, "target", suite.target)
        return made
