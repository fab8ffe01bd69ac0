"""The prepared steps of an expected path, and which calls satisfy them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from assay.deadlines import check_deadline
from assay.model.arguments import Comparison, Difference, Texts, comparison
from assay.model.message import ToolCall
from assay.model.values import MISSING

#: The state of a call's time limit; NONE: there is none, or the duration is unknown.
KEPT, NONE, BROKEN = 1, 0, -1


class Option(msgspec.Struct):
    """One way to satisfy a step.

    `texts` is set if the arguments are only compared with texts. The general comparison is
    compiled on first use, as most calls never need it.
    """

    tool: str
    args: Any
    args_match: Any
    compare_output: Comparison | None
    limit: float | None
    texts: Texts | None = None
    _compare_args: Comparison | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def compare_args(self) -> Comparison | None:
        if self._compare_args is msgspec.UNSET:
            self._compare_args = comparison(self.args, self.args_match)
        return self._compare_args

    def differences(self, call: ToolCall) -> list[Difference]:
        """How a call of the same tool differs; empty if it satisfies the option."""
        found = self.argument_differences(call)
        if self.compare_output is not None:
            # A result that the target does not report counts as missing.
            self.compare_output(MISSING if call.output is None else call.output, found)
        return found

    def argument_differences(self, call: ToolCall) -> list[Difference]:
        found: list[Difference] = []
        if (compare := self.compare_args) is not None:
            compare(call.input, found)
        return found

    def distance(self, call: ToolCall) -> int:
        """The number of differences, counted without listing them if there are only texts."""
        given = call.input
        if self.texts is None or self.compare_output is not None or type(given) is not dict:
            return len(self.differences(call))
        number = 0
        for key, text in self.texts:
            if given.get(key) != text:
                number += 1
        return number

    def timing(self, call: ToolCall) -> int:
        if self.limit is None or call.duration_ms is None:
            return NONE
        return KEPT if call.duration_ms <= self.limit else BROKEN

    def fulfilled_by(self, call: ToolCall) -> bool:
        in_time = self.limit is None or self.timing(call) == KEPT
        return in_time and not self.differences(call)


class ExpectedStep(msgspec.Struct, frozen=True):
    """A prepared step; `text` and `written` show it in words and as JSON."""

    options: tuple[Option, ...]
    optional: bool
    text: str
    written: dict[str, Any]

    @property
    def limited(self) -> bool:
        for option in self.options:  # noqa: SIM110 - any() would take three times as long
            if option.limit is not None:
                return True
        return False

    @property
    def plain(self) -> tuple[str, Texts | None]:
        """Its tool, and the expected texts; None for these if it expects anything else."""
        first = self.options[0]
        if len(self.options) > 1 or self.limited or first.compare_output:
            return first.tool, None
        return first.tool, first.texts

    def fulfilled(self) -> Callable[[ToolCall], bool]:
        """A test whether a call fully satisfies the step, with a known duration if it is limited.

        Always false for several options of which some have a time limit: that needs the alignment.
        """
        first, several = self.options[0], len(self.options) > 1
        tool, compare = first.tool, first.compare_args

        def by(call: ToolCall) -> bool:
            if call.tool != tool:
                return False
            if compare is None:
                return True
            found: list[Difference] = []
            compare(call.input, found)
            return not found

        def by_any(call: ToolCall) -> bool:
            if several and self.limited:
                return False
            return any(o.tool == call.tool and o.fulfilled_by(call) for o in self.options)

        return by_any if several or self.limited or first.compare_output else by

    def nearest(self, call: ToolCall) -> Option:
        """The option that a call of one of its tools comes closest to."""
        options = [option for option in self.options if option.tool == call.tool]
        return min(options, key=lambda o: (len(o.differences(call)), -o.timing(call)))


class Grid(msgspec.Struct, frozen=True):
    """All steps against all calls, by step and index of the call.

    `fits` has the timing of each call that satisfies a step, `near` the number of differences of
    each other call of its tool.
    """

    fits: list[dict[int, int]]
    near: list[dict[int, int]]

    @classmethod
    def of(cls, steps: Sequence[ExpectedStep], calls: Sequence[ToolCall]) -> Grid:
        by_tool: dict[str, list[tuple[int, ToolCall]]] = {}
        for index, call in enumerate(calls):
            by_tool.setdefault(call.tool, []).append((index, call))
        grid = cls([{} for _ in steps], [{} for _ in steps])
        for fits, near, step in zip(grid.fits, grid.near, steps, strict=True):
            for option in step.options:
                check_deadline()
                for index, call in by_tool.get(option.tool, ()):
                    if distance := option.distance(call):
                        near[index] = min(distance, near.get(index, distance))
                    else:
                        fits[index] = max(option.timing(call), fits.get(index, BROKEN))
            for index in fits.keys() & near.keys():  # one option that fits is enough
                del near[index]
        return grid

    def by_call(self, calls: int) -> list[tuple[dict[int, int], dict[int, int]]]:
        """`fits` and `near` of each call, by step."""
        turned: list[tuple[dict[int, int], dict[int, int]]] = [({}, {}) for _ in range(calls)]
        for step, rows in enumerate(zip(self.fits, self.near, strict=True)):
            for kind, row in enumerate(rows):
                for call, value in row.items():
                    turned[call][kind][step] = value
        return turned
