"""A program to run: a list of arguments, or one text for the shell of the platform."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from assay.wire.fields import NonBlankText, Text
from assay.wire.validation_errors import problem, shown


def shell_argv(script: str) -> list[str]:
    """The arguments that run a script in the shell of the platform."""
    return ["cmd.exe", "/c", script] if os.name == "nt" else ["sh", "-c", script]


def _as_argv(raw: Any) -> Any:
    if isinstance(raw, str):
        if not raw.strip():
            raise problem("wrong-value", "the script is empty")
        return shell_argv(raw)
    if not isinstance(raw, list):
        raise problem("wrong-type", f"is {shown(raw)}, neither a list of arguments nor text")
    return raw


Script = Annotated[
    list[Text],
    Field(min_length=1),
    BeforeValidator(
        _as_argv, json_schema_input_type=NonBlankText | Annotated[list[Text], Field(min_length=1)]
    ),
]
