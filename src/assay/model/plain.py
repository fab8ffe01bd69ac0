"""The shape of plain JSONL lines, which are validated while they are decoded."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from assay.model.message import Role


class Said(msgspec.Struct, forbid_unknown_fields=True):
    """A message with a text and nothing else."""

    role: Role
    content: str


class PlainLine(msgspec.Struct, forbid_unknown_fields=True):
    """A plain case; missing keys are UNSET, so that it encodes to the same keys again."""

    id: str
    input: str | list[Said]
    evaluators: list[msgspec.Raw]
    description: str | UnsetType = UNSET
    threshold: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    tags: tuple[Annotated[str, Meta(min_length=1)], ...] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class TextEntry(msgspec.Struct, forbid_unknown_fields=True):
    """An evaluator with a text, and at most a name."""

    type: str
    value: Annotated[str, Meta(min_length=1)]
    name: str | UnsetType = UNSET


class TextLine(PlainLine):
    """A plain case whose evaluators are all a TextEntry."""

    evaluators: list[TextEntry]  # type: ignore[assignment]
