"""The comparability key: trials of two runs compare only when it is the same.

It is a hash of what the case asks and expects, and of all that its judgement depends on. Where
the case was written, what it is called and described as, its tags: none of that counts.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from assay.grading import Grader
from assay.model.case import EvalCase
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
        [message.to_dict() for message in case.input_messages],
        [message.to_dict() for message in case.expected_messages],
        case.expected_outcome,
        _threshold(case.threshold),
        case.reference_data,
        case.stubs,
        case.max_turns,
    )
