"""Eval files as pytest collects them: a file, an item for each case, and one for the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from _assay_pytest import AssayWarning
from assay.errors import AssayError
from assay.model.case import EvalCase
from assay.model.comparison import CaseRef
from assay.pytest_plugin.evals import EvalFiles
from assay.pytest_plugin.marks import TagMarks
from assay.pytest_plugin.results import CaseReport, Results

#: The nodeid of the item that has the verdict about the whole run.
GATE = "assay::gate"


class Behind(Protocol):
    """What is behind all items of a session."""

    marks: TagMarks

    @property
    def evals(self) -> EvalFiles: ...

    @property
    def results(self) -> Results: ...


class EvalFile(pytest.File):
    """An eval file; its items are its cases."""

    def __init__(self, *, behind: Behind, **node: Any) -> None:
        super().__init__(**node)
        self._behind = behind

    def collect(self) -> Iterator[EvalItem]:
        try:
            suite = self._behind.evals.load(self.path)
        except AssayError as error:
            raise self.CollectError(str(error)) from None
        for warning in suite.warnings:
            self.warn(AssayWarning(str(warning)))
        for case in suite:
            yield EvalItem.from_parent(self, name=case.id, case=case, behind=self._behind)


class EvalItem(pytest.Item):
    """A case. Its setup waits for the result, so that an error is none of the test itself."""

    def __init__(self, *, case: EvalCase, behind: Behind, **node: Any) -> None:
        super().__init__(**node)
        self.case, self._behind = case, behind
        self._report = CaseReport("unasked")
        for tag in case.tags:
            behind.marks.add(tag, self)
        if case.skip is not None:
            self.add_marker(pytest.mark.skip(reason=case.skip))

    @property
    def ref(self) -> CaseRef:
        return self._behind.evals.ref(self.path, self.case.id)

    def setup(self) -> None:
        if self.config.getoption("setuponly", False):
            return
        self._report = report = self._behind.results.case(self.ref)
        self.user_properties += report.properties
        if report.outcome == "errored":
            pytest.fail(report.text, pytrace=False)
        if report.outcome in ("skipped", "unasked"):
            pytest.skip(report.text)

    def runtest(self) -> None:
        report = self._report
        if report.outcome != "failed":
            return
        for name, lines in report.lines_of_diffs:
            self.add_report_section("call", f"trajectory of {name}", lines)
        if report.expected:
            pytest.xfail(report.expected)
        pytest.fail(report.text, pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        line = self.case.origin.line
        return self.path, line - 1 if line else None, self.name


class GateItem(pytest.Item):
    """The verdict about the whole run."""

    def __init__(self, *, behind: Behind, **node: Any) -> None:
        super().__init__(**node)
        self._behind = behind

    def runtest(self) -> None:
        report = self._behind.results.gate()
        if not report.passed:
            pytest.fail(report.text, pytrace=False)
        if report.verdict == "inconclusive":
            self.warn(AssayWarning(report.text))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.config.rootpath, 0, self.name
