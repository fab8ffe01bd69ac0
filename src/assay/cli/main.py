"""The `assay` command. The version is answered before anything else is imported."""

from __future__ import annotations

import sys

from assay.version import __version__


def main() -> None:
    """Entry point of the console script."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"assay {__version__}")
        return
    try:
        from assay.cli.app import app

        app(prog_name="assay")
    except KeyboardInterrupt:  # before there was a command to end
        sys.exit(130)


if __name__ == "__main__":
    main()
