"""The provenance of a run: its software versions, and the git revision of the project."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from assay.version import __version__

_GIT_SECONDS = 10


def environment_of(root: Path) -> dict[str, Any]:
    """The environment that result files record."""
    facts: dict[str, Any] = {"assay": __version__, "python": platform.python_version()}
    found = _git(root, "rev-parse", "HEAD", "--abbrev-ref", "HEAD")
    if found:
        revision, _, branch = found.partition("\n")
        changes = _git(root, "status", "--porcelain", "--untracked-files=no")
        facts["git"] = {"revision": revision, "dirty": changes != ""}
        if branch not in ("", "HEAD"):  # a detached one, as in most builds
            facts["git"]["branch"] = branch
    return facts


def _git(root: Path, *arguments: str) -> str | None:
    """The output of git; None without a repository, or without git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            timeout=_GIT_SECONDS,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
