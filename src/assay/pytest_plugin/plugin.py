"""EvalPlugin: the hooks that are needed once there is an eval file."""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError
from assay.model.options import traits_of
from assay.pytest_plugin.channel import RemoteResults, ResultServer
from assay.pytest_plugin.evals import OFFERED, EvalFiles
from assay.pytest_plugin.items import GATE, EvalFile, EvalItem, GateItem
from assay.pytest_plugin.marks import TagMarks
from assay.pytest_plugin.results import Results, has_gate, report_of_gate
from assay.pytest_plugin.run import EvalRun
from assay.reporters.terminal import safe


class EvalPlugin:
    """Collects eval files, and has one run behind all their items.

    The run is in the process of the session. With pytest-xdist it is in the controller, and
    workers wait there for the results of their items. `own_marks` are those of the project.
    """

    def __init__(self, config: pytest.Config, own_marks: frozenset[str]) -> None:
        self._config, self.marks = config, TagMarks(config, own_marks)
        #: The cases to run, known when collection has finished.
        self._selected: list[tuple[Path, str]] = []
        self._starting = threading.Lock()
        self._results: Results | None = None
        self._run: EvalRun | None = None
        self._server: ResultServer | None = None
        self._failed = 0
        self._is_broken = False

    @cached_property
    def evals(self) -> EvalFiles:
        """The eval files of the arguments; raises an AssayError if the project is wrong."""
        dests = {name: traits_of(name).flag.strip("-").replace("-", "_") for name in OFFERED}
        values = {name: self._config.getoption(f"assay_{dest}") for name, dest in dests.items()}
        given = {name: value for name, value in values.items() if value is not None}
        return EvalFiles(self._config.args, given, self._config.getoption("assay_store"))

    def collect_file(self, file: Path, parent: pytest.Collector) -> EvalFile | None:
        try:
            if not self.evals.has(file):
                return None
        except AssayError:
            if self._is_broken or not self._is_asked_for(file):
                return None
            self._is_broken = True  # the first file reports what is wrong
        return EvalFile.from_parent(parent, path=file, behind=self)

    def _is_asked_for(self, file: Path) -> bool:
        """Is it below an argument? Pytest also collects files beside the folders of arguments."""
        here = self._config.invocation_params.dir
        asked = (here / argument.split("::")[0] for argument in self._config.args)
        return any(file.is_relative_to(path) for path in asked)

    @property
    def results(self) -> Results:
        """The results of the run, which the first item starts."""
        with self._starting:
            if self._results is None:
                channel = getattr(self._config, "workerinput", {}).get("assay")
                self._results = self._start() if channel is None else RemoteResults(channel)
            return self._results

    def _start(self) -> EvalRun:
        self._run = self.evals.run()
        self._run.start(self.evals.selection(self._selected))
        return self._run

    def serve(self, channel: str, ids: list[str]) -> None:
        """Serve the workers of pytest-xdist, which have collected these nodeids."""
        if self._server is None:
            root, split = self._config.rootpath, [nodeid.partition("::") for nodeid in ids]
            files = {name for name, _, _ in split if self._has(root / name)}
            self._selected = [(root / name, case) for name, _, case in split if name in files]
            self._server = ResultServer(channel, lambda: self.results)

    def _has(self, file: Path) -> bool:
        try:
            return self.evals.has(file)
        except AssayError:  # workers report it
            return False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Add the gate, once all plugins have selected and ordered the items."""
        items = [item for item in session.items if isinstance(item, EvalItem)]
        self._selected = [(item.path, item.case.id) for item in items]
        deselected = self._config.getoption("deselect") or ()
        if items and has_gate(self.evals.options) and GATE not in deselected:
            name = GATE.rpartition("::")[2]
            session.items.append(GateItem.from_parent(session, name=name, nodeid=GATE, behind=self))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stop the run as soon as pytest stops; items of xdist workers may still wait for it."""
        self._failed += report.failed
        most = self._config.getoption("maxfail")
        if self._run is not None and most and self._failed >= most:
            self._run.stop()

    def pytest_keyboard_interrupt(self) -> None:
        if self._run is not None:
            self._run.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._run is None:
            return
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if not ended or session.shouldstop or session.shouldfail:
            self._run.stop()
        self._run.finish()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._run is None:
            return
        result = self._run.result()
        if result is None:
            return
        report = report_of_gate(result)
        terminalreporter.section("assay")
        terminalreporter.line(f"{report.verdict}: {safe(report.headline)}")
        for reason in (*report.reasons, *result.notes):
            terminalreporter.line(f"  - {safe(reason)}")
        terminalreporter.line(f"`assay show {result.id}` lists the cases of the run")

    def pytest_unconfigure(self) -> None:
        if isinstance(self._results, RemoteResults):
            self._results.close()
        if self._server is not None:
            self._server.close()
        if self._run is not None:
            self._run.store.close()
