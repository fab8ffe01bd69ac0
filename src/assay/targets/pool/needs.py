"""What a target requires, such as an API key: checked before the first question."""

from __future__ import annotations

import os
import shutil

from assay.errors import UsageError
from assay.model.target import Need, TargetSpec
from assay.settings import environment


def program_path(program: str) -> str | None:
    """Where the program of a target is; None when there is no such program."""
    return shutil.which(program, path=environment(["PATH"]).get("PATH"))


def shortfall(need: Need) -> tuple[str, str]:
    """What is missing, and what to do about it; empty if nothing is known to be."""
    if need.kind == "key" and not need.given:
        fix = f"set the environment variable {need.what}, or 'api_key' of the target in assay.yaml"
        return "has no API key", fix
    if need.kind == "program" and program_path(need.what) is None:
        path = os.path.normpath(need.what)
        if os.path.dirname(path) and os.path.isfile(path):
            return f"has a program that is not executable, {path!r}", f"run `chmod +x {path}`"
        return f"has no program {path!r}", "install it, or correct 'command'"
    return "", ""


def check_needs(spec: TargetSpec) -> None:
    """Raise a UsageError with everything that the target lacks."""
    found = [shortfall(need) for need in spec.needs()]
    lacking = [f"{what}: {fix}" for what, fix in found if what]
    if lacking:
        raise UsageError(f"the target {spec.label!r} {'; it '.join(lacking)}")
