"""What a case expects of an answer, apart from its evaluators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

if TYPE_CHECKING:
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
    def has_output(self) -> bool:
        return any(m.content is not None for m in self.messages if m.role == "assistant")

    def stated(self) -> list[Expectation]:
        """The expectations that the author wrote down."""
        found: list[Expectation] = []
        if self.has_output:
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
