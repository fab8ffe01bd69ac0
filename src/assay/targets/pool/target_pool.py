"""The targets of a project: configured by name, written inline, and its judge."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from assay.errors import AssayError, ConfigError, PluginError, UnknownName, UsageError, wrap_errors
from assay.model.names import same_name
from assay.model.options import TIMEOUT_SECONDS, WORKERS
from assay.model.target import RateLimits, TargetSpec
from assay.ports import Target
from assay.problems import Problem
from assay.registry import targets as providers
from assay.settings import Settings, TargetEntry, environment
from assay.store_parts import Permits
from assay.targets.pool.agentv import targets_file, translated
from assay.targets.pool.inline import hint_for, inline_settings
from assay.targets.pool.needs import check_needs
from assay.targets.pool.rate_limits import RateLimiter
from assay.targets.pool.retries import Clock, RetryingTarget, RetryPolicy, SystemClock
from assay.targets.pool.shared_limits import SharedRateLimiter
from assay.wire.document import DocPath, Document
from assay.wire.validation import check
from assay.wire.validation_context import ValidationContext

#: `${{ NAME }}` and `{{ env.NAME }}` stand for environment variables in settings of targets.
VARIABLE = re.compile(r"\$\{\{\s*(\w+)\s*\}\}|\{\{\s*env\.(\w+)\s*\}\}")
#: The timeout for closing a target.
CLOSING_SECONDS = 30.0

Translate = Callable[[dict[str, Any]], dict[str, Any]]


class TargetPool:
    """Connects targets when they are first needed, and closes them all at the end.

    `judge` overrides the project's judge: the name of a target, or a target, which the caller
    has to close. With `permits`, other processes ask the same targets under the same limits. Only
    names in `allowed` may be used, also as the model of a judge. `policy` is
    for all targets, and so are the `limits` that are set, which override the configuration.
    `workers` is the default for the concurrent questions of a target. `seed` makes the waits
    repeatable.
    """

    def __init__(
        self,
        settings: Settings,
        judge: str | Target | None = None,
        allowed: Collection[str] | None = None,
        *,
        policy: RetryPolicy | None = None,
        limits: RateLimits | None = None,
        workers: int = WORKERS,
        clock: Clock | None = None,
        seed: int | None = None,
        permits: Permits | None = None,
    ) -> None:
        self.settings, self._allowed = settings, allowed
        self._policy = policy or RetryPolicy(timeout=TIMEOUT_SECONDS)
        self._limits, self._workers = limits or RateLimits(), workers
        self._clock, self._seed = clock or SystemClock(), seed
        self._permits = permits
        self._limiters: dict[str, RateLimiter] = {}
        self._connected: dict[tuple[str | None, str | None], RetryingTarget] = {}
        self._judge = judge
        if judge is not None and not isinstance(judge, str):
            self._judge = self.adopt(judge)

    def target(self, name: str) -> RetryingTarget:
        """The target called `name`, or written inline, as `provider:setting` or an address."""
        return self._connect((name, None), lambda: self.spec(name))

    def spec(self, name: str) -> TargetSpec:
        """The settings of the target called `name`, or written inline."""
        if self._allowed is not None and name not in self._allowed:
            raise UnknownName("configured target", name, self._allowed)
        for index, entry in enumerate(self.settings.config.targets):
            for known, model in entry.models.items():
                if same_name(known, name):
                    return self._configured(("targets", index), _with_model(known, model))
            if same_name(entry.name, name):
                if entry.models:
                    raise UsageError(_one_model(name, entry.names))
                return self._configured(("targets", index))
        raw = inline_settings(name, self.settings.root)
        if raw is not None:
            document = Document.unplaced(f"target {name!r}", raw)
            return self._spec(document, (), Path.cwd())
        return self._agentv_spec(name)

    def adopt(self, target: Target) -> RetryingTarget:
        """Wrap a target in the policy of this pool; the caller has to close it."""
        return self._retrying(target, getattr(target, "identity", ""), RateLimits())

    def judge_of_preferences(self) -> RetryingTarget:
        """The judge that compares answers; it belongs to no evaluator."""
        if self._judge is None and self.judge_spec() is None:
            raise UsageError(f"{NO_JUDGE}: {_JUDGE_OF_PREFERENCES}")
        return self.judge(None, None)

    def judge(self, target: str | None, model: str | None) -> RetryingTarget:
        """The judge of an evaluator with these `target` and `model` keys."""
        if target is None and model is None and isinstance(self._judge, RetryingTarget):
            return self._judge
        return self._connect((target, model or ""), lambda: self._spec_of_judge(target, model))

    def specs(self) -> Iterator[TargetSpec]:
        """All configured targets and judges that are valid; none is connected."""
        for entry in self._specs_or_errors():
            if not isinstance(entry, AssayError):  # raised when the target is used
                yield entry

    def faults(self) -> Iterator[AssayError]:
        """The errors of all that are invalid, and of the names of the default target and judge."""
        for entry in self._specs_or_errors():
            if isinstance(entry, AssayError):
                yield entry
        config = self.settings.config
        known = {name for entry in config.targets for name in (entry.name, *entry.names)}
        for name in (*(config.defaults.target or ()), config.judge):
            if isinstance(name, str) and name not in known:
                try:
                    self.spec(name)
                except AssayError as error:
                    yield error

    @property
    def workers(self) -> int:
        """The highest concurrency of all connected targets."""
        return max((limiter.workers for limiter in self._limiters.values()), default=self._workers)

    def workers_of(self, targets: Iterable[RetryingTarget]) -> int:
        """The highest concurrency of these targets."""
        known = (self._limiters[target.identity].workers for target in targets)
        return max(known, default=self._workers)

    def judge_spec(self) -> TargetSpec | None:
        """The settings of the project's judge; None when it has none."""
        return self._judge_spec(None)

    def entries(self) -> Iterator[tuple[Document, DocPath, Translate]]:
        """Where targets and the judge are defined, in our configuration and in that of AgentV."""
        config, document = self.settings.config, self.settings.document
        if document is not None:
            for index, entry in enumerate(config.targets):
                for each in entry.models.items():
                    yield document, ("targets", index), _with_model(*each)
                if not entry.models:
                    yield document, ("targets", index), dict
            if isinstance(config.judge, TargetEntry):
                yield document, ("judge",), dict
        with suppress(ConfigError):
            document, entries = targets_file(self.settings.root)
            if document is not None:
                for index in range(len(entries)):
                    yield document, ("targets", index), translated

    async def close(self) -> None:
        """Close all targets; raises PluginError when one fails or takes too long."""
        async with AsyncExitStack() as stack:
            for target in self._connected.values():
                stack.push_async_callback(_close, target)
            self._connected.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.close()
        except PluginError:
            if error is None:  # the error of the block matters more
                raise

    def _connect(
        self, key: tuple[str | None, str | None], get_spec: Callable[[], Any]
    ) -> RetryingTarget:
        if key not in self._connected:
            spec = get_spec()
            check_needs(spec)
            self._check_functions(spec)
            self._connected[key] = self._retrying(connected(spec), spec.identity, spec)
        return self._connected[key]

    def _check_functions(self, spec: TargetSpec) -> None:
        """A server's models call functions of the project only if the configuration says so."""
        settings = self.settings
        served = settings.bounds is not None and not settings.config.allow_tools_over_rest
        if served and spec.calls_functions:
            message = f"the target {spec.label!r} has Python functions as tools"
            hint = "set allow_tools_over_rest in assay.yaml to allow that"
            raise UsageError(f"{message}, which runs over REST may not call: {hint}")

    def _retrying(self, target: Target, identity: str, limits: RateLimits) -> RetryingTarget:
        limiter = self._limiter(identity or target.name, limits)
        policy = self._policy.allowing(getattr(limits, "timeout_seconds", None))
        random = Random(self._seed)
        return RetryingTarget(
            target, policy, self._clock, random, identity, limiter, limits.confirm
        )

    def _limiter(self, identity: str, limits: RateLimits) -> RateLimiter:
        """The rate limiter of a target; shared if the same target is also the judge."""
        if identity not in self._limiters:
            own, run = limits, self._limits
            workers = run.workers or own.workers or self._workers
            rates = (
                run.requests_per_minute or own.requests_per_minute,
                run.tokens_per_minute or own.tokens_per_minute,
            )
            if self._permits is None:
                self._limiters[identity] = RateLimiter(self._clock, workers, *rates)
            else:
                self._limiters[identity] = SharedRateLimiter(
                    self._clock, workers, *rates, permits=self._permits, target=identity
                )
        return self._limiters[identity]

    def _spec_of_judge(self, target: str | None, model: str | None) -> TargetSpec:
        if model is not None and ":" in model and model.partition(":")[0] in providers:
            return self.spec(model)
        spec = self._judge_spec(target)
        if spec is None:
            if model is None:
                raise UsageError(f"{NO_JUDGE}: {_JUDGE_OF_EVALUATORS}")
            return self.spec(f"openai:{model}")
        if model is None:
            return spec
        if "model" not in type(spec).model_fields:
            raise UsageError(f"the judge {spec.label!r} has no model that could be {model!r}")
        return spec.model_copy(update={"model": model, "name": ""})

    def _judge_spec(self, target: str | None) -> TargetSpec | None:
        name = target or self._judge or self.settings.config.judge
        if isinstance(name, TargetEntry):
            return self._configured(("judge",))
        if name is not None and not isinstance(name, str):
            raise UsageError("the judge that was given has no model that could be changed")
        return None if name is None else self.spec(name)

    def _agentv_spec(self, name: str) -> TargetSpec:
        document, entries = targets_file(self.settings.root)
        for index, entry in enumerate(entries):
            if document is not None and same_name(entry.name, name):
                return self._spec(document, ("targets", index), self.settings.root, translated)
        known = [*self.settings.target_names, *(entry.name for entry in entries)]
        raise UnknownName("target", name, known, hint_for(name, known))

    def _specs_or_errors(self) -> Iterator[TargetSpec | AssayError]:
        for document, path, translate in self.entries():
            try:
                yield self._spec(document, path, self.settings.root, translate)
            except AssayError as error:
                yield error

    def _configured(self, path: DocPath, translate: Translate = dict) -> TargetSpec:
        """The entry at `path` of the configuration."""
        document = self.settings.document
        if document is None:  # pragma: no cover - an entry was read from a document
            raise LookupError(path)
        return self._spec(document, path, self.settings.root, translate)

    def _spec(
        self,
        document: Document,
        path: DocPath,
        base: Path,
        translate: Translate = dict,
    ) -> TargetSpec:
        """The entry at `path`, validated by its provider; its paths are relative to `base`."""
        problems: list[Problem] = []
        values = translate(_interpolated(document.get(path), document, path, problems))
        provider = values["provider"]
        if provider not in providers:
            unknown = UnknownName("target provider", provider, providers)
            where = (*path, "provider")
            raise ConfigError([*problems, document.problem(where, "unknown-name", str(unknown))])
        cls = providers.get(provider)
        key = environment([cls.key_variable])
        defaults: dict[str, Any] = {"api_key": key[cls.key_variable]} if key else {}
        if "prices" in cls.model_fields:
            defaults["prices"] = self.settings.config.prices
        context = ValidationContext(base.joinpath, base.joinpath)
        spec, found = check(cls, document, path, {**defaults, **values}, context)
        # An unset variable makes its value invalid: that need not be reported as well. Without
        # line numbers those problems cannot be distinguished from others.
        unset = {(problem.line, problem.column) for problem in problems if problem.line}
        problems += [p for p in found if (p.line, p.column) not in unset]
        if spec is None or problems:
            raise ConfigError(problems)
        return spec


def _with_model(name: str, model: str) -> Translate:
    """Turns an entry with several models into that of one of them."""
    return lambda values: {**values, "name": name, "model": model}


def _one_model(name: str, names: Collection[str]) -> str:
    return f"the target {name!r} has several models: name one of {', '.join(map(repr, names))}"


def connected(spec: Any) -> Target:
    """The target of a spec; raises PluginError when the provider fails or returns no target."""
    provider = f"the target provider {spec.provider!r}"
    with wrap_errors(f"{provider} failed to connect"):
        target: Target = spec.connect()
    for name in ("name", "ask", "close"):
        if not hasattr(target, name):
            found = type(target).__name__
            raise PluginError(f"{provider} connected to {found}, which has no {name!r}")
    return target


async def _close(target: Target) -> None:
    with wrap_errors(f"the target {target.name!r} failed to close"):
        async with asyncio.timeout(CLOSING_SECONDS):
            await target.close()


NO_JUDGE = "a judge is needed and none is set"
_JUDGE_OF_EVALUATORS = (
    "write 'judge: openai:MODEL' in assay.yaml, or give the evaluator a 'target' or 'model'"
)
_JUDGE_OF_PREFERENCES = (
    "give --judge openai:MODEL, or write 'judge: openai:MODEL' below 'preference' in assay.yaml"
)


def _interpolated(value: Any, document: Document, path: DocPath, problems: list[Problem]) -> Any:
    """The settings with environment variables substituted; unset ones are added to `problems`."""
    if isinstance(value, dict):
        return {k: _interpolated(v, document, (*path, k), problems) for k, v in value.items()}
    if isinstance(value, list):
        return [_interpolated(v, document, (*path, i), problems) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def substitute(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        found = environment([name])
        if not found:
            message = f"the environment variable {name!r} is not set"
            problems.append(document.problem(path, "unset-variable", message))
        return found.get(name, "")

    return VARIABLE.sub(substitute, value)
