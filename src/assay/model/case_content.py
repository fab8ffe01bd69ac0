"""CaseContent: what a case asked and expected when it was run, as the store keeps it.

The eval file may have changed since. Equal contents are stored once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw
from pydantic import BaseModel

from assay.model.case import EvalCase
from assay.model.json_encoding import as_json

#: Left out of evaluators: where a program runs differs from machine to machine.
_LOCAL = "cwd"
_ALWAYS = ("name", "type")
#: Types of values that need no conversion.
_ATOMS = frozenset({str, int, float, bool, type(None)})


class CaseContent(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """The whole content of a case. Messages and evaluators are written as in eval files.

    `evaluators` are the effective ones, with the keys that were given and their names.
    """

    input: Sequence[dict[str, Any]] = ()
    tags: Sequence[str] = ()
    description: str = ""
    expected_outcome: str | None = None
    expected_messages: Sequence[dict[str, Any]] = ()
    reference_data: Mapping[str, Any] | None = None
    rubrics: Sequence[dict[str, Any]] = ()
    evaluators: Sequence[dict[str, Any]] = ()
    threshold: float | None = None
    metadata: Mapping[str, Any] = {}
    stubs: Mapping[str, Any] = {}
    source: str = ""

    @property
    def question(self) -> str:
        """The text of all input messages."""
        return "\n".join(message_text(message) for message in self.input)


class _Shown(msgspec.Struct):
    """The part of a content that entries of result files have."""

    input: Raw = Raw(b"[]")
    tags: Raw = Raw(b"[]")


_decode = msgspec.json.Decoder(CaseContent).decode
_shown = msgspec.json.Decoder(_Shown).decode


def content_of(case: EvalCase) -> bytes:
    """The JSON of the content of a case."""
    return as_json(
        CaseContent(
            input=[message.to_dict() for message in case.input_messages],
            tags=case.tags,
            description=case.description,
            expected_outcome=case.expected_outcome,
            expected_messages=[message.to_dict() for message in case.expected_messages] or (),
            reference_data=case.reference_data,
            rubrics=[_given(rubric) for rubric in case.rubrics] or (),
            evaluators=[_given(spec) for spec in case.evaluators] or (),
            threshold=case.threshold,
            metadata=case.metadata,
            stubs=case.stubs,
            source="" if case.locate is None else case.origin.place,
        )
    )


def decode_content(content: bytes) -> CaseContent:
    """The content of a trial; an empty one for a trial of an older version."""
    return _decode(content) if content else CaseContent()


def input_and_tags(content: bytes) -> tuple[bytes, bytes]:
    """The JSON of the input messages and of the tags."""
    shown = _shown(content)
    return bytes(shown.input), bytes(shown.tags)


def message_text(message: Mapping[str, Any]) -> str:
    """The text of a message; values that are not text as JSON, files by their value."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return "\n".join(str(part.get("value", "")) for part in content)
    return msgspec.json.encode(content).decode()


def _given(shape: BaseModel) -> dict[str, Any]:
    """The keys that were given, and the name and type of an evaluator."""
    given = shape.model_fields_set
    return {
        key: value if type(value) in _ATOMS else _plain(value)
        for key, value in shape.__dict__.items()
        if (key in given and key != _LOCAL) or key in _ALWAYS
    }


def _plain(value: Any) -> Any:
    """A value of a shape; shapes inside it as their given keys."""
    if isinstance(value, BaseModel):
        return _given(value)
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _ATOMS else _plain(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value
