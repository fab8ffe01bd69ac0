"""The comparability key: trials of two runs compare only when it is the same.

It is a hash of what the case asks and expects, and of all that its judgement depends on. Where
the case was written, what it is called and described as, its tags: none of that counts.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from assay.grading import Grader, threshold_of
from assay.model.case import EvalCase

_encode = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


def key(grader: Grader) -> str:
    """The key of a case with its evaluators made ready."""
    content = _encode(_content(grader.case))
    parts = (content, *[ready.fingerprint for ready in grader.ready])
    return blake2b(b"\0".join(parts), digest_size=8).hexdigest()


def _content(case: EvalCase) -> tuple[Any, ...]:
    return (
        [message.to_dict() for message in case.input_messages],
        [message.to_dict() for message in case.expected_messages],
        case.expected_outcome,
        threshold_of(case),
        case.reference_data,
        case.stubs,
        case.max_turns,
    )
