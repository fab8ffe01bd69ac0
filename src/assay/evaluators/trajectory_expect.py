"""The parts of an expected path that an agent's calls fail, as keys of an `expect` block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from assay.evaluators.trajectory import Trajectory
from assay.model.arguments import is_condition
from assay.model.message import ToolCall
from assay.model.values import value_at

#: The conditions that `toolParams` has an assertion for.
_ASSERTIONS = {"equals": "equals", "regex": "matches", "one_of": "oneOf", "contains": "contains"}


def failed_steps(trajectory: Trajectory, calls: tuple[ToolCall, ...] | None) -> dict[str, Any]:
    """The keys that these calls fail; empty if no key can express what is wrong.

    A step with arguments becomes `toolParams`. A missing one without arguments becomes
    `toolsCalled` with all required tools, unless the agent called others, which the path allows
    and `toolsCalled` would not.
    """
    if calls is None:
        return {}
    diff: list[dict[str, Any]] = trajectory.judge(calls).details["diff"]
    called = Counter(call.tool for call in calls if call.tool not in trajectory.ignore)
    failed = [entry["expected"] for entry in diff if entry["status"] in ("missing", "wrong_args")]
    params = [param for step in failed for param in _params(step)]
    keys: dict[str, Any] = {}
    if params:
        keys["toolParams"] = params
    if any(not _params(step) for step in failed) or _too_few(trajectory, called):
        keys |= _tools_called(trajectory, called)
    if unwanted := [tool for tool in called if _is_unwanted(tool, trajectory)]:
        keys["toolsNotCalled"] = unwanted
    return keys


def _too_few(trajectory: Trajectory, called: Mapping[str, int]) -> bool:
    return any(called.get(tool, 0) < least for tool, least in trajectory.minimums.items())


def _tools_called(trajectory: Trajectory, called: Counter[str]) -> dict[str, Any]:
    """The required tools, as often as the path requires them."""
    steps = [step for step in trajectory.steps or () if not step.optional]
    if any(len(step.options) > 1 for step in steps):
        return {}
    tools = [step.options[0].tool for step in steps]
    counts = Counter(tools)
    for tool, least in trajectory.minimums.items():
        tools += [tool] * (least - counts[tool])
    if trajectory.mode != "exact" and called.keys() - set(tools):
        return {}
    in_order = trajectory.mode in ("in_order", "exact") and called == Counter(tools)
    return {"toolsCalled": tools} | ({"toolsCalledMode": "sequence"} if in_order else {})


def _is_unwanted(tool: str, trajectory: Trajectory) -> bool:
    """Is no call of this tool allowed at all?"""
    if tool in trajectory.forbidden or trajectory.maximums.get(tool) == 0:
        return True
    if trajectory.mode not in ("exact", "subset") or trajectory.steps is None:
        return False
    named = {option.tool for step in trajectory.steps for option in step.options}
    return tool not in named


def _params(step: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of a step as `toolParams`, as far as these can express them."""
    args, match = step.get("args"), step.get("args_match", "superset")
    if not isinstance(args, dict) or match in ("ignore", "subset"):
        return []
    if isinstance(match, list):
        pairs = [pair for path in match for pair in _leaves(value_at(args, path), path)]
    else:
        pairs = [pair for key, value in args.items() for pair in _leaves(value, key)]
    return [
        {"tool": step["tool"], "paramName": path} | assertion
        for path, value in pairs
        if value_at(args, path) is value  # false if a key inside has a dot in it
        for assertion in _assertions(value)
    ]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values inside a value, with their paths: conditions, and what is not a container."""
    if isinstance(value, dict) and value and not is_condition(value):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _assertions(value: Any) -> Iterator[dict[str, Any]]:
    """The assertions for a leaf: none for conditions such as `gte`, which have no counterpart."""
    if not is_condition(value):
        yield {"assertion": "equals", "value": value}
        return
    for condition, wanted in value.items():
        if condition == "exists" and wanted is not None:
            yield {"assertion": "exists" if wanted else "notExists"}
        elif condition in _ASSERTIONS and (wanted is not None or condition == "equals"):
            yield {"assertion": _ASSERTIONS[condition], "value": wanted}
