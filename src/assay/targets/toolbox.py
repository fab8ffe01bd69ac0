"""What answers the calls of a chat model: the stubs of the case, and functions of the target."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from assay.errors import TargetError, nearest
from assay.model.arguments import Comparison, Difference, comparison
from assay.model.message import ToolCall
from assay.model.stubs import StubEntry, entries_of
from assay.observations.pairing import NO_RESULT
from assay.redaction import cut
from assay.targets.functions import ToolFunctions
from assay.targets.tools import Answer, failed, succeeded

#: Longer names in messages are cut: they come from a model.
_MAX_NAME = 80


class _Stub:
    """The stub of one tool, in one trial: it counts how often each entry answered."""

    def __init__(self, stub: Any) -> None:
        self._entries = [(entry, _matcher(entry)) for entry in entries_of(stub)]
        self._used = [0] * len(self._entries)

    def entry_for(self, call: ToolCall) -> StubEntry | None:
        """The first entry that takes the call and is not used up; it is then used once more."""
        for index, (entry, matcher) in enumerate(self._entries):
            used_up = entry.times is not None and self._used[index] >= entry.times
            if not used_up and _matches(matcher, call.input):
                self._used[index] += 1
                return entry
        return None


def _matcher(entry: StubEntry) -> Comparison | None:
    return comparison(entry.args, "superset")


def _matches(matcher: Comparison | None, arguments: Any) -> bool:
    differences: list[Difference] = []
    if matcher is not None:
        try:
            matcher(arguments, differences)
        except TimeoutError as error:  # not that of the trial
            raise TargetError(f"a stub could not be compared: {error}") from None
    return not differences


class Toolbox:
    """Answers the calls of one trial."""

    def __init__(self, stubs: Mapping[str, Any], functions: ToolFunctions) -> None:
        self._functions = functions
        self._stubs = {tool: _Stub(stub) for tool, stub in stubs.items()}

    def __bool__(self) -> bool:
        return bool(self._stubs or self._functions)

    def provides(self, tool: str) -> bool:
        """Can it answer? The stubs answer a call of any other tool with an error."""
        return bool(self._stubs) or tool in self._functions

    async def answer(self, call: ToolCall) -> Answer:
        """The call with its result, or with the error that the model sees."""
        call = call.replace(notes=tuple(note for note in call.notes if note != NO_RESULT))
        stub = self._stubs.get(call.tool)
        if stub is None and call.tool in self._functions:
            return await self._functions.answer(call)
        if stub is None:
            return failed(call, f"there is no stub for the tool {call.tool!r}")
        entry = stub.entry_for(call)
        if entry is None:
            return failed(call, f"no stub of the tool {call.tool!r} takes this call")
        if entry.delay_ms:
            await asyncio.sleep(entry.delay_ms / 1000)
            call = call.replace(duration_ms=entry.delay_ms)
        return succeeded(call, entry.result) if entry.error is None else failed(call, entry.error)


def not_provided(tool: str, offered: Iterable[str]) -> str:
    """Why a trial is errored when nothing can answer a call of the model."""
    names = list(offered)
    shown = cut(tool, _MAX_NAME)
    if tool in names:
        problem = f"the model called the tool {shown!r}, whose results nothing provides"
    else:
        meant = nearest(tool, names)
        tools = f"the tools are {', '.join(names)}" if names else "it was offered no tools"
        problem = f"the model called {shown!r}, which is not one of its tools; "
        problem += f"{tools} ({meant})" if meant else tools
    return f"{problem}. Give the case a stub, or the target a Python function, for each tool"
