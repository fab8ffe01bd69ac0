"""`code_judge`: a program of the author's gives the score."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from assay.errors import nearest
from assay.model.evaluator import EvaluatorSpec
from assay.model.shape import (
    Empty,
    Json,
    Note,
    Positive,
    Reading,
    Spelling,
    Text,
    Words,
    problem,
    shown,
)


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


def _folder(value: str, info: ValidationInfo) -> str:
    reading: Reading | None = info.context
    return value if reading is None else str(reading.find_folder(value))


def _slip(key: str, known: frozenset[str]) -> str:
    """A hint when the key is nearly one of ours, or the beginning of one."""
    begun = [name for name in known if len(key) >= 3 and name.startswith(key)]
    return nearest(key, begun, 0) or nearest(key, known, 0.75)


class _OpenSpelling(Spelling):
    """Unknown keys are the program's own configuration, unless they look like a slip."""

    __slots__ = ()

    def canonical(self, raw: Any, reading: Reading | None) -> Any:
        if type(raw) is not dict or self.known.issuperset(raw):
            return raw
        own = {key: value for key, value in raw.items() if key not in self.known}
        for key in own:
            hint = _slip(key, self.known)
            if hint and not key.startswith("x-"):
                message = f"the key {key!r} looks like a slip"
                if reading is None:
                    raise problem("unknown-key", message, hint)
                reading.notes.append(Note(raw, key, "error", "unknown-key", message, hint))
        result = {key: value for key, value in raw.items() if key in self.known}
        given = result.get("config", {})
        if isinstance(given, dict):
            result["config"] = {**own, **given}
        return result

    def describe(self, body: dict[str, Any]) -> None:
        super().describe(body)
        body["additionalProperties"] = True


class CodeJudgeEvaluator(EvaluatorSpec):
    """Runs a program: the case and the observation go in as JSON, a score comes out."""

    script: Script
    cwd: Annotated[Text, AfterValidator(_folder)] | None = None
    timeout_seconds: Positive = 60.0
    env: list[Text] = Empty(list)
    max_memory_mb: Positive | None = None
    max_cpu_seconds: Positive | None = None
    config: dict[str, Json] = Empty(dict)


CodeJudgeEvaluator.spelling = _OpenSpelling(CodeJudgeEvaluator.spelling.known, any_key=True)
