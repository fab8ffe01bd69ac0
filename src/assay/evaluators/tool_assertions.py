"""The assertions of an `expect` block on the tools that were called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from assay.errors import BadPattern
from assay.evaluators.assertions import Assertion, Maker, Notes, search
from assay.evaluators.measures import Unjudged, calls
from assay.model.expect import NO_TOOL, Expect, ToolParam
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.model.values import MISSING, quoted, same, value_at


def _names(tools: Sequence[str]) -> str:
    return quoted(list(tools), 300) if tools else "no tool"


def _fits(wanted: list[str], called: list[str], mode: str) -> bool:
    if mode == "sequence" or wanted == called:
        return wanted == called
    if mode == "multiset":
        return Counter(wanted) == Counter(called)
    return not Counter(wanted) - Counter(called) and set(called) <= set(wanted)


def _difference(wanted: list[str], called: list[str], mode: str) -> str:
    """What is missing and what is unexpected."""
    missing = list((Counter(wanted) - Counter(called)).elements())
    extra = list((Counter(called) - Counter(wanted)).elements())
    if mode == "set":
        extra = [tool for tool in extra if tool not in wanted]
    words = f"; missing {_names(missing)}" if missing else ""
    words += f"; unexpected {_names(extra)}" if extra else ""
    return words or "; the order differs"


def _note_repeats(wanted: list[str], called: list[str], notes: Notes) -> None:
    if len(called) > len(wanted):
        counts = Counter(called)
        notes["repeated"] = {tool: counts[tool] for tool in counts - Counter(wanted)}


def _called(key: str, wanted: list[str], block: Expect) -> Assertion:
    mode = block.toolsCalledMode

    def judge(seen: Observation, notes: Notes) -> str:
        called = [call.tool for call in calls(seen)]
        if _fits(wanted, called, mode):
            _note_repeats(wanted, called, notes)
            return ""
        difference = _difference(wanted, called, mode)
        return f"{key}: expected {_names(wanted)}, called {_names(called)}{difference}"

    return Assertion(f"{key}: {_names(wanted)}", judge)


def _acceptable(key: str, wanted: list[list[str]], block: Expect) -> Assertion:
    mode = block.toolsCalledMode
    sets = [[] if tools == [NO_TOOL] else tools for tools in wanted]
    listed = " or ".join(map(_names, sets))

    def judge(seen: Observation, notes: Notes) -> str:
        called = [call.tool for call in calls(seen)]
        fitting = [tools for tools in sets if _fits(tools, called, mode)]
        if not fitting:
            return f"{key}: expected {listed}, called {_names(called)}"
        _note_repeats(max(fitting, key=len), called, notes)
        return ""

    return Assertion(f"{key}: {listed}", judge)


def _not_called(key: str, name: str, block: Expect) -> Assertion:
    def judge(seen: Observation, notes: Notes) -> str:
        if any(call.tool == name for call in calls(seen)):
            return f"{key}: expected no call of {name!r}, but it was called"
        return ""

    return Assertion(f"{key}: no call of {name!r}", judge)


def _no_errors(key: str, wanted: bool, block: Expect) -> Assertion:
    def judge(seen: Observation, notes: Notes) -> str:
        failed: list[ToolCall] = []
        assumed: list[str] = []
        for call in calls(seen):
            if call.success is None and not call.error:
                assumed.append(call.tool)
            elif not call.success:
                failed.append(call)
        if assumed:
            notes["assumedSuccess"] = assumed
        failures = ", ".join(f"{call.tool!r} failed{_reason(call)}" for call in failed)
        return f"{key}: expected every call to succeed, but {failures}" if failed else ""

    return Assertion(f"{key}: every call succeeded", judge)


def _reason(call: ToolCall) -> str:
    return f" with {quoted(call.error)}" if call.error else ""


def _parameter(key: str, param: ToolParam, block: Expect) -> Assertion:
    tool, name, index = param.tool, param.paramName, param.call
    satisfies = _condition(param)
    where = f"{tool}.{name}" if index is None else f"{tool}.{name} of call {index}"
    value = "" if param.assertion in ("exists", "notExists") else f" {quoted(param.value)}"
    wanted = f"{where} {param.assertion}{value}"

    def judge(seen: Observation, notes: Notes) -> str:
        made = [call for call in calls(seen) if call.tool == tool]
        looked_at = made if index is None else made[index - 1 : index]
        values = [value_at(call.input, name) for call in looked_at]
        if any(map(satisfies, values)):
            return ""
        if not values:
            times = f"was called {len(made)} time(s)" if made else "was not called"
            return f"{key}: expected {wanted}, but {tool!r} {times}"
        found = ", ".join("nothing" if v is MISSING else quoted(v) for v in values[:5])
        return f"{key}: expected {wanted}, found {found}"

    return Assertion(f"{key}: {wanted}", judge)


def _condition(param: ToolParam) -> Callable[[Any], bool]:
    """A test of a parameter's value, which is MISSING if it was not given."""
    value = param.value
    match param.assertion:
        case "equals":
            return lambda found: same(found, value)
        case "oneOf":
            return lambda found: any(same(found, one) for one in value)
        case "contains":
            return lambda found: _contains(found, value)
        case "exists":
            return lambda found: found is not MISSING
        case "notExists":
            return lambda found: found is MISSING
        case "matches":
            return lambda found: isinstance(found, str) and _matches(value, found)


def _contains(found: Any, value: Any) -> bool:
    """Does a text contain a text, a list an item, or an object a key?"""
    if isinstance(found, (list, tuple)):
        return any(same(item, value) for item in found)
    return isinstance(found, (str, dict)) and isinstance(value, str) and value in found


def _matches(pattern: str, text: str) -> bool:
    try:
        return search(pattern, text)
    except BadPattern as error:  # it was valid when loaded, before tokens were filled in
        raise Unjudged(f"{quoted(pattern)} does not compile: {error}") from None


ON_TOOLS: dict[str, Maker] = {
    "toolsCalled": _called,
    "toolsAcceptable": _acceptable,
    "toolsNotCalled": _not_called,
    "toolParams": _parameter,
    "noToolErrors": _no_errors,
}
