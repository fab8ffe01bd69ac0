"""Functions of a project, imported by reference: `package.module:function`."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from assay.errors import MAX_MESSAGE, AssayError, cause_of, nearest, printable
from assay.redaction import cut

_ABSENT = object()


def imported(reference: str, failure: Callable[[str], AssayError]) -> Callable[..., Any]:
    """The function; raises `failure(message)` if it cannot be imported or called."""
    label = f"python:{reference}"
    module, _, names = reference.partition(":")
    try:
        found: Any = import_module(module)
        for name in names.split("."):
            home, found = found, getattr(found, name, _ABSENT)
            if found is _ABSENT:
                break
    except (Exception, SystemExit) as error:  # a project's module may raise anything on import
        if isinstance(error, ModuleNotFoundError) and _is_self_or_parent(error.name, module):
            message = f"{label}: there is no module {error.name!r}"
            raise failure(f"{message} in the project or in what is installed") from None
        raise failure(f"{label} could not be imported: {raised(error)}") from error
    if found is _ABSENT:
        raise failure(f"{label}: {module!r} has no {name!r}{_hint(name, home)}")
    if not callable(found):
        raise failure(f"{label} is {type(found).__name__}, not a function")
    function: Callable[..., Any] = found
    return function


def _hint(name: str, home: Any) -> str:
    hint = nearest(name, [known for known in dir(home) if not known.startswith("_")])
    return f" ({hint})" if hint else ""


def _is_self_or_parent(missing: str | None, module: str) -> bool:
    """Is the missing module the wanted one or a parent of it, not one that it imports?"""
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def raised(error: BaseException) -> str:
    """The type, message and line of an exception from a project's code."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return printable(cut(cause_of(error), MAX_MESSAGE - len(at), "both")) + at
