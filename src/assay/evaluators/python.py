"""`@assay.evaluator` and `python:pkg.module:function`: functions of the project as evaluators.

A function gets what its parameters ask for by name (see `CONTEXT`); every other parameter is a
key of the evaluator in eval files, with its annotation and default.
"""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import deepcopy
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    overload,
)

from pydantic import AfterValidator, ConfigDict, Field, Strict, ValidationError, create_model

from assay.blocking import is_our_loop
from assay.errors import FunctionError, UsageError, cause_of, nearest
from assay.evaluators import copies
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.expectations import EVERYTHING, Expectation
from assay.model.function import REFERENCE
from assay.model.score import EvaluationScore, Verdict
from assay.ports import Check, Resources
from assay.registry import evaluators as registered
from assay.registry import imported
from assay.threads import EVALUATORS_LOOP, CallerLoop
from assay.wire.validation_errors import problem

F = TypeVar("F", bound=Callable[..., Any])

#: What a parameter receives, by its name.
CONTEXT: dict[str, Callable[[Context], Any]] = {
    "context": lambda context: context,
    "case": lambda context: context.case,
    "observation": lambda context: context.observation,
    "response": lambda context: context.observation.response,
    "tool_calls": lambda context: context.observation.tool_calls,
    "question": lambda context: context.case.question,
    "expected": lambda context: context.case.expected_output,
    "metadata": lambda context: context.case.metadata,
}
_TEXTS = frozenset({"response", "question"})
_SCALARS = (bool, int, float, str)
_CONTAINERS = (list, tuple, set, frozenset, dict, Sequence, Mapping)
_LABELS: dict[str, float] = {"pass": 1.0, "borderline": 0.6, "fail": 0.0}
_TYPE = f"python:{REFERENCE}"


class FunctionSpec(EvaluatorSpec):
    """Base of the evaluators that functions are made into."""

    function: ClassVar[Callable[..., Any]]
    wanted: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[tuple[str, ...]] = ()

    def prepare(self, resources: Resources) -> Check:
        function = type(self).function
        given = {name: getattr(self, name) for name in self.settings}
        getters = [(name, CONTEXT[name]) for name in self.wanted]
        sees_data = not _TEXTS.issuperset(self.wanted)

        def check(context: Context) -> EvaluationScore | Awaitable[EvaluationScore]:
            shown = copies.of_context(context) if sees_data else context
            seen = {name: read(shown) for name, read in getters}
            returned = function(**seen, **deepcopy(given))
            return _awaited(returned) if inspect.isawaitable(returned) else score_of(returned)

        return check


async def _awaited(returned: Awaitable[Any]) -> EvaluationScore:
    """The score of a coroutine, run outside our event loop, which it could block."""
    runner = EVALUATORS_LOOP if is_our_loop() else CallerLoop()
    value, error, _ = await runner.outcome(lambda: returned)
    if error is not None:
        raise error
    return score_of(value)


@overload
def evaluator(function: F) -> F: ...
@overload
def evaluator(*, name: str = ..., reads: Collection[str] = ...) -> Callable[[F], F]: ...
def evaluator(function: Any = None, *, name: str = "", reads: Collection[str] = EVERYTHING) -> Any:
    """Make a function an evaluator; eval files name it by its `type`.

    `reads` names the expectations of a case that it looks at, by default all of them.
    """
    if function is None:
        return lambda decorated: _register(decorated, name, reads)
    return _register(function, name, reads)


def _register(function: F, name: str, reads: Collection[str]) -> F:
    if not inspect.isroutine(function) and not hasattr(function, "__wrapped__"):
        found = type(function).__name__
        raise FunctionError(f"assay.evaluator decorates functions, got an object of type {found}")
    spec = spec_class(function)
    spec.reads = _expectations(reads)
    setattr(function, "__assay_spec__", spec)  # noqa: B010 - a function has no such attribute
    source = f"{function.__module__}:{function.__qualname__}"
    registered.add(name or function.__name__, spec, source)
    return function


def _expectations(names: Collection[str]) -> frozenset[Expectation]:
    if isinstance(names, str):
        names = [names]
    for name in names:
        if name not in EVERYTHING:
            known = sorted(EVERYTHING)
            hint = nearest(str(name), known) or f"known: {', '.join(known)}"
            raise FunctionError(f"unknown expectation {name!r} in 'reads' ({hint})")
    return cast("frozenset[Expectation]", frozenset(names))


def spec_class(function: Callable[..., Any]) -> type[FunctionSpec]:
    """The evaluator class of a function; its fields are the function's own parameters."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (TypeError, ValueError, NameError) as error:
        raise FunctionError(f"the parameters of {function!r} cannot be read: {error}") from None
    # A callable object has no name of its own: its class has one.
    named: Any = function if hasattr(function, "__name__") else type(function)
    fields: dict[str, Any] = {}
    wanted = []
    for key, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY or key in EvaluatorSpec.model_fields:
            why = (
                "is positional only"
                if key not in EvaluatorSpec.model_fields
                else "has a reserved name"
            )
            raise FunctionError(f"the parameter {key!r} of {named.__qualname__} {why}")
        if key in CONTEXT:
            wanted.append(key)
            continue
        empty = inspect.Parameter.empty
        annotation = Any if parameter.annotation is empty else _strict(parameter.annotation)
        fields[key] = (annotation, ... if parameter.default is empty else parameter.default)
    made: type[FunctionSpec] = create_model(
        named.__name__, __base__=FunctionSpec, __doc__=function.__doc__ or "", **fields
    )
    made.function, made.wanted, made.settings = staticmethod(function), tuple(wanted), tuple(fields)
    return made


def _strict(annotation: Any) -> Any:
    """The annotation with strict scalars: '1' and true are not numbers."""
    if annotation in _SCALARS:
        return Annotated[annotation, Strict()]
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        return Annotated[(_strict(parts[0]), *parts[1:])]
    if kind in (Union, UnionType):
        return Union[tuple(map(_strict, parts))]  # noqa: UP007 - the parts are not known here
    return kind[tuple(map(_strict, parts))] if kind in _CONTAINERS else annotation


def score_of(returned: Any) -> EvaluationScore:
    """The return value of a function as a score."""
    if isinstance(returned, EvaluationScore):
        return _checked(returned)
    if isinstance(returned, bool):
        return EvaluationScore(float(returned))
    if isinstance(returned, (int, float)):
        if not 0 <= returned <= 1:
            return EvaluationScore.errored(
                f"it returned {returned!r}, which is not between 0 and 1"
            )
        return EvaluationScore(float(returned))
    if isinstance(returned, str):
        if returned not in _LABELS:
            known = ", ".join(_LABELS)
            return EvaluationScore.errored(f"it returned {returned!r}, expected one of {known}")
        return EvaluationScore(_LABELS[returned], cast(Verdict, returned))
    if isinstance(returned, (list, tuple)):
        return _mean_of([score_of(item) for item in returned])
    return EvaluationScore.errored(
        f"it returned an object of type {type(returned).__name__}, "
        "expected a bool, a number, a label, an EvaluationScore or a list of these"
    )


def _checked(score: EvaluationScore) -> EvaluationScore:
    """The score, or an errored one if it cannot be converted to JSON, which would stop the run."""
    try:
        score.to_dict()
    except Exception as error:  # a project's object may raise anything when it is encoded
        return EvaluationScore.errored(f"its score cannot be converted to JSON: {cause_of(error)}")
    return score


def _mean_of(scores: list[EvaluationScore]) -> EvaluationScore:
    """A list of scores as one: the mean, and the hits and misses of each item by its number."""
    if not scores:
        return EvaluationScore.errored("it returned an empty list")
    for index, score in enumerate(scores, 1):
        if score.score is None:
            return EvaluationScore.errored(f"item {index}: {score.error or score.skipped}")
    hits: list[str] = []
    misses: list[str] = []
    reasons: list[str] = []
    for index, score in enumerate(scores, 1):
        hits += [f"item {index}: {hit}" for hit in score.hits]
        misses += [f"item {index}: {miss}" for miss in score.misses]
        if not score.hits and not score.misses:
            reason = score.reasoning or f"score {score.score:g}"
            (hits if score.verdict == "pass" else misses).append(f"item {index}: {reason}")
        elif score.reasoning:
            reasons.append(f"item {index}: {score.reasoning}")
    mean = sum(score.score or 0.0 for score in scores) / len(scores)
    gate = next((score.failed_gate for score in scores if score.failed_gate), "")
    return EvaluationScore(
        mean,
        hits=tuple(hits),
        misses=tuple(misses),
        reasoning="; ".join(reasons),
        failed_gate=gate,
    )


def _reference(value: str) -> str:
    if not re.fullmatch(_TYPE, value):
        message = f"{value!r} does not have the form 'python:package.module:function'"
        raise problem("unknown-evaluator", message)
    return value


class PythonEvaluator(EvaluatorSpec):
    """Calls the function; all keys except the common ones are its arguments."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[
        str,
        AfterValidator(_reference),
        Field(json_schema_extra={"pattern": f"^{_TYPE}$"}),
    ]

    @staticmethod
    def spec_of(function: Callable[..., Any]) -> builtins.type[FunctionSpec]:
        """The evaluator class of a function, decorated or not."""
        spec: builtins.type[FunctionSpec] | None = getattr(function, "__assay_spec__", None)
        return spec or spec_class(function)

    def prepare(self, resources: Resources) -> Check:
        """Import the function: only now, because loading a file never runs a project's code."""
        made = spec_class(imported(self.type.removeprefix("python:"), FunctionError))
        given = {"type": self.type, "name": self.name, **(self.model_extra or {})}
        try:
            return made.model_validate(given).prepare(resources)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"])) or "its keys"
            raise UsageError(f"{self.type}: {key}: {first['msg']}") from None
