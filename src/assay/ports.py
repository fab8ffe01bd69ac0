"""The extension contract: what a stranger implements to join in.

A port is registered under an entry-point group of its name, by strangers and by us:

    [project.entry-points."assay.loaders"]       file suffix -> Loader
    [project.entry-points."assay.evaluators"]    type name -> subclass of EvaluatorSpec
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from assay.model.case import Suite
from assay.settings import Settings


class Loader(Protocol):
    """Reads eval files of one format. A module with these two functions will do.

    It is chosen by the longest registered suffix that the file's name ends with.
    """

    def load(self, file: Path, settings: Settings) -> Suite:
        """The file's suite; raises EvalFileErrors with all of its problems."""
        ...

    def recognises(self, file: Path) -> str:
        """Why a file met in a directory is no eval file; empty when it is one.

        A file with `.eval.` before its suffix is one, whatever it holds.
        """
        ...
