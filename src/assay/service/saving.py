"""Writes a suite as a YAML file that loads to equal cases."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.atomic_files import replacing, writing
from assay.errors import EvalFileErrors, UsageError
from assay.model.case import EvalCase, EvalSuite
from assay.model.evaluator import named
from assay.model.message import ContentPart
from assay.model.written_case import (
    entry_of,
    evaluator_entry,
    functions_of,
    inherited_evaluators,
)
from assay.service.project import find_settings
from assay.settings import shown_path
from assay.suites.discovery import loader_for
from assay.wire.yaml_writing import dump

_SUFFIXES = (".yaml", ".yml")


def save(suite: EvalSuite, file: Path) -> None:
    """Write the file in place of an earlier one; raises a UsageError if it cannot be faithful."""
    if file.suffix not in _SUFFIXES:
        message = f"{str(file)!r} is not the name of a YAML file"
        raise UsageError(f"{message}: a name such as 'refunds.eval.yaml' is found in folders too")
    if not suite.cases:
        raise UsageError(f"the suite {suite.name!r} has no case to save")
    cases = [case.replace(evaluators=named(tuple(case.evaluators))) for case in suite.cases]
    for case in cases:
        for function in functions_of(case):
            message = f"the case {case.id!r} cannot be saved: its evaluator {function!r} is a"
            todo = "name it instead: assay.python('package.module:function')"
            raise UsageError(f"{message} Python function\n{todo}")
    with writing(shown_path(file)):
        text = _faithful(suite, cases, file)
        with replacing(file) as stream:
            stream.write(text.encode())


def _faithful(suite: EvalSuite, cases: list[EvalCase], file: Path) -> str:
    """The text of the file; evaluators only have their names if it takes them."""
    short = dump(_document(suite, cases, names=False))
    if not any(_differences(cases, _loaded(short, file), file)):
        return short
    text = dump(_document(suite, cases, names=True))
    for difference in _differences(cases, _loaded(text, file), file):
        raise UsageError(f"the suite cannot be saved as {shown_path(file)}: {difference}")
    return text


def _document(suite: EvalSuite, cases: list[EvalCase], *, names: bool) -> dict[str, Any]:
    inherited = next(filter(None, map(inherited_evaluators, cases)), ())
    keys: dict[str, Any] = {"dataset": suite.name}
    if suite.description:
        keys["description"] = suite.description
    if suite.target is not None:
        keys["target"] = suite.target
    if suite.workers is not None:
        keys["execution"] = {"workers": suite.workers}
    if inherited:
        keys["evaluators"] = [evaluator_entry(spec, names=names) for spec in inherited]
    entries = [entry_of(case, inherited=bool(inherited), names=names) for case in cases]
    return {**keys, "cases": entries}


def _loaded(text: str, file: Path) -> list[EvalCase]:
    """The cases of the text as a file of this folder, which decides what its paths mean."""
    folder = file.absolute().parent
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".save-", suffix=".yaml")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode())
        loader: Any = loader_for(file)
        settings = find_settings().for_file(file)
        return list(loader.load(Path(temporary), settings).cases)
    except EvalFileErrors as error:
        problems = "; ".join(p.message for p in error.problems if p.severity == "error")
        raise UsageError(f"the suite cannot be saved as {shown_path(file)}: {problems}") from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def _differences(cases: list[EvalCase], loaded: list[EvalCase], file: Path) -> Iterator[str]:
    """What a file would change about the cases."""
    for case, read in zip(cases, loaded, strict=True):
        fields = [name for name in case.__struct_fields__ if name not in ("locate", "eval_file")]
        changed = [name for name in fields if getattr(case, name) != getattr(read, name)]
        if changed:
            yield f"a file cannot hold {changed[0]!r} of the case {case.id!r} unchanged"
        elif _paths(case) != _paths(read):
            yield (
                f"the case {case.id!r} refers to a file that is another one from there; "
                "write its path from the project root, with a leading slash"
            )


def _paths(case: EvalCase) -> list[Path | None]:
    messages = (*case.input_messages, *case.expected_messages)
    parts = (m.content for m in messages if isinstance(m.content, tuple))
    return [part.path for content in parts for part in content if isinstance(part, ContentPart)]
