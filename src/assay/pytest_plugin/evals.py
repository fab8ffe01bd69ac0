"""EvalFiles: the eval files of a pytest session, loaded once, and which of their cases to run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from assay.engine.plan import repeats_of
from assay.engine.run_spec import project_path
from assay.errors import error_for
from assay.model.case import EvalSuite
from assay.model.comparison import CaseRef
from assay.model.options import RunOptions, options_where
from assay.pytest_plugin.run import EvalRun, Selection
from assay.service.eval_files import load_all
from assay.service.matrix import labels_of
from assay.service.options import options_of
from assay.service.project import project
from assay.service.runs import RunRequest, find_base
from assay.service.store import open_store
from assay.suites.discovery import discover
from assay.suites.ledger import locked_file

#: Options of runs that pytest does not offer: it selects cases itself, and streams no files.
NARROWING = options_where(lambda option: option.narrows)
OFFERED = tuple(
    name
    for name in options_where(lambda option: "run" in option.interfaces)
    if name not in (*NARROWING, "executor", "workers_per_machine")
)
#: What keeps the options of the project from selecting cases.
_UNNARROWED = {name: RunOptions.model_fields[name].default for name in NARROWING}


class EvalFiles:
    """The eval files that `assay run` would take for the same arguments.

    `given` are the options of the command line, and `store` is its store. Raises an AssayError if
    the project is wrong, or the baseline does not exist.
    """

    def __init__(self, arguments: Iterable[str], given: dict[str, Any], store: str | None) -> None:
        self.settings = project()
        self._given = given | _UNNARROWED
        # Several targets would need several runs behind the same items.
        labels_of(RunRequest(expands=False), self._given, self.settings)
        self.options = options_of(self._given, self.settings)
        self._store = store
        if self.options.baseline is not None:
            with closing(open_store(self.settings, store)) as opened:
                find_base(None, self.options, opened)
        paths = [Path(argument.split("::")[0]) for argument in arguments]
        found = discover([path for path in paths if os.path.lexists(path)], self.settings)
        # Problems of files are reported when these are loaded.
        known = [*map(str, (*found.files, *found.lost)), *(p.file for p in found.problems)]
        self._known = frozenset(os.path.realpath(file) for file in known)
        self._suites: dict[str, EvalSuite] = {}

    def has(self, file: Path) -> bool:
        """Is it an eval file, or the lock of one that is missing?"""
        return any(
            os.path.realpath(each) in self._known for each in (file, locked_file(file)) if each
        )

    def load(self, file: Path) -> EvalSuite:
        """The suite of a file; raises EvalFileErrors. With `strict`, warnings are errors."""
        place = os.path.realpath(file)
        if place not in self._suites:
            loaded = load_all([file], settings=self.settings)
            if error := error_for(loaded.problems, strict=self.options.strict):
                raise error
            (self._suites[place],) = loaded.suites
        return self._suites[place]

    def ref(self, file: Path, case_id: str) -> CaseRef:
        """The case as results name it."""
        return CaseRef(project_path(str(file), self.settings), case_id)

    def selection(self, selected: Sequence[tuple[Path, str]]) -> Selection:
        """The suites that were loaded, and these of their cases."""
        for file in {file for file, _ in selected}:
            self.load(file)
        wanted = {self.ref(file, case_id) for file, case_id in selected}
        repeats: dict[CaseRef, int] = {}
        cases = 0
        for place, suite in self._suites.items():
            for case in suite:
                cases += 1
                ref = self.ref(Path(suite.file or place), case.id)
                if ref in wanted:
                    repeats[ref] = repeats_of(case, self.options)
        return Selection([*self._suites.values()], repeats, whole=len(repeats) == cases)

    def run(self) -> EvalRun:
        """A run of this project, which is not started yet."""
        self.settings.prepend_to_sys_path()
        opened = open_store(self.settings, self._store)
        return EvalRun(self.settings, opened, self.options, self._given)
