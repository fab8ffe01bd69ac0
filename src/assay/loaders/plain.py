"""The fast path for JSONL: plain cases, as nearly all lines are.

The decoder checks types while it parses. A line with anything else in it goes to the careful
reader, which reports what is wrong.
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

_plain_decoder = msgspec.json.Decoder(PlainLine)
_text_decoder = msgspec.json.Decoder(TextLine)


def plain_line(data: bytes) -> PlainLine | None:
    """Decode a plain line; None when it needs the careful reader."""
    return _decode(data, _plain_decoder)


def text_line(data: bytes) -> TextLine | None:
    """Decode a plain line whose evaluators all have just a text; None for any other."""
    return _decode(data, _text_decoder)


def _decode(data: bytes, decoder: msgspec.json.Decoder[Line]) -> Line | None:
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
    return line if _is_plain_id(line.id) and _has_input(line.input) else None


def plain_case(
    line: PlainLine,
    reading: Reading,
    inherited: SuiteExecution,
    locate: Callable[[Sequence[str | int]], Origin],
) -> EvalCase | None:
    """The case of a plain line; None when its evaluators need the careful reader."""
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


def _is_plain_id(case_id: str) -> bool:
    return case_id.isprintable() and case_id == case_id.strip() != ""


def _is_simple(metadata: dict[str, Any]) -> bool:
    """Whether it has no nested values and no number that is too large."""
    for value in metadata.values():
        kind = type(value)
        if kind is dict or kind is list or (kind is int and not fits_64_bits(value)):
            return False
    return True


def _is_safe(text: bytes) -> bool:
    """Whether nothing is nested too deeply, and no number is too large."""
    return is_shallow(text) and not has_long_number(text)


def _decode_entry(text: bytes) -> dict[str, Any] | None:
    return fast_object(text) if _is_safe(text) else None


def _has_input(input_: str | list[Said]) -> bool:
    return bool(input_.strip() if isinstance(input_, str) else input_)


def _messages(input_: str | list[Said]) -> tuple[Message, ...]:
    if isinstance(input_, str):
        return (Message("user", input_),)
    return tuple([Message(message.role, message.content) for message in input_])


def _evaluators(entries: list[msgspec.Raw], reading: Reading) -> tuple[EvaluatorSpec, ...]:
    """The evaluators, if all are valid, without notes, and independent of their case."""
    texts = [bytes(entry) for entry in entries]
    specs = at_once(texts, lambda index: _decode_entry(texts[index]), reading)
    if reading.notes:
        reading.notes.clear()  # the careful reader will note them again
        return ()
    for spec in specs:
        if spec.depends_on_case:
            return ()
    return specs
