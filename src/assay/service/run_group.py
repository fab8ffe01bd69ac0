"""RunGroup: the result of the runs of several targets in Python."""

from __future__ import annotations

import io
from typing import cast

from assay.errors import UnknownName
from assay.model.group_result import GroupResult
from assay.ports import Store
from assay.service.notebooks import html_of_group
from assay.service.report import report
from assay.service.result import Run, StoreHandle


class RunGroup(GroupResult, frozen=True, kw_only=True):
    """The runs of several targets over the same cases, and how the targets compare.

    group = assay.run("evals/", target=["gpt", "claude"])
    print(group["gpt"].summary.passed, group.comparison.best)
    """

    runs: tuple[Run, ...]

    @classmethod
    def of(cls, result: GroupResult, store: Store) -> RunGroup:
        """The result with the store of its runs, which is closed when all of them are gone."""
        shared = cast("Store", StoreHandle.of(store))
        runs = tuple(Run.of(run, shared) for run in result.runs)
        return cls(
            id=result.id, runs=runs, comparison=result.comparison, preference=result.preference
        )

    def __getitem__(self, target: str) -> Run:
        """The run of a target, by its name."""
        for run in self.runs:
            if run.target == target:
                return run
        raise UnknownName("target of the group", target, [run.target for run in self.runs])

    def __repr__(self) -> str:
        """One line, as all runs would fill a page in a notebook."""
        targets = ", ".join(run.target for run in self.runs)
        return f"<RunGroup {self.id}: {targets}, exit code {self.exit_code}>"

    def _repr_html_(self) -> str:
        """How a notebook shows the group: a row for each target."""
        return html_of_group(self)

    def report(self, format: str = "text") -> str:  # noqa: A002 - the natural name
        """The report as text, or in another format of `assay run -o`."""
        out = io.StringIO()
        report(self, format, out)
        return out.getvalue()
