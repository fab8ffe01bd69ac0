"""The types that the comments of our ES modules declare are right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STATIC = Path(__file__).parents[2] / "src" / "assay" / "web" / "static"
NODE = Path(sys.prefix) / "bin" / "node"
TSC = Path(sys.prefix) / "types" / "node_modules" / ".bin" / "tsc"
OPTIONS = ("--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022")
LIBRARIES = (
    "--module",
    "es2022",
    "--moduleResolution",
    "bundler",
    "--lib",
    "es2023,dom,dom.iterable",
)


def check_types(*files: Path) -> str:
    """What TypeScript says of the modules; `make test-pages` installs it."""
    command: list[str | Path] = [NODE, TSC, *OPTIONS, *LIBRARIES, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_modules_have_the_types_that_they_declare() -> None:
    modules = sorted(STATIC.glob("*.js"))
    assert len(modules) > 10
    assert check_types(*modules) == ""


def test_a_wrong_type_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.js"
    wrong.write_text("/** @param {number} n */\nconst half = (n) => n / 2;\nhalf('four');\n")
    assert "wrong.js(3,6): error TS2345" in check_types(wrong)
