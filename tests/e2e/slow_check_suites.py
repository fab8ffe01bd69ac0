"""Suites with checks that take long, and an agent that always takes the same time."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from aiohttp import web

from e2e.projects import Agent, Project

#: One case in so many has a slow check.
SLOW_CASES = 20
LETTERS = "abcdefgh "


def text(seed: int) -> str:
    """A text that takes a few hundred milliseconds to compare with another."""
    return "".join(random.Random(seed).choices(LETTERS, k=35_000))


def exponential(levels: int) -> dict[str, Any]:
    """A schema that checks an answer two to the power of `levels` times."""
    defs: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$defs": defs | {f"d{levels}": {"type": "integer"}}, "$ref": "#/$defs/d0"}


#: Functions of a project that need 300 ms of processor time.
FUNCTIONS = """
import time
def burn():
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        sum(n * n for n in range(100))
    return True
def slow(response):
    return burn()
async def slow_later(response):
    return burn()
"""
#: The message and the evaluator of a slow case.
SLOW: dict[str, tuple[str, dict[str, Any]]] = {
    "similarity": (text(1), {"type": "similarity", "value": text(2)}),
    "json_schema": ("1", {"type": "json_schema", "value": exponential(13)}),
    "function": ("x", {"type": "python:slow:slow"}),
    "async function": ("x", {"type": "python:slow:slow_later"}),
}


def delay(agent: Agent, seconds: float) -> None:
    """Let the agent repeat the message after a while."""

    async def answer(request: web.Request) -> web.StreamResponse:
        message = (await request.json())["message"]
        await asyncio.sleep(seconds)
        return web.json_response({"response": message})

    agent.answer = answer


def write_suite(project: Project, name: str, cases: int, limit_ms: float, slow: str = "") -> Path:
    """A suite of quick cases with a limit on their latency, some of them replaced by slow ones."""
    lines = []
    for number in range(cases):
        expect = {"responseContains": [f"m{number}"], "maxLatencyMs": limit_ms}
        case: dict[str, Any] = {"id": f"c{number}", "input": f"m{number}", "expect": expect}
        if slow and number % SLOW_CASES == 0:
            message, evaluator = SLOW[slow]
            case = {"id": f"slow{number}", "input": message, "evaluators": [evaluator]}
        lines.append(json.dumps(case) + "\n")
    return project.write(name, "".join(lines))
