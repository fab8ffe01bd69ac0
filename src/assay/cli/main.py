"""The `assay` command. The version is answered before anything else is imported."""

from __future__ import annotations

import gc
import sys

from assay.cli import streams
from assay.version import __version__

#: So many new objects are looked through for garbage at once. Python's 700 would mean hundreds of
#: times while modules are imported and cases are read, in which there is none.
GARBAGE_AFTER = 20_000


def main() -> None:
    """Entry point of the console script."""
    streams.guard()
    try:
        if sys.argv[1:] in (["--version"], ["-V"]):
            print(f"assay {__version__}")
            return
        gc.set_threshold(GARBAGE_AFTER)
        from assay.cli.app import app

        app(prog_name="assay")
    except KeyboardInterrupt:  # before there was a command to end
        sys.exit(130)
    finally:
        gc.freeze()  # the process ends: nobody needs the room that garbage takes
        if fault := streams.fault():
            print(f"assay: stdout cannot be written: {fault}", file=sys.stderr)
            sys.exit(3)
