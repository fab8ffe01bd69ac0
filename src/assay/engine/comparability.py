"""The comparability key: trials of two runs compare only when it is the same.

It is a hash of what the case asks and expects, and of all that its judgement depends on. Where
the case was written, what it is called and described as, its tags: none of that counts.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from assay.grading import Preparation, threshold_of
from assay.model.case import EvalCase

_encode = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


def key(case: EvalCase, preparation: Preparation) -> str:
    """The key of a case with its evaluators made ready."""
    digest = blake2b(_encode(_content(case)), digest_size=8)
    for spec in case.evaluators:
        digest.update(b"\0" + preparation.ready(spec).fingerprint)
    return digest.hexdigest()


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
