"""The comparability key: trials of two runs are compared only when their keys are equal.

The key is a hash of what the case asks and expects, and of everything that its evaluation depends
on. The case's place, id, description and tags are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b, file_digest
from typing import Any

import msgspec

from assay.engine.grading import Grader
from assay.model.case import EvalCase
from assay.model.message import ContentPart, Message
from assay.model.score import PASS_FROM

_encode = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


def key(grader: Grader) -> str:
    """The key of a case with prepared evaluators."""
    return _hash(_content(grader.case), [one.fingerprint for one in grader.evaluators])


def _hash(content: tuple[Any, ...], fingerprints: list[bytes]) -> str:
    parts = (_encode(content), *fingerprints)
    return blake2b(b"\0".join(parts), digest_size=8).hexdigest()


def _threshold(given: float | None) -> float:
    return PASS_FROM if given is None else given


def _content(case: EvalCase) -> tuple[Any, ...]:
    return (
        encoded_messages(case.input_messages),
        encoded_messages(case.expected_messages),
        case.expected_outcome,
        _threshold(case.threshold),
        case.reference_data,
        case.stubs,
        case.max_turns,
    )


def encoded_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as JSON values; files are included by a hash, as their contents are sent too."""
    return [_encoded(message) for message in messages]


def _encoded(message: Message) -> dict[str, Any]:
    encoded = message.to_dict()
    parts = message.content if isinstance(message.content, tuple) else ()
    if digests := [_digest(part) for part in parts if part.type == "file"]:
        encoded["files"] = digests
    return encoded


def _digest(part: ContentPart) -> str:
    """The hash of a file; empty if it cannot be read, which the target will report."""
    try:
        with open(part.path or part.value, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
