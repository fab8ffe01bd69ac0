"""`{{seed:path}}` and `{{snapshot:path}}` tokens: values that are only known when a run starts.

Pure functions. A path consists of keys and indexes: `a.b[0][1].c`, or `a.b.0.1.c`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

SOURCES = ("seed", "snapshot")
#: The variables of a prompt, for parts of the case and its observation.
VARIABLES = (
    "question",
    "expected_outcome",
    "reference_answer",
    "candidate_answer",
    "input_messages",
    "expected_messages",
    "output_messages",
    "tool_calls",
)
#: The variables of an aggregator's prompt for the members' results; the last is the old name.
RESULTS = ("evaluator_results", "EVALUATOR_RESULTS_JSON")
#: Names between braces that a judge's prompt may have.
JUDGE_VARIABLES = frozenset((*VARIABLES, *RESULTS))

_TOKEN = re.compile(r"\{\{\s*([A-Za-z_][\w-]*)\s*:([^{}]*)\}\}")
#: The start of a token; where `_TOKEN` does not match as well, it is malformed.
_START = re.compile(r"\{\{\s*(?:(?:seed|snapshot)(?![\w-])|:)[^{}]{0,60}\}{0,2}")
_PATH = re.compile(r"[^.\[\]]+(?:\[[0-9]{1,9}\])*(?:\.[^.\[\]]+(?:\[[0-9]{1,9}\])*)*\Z")


#: Marks a missing value; null is a value.
MISSING: Final[Any] = object()
_STEP = re.compile(r"[^.\[\]]+")
_INDEX = re.compile(r"[0-9]{1,9}")


class Token(NamedTuple):
    """A token with its source and its path."""

    text: str
    source: str
    path: str

    @property
    def fault(self) -> str:
        """Why the token can never be resolved; empty when it is well-formed."""
        if self.source not in SOURCES:
            return f"{self.source!r} is not a source of values; known: 'seed' and 'snapshot'"
        if not _PATH.match(self.path):
            return f"{self.path!r} is not a path like 'holdings[0].symbol'"
        return ""


def find(text: str) -> Iterator[Token]:
    """All tokens in a text, well-formed or not."""
    for match in _TOKEN.finditer(text):
        yield Token(match[0], match[1], match[2].strip())


def malformed(text: str) -> Iterator[str]:
    """Malformed tokens, which would not be replaced."""
    for match in _START.finditer(text):
        if not _TOKEN.match(text, match.start()):
            yield match[0]


def resolve(text: str, sources: Mapping[str, Any]) -> str | None:
    """Replace every token in `text` by its value; None when one has no value.

    Null, a missing path and an empty text count as no value: an assertion on an empty text would
    pass for every answer.
    """
    parts: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        value = value_of(Token(match[0], match[1], match[2].strip()), sources)
        if not value:
            return None
        parts += (text[end : match.start()], value)
        end = match.end()
    return "".join(parts) + text[end:]


@lru_cache(maxsize=4096)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(_STEP.findall(path))


def value_at(value: Any, path: str) -> Any:
    """The value at a path like `items[1].p` or `items.1.p`; MISSING when there is none."""
    if isinstance(value, dict) and path in value:  # a key may have dots in it
        return value[path]
    for step in _steps(path):
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, (list, tuple)) and _INDEX.fullmatch(step):
            value = value[int(step)] if int(step) < len(value) else MISSING
        else:
            return MISSING
    return value


def value_of(token: Token, sources: Mapping[str, Any]) -> str | None:
    """The value of a token in the data of its source, as text."""
    value = value_at(sources.get(token.source), token.path)
    return None if value is None or value is MISSING else as_text(value)


def as_text(value: Any) -> str:
    """A text unchanged; other values as compact JSON, 2.0 as 2."""
    if isinstance(value, str):
        return value
    return json.dumps(_integral(value), ensure_ascii=False, separators=(",", ":"))


def _integral(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    return [_integral(item) for item in value] if isinstance(value, list) else value
