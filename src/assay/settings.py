"""The project: its root and its configuration.

The configuration is `assay.yaml`, or `[tool.assay]` in pyproject.toml, found upward from
the working directory. The project root is the folder that it is in, or else the nearest folder
upward that has a `.git`, or else the working directory.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Annotated, Any

import msgspec
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from assay.errors import ConfigError, EvalFileErrors, nearest
from assay.model.accepted import AcceptedLoss
from assay.model.options import RequestOptions
from assay.model.preference import PreferenceSettings
from assay.model.source import AnySource, LiveSource
from assay.model.target import Price
from assay.problems import Problem
from assay.wire import yaml
from assay.wire.document import Document
from assay.wire.fields import Empty, Flag, Number, Text
from assay.wire.shape import Shape
from assay.wire.text_files import is_absent, read_text
from assay.wire.validation import check
from assay.wire.validation_context import ValidationContext
from assay.wire.validation_errors import AlsoCheck, AnyValidationError, problem, repeated, shown

#: Settings of targets that are never recorded.
SECRET_KEYS = ("api_key", "headers")
#: How similar a key must be to a required one to be a misspelling of it.
_MISSPELT = 0.75
CONFIG_FILES = ("assay.yaml", "pyproject.toml")


def _below_root(value: str) -> str:
    if os.path.isabs(value) or ".." in Path(value).parts:
        raise problem("wrong-value", f"{value!r} is not a path under the project root")
    return value


_MODULE = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"


def _module(value: str) -> str:
    if not value.endswith("\n") and re.match(_MODULE, value):
        return value
    message = f"{value!r} is not the name of a Python module"
    raise problem("wrong-value", message, "for example my_package.my_module")


ModuleName = Annotated[str, AfterValidator(_module), Field(json_schema_extra={"pattern": _MODULE})]


class TargetEntry(Shape):
    """A target: its name, its provider, and the provider's own settings."""

    model_config = ConfigDict(extra="allow")

    name: Text
    provider: Text

    @model_validator(mode="before")
    @classmethod
    def _find_misspelt(cls, raw: Any) -> Any:
        """Any key may be a setting of the provider, unless a required key seems misspelt."""
        required = [key for key, field in cls.model_fields.items() if field.is_required()]
        lacking = [key for key in required if key not in raw] if isinstance(raw, dict) else []
        for key in (key for key in raw if key not in cls.model_fields) if lacking else ():
            if hint := nearest(str(key), lacking, _MISSPELT):
                raise problem("unknown-key", f"the key {key!r} is not known here", hint)
        return raw

    @property
    def models(self) -> dict[str, str]:
        """The models by the names of their targets, such as `gpt[gpt-6]`; empty if it has one."""
        models = (self.model_extra or {}).get("model")
        if not isinstance(models, list) or not all(isinstance(model, str) for model in models):
            return {}
        return {f"{self.name}[{model}]": model for model in models}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the targets that it stands for."""
        return tuple(self.models) or (self.name,)


class JudgeEntry(TargetEntry):
    """A judge written in place; it needs no name."""

    name: Text = "judge"


def _judge_entry(raw: Any, info: ValidationInfo) -> Any:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, dict):
        return JudgeEntry.model_validate(raw, context=info.context)
    raise problem(
        "wrong-type", f"is {shown(raw)}, neither the name of a target nor a mapping of its settings"
    )


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")


def _store_url(value: str) -> str:
    if not _SCHEME.match(value):
        hint = "for example sqlite:.assay/assay.db"
        raise problem("wrong-value", "is not the URL of a store", hint)
    return value


def _duplicate_names(raw: Any) -> Iterator[AnyValidationError]:
    return repeated(raw, "two targets are called {}", "name")


class Config(Shape):
    """The keys of assay.yaml; an environment variable, ASSAY_<KEY>, overrides each scalar one."""

    allow_outside_root: Flag = False
    allow_tools_over_rest: Flag = False
    seed_manifest: Annotated[Text, AfterValidator(_below_root)] = "evals/seed-manifest.json"
    targets: Annotated[list[TargetEntry], AlsoCheck(_duplicate_names)] = Empty(list)
    judge: Annotated[
        str | JudgeEntry | None,
        BeforeValidator(_judge_entry, json_schema_input_type=Text | JudgeEntry),
    ] = None
    store: Annotated[Text, AfterValidator(_store_url)] = "sqlite:.assay/assay.db"
    store_retry_seconds: Annotated[Number, Field(ge=0)] = 30.0
    tools: AnySource = None
    snapshot: LiveSource = None
    plugins: list[ModuleName] = Empty(list)
    bundle: list[Annotated[Text, AfterValidator(_below_root)]] = Empty(list)
    shared_folder: Flag = False
    prices: dict[str, Price] = Empty(dict)
    accepted: list[AcceptedLoss] = Empty(list)
    preference: PreferenceSettings | None = Empty(NoneType)
    defaults: RequestOptions = Empty(RequestOptions)


class Settings(msgspec.Struct, frozen=True):
    """Where the project is and how it is set up."""

    root: Path
    config: Config = msgspec.field(default_factory=Config)
    #: The configuration as written, to locate problems that are found later.
    document: Document | None = None
    #: The folder that a server serves. Suites are only loaded from inside it, links resolved.
    bounds: Path | None = None

    @classmethod
    def find(cls, start: Path) -> Settings:
        """The settings of the project that `start` is in."""
        start = start.resolve()
        git: Path | None = None
        for folder in (start, *start.parents):
            for name, read in zip(CONFIG_FILES, (read_yaml, _read_toml), strict=True):
                file = folder / name
                document = None if is_absent(file) else read(file)
                if document is not None:
                    return cls(folder, _with_overrides(_validate(document)), document)
            if git is None and (folder / ".git").exists():
                git = folder
        return cls(git or start, _with_overrides(Config()))

    def for_file(self, file: Path) -> Settings:
        """These settings, or those of the file's own project when it lies outside this one."""
        return self.for_folder(Path(os.path.realpath(file)).parent)

    def for_folder(self, folder: Path) -> Settings:
        """These settings, or those of the folder's own project when it lies outside this one."""
        folder = Path(os.path.realpath(folder))
        if folder.is_relative_to(self.root):
            return self
        return msgspec.structs.replace(Settings.find(folder), bounds=self.bounds)

    def permits(self, real: Path) -> bool:
        """May suites refer to this path, whose links are resolved?"""
        if self.bounds is not None:  # a server ignores `allow_outside_root`
            return real.is_relative_to(self.bounds)
        return self.config.allow_outside_root or real.is_relative_to(self.root)

    def permitted_root(self) -> tuple[str, str]:
        """For the error about a path that is not permitted: which root it leaves, and a hint."""
        if self.bounds is not None:
            return "the served root", ""
        return "the project root", "set allow_outside_root in assay.yaml to permit it"

    def recorded(self) -> dict[str, Any]:
        """The configuration as a run records it, without keys that may hold secrets."""
        # A warning of pydantic about the judge would print its settings, including secrets.
        written: dict[str, Any] = self.config.model_dump(
            mode="json", exclude_defaults=True, warnings=False
        )
        judge = written.get("judge")
        for entry in (*written.get("targets", ()), *([judge] if isinstance(judge, dict) else ())):
            for name in SECRET_KEYS:
                entry.pop(name, None)
        return written

    @property
    def target_names(self) -> list[str]:
        """The names of all configured targets, one for each model."""
        return [name for entry in self.config.targets for name in entry.names]

    def prepend_to_sys_path(self) -> None:
        """Put the project root first in `sys.path`, so that its own modules are found."""
        if (root := str(self.root)) not in sys.path:
            sys.path.insert(0, root)

    @property
    def seed_manifest(self) -> Path:
        return self.root / self.config.seed_manifest


#: Keys of the configuration, with the environment variables that override them.
OVERRIDES = {
    key: f"ASSAY_{key.upper()}"
    for key, info in Config.model_fields.items()
    if info.default_factory is None  # a variable cannot hold a list or a mapping
}


#: Environment variables that every child process gets. Others, such as secrets, must be named.
HARMLESS = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")


def environment(names: Iterable[str]) -> dict[str, str]:
    """These environment variables, if set. All other modules read the environment here."""
    return {name: os.environ[name] for name in names if name in os.environ}


def environment_of_child(names: Iterable[str]) -> dict[str, str]:
    """The environment of a child process: HARMLESS and the named variables; `*` names all."""
    names = list(names)
    return dict(os.environ) if "*" in names else environment([*HARMLESS, *names])


def shown_path(file: Path) -> str:
    """The path as messages show it: relative to the working directory if it is inside."""
    absolute, here = os.path.abspath(file), os.getcwd()
    below = os.path.join(here, "")
    text = "." if absolute == here else Path(absolute.removeprefix(below)).as_posix()
    return os.fsencode(text).decode("utf-8", "backslashreplace")  # a name may not be UTF-8


def read_yaml(file: Path) -> Document | None:
    """The document of a YAML configuration; raises ConfigError when it cannot be parsed."""
    try:
        return yaml.parse(read_text(file, shown_path(file)), shown_path(file))
    except EvalFileErrors as error:
        raise ConfigError(error.problems) from None


def _read_toml(file: Path) -> Document | None:
    import tomllib

    name = shown_path(file)
    try:
        tool = tomllib.loads(read_text(file, name)).get("tool")
        table = tool.get("assay") if isinstance(tool, dict) else None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError([_toml_problem(name, str(error))]) from None
    except EvalFileErrors as error:
        raise ConfigError(error.problems) from None
    # tomllib gives no positions, so problems point at the whole file.
    return None if table is None else Document.unplaced(name, table)


def _toml_problem(name: str, message: str) -> Problem:
    """The problem of a syntax error; tomllib puts the position at the end of its message."""
    place = re.search(r" \(at line (\d+), column (\d+)\)\Z", message)
    line, column = (int(place[1]), int(place[2])) if place else (0, 0)
    text = message[: place.start()] if place else message
    return Problem(name, line, column, "error", "toml-syntax", text)


def _validate(document: Document) -> Config:
    data = {} if document.data is None else document.data
    config, problems = check(Config, document, (), data, ValidationContext())
    problems = [*document.problems, *problems]
    if config is None or any(p.severity == "error" for p in problems):
        raise ConfigError(problems)
    return config


def _with_overrides(config: Config) -> Config:
    """The configuration with overrides from the environment; an empty variable is ignored."""
    changes: dict[str, Any] = {}
    problems: list[Problem] = []
    variables = environment(OVERRIDES.values())
    for key, variable in OVERRIDES.items():
        if text := variables.get(variable):
            raw = {key: _parse(text, getattr(config, key))}
            document = Document.unplaced(f"environment variable {variable}", raw)
            checked, found = check(Config, document, (), raw, ValidationContext())
            problems += found
            changes[key] = getattr(checked, key, None)
    if problems:
        raise ConfigError(problems)
    return config.model_copy(update=changes) if changes else config


def _parse(text: str, like: Any) -> bool | float | str:
    """The value of an environment variable, of the type of a setting; text if it is not one."""
    if isinstance(like, bool):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if isinstance(like, float):
        with suppress(ValueError):
            return float(text)
    return text
