"""`python:pkg.module:function`: a function of the project, named inline."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from assay.model.evaluator import EvaluatorSpec
from assay.model.shape import problem

_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_REFERENCE = f"python:{_NAME}:{_NAME}"


def _reference(value: str) -> str:
    if not re.fullmatch(_REFERENCE, value):
        message = f"{value!r} does not have the form 'python:package.module:function'"
        raise problem("unknown-evaluator", message)
    return value


class PythonEvaluator(EvaluatorSpec):
    """Calls the function; keys besides the common ones are its arguments."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[
        str,
        AfterValidator(_reference),
        Field(json_schema_extra={"pattern": f"^{_REFERENCE}$"}),
    ]
