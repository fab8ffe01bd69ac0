"""Functions of a project, found by what files call them: `package.module:function`."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from assay.errors import MAX_MESSAGE, AssayError, cause_of, nearest, printable

_ABSENT = object()


def imported(reference: str, failure: Callable[[str], AssayError]) -> Callable[..., Any]:
    """The function; what is wrong with it is a `failure` that says so."""
    label = f"python:{reference}"
    module, _, names = reference.partition(":")
    try:
        found: Any = import_module(module)
        for name in names.split("."):
            home, found = found, getattr(found, name, _ABSENT)
            if found is _ABSENT:
                break
    except (Exception, SystemExit) as error:  # whatever a project's module does on import
        if isinstance(error, ModuleNotFoundError) and _is_part(error.name, module):
            message = f"{label}: there is no module {error.name!r}"
            raise failure(f"{message} in the project or in what is installed") from None
        raise failure(f"{label} could not be imported: {raised(error)}") from error
    if found is _ABSENT:
        raise failure(f"{label}: {module!r} has no {name!r}{_near(name, home)}")
    if not callable(found):
        raise failure(f"{label} is {type(found).__name__}, not a function")
    function: Callable[..., Any] = found
    return function


def _near(name: str, home: Any) -> str:
    hint = nearest(name, [known for known in dir(home) if not known.startswith("_")])
    return f" ({hint})" if hint else ""


def _is_part(missing: str | None, module: str) -> bool:
    """Is it the module itself that is missing, or a package that it is in?"""
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def raised(error: BaseException) -> str:
    """The type, the words and the line of what a project's code raised."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return printable(cause_of(error))[: MAX_MESSAGE - len(at)] + at
