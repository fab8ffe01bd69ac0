"""Context: what an evaluator sees."""

from __future__ import annotations

from typing import Any

from assay.model.case import EvalCase
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.record import Record


class Context(Record, frozen=True):
    """One case and one observation of it. `repeat` numbers the trials of a case from 0."""

    case: EvalCase
    observation: Observation
    repeat: int = 0

    @property
    def response(self) -> str:
        """The text of the answer."""
        return self.observation.response

    @property
    def tool_calls(self) -> tuple[ToolCall, ...] | None:
        """The calls that were made; None when the target does not report them."""
        return self.observation.tool_calls

    @property
    def question(self) -> str:
        return self.case.question

    @property
    def expected(self) -> Any:
        """The expected output; None when the case has none."""
        return self.case.expected_output
