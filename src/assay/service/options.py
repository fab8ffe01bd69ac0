"""The options of a run: from the caller, an earlier run, the environment and assay.yaml."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from assay import registry
from assay.errors import UsageError
from assay.model.evaluator import Evaluators, EvaluatorSpec
from assay.model.options import DerivedRun, RunOptions, options_where
from assay.model.run import RunRecord
from assay.problems import Problem
from assay.redaction import MARK
from assay.settings import OVERRIDES, Settings, environment
from assay.wire.document import Document
from assay.wire.shape import Shape
from assay.wire.validation import check
from assay.wire.validation_context import ValidationContext

#: The environment variable with the default targets.
TARGETS = "ASSAY_TARGET"


def options_of(
    given: dict[str, Any],
    settings: Settings,
    earlier: RunRecord | None = None,
    derived: DerivedRun | None = "rerun",
) -> RunOptions:
    """By precedence: given, of the earlier run, environment, assay.yaml.

    A `derived` run does not inherit all options of the earlier run; a resumed run (None) does.
    There is no default target if there are several.
    """
    defaults = settings.config.defaults
    known = {name: getattr(defaults, name) for name in defaults.model_fields_set - {"target"}}
    known |= _environment()
    if len(targets := default_targets(settings)) == 1:
        (known["target"],) = targets
    if earlier is not None:
        known |= earlier.options if derived is None else inherited(earlier.options, derived)
        _check_complete(earlier, known.keys() - given.keys())
    written = known | {RunOptions.key_names.aliases.get(k, k): v for k, v in given.items()}
    document = Document.unplaced("options", written)
    options, problems = check(RunOptions, document, (), written, _validation_context(settings))
    if options is None or problems:
        raise UsageError(_joined(problems))
    return options


def default_targets(settings: Settings) -> tuple[str, ...]:
    """The targets that a run asks if none is given, by the environment or assay.yaml."""
    if text := environment([TARGETS]).get(TARGETS):
        return tuple(text.split(","))
    return settings.config.defaults.target or ()


def inherited(options: Mapping[str, Any], derived: DerivedRun) -> dict[str, Any]:
    """The recorded options that a run inherits from the run that it is based on."""
    names = options_where(lambda option: derived in option.inherited_by)
    return {name: value for name, value in options.items() if name in names}


def _joined(problems: Iterable[Problem]) -> str:
    return "; ".join(problem.advice for problem in problems)


def _environment() -> dict[str, Any]:
    """Options in the environment, such as ASSAY_WORKERS; lists are separated by commas."""
    names = [name for name in RunOptions.model_fields if name not in (*OVERRIDES, "target")]
    found = environment(f"ASSAY_{name.upper()}" for name in names)
    values: dict[str, Any] = {}
    for name in names:
        if text := found.get(f"ASSAY_{name.upper()}"):
            default = RunOptions.model_fields[name].default
            values[name] = text.split(",") if default == () else _scalar(text)
    return values


def _scalar(text: str) -> Any:
    """The text as a number or a flag, if it is one."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) else text


def _check_complete(earlier: RunRecord, names: Collection[str]) -> None:
    """An option with a secret was recorded without it, and has to be given again."""
    for name in names:
        if MARK in str(earlier.options.get(name)):
            message = f"the {name} of the run {earlier.id} held a secret, which is not recorded"
            raise UsageError(f"{message}: give it again")


def default_evaluators(options: RunOptions, settings: Settings) -> tuple[EvaluatorSpec, ...]:
    """The evaluators that the options set for cases without any."""
    if not options.evaluators:
        return ()
    written = {"evaluators": list(options.evaluators)}
    document = Document.unplaced("options", written)
    found, problems = check(_EvaluatorList, document, (), written, _validation_context(settings))
    if found is None:
        raise UsageError(f"evaluators: {_joined(p for p in problems if p.severity == 'error')}")
    return found.evaluators


class _EvaluatorList(Shape):
    """The evaluators of the options, as eval files write them."""

    evaluators: Evaluators = ()


def _validation_context(settings: Settings) -> ValidationContext:
    find = settings.root.joinpath
    return ValidationContext(find, find, registry.evaluators.get, registry.evaluators)
