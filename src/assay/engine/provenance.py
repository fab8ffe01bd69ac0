"""Where a run comes from: the versions it ran with, and the revision of the project."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from assay.version import __version__

_SECONDS = 10


def environment_of(root: Path) -> dict[str, Any]:
    """What a result file says of its surroundings."""
    facts: dict[str, Any] = {"assay": __version__, "python": platform.python_version()}
    revision = _git(root, "rev-parse", "HEAD")
    if revision:
        changes = _git(root, "status", "--porcelain", "--untracked-files=no")
        facts["git"] = {"revision": revision, "dirty": changes != ""}
    return facts


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints; None where there is no repository, or no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            timeout=_SECONDS,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
