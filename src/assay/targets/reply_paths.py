"""Paths into an agent's reply, to its text, calls and measures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from assay.errors import ObservationError, TargetError
from assay.model.observation import Observation
from assay.observations.interchange import read
from assay.observations.records import arguments, error_text
from assay.problems import MAX_MESSAGE
from assay.redaction import cut
from assay.text import printable
from assay.wire.fields import Text
from assay.wire.shape import Shape
from assay.wire.validation_errors import problem, shown

_STEP = re.compile(r"\[(-?\d+)\]|([^.\[\]]+)")
_PATH = re.compile(r"\$|(?:\$\.?)?(?:[^.\[\]$]+|\[-?\d+\])(?:\.[^.\[\]]+|\[-?\d+\])*")
_ABSENT = object()


def _path(value: str) -> str:
    if not _PATH.fullmatch(value):
        hint = "for example answer.parts[0].text"
        raise problem("wrong-value", f"{value!r} is not a path into a reply", hint)
    return value


Path = Annotated[Text, AfterValidator(_path)]


class ReplyPaths(Shape):
    """`data.items[0].text`, or `$` for the whole reply; those of `tool_*` begin in each call.

    The defaults are the interchange form.
    """

    text: Path = "response"
    tool_calls: Path = "toolCalls"
    tool_name: Path = "name"
    tool_args: Path = "params"
    tool_result: Path = "result"
    tool_success: Path = "success"
    tool_error: Path = "error"
    tool_duration_ms: Path = "durationMs"
    usage: Path = "usage"
    input_tokens: Path | None = None
    output_tokens: Path | None = None
    cost_usd: Path = "costUsd"
    duration_ms: Path = "durationMs"


#: The name of a path -> the key in the interchange form.
_ANSWER = {
    "text": "response",
    "tool_calls": "toolCalls",
    "usage": "usage",
    "cost_usd": "costUsd",
    "duration_ms": "durationMs",
}
_TOKENS = {"input_tokens": "inputTokens", "output_tokens": "outputTokens"}
_CALL = {
    "tool_name": "name",
    "tool_args": "params",
    "tool_result": "result",
    "tool_success": "success",
    "tool_error": "error",
    "tool_duration_ms": "durationMs",
}


class ReplyReader:
    """Reads replies, and remembers which paths found anything."""

    def __init__(self, paths: ReplyPaths) -> None:
        self._paths: dict[str, str] = paths.model_dump(exclude_none=True)
        # If all calls succeed, finding no error is not a problem.
        given = paths.model_fields_set - {"tool_error"}
        self._configured = [name for name in self._paths if name in given]
        self._steps = {name: _steps(path) for name, path in self._paths.items()}
        self._found: set[str] = set()
        #: The number of valid replies, and of calls in them.
        self._replies = self._calls = 0

    def read(self, reply: Any) -> Observation:
        """The observation in a reply; raises TargetError if there is none."""
        record = self._pick(_ANSWER, reply)
        if isinstance(reply, dict) and (error := error_text(reply.get("error"))):
            shown = printable(cut(error, MAX_MESSAGE, "both"))
            raise TargetError(f"the agent reported an error: {shown}")
        if "response" not in record:
            found = f"the reply has no text at {self._paths['text']!r}: {_outline(reply)}"
            raise TargetError(f"{found} (set 'paths: {{text: ...}}' of the target to where it is)")
        if tokens := self._pick(_TOKENS, reply):
            record["usage"] = tokens
        if isinstance(calls := record.get("toolCalls"), list):
            record["toolCalls"] = [self._call(call) for call in calls]
        try:
            seen = read(record).replace(raw=reply)
        except ObservationError as error:
            raise TargetError(f"the reply cannot be used: {error}") from None
        self._replies += 1
        self._calls += len(seen.tool_calls or ())
        return seen

    def problems(self, kept: Iterable[Mapping[str, Any]]) -> list[str]:
        """The configured paths that found nothing, neither here nor in the stored answers.

        `kept` has all answers of a run, in the interchange form: some may be from a cache or an
        earlier process. They can show that a path found something, never that it found nothing:
        null and empty values are not stored.
        """
        missing = {name for name in self._configured if name not in self._found}
        answers = 0
        for answer in kept if missing and self._replies else ():
            answers += 1
            missing -= _found_in(answer)
        if answers > self._replies:  # the others may have reported their duration
            missing.discard("duration_ms")
        found = []
        for name in (name for name in self._configured if name in missing):
            of_call = name in _CALL
            count, what = (self._calls, "tool calls") if of_call else (self._replies, "replies")
            if count:
                place = f"'paths.{name}': nothing was found at {self._paths[name]!r}"
                found.append(f"{place} in any of {count} {what}")
        return found

    def _pick(self, keys: dict[str, str], raw: Any) -> dict[str, Any]:
        """The values at the paths, under the keys of the interchange form."""
        picked = {}
        for name, key in keys.items():
            value = _at(raw, self._steps[name]) if name in self._steps else _ABSENT
            if value is not _ABSENT:
                self._found.add(name)
                picked[key] = value
        return picked

    def _call(self, raw: Any) -> Any:
        call = self._pick(_CALL, raw)
        call["params"], notes = arguments(call.get("params"))
        return {**call, "notes": list(notes)}


def _found_in(answer: Mapping[str, Any]) -> set[str]:
    """The paths whose values are in an answer in the interchange form."""
    parts = [(answer, _ANSWER), (answer.get("usage") or {}, _TOKENS)]
    parts += [(call, _CALL) for call in answer.get("toolCalls") or ()]
    found = {name for part, keys in parts for name, key in keys.items() if key in part}
    return found - {"duration_ms"}  # it may have been reported or measured


def _steps(path: str) -> list[str]:
    return [index or key for index, key in _STEP.findall(path.removeprefix("$"))]


def _at(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.removeprefix("-").isdecimal():
            if not -len(value) <= int(step) < len(value):
                return _ABSENT
            value = value[int(step)]
        else:
            return _ABSENT
    return value


def _outline(reply: Any) -> str:
    """A short description of a reply: its keys or its type."""
    if not isinstance(reply, dict) or not reply:
        return f"it is {shown(reply)}"
    keys = ", ".join(map(shown, list(reply)[:8]))
    return printable(f"its keys are {keys}")
