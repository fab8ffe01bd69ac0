"""Plain cases: lines of JSONL of which a look tells that all is right, as nearly all are.

The decoder checks their types while it reads them. A line with anything else in it is left to
the careful reader, which knows what to say about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from assay.documents.json import (
    fast_object,
    fits_64_bits,
    has_long_number,
    is_shallow,
    keeps_all_keys,
    suits_fast_parser,
)
from assay.model.case import EvalCase, Origin
from assay.model.evaluator import EvaluatorSpec, at_once
from assay.model.message import Message
from assay.model.plain import PlainLine, Said, TextLine
from assay.model.reading import Reading
from assay.model.suite import SuiteExecution

Line = TypeVar("Line", bound=PlainLine)

_plain = msgspec.json.Decoder(PlainLine)
_text = msgspec.json.Decoder(TextLine)


def plain_line(data: bytes) -> PlainLine | None:
    """The line when it is plain; None when it has to be looked at closely."""
    return _checked(data, _plain)


def text_line(data: bytes) -> TextLine | None:
    """The same of a line whose evaluators have a text each, and nothing else."""
    return _checked(data, _text)


def _checked(data: bytes, decoder: msgspec.json.Decoder[Line]) -> Line | None:
    if not suits_fast_parser(data):
        return None
    try:
        line = decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if line.metadata is not UNSET and not _is_simple(line.metadata) and not _is_safe(data):
        return None
    if not keeps_all_keys(line, data):
        return None
    return line if _is_plain(line.id) and _asks(line.input) else None


def plain_case(
    line: PlainLine,
    reading: Reading,
    inherited: SuiteExecution,
    locate: Callable[[Sequence[str | int]], Origin],
) -> EvalCase | None:
    """The case of a plain line; None when its evaluators have to be looked at closely."""
    specs = _evaluators(line.evaluators, reading)
    if not specs:
        return None
    threshold, tags, metadata = line.threshold, line.tags, line.metadata
    return EvalCase(
        line.id,
        _messages(line.input),
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


def _is_simple(metadata: dict[str, Any]) -> bool:
    """Whether nothing in it is nested, or too great a number."""
    for value in metadata.values():
        kind = type(value)
        if kind is dict or kind is list or (kind is int and not fits_64_bits(value)):
            return False
    return True


def _is_safe(text: bytes) -> bool:
    """Whether nothing is nested too deeply, and no number can be too great."""
    return is_shallow(text) and not has_long_number(text)


def _entry(text: bytes) -> dict[str, Any] | None:
    return fast_object(text) if _is_safe(text) else None


def _asks(said: str | list[Said]) -> bool:
    return bool(said.strip() if isinstance(said, str) else said)


def _messages(said: str | list[Said]) -> tuple[Message, ...]:
    if isinstance(said, str):
        return (Message("user", said),)
    return tuple([Message(one.role, one.content) for one in said])


def _evaluators(entries: list[msgspec.Raw], reading: Reading) -> tuple[EvaluatorSpec, ...]:
    """Evaluators that ask nothing of their case, and of which there is nothing to note."""
    texts = [bytes(entry) for entry in entries]
    specs = at_once(texts, lambda index: _entry(texts[index]), reading)
    if reading.notes:
        reading.notes.clear()  # what there is to say is said by whoever looks closer
        return ()
    for spec in specs:
        if spec.depends_on_case:
            return ()
    return specs
