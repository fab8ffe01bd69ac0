"""A tool of the agent, as a registry lists it."""

from __future__ import annotations

from pydantic import ConfigDict

from assay.wire.fields import Flag, Text
from assay.wire.shape import Shape


class ToolEntry(Shape):
    """One tool; other keys, such as a schema of its parameters, are not read."""

    model_config = ConfigDict(extra="allow")

    name: Text
    version: str | None = None
    description: str | None = None
    deprecated: Flag | None = None
