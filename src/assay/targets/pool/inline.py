"""Targets that are written inline: `provider:setting`, an address, or a file with a function."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from assay.errors import UsageError, nearest
from assay.registry import targets as providers

#: `my_agent:answer`, which lacks `python:`.
_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
#: `agents/desk.py:answer`, with or without `python:`.
_FILE = re.compile(r"(?:python:)?(?P<file>.+\.py):(?P<function>[^\W\d][\w.]*)")
#: `localhost:8000/ask`, which lacks `http://`.
_ADDRESS = re.compile(r"[\w.-]+:\d+(/|$)")


def inline_settings(name: str, root: Path) -> dict[str, Any] | None:
    """The settings that an inline name stands for; None when no provider accepts it."""
    name = _as_module(name, root)
    prefix, colon, _ = name.partition(":")
    if not colon:
        return None
    known = {prefix: providers.get(prefix)} if prefix in providers else providers.usable()
    for provider, cls in known.items():
        settings = cls.inline(provider, name)
        if settings is not None:
            return {"name": name, "provider": provider, **settings}
    return None


def _as_module(name: str, root: Path) -> str:
    """`python:agents.desk:answer` for `agents/desk.py:answer`; any other name is unchanged.

    The file is relative to the working directory, and modules are found from the project root.
    """
    match = _FILE.fullmatch(name)
    prefix = name.partition(":")[0]
    if match is None or (prefix in providers and prefix != "python"):
        return name
    written = match["file"]
    file = Path(os.path.abspath(written))
    if not file.is_file():
        others = [each.name for each in file.parent.glob("*.py")]
        hint = nearest(file.name, others)
        raise UsageError(f"there is no file {written!r}" + (f" ({hint})" if hint else ""))
    if not file.is_relative_to(root):
        raise UsageError(f"{written!r} is outside the project root {str(root)!r}")
    parts = file.relative_to(root).with_suffix("").parts
    if not all(part.isidentifier() for part in parts):
        message = f"{written!r} cannot be imported: its path has a name that is not a Python name"
        raise UsageError(f"{message}, such as {re.sub(r'[^a-zA-Z0-9_/.]', '_', written)!r}")
    return f"python:{'.'.join(parts)}:{match['function']}"


def hint_for(name: str, known: Collection[str]) -> str:
    """A hint for an unknown target: the likeliest mistake, or else all that are configured."""
    prefix, colon, _ = name.partition(":")
    if name.endswith(".py"):
        return f"did you mean '{name.removeprefix('./')}:FUNCTION'?"
    if near := nearest(name, known) or (nearest(prefix, providers, 0.7) if colon else ""):
        return near
    if _FUNCTION.fullmatch(name):
        return f"did you mean 'python:{name}'?"
    if _ADDRESS.match(name):
        return f"did you mean 'http://{name}'?"
    if name.startswith(("./", "../", "/")):
        return f"did you mean 'command:{name}'?"
    configured = ", ".join(map(repr, sorted(known))) or "none"
    return f"configured: {configured}; or write one inline, such as python:my_agent:answer"
