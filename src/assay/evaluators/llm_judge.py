"""`llm_judge`: one score for the whole answer, given by a judge."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from assay.model.evaluator import EvaluatorSpec
from assay.model.shape import AtLeastOne, Reading, Text

_PROMPT_SUFFIXES = (".md", ".txt", ".prompt", ".j2", ".jinja", ".html", ".xml")


def _looks_like_path(prompt: str) -> bool:
    return "\n" not in prompt and "{{" not in prompt and prompt.strip().endswith(_PROMPT_SUFFIXES)


def _prompt(prompt: str, info: ValidationInfo) -> str:
    """A prompt that names a file must find it."""
    reading: Reading | None = info.context
    if reading is not None and _looks_like_path(prompt):
        return str(reading.find_file(prompt))
    return prompt


Prompt = Annotated[Text, AfterValidator(_prompt)]


class LlmJudgeEvaluator(EvaluatorSpec):
    """Asks a judge for a score; `prompt` is text or the path of a file with it."""

    type: str = "llm_judge"
    prompt: Prompt | None = None
    model: Text | None = None
    target: Text | None = None
    samples: AtLeastOne = 1
