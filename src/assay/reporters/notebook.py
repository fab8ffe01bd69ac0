"""The progress of a run in a notebook: a line below the cell, redrawn as on a terminal."""

from __future__ import annotations

import io
import sys
from collections import deque
from typing import Any, TextIO, cast

from assay.reporters.progress import ERASE, Progress

#: So many finished lines, such as notices, stay above the one that is redrawn.
_KEPT = 20


def progress_line() -> Progress | None:
    """Shows progress in the notebook or the IPython shell that runs this code; None elsewhere.

    IPython is not imported: it is there if it runs the code.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return None
    return Progress(cast("TextIO", _Cell()) if hasattr(shell, "kernel") else sys.stderr)


class _Cell(io.TextIOBase):
    """The output below a cell, as a terminal on which one line can be redrawn."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._handle: Any = None

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *ended, line = text.removeprefix(ERASE).split("\n")
        self._lines += ended
        self._show("\n".join([*self._lines, line]).rstrip("\n"))
        return len(text)

    def _show(self, text: str) -> None:
        data = {"text/plain": text}
        if self._handle is None:
            display = sys.modules["IPython"].display.display
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
