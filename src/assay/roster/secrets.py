"""Which values of a project are secret: what targets name as such, and what opens doors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from assay.errors import AssayError
from assay.model.target import TargetSpec
from assay.redaction import SHORTEST_SECRET, Redactor
from assay.registry import targets as providers
from assay.roster.targets import VARIABLE, Roster
from assay.settings import SECRET_KEYS, Settings, environment, environment_of_child

API_TOKENS = "ASSAY_API_TOKENS"
#: Settings that results name; a variable in them is no secret.
_PUBLIC = frozenset({"name", "provider", "model", "deployment", "version"})
#: Of a program that sees the whole environment, the variables that are secret by their name.
_TELLING = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\Z", re.IGNORECASE)


def discreet() -> Callable[[str], str]:
    """Hides the secrets of the project that we are in, as far as its configuration can be read."""
    try:
        secrets = secrets_of(Settings.find(Path()))
    except (AssayError, OSError):
        secrets = set()
    return Redactor(secrets).text


def secrets_of(settings: Settings) -> set[str]:
    """The secrets that targets, the judge, the store and the server of a project have.

    No target is connected. Of one that is wrong, what is written is taken; who uses it is told.
    """
    found = {*_of_doors(settings), *_written(settings)}
    for spec in Roster(settings).specs():
        found |= secrets_of_target(spec)
    found |= {value for value in environment(_variables(settings)).values() if value}
    return {value for value in found if len(value.strip()) >= SHORTEST_SECRET}


def secrets_of_target(spec: TargetSpec) -> set[str]:
    """The secret settings of one target, and the variables that it passes on by name."""
    names = list(getattr(spec, "env", ()))
    if "*" in names:
        seen = environment_of_child(names)
        names = [name for name in seen if _TELLING.search(name)]
    return {*spec.secrets, *environment(names).values()}


def _variables(settings: Settings) -> Iterator[str]:
    """The environment variables that hold keys, or that settings of targets name."""
    for cls in providers.usable().values():
        if cls.key_variable:
            yield cls.key_variable
    for source in (settings.config.tools, settings.config.snapshot):
        yield from source.env if source is not None else ()
    for document, path, _ in Roster(settings).entries():
        private = {k: v for k, v in document.get(path).items() if k not in _PUBLIC}
        for text in _texts(private):
            yield from (match[1] or match[2] for match in VARIABLE.finditer(text))


def _written(settings: Settings) -> Iterator[str]:
    """What stands in secret settings, be it right or wrong, and the words of it."""
    for document, path, _ in Roster(settings).entries():
        entry = document.get(path)
        for text in _texts([entry.get(key) for key in SECRET_KEYS]):
            literal = VARIABLE.sub(" ", text).strip()  # the name of a variable is no secret
            yield from (literal, *literal.split())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        parts: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for part in parts:
            yield from _texts(part)


def _of_doors(settings: Settings) -> Iterator[str]:
    """The tokens of the server and the password of the store."""
    for text in environment([API_TOKENS]).values():
        yield from re.split(r"[\s,;]+", text)
    try:
        password = urlsplit(settings.config.store).password
    except ValueError:  # who opens the store is told
        return
    if password:
        yield from (password, unquote(password))
