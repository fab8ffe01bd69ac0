"""What a case expects of an answer, apart from its evaluators."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

from assay.model.message import Message, ToolCall

Expectation = Literal["expected_output", "expected_outcome", "tool_calls"]
EVERYTHING: frozenset[Expectation] = frozenset(get_args(Expectation))
NOTHING: frozenset[Expectation] = frozenset()


class Expected(NamedTuple):
    """The expected outcome and messages of a case."""

    outcome: str | None = None
    messages: tuple[Message, ...] = ()

    @property
    def calls(self) -> list[ToolCall]:
        return [call for message in self.messages for call in message.tool_calls]

    @property
    def output(self) -> Any:
        """The content of the last assistant message that has one."""
        for message in reversed(self.messages):
            if message.role == "assistant" and message.content is not None:
                return message.content
        return None

    def stated(self) -> list[Expectation]:
        """The expectations that the author wrote down."""
        found: list[Expectation] = []
        if self.output is not None:
            found.append("expected_output")
        if self.outcome:
            found.append("expected_outcome")
        if self.calls:
            found.append("tool_calls")
        return found

    def path(self, expectation: Expectation) -> tuple[str | int, ...]:
        """Where an expectation is in its case."""
        if expectation == "expected_outcome":
            return ("expected_outcome",)
        if expectation == "expected_output":
            return ("expected_messages",)
        index = next(i for i, message in enumerate(self.messages) if message.tool_calls)
        return ("expected_messages", index, "tool_calls")
