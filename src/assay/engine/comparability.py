"""The comparability key: trials of two runs compare only when it is the same.

It is a hash of what the case asks and expects, and of all that its judgement depends on. Where
the case was written, what it is called and described as, its tags: none of that counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b, file_digest
from typing import Any

import msgspec

from assay.engine.grading import Grader
from assay.model.case import EvalCase
from assay.model.message import ContentPart, Message
from assay.model.plain import PlainLine, Said
from assay.model.score import PASS_FROM

_encode = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


def key(grader: Grader) -> str:
    """The key of a case with its evaluators made ready."""
    return hashed(_content(grader.case), [ready.fingerprint for ready in grader.ready])


def plain_key(line: PlainLine, threshold: float | None, fingerprints: list[bytes]) -> str:
    """The key of the case that a plain line stands for."""
    said = [Said("user", line.input)] if isinstance(line.input, str) else line.input
    return hashed((said, [], None, _threshold(threshold), None, {}, None), fingerprints)


def hashed(content: tuple[Any, ...], fingerprints: list[bytes]) -> str:
    parts = (_encode(content), *fingerprints)
    return blake2b(b"\0".join(parts), digest_size=8).hexdigest()


def _threshold(given: float | None) -> float:
    return PASS_FROM if given is None else given


def _content(case: EvalCase) -> tuple[Any, ...]:
    return (
        said(case.input_messages),
        said(case.expected_messages),
        case.expected_outcome,
        _threshold(case.threshold),
        case.reference_data,
        case.stubs,
        case.max_turns,
    )


def said(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as JSON; a file that they name counts with its content, as that is what is asked."""
    return [_said(message) for message in messages]


def _said(message: Message) -> dict[str, Any]:
    written = message.to_dict()
    parts = message.content if isinstance(message.content, tuple) else ()
    if digests := [_digest(part) for part in parts if part.type == "file"]:
        written["files"] = digests
    return written


def _digest(part: ContentPart) -> str:
    """A hash of the file; empty when it cannot be read, which the target will report."""
    try:
        with open(part.path or part.value, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
