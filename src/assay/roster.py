"""The targets a project knows: by the name in its configuration, inline, and as its judge."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any, Self

from assay.documents.checking import check
from assay.documents.document import DocPath, Document, TextMark
from assay.errors import ConfigError, Problem, UnknownName, UsageError
from assay.model.shape import Reading
from assay.model.target import TargetSpec
from assay.ports import Target
from assay.registry import targets as providers
from assay.retrying import Retrying, RetryPolicy, SystemClock
from assay.settings import Settings, TargetEntry, environment

#: `${{ NAME }}` and `{{ env.NAME }}` stand for environment variables in settings of targets.
_VARIABLE = re.compile(r"\$\{\{\s*(\w+)\s*\}\}|\{\{\s*env\.(\w+)\s*\}\}")


class Roster:
    """Connects targets when they are asked for, and closes them all at the end.

    `judge` overrides the project's judge: the name of a target, or a target itself, which
    stays the caller's to close.
    """

    def __init__(self, settings: Settings, judge: str | Target | None = None) -> None:
        self.settings = settings
        self._judge = judge if judge is None or isinstance(judge, str) else _retrying(judge)
        self._connected: dict[tuple[str | None, str | None], Target] = {}

    def target(self, name: str) -> Target:
        """The target called `name`, or written inline as `provider:setting`."""
        return self._connect((name, None), lambda: self._named(name))

    def judge(self, target: str | None, model: str | None) -> Target:
        """Who judges for an evaluator with these `target` and `model` keys."""
        if target is None and model is None and not isinstance(self._judge, (str, type(None))):
            return self._judge
        return self._connect((target, model or ""), lambda: self._judging(target, model))

    async def close(self) -> None:
        for target in self._connected.values():
            await target.close()
        self._connected.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _connect(self, key: tuple[str | None, str | None], find: Any) -> Target:
        if key not in self._connected:
            spec = find()
            self._connected[key] = _retrying(spec.connect(), spec.identity)
        return self._connected[key]

    def _judging(self, target: str | None, model: str | None) -> TargetSpec:
        if model is not None and ":" in model and model.partition(":")[0] in providers:
            return self._named(model)
        spec = self._judge_spec(target)
        if spec is None:
            if model is None:
                raise UsageError(NO_JUDGE)
            return self._named(f"openai:{model}")
        if model is None:
            return spec
        if "model" not in type(spec).model_fields:
            raise UsageError(f"the judge {spec.label!r} has no model that could be {model!r}")
        return spec.model_copy(update={"model": model, "name": ""})

    def _judge_spec(self, target: str | None) -> TargetSpec | None:
        name = target or self._judge or self.settings.config.judge
        if isinstance(name, TargetEntry):
            return self._checked(("judge",), name.provider)
        if name is not None and not isinstance(name, str):
            raise UsageError("the judge that was given has no model that could be changed")
        return None if name is None else self._named(name)

    def _named(self, name: str) -> TargetSpec:
        entries = self.settings.config.targets
        for index, entry in enumerate(entries):
            if entry.name == name:
                return self._checked(("targets", index), entry.provider)
        provider, colon, setting = name.partition(":")
        if colon and provider in providers:
            raw = {"name": name, "provider": provider}
            if setting:
                raw[providers.get(provider).inline_key or "setting"] = setting
            document = Document(f"target {name!r}", raw, [], TextMark(-1, -1, 0))
            return self._spec(document, (), raw)
        raise UnknownName("target", name, [entry.name for entry in entries])

    def _checked(self, path: DocPath, provider: str) -> TargetSpec:
        """The entry at `path` of the configuration, as its provider understands it."""
        document = self.settings.document
        if document is None:  # pragma: no cover - an entry was read from a document
            raise LookupError(path)
        if provider not in providers:
            hint = UnknownName("target provider", provider, providers)
            where = (*path, "provider")
            raise ConfigError([document.problem(where, "unknown-name", str(hint))])
        return self._spec(document, path, document.get(path))

    def _spec(self, document: Document, path: DocPath, raw: Any) -> TargetSpec:
        cls = providers.get(raw["provider"])
        problems: list[Problem] = []
        values = _interpolated(raw, document, path, problems)
        key = environment([cls.key_variable])
        defaults: dict[str, Any] = {"api_key": key[cls.key_variable]} if key else {}
        if "prices" in cls.model_fields:
            defaults["prices"] = self.settings.config.prices
        reading = Reading(_no_path, _no_path, _no_path)
        spec, found = check(cls, document, path, {**defaults, **values}, reading)
        problems += found
        if spec is None or problems:
            raise ConfigError(problems)
        return spec


def _retrying(target: Target, identity: str = "") -> Retrying:
    known = identity or getattr(target, "identity", "")
    return Retrying(target, RetryPolicy(), SystemClock(), identity=known)


NO_JUDGE = (
    "a judge is needed and none is set: write 'judge: openai:MODEL' in assay.yaml, "
    "or give the evaluator a 'target' or 'model'"
)


def _no_path(name: str) -> Any:
    raise LookupError(name)  # pragma: no cover - targets name no file of a case


def _interpolated(value: Any, document: Document, path: DocPath, problems: list[Problem]) -> Any:
    """The settings with environment variables in their place; unset ones become problems."""
    if isinstance(value, dict):
        return {k: _interpolated(v, document, (*path, k), problems) for k, v in value.items()}
    if isinstance(value, list):
        return [_interpolated(v, document, (*path, i), problems) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        found = environment([name])
        if not found:
            message = f"the environment variable {name!r} is not set"
            problems.append(document.problem(path, "unset-variable", message))
        return found.get(name, "")

    return _VARIABLE.sub(replaced, value)
