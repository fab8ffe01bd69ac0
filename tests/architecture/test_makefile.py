"""The Makefile, as make itself reads it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_installation_says_what_it_does_before_it_starts(tmp_path: Path) -> None:
    rule = tmp_path / "installed"
    made = subprocess.run(
        ["make", "--dry-run", f"VENV={tmp_path}", str(rule)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    first, _, rest = made.partition("-m venv")
    assert f"Installing Assay into {tmp_path}; the first time this takes a minute" in first
    assert "pip" in rest
