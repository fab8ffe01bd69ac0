"""`echo`: answers with the question. For demos and tests."""

from __future__ import annotations

from assay.errors import TargetError
from assay.model.observation import Observation
from assay.model.target import TargetSpec
from assay.ports import Request, Target
from assay.wire.fields import Text


class EchoTarget(TargetSpec):
    """Answers with the last user message; it calls no tools."""

    provider: Text = "echo"

    def connect(self) -> Target:
        return _Echo(self.label)


class _Echo:
    def __init__(self, name: str) -> None:
        self.name = name

    async def ask(self, request: Request) -> Observation:
        for message in reversed(request.messages):
            if message.role == "user":
                return Observation(message.text, tool_calls=())
        raise TargetError("the input has no user message to echo")

    async def close(self) -> None:
        pass
