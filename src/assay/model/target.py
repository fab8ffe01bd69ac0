"""TargetSpec: the settings of a target, as a configuration writes them."""

from __future__ import annotations

from typing import ClassVar

from assay.model.shape import Shape, Text


class TargetSpec(Shape):
    """One entry under `targets`. Subclasses add their keys as fields, and `connect`.

    `connect()` returns a Target; it opens nothing until the target is asked.
    """

    #: The key that the text after the colon of an inline target gives: `openai:gpt-4`.
    inline_key: ClassVar[str] = ""
    #: The environment variable with the API key when the settings give none.
    key_variable: ClassVar[str] = ""

    name: Text = ""
    provider: Text

    @property
    def label(self) -> str:
        """What results call the target."""
        return self.name or self.provider
