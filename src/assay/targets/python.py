"""`python`: a function of the project is the agent.

It takes one argument: the case if its parameter is named `case` or annotated as EvalCase, the
messages if it is named `messages`, else the text of the question.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from assay.errors import ObservationError, TargetError, UsageError
from assay.model.case import EvalCase
from assay.model.function import Function
from assay.model.observation import Observation
from assay.model.target import TargetSpec
from assay.observations.reading import read
from assay.observations.validation import checked
from assay.ports import Request, Target
from assay.problems import MAX_MESSAGE
from assay.redaction import cut
from assay.registry import imported, raised
from assay.targets.chat import question
from assay.targets.sdk_results import ACCEPTED, record_of
from assay.text import printable
from assay.threads import TARGETS_LOOP, CallerLoop, CoroutineRunner, Outcome, in_thread
from assay.wire.fields import Text
from assay.wire.validation_errors import kind_of


class PythonTarget(TargetSpec):
    """Calls a function; it is imported when the target is connected."""

    inline_key: ClassVar[str] = "callable"

    provider: Text = "python"
    callable: Function

    @property
    def label(self) -> str:
        return self.name or f"python:{self.callable}"

    def connect(self) -> Target:
        return self.of(imported(self.callable, UsageError), self.label, isolated=True)

    @staticmethod
    def of(function: Callable[[Any], Any], name: str = "", *, isolated: bool = False) -> Target:
        """A function as a target; coroutines run on the caller's loop, unless `isolated`."""
        name = name or f"python:{getattr(function, '__module__', '')}:{_name(function)}"
        argument = _argument_for(function, name)
        return _Python(name, function, argument, TARGETS_LOOP.join() if isolated else CallerLoop())


#: Takes from a request what a function wants as its argument.
GetArgument = Callable[[Request], Any]


class _Python:
    def __init__(
        self,
        name: str,
        function: Callable[[Any], Any],
        get_argument: GetArgument,
        runner: CoroutineRunner,
    ) -> None:
        self.name = name
        self._function, self._get_argument, self._runner = function, get_argument, runner
        self._is_async = _is_async(function)

    async def ask(self, request: Request) -> Observation:
        returned, error, duration = await self._call(self._get_argument(request))
        if error is not None:
            if isinstance(error, KeyboardInterrupt) and self._can_get_ctrl_c:
                raise error
            raise TargetError(f"{self.name} raised {raised(error)}") from error
        seen = self._observation(returned)
        return seen if seen.duration_ms is not None else seen.replace(duration_ms=duration)

    async def close(self) -> None:
        await self._runner.close()

    async def _call(self, argument: Any) -> Outcome:
        """Call the function, in a thread unless it is async, so that it does not block the loop."""
        if self._is_async:
            return await self._runner.outcome(lambda: self._function(argument))
        called = await in_thread(self._function, argument)
        returned = called.value
        if inspect.isawaitable(returned):
            return await self._runner.outcome(lambda: returned)
        return called

    @property
    def _can_get_ctrl_c(self) -> bool:
        """Can a KeyboardInterrupt be from the user? Python raises it in the main thread only."""
        main = threading.current_thread() is threading.main_thread()
        return main and isinstance(self._runner, CallerLoop) and self._is_async

    def _observation(self, value: Any) -> Observation:
        """The observation, made from a copy, as the function may still change a mapping."""
        if type(value) is str:
            return read(value)
        if value is None:
            raise TargetError(f"{self.name} returned None; it can return {ACCEPTED}")
        try:
            record = checked(value).to_dict() if isinstance(value, Observation) else value
            return read(record_of(record))
        except ObservationError as error:
            message = f"{self.name} returned {_kind(value)}an invalid observation: {error.fault}"
        except (TypeError, ValueError, RecursionError) as error:
            message = f"{self.name} returned a value that cannot be converted to JSON: {error}"
            message += f"; it can return {ACCEPTED}"
        raise TargetError(printable(cut(message, MAX_MESSAGE, "both")))


def _kind(value: Any) -> str:
    """The class of an object, for a message about what it was converted to."""
    return "" if isinstance(value, (str, dict, list, Observation)) else f"{kind_of(value)}, "


def _name(function: Callable[[Any], Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def _is_async(function: Callable[[Any], Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - of a callable object
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _argument_for(function: Callable[[Any], Any], name: str) -> GetArgument:
    """What to pass to the function, by its only parameter."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some C functions have no signature
        return question
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in _VARIADIC]
    takes = [p for p in parameters if p.kind in (*positional, inspect.Parameter.VAR_POSITIONAL)]
    if not takes or len(needed) > 1 or (needed and needed[0].kind not in positional):
        names = ", ".join(p.name for p in needed) or "none"
        hint = "the text of the question, or 'case', or 'messages'"
        raise UsageError(f"{name} must take one argument, not {names}: {hint}")
    first = takes[0]
    if first.name == "case" or _is_case(first.annotation):
        return lambda request: _case(request, name)
    return _messages if first.name == "messages" else question


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _is_case(annotation: Any) -> bool:
    """Is it EvalCase? Also as text, which may name something that cannot be imported."""
    if isinstance(annotation, str):
        return annotation.strip("'\"").rpartition(".")[2] == "EvalCase"
    return annotation is EvalCase


def _case(request: Request, name: str) -> EvalCase:
    if request.case is None:
        raise TargetError(f"{name} takes a case, and this request has none")
    return request.case


def _messages(request: Request) -> list[dict[str, Any]]:
    return [message.to_dict() for message in request.messages]
