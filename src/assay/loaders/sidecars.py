"""Suite-level keys that are in another file than the cases: a JSONL file's sidecar, a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from assay.errors import EvalFileErrors
from assay.loaders.cases import CaseReader, validation_context
from assay.loaders.suite import cases_key, suite_keys
from assay.model.suite import SuiteFile
from assay.problems import Problem
from assay.settings import Settings, shown_path
from assay.wire import yaml
from assay.wire.document import Document
from assay.wire.text_files import is_absent, read_text

SIDECAR_SUFFIXES = (".yaml", ".yml")


class SuiteKeys(msgspec.Struct):
    """The keys that the cases of another file inherit, their document, and its problems.

    `eval_file` is the suite that names the file of cases; a sidecar does not.
    """

    keys: SuiteFile
    document: Document | None = None
    problems: list[Problem] = []
    eval_file: Path | None = None

    @property
    def broken(self) -> bool:
        return any(problem.severity == "error" for problem in self.problems)

    def reader(self, file: Path, settings: Settings) -> CaseReader:
        """A reader for the cases of the file."""
        reader = CaseReader(
            file, settings, self.keys, incomplete=self.broken, eval_file=self.eval_file
        )
        if self.document is not None and not self.broken:
            reader.share(self.document)
        return reader


def sidecar_of(file: Path, settings: Settings) -> SuiteKeys:
    """Suite-level keys from `NAME.yaml` or `NAME.yml` next to `NAME.jsonl`, if there is one."""
    # Without validation, as most files have no sidecar.
    found = SuiteKeys(SuiteFile.model_construct())
    sidecars = _existing_sidecars(file)
    if len(sidecars) > 1:
        found.problems.append(_second_sidecar(file, sidecars[1], sidecars[0]))
    elif sidecars:
        try:
            _read(sidecars[0], file, settings, found)
        except EvalFileErrors as error:
            found.problems += error.problems
    return found


def other_sidecars(file: Path, suite: Path) -> list[Problem]:
    """A problem for every sidecar of a file of cases that a suite names."""
    return [
        _second_sidecar(file, each, suite)
        for each in _existing_sidecars(file)
        if file.suffix == ".jsonl" and not _has_cases(each)
    ]


def _existing_sidecars(file: Path) -> list[Path]:
    return [each for each in map(file.with_suffix, SIDECAR_SUFFIXES) if not is_absent(each)]


def _second_sidecar(file: Path, sidecar: Path, other: Path) -> Problem:
    message = f"{file.name} has another sidecar, {other.name}"
    hint = "keep one of the two"
    return Problem(shown_path(sidecar), 0, 0, "error", "two-sidecars", message, hint)


def _has_cases(file: Path) -> bool:
    """Is it a suite? A file that cannot be read counts as one: loading it reports the problem."""
    try:
        data = yaml.parse(read_text(file, shown_path(file)), shown_path(file)).data
    except EvalFileErrors:
        return True
    return isinstance(data, dict) and cases_key(data) != ""


def _read(sidecar: Path, file: Path, settings: Settings, found: SuiteKeys) -> None:
    name = shown_path(sidecar)
    document = found.document = yaml.parse(read_text(sidecar, name), name)
    data: Any = {} if document.data is None else document.data
    found.keys, problems = suite_keys(document, data, validation_context(sidecar, settings))
    found.problems += [*document.problems, *problems]
    names_file = isinstance(found.keys.cases, Path) and found.keys.cases.samefile(file)
    if isinstance(data, dict) and not names_file and (key := cases_key(data)):
        message = f"a sidecar cannot have cases: they are in {file.name}"
        found.problems.append(document.problem((key,), "conflicting-keys", message))
