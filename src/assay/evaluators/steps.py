"""The steps of an expected path made ready, and which calls suit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.evaluators.arguments import Comparison, Difference
from assay.model.message import ToolCall

#: What became of the time limit of a call; NONE: it has none, or its duration is not known.
KEPT, NONE, BROKEN = 1, 0, -1


@dataclass(frozen=True, slots=True)
class Option:
    """One call that satisfies a step."""

    tool: str
    compare_args: Comparison | None
    compare_output: Comparison | None
    limit: float | None

    def differences(self, call: ToolCall) -> list[Difference]:
        """How a call of the same tool differs; nothing when it is the one."""
        found: list[Difference] = []
        if self.compare_args is not None:
            self.compare_args(call.input, found)
        if self.compare_output is not None:
            self.compare_output(call.output, found)
        return found

    def timing(self, call: ToolCall) -> int:
        if self.limit is None or call.duration_ms is None:
            return NONE
        return KEPT if call.duration_ms <= self.limit else BROKEN


@dataclass(frozen=True, slots=True)
class ExpectedStep:
    """A step made ready: `text` and `written` are what it says in words and as JSON."""

    options: tuple[Option, ...]
    optional: bool
    text: str
    written: dict[str, Any]

    @property
    def limited(self) -> bool:
        return any(option.limit is not None for option in self.options)

    def fulfilled_by(self, call: ToolCall) -> bool:
        """The call leaves nothing to be wished for, not even a known duration."""
        for option in self.options:
            if call.tool == option.tool and not option.differences(call):
                return option.limit is None or option.timing(call) == KEPT
        return False

    def nearest(self, call: ToolCall) -> Option:
        """The option that a call of one of its tools suits best."""
        options = [option for option in self.options if option.tool == call.tool]
        return min(options, key=lambda o: (len(o.differences(call)), -o.timing(call)))


@dataclass(frozen=True, slots=True)
class Grid:
    """All steps beside all calls.

    `fits` has the timing of each call that suits a step; `near` has the number of
    differences of each other call of its tool.
    """

    fits: list[dict[int, int]]
    near: list[dict[int, int]]

    @classmethod
    def of(cls, steps: Sequence[ExpectedStep], calls: Sequence[ToolCall]) -> Grid:
        by_tool: dict[str, list[int]] = {}
        for index, call in enumerate(calls):
            by_tool.setdefault(call.tool, []).append(index)
        grid = cls([{} for _ in steps], [{} for _ in steps])
        for fits, near, step in zip(grid.fits, grid.near, steps, strict=True):
            for option in step.options:
                for index in by_tool.get(option.tool, ()):
                    differing = len(option.differences(calls[index]))
                    if differing:
                        near[index] = min(differing, near.get(index, differing))
                    else:
                        timing = option.timing(calls[index])
                        fits[index] = max(timing, fits.get(index, timing))
            for index in fits.keys() & near.keys():  # what suits one option suits the step
                del near[index]
        return grid
