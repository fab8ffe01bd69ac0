"""Validates the verdict of a judging model or program: a JSON object with score and reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.model.score import TOLERANCE
from assay.redaction import cut

#: How many characters of each text of a verdict are kept, and how many entries of each list.
MAX_TEXT, MAX_TEXTS = 4000, 200


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and -TOLERANCE <= value <= 1 + TOLERANCE


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


_KEYS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("score", _is_share, "a number from 0 to 1"),
    ("hits", _is_texts, "a list of texts"),
    ("misses", _is_texts, "a list of texts"),
    ("reasoning", lambda value: isinstance(value, str), "a text"),
)


def shortened(value: Any) -> Any:
    """A copy of a verdict with long texts and lists truncated, because all of it is stored."""
    if isinstance(value, str):
        return cut(value, MAX_TEXT)
    if isinstance(value, list):
        return [shortened(part) for part in (value[:MAX_TEXTS] if _is_texts(value) else value)]
    if isinstance(value, dict):
        return {key: shortened(part) for key, part in value.items()}
    return value


def wrong_key(verdict: dict[str, Any]) -> tuple[str, str] | None:
    """The first key with a wrong value, and what its value should be.

    Null counts as absent, except for the score.
    """
    for key, is_right, right in _KEYS:
        value = verdict.get(key)
        if not is_right(value) and (value is not None or key == "score"):
            return key, right
    return None
