"""A program as an author writes it: arguments, or one text for the platform's shell."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from assay.model.fields import Text, Words
from assay.model.refusal import problem, shown


def shell_argv(script: str) -> list[str]:
    """A script written as one text goes to the platform's shell."""
    return ["cmd.exe", "/c", script] if os.name == "nt" else ["sh", "-c", script]


def _script(raw: Any) -> Any:
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
        _script, json_schema_input_type=Words | Annotated[list[Text], Field(min_length=1)]
    ),
]
