"""Which values of a project are secret: settings of targets, API tokens, the store's password."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from assay.errors import AssayError
from assay.model.target import TargetSpec
from assay.redaction import SHORTEST_SECRET, Redactor, patterns_only, redacting
from assay.registry import targets as providers
from assay.settings import SECRET_KEYS, Settings, environment, environment_of_child
from assay.targets.pool.target_pool import VARIABLE, TargetPool

API_TOKENS = "ASSAY_API_TOKENS"
#: Settings that appear in results; a variable in them is not secret.
_PUBLIC = frozenset({"name", "provider", "model", "deployment", "version"})
#: Variables whose name says that they are secret, for programs that get the whole environment.
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\Z", re.IGNORECASE)


def project_redactor(settings: Settings | None = None) -> Redactor:
    """Redacts the secrets of a project, by default the current one, if they can be read."""
    with redacting(patterns_only):  # a message about the configuration needs no other redactor
        try:
            return Redactor(secrets_of(settings or Settings.find(Path())))
        except (AssayError, OSError):
            return patterns_only()


def secrets_of(settings: Settings) -> set[str]:
    """The secrets of the targets, the judge, the store and the server of a project.

    No target is connected. If one is invalid, its secrets are taken as written; the error is
    raised when it is used.
    """
    found = {*_access_secrets(settings), *_written_secrets(settings)}
    for spec in TargetPool(settings).specs():
        found |= secrets_of_target(spec)
    found |= {value for value in environment(_variables(settings)).values() if value}
    return {value for value in found if len(value.strip()) >= SHORTEST_SECRET}


def secrets_of_target(spec: TargetSpec) -> set[str]:
    """The secret settings of one target, and the variables that it passes to its program."""
    names = list(getattr(spec, "env", ()))
    if "*" in names:
        names = [name for name in environment_of_child(names) if _SECRET_NAME.search(name)]
    return {*spec.secrets, *environment(names).values()}


def _variables(settings: Settings) -> Iterator[str]:
    """The environment variables that hold keys or that the settings of targets refer to."""
    for cls in providers.usable().values():
        if cls.key_variable:
            yield cls.key_variable
    for source in (settings.config.tools, settings.config.snapshot):
        yield from source.env if source is not None else ()
    for document, path, _ in TargetPool(settings).entries():
        private = {k: v for k, v in document.get(path).items() if k not in _PUBLIC}
        for text in _texts(private):
            yield from (match[1] or match[2] for match in VARIABLE.finditer(text))


def _written_secrets(settings: Settings) -> Iterator[str]:
    """The values of secret settings, valid or not, and each of their words."""
    for document, path, _ in TargetPool(settings).entries():
        entry = document.get(path)
        for text in _texts([entry.get(key) for key in SECRET_KEYS]):
            literal = VARIABLE.sub(" ", text).strip()  # the name of a variable is not secret
            yield from (literal, *literal.split())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        parts: Iterable[Any] = value.values() if isinstance(value, dict) else value
        for part in parts:
            yield from _texts(part)


def _access_secrets(settings: Settings) -> Iterator[str]:
    """The tokens of the server and the password of the store."""
    for text in environment([API_TOKENS]).values():
        yield from (re.sub(r"\A(?:read|write):", "", token) for token in re.split(r"[\s,]+", text))
    try:
        password = urlsplit(settings.config.store).password
    except ValueError:  # reported when the store is opened
        return
    if password:
        yield from (password, unquote(password))
