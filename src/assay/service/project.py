"""The project of the working directory: its settings and its plugins."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from assay import registry
from assay.errors import ConfigError, UsageError, cause_of
from assay.problems import Problem
from assay.registry import Registered
from assay.settings import Settings


def working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working directory no longer exists") from None


def find_settings() -> Settings:
    """The settings of the project that the working directory is in."""
    return Settings.find(working_directory())


def project() -> Settings:
    """The settings of the project, with its plugins imported."""
    settings = find_settings()
    if problems := import_plugins(settings):
        raise ConfigError(problems)
    return settings


def import_plugins(settings: Settings) -> list[Problem]:
    """Import the modules listed under `plugins`; a problem for each that fails."""
    problems: list[Problem] = []
    if settings.document is None:
        return problems
    for index, name in enumerate(settings.config.plugins):
        if fault := _import_plugin(name, settings).fault:
            message = f"the plugin {name!r} could not be imported: {fault}"
            place = ("plugins", index)
            problems.append(settings.document.problem(place, "plugin-failed", message))
    return problems


def plugins() -> list[Registered]:
    """Everything that is registered, with the reason if it cannot be used."""
    settings = find_settings()
    modules = [_import_plugin(name, settings) for name in settings.config.plugins]
    kinds = (
        *(registry.loaders, registry.evaluators, registry.targets),
        *(registry.stores, registry.reporters, registry.executors),
    )
    return [*modules, *(entry for kind in kinds for entry in kind.listed())]


def _import_plugin(module: str, settings: Settings) -> Registered:
    """Import a module listed under `plugins`; its evaluators register themselves."""
    settings.prepend_to_sys_path()
    fault = ""
    try:
        import_module(module)
    # a module may do anything when it is imported
    except (Exception, SystemExit) as error:
        fault = cause_of(error)
    return Registered("plugin", module, "config", fault)
