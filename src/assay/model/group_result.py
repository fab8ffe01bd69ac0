"""GroupResult: the results of the runs of several targets, for reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from assay.model.group import GroupComparison
from assay.model.preference import Preference
from assay.model.run_result import PRECEDENCE, RunResult
from assay.record import Record


class GroupResult(Record, frozen=True):
    """The result of a group: one run for each target, in the order of the targets.

    `preference` says whose answers a judge prefers, if that was configured.
    """

    id: str
    runs: tuple[RunResult, ...]
    comparison: GroupComparison
    preference: Preference | None = None

    @property
    def exit_code(self) -> int:
        """The worst exit code of the runs, and of the preference if there is one."""
        codes = {run.exit_code for run in self.runs}
        codes |= {self.preference.exit_code} if self.preference is not None else set()
        return next((code for code in PRECEDENCE if code in codes), 0)

    @property
    def passed(self) -> bool:
        """Would `assay run` exit with 0?"""
        return self.exit_code == 0

    def chunks(self) -> Iterator[bytes]:
        """The JSON document of `assay run --json` for several targets, in chunks."""
        yield b'{"groupId":' + msgspec.json.encode(self.id) + b',"runs":['
        for index, run in enumerate(self.runs):
            if index:
                yield b","
            yield from run.chunks()
        tail: dict[str, Any] = {"comparison": self.comparison.to_dict()}
        if self.preference is not None:
            tail["preference"] = self.preference.to_dict()
        tail["exitCode"] = self.exit_code
        yield b"]," + msgspec.json.encode(tail)[1:]

    def to_dict(self) -> dict[str, Any]:
        """The whole document, with all cases in memory."""
        document: dict[str, Any] = msgspec.json.decode(b"".join(self.chunks()))
        return document
