"""Asking a target in a test: the answer, or the words of its error."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from assay.errors import TargetError
from assay.model.case import EvalCase, Origin
from assay.model.message import ContentPart, Message
from assay.model.observation import Observation
from assay.ports import Request, Target
from timeouts import WAIT_SECONDS


def request(text: str = "Hi", **case: Any) -> Request:
    """A question of a case; `repeat` belongs to the request."""
    repeat = case.pop("repeat", 0)
    messages = case.pop("messages", (Message("user", text),))
    settings = {"id": "one", "input_messages": messages, "evaluators": (), **case}
    return Request(messages, EvalCase(**settings), repeat)


def in_file(path: Path) -> Any:
    """The `locate` of a case that is written in this file."""
    return lambda steps: Origin(str(path), 1, 1)


def file_part(path: Path, value: str) -> ContentPart:
    """A file part as a loader leaves it."""
    return ContentPart("file", value, path)


def answers(target: Target, *requests: Request) -> list[Observation]:
    """The answers to these requests, one after the other; the target is closed."""

    async def run() -> list[Observation]:
        try:
            return [await target.ask(request) for request in requests]
        finally:
            await target.close()

    return asyncio.run(asyncio.wait_for(run(), WAIT_SECONDS))


def answer(target: Target, request: Request) -> Observation:
    (seen,) = answers(target, request)
    return seen


def fault(target: Target, request: Request) -> TargetError:
    with pytest.raises(TargetError) as caught:
        answers(target, request)
    return caught.value
