"""Loads the scripts in benchmarks/ that simulate worlds in which the truth is known."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(name: str, *needed: str) -> ModuleType:
    """The module of a script; those that it imports are loaded first."""
    for other in needed:
        load(other)
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, _BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look it up
    spec.loader.exec_module(module)
    return module
