"""The `assay` command. `--version` is answered before anything else is imported."""

from __future__ import annotations

import gc
import sys

from assay.cli import streams
from assay.version import __version__

#: The threshold of the first garbage collector generation. Python's 700 would trigger hundreds of
#: collections while modules are imported and cases are read, and these find nothing.
GC_THRESHOLD = 20_000


def main() -> None:
    """Entry point of the console script."""
    streams.guard()
    try:
        if sys.argv[1:] in (["--version"], ["-V"]):
            print(f"assay {__version__}")
            return
        gc.set_threshold(GC_THRESHOLD)
        from assay.cli.app import app

        app(prog_name="assay")
    except KeyboardInterrupt:  # before the command group could handle it
        sys.exit(130)
    finally:
        gc.freeze()  # the process ends: a last collection would be wasted
        if fault := streams.fault():
            print(f"assay: stdout cannot be written: {fault}", file=sys.stderr)
            sys.exit(3)
