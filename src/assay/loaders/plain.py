"""Plain cases: lines of JSONL of which a look tells that all is right, as nearly all are.

The decoder checks their types while it reads them. A line with anything else in it is left to
the careful reader, which knows what to say about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from assay.documents.json import is_sure, sure_object
from assay.model.case import EvalCase, Origin
from assay.model.evaluator import EvaluatorSpec, at_once
from assay.model.message import Message, Role
from assay.model.shape import Reading
from assay.model.suite import SuiteExecution


class _Said(msgspec.Struct, forbid_unknown_fields=True):
    role: Role
    content: str


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """What is not there stays unset, so that the line can be written again as it was."""

    id: str
    input: str | list[_Said]
    evaluators: list[msgspec.Raw]
    description: str | UnsetType = UNSET
    threshold: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    tags: tuple[Annotated[str, Meta(min_length=1)], ...] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


_decode, _encode = msgspec.json.Decoder(_Line).decode, msgspec.json.Encoder().encode


def plain_case(
    data: bytes,
    reading: Reading,
    inherited: SuiteExecution,
    locate: Callable[[Sequence[str | int]], Origin],
) -> EvalCase | None:
    """The case on a line; None when it has to be looked at closely."""
    if not is_sure(data):
        return None
    try:
        line = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if _encode(line).count(b":") != data.count(b":") or not _is_plain(line.id):
        return None  # a key stands there twice
    messages, specs = _messages(line.input), _evaluators(line.evaluators, reading)
    if not messages or not specs:
        return None
    threshold, tags, metadata = line.threshold, line.tags, line.metadata
    return EvalCase(
        line.id,
        messages,
        specs,
        "" if line.description is UNSET else line.description,
        tags=() if tags is UNSET else tags,
        metadata={} if metadata is UNSET else metadata,
        target=inherited.target,
        threshold=inherited.threshold if threshold is UNSET else threshold,
        repeat=inherited.repeat,
        timeout_seconds=inherited.timeout_seconds,
        locate=locate,
    )


def _is_plain(identity: str) -> bool:
    return identity.isprintable() and identity == identity.strip() != ""


def _messages(said: str | list[_Said]) -> tuple[Message, ...]:
    if isinstance(said, str):
        return (Message("user", said),) if said.strip() else ()
    return tuple([Message(one.role, one.content) for one in said])


def _evaluators(entries: list[msgspec.Raw], reading: Reading) -> tuple[EvaluatorSpec, ...]:
    """Evaluators that ask nothing of their case, and of which there is nothing to note."""
    texts = [bytes(entry) for entry in entries]
    specs = at_once(texts, lambda index: sure_object(texts[index]), reading)
    for spec in specs:
        if spec.depends_on_case:
            return ()
    if reading.notes:
        reading.notes.clear()  # what there is to say is said by whoever looks closer
        return ()
    return specs
