"""`expect`: the assertions of the tier files, usable in any list of evaluators."""

from __future__ import annotations

from typing import ClassVar

from pydantic import model_validator

from assay.model.evaluator import EvaluatorSpec, Required
from assay.model.expect import Expect
from assay.model.shape import problem


class ExpectEvaluator(Expect, EvaluatorSpec):
    """All assertions run; the score is held / all; a failed one fails the case."""

    depends_on_case: ClassVar[bool] = True
    type: str = "expect"
    required: Required = True

    def cannot_fail(self) -> str:
        vacuous = {"minLength": self.minLength, "minToolCalls": self.minToolCalls}
        if all(key in vacuous and vacuous[key] == 0 for key in self.asserted()):
            return "a minimum of 0 always holds"
        return ""

    @model_validator(mode="after")
    def _asserts(self) -> ExpectEvaluator:
        if not self.asserted():
            raise problem(
                "asserts-nothing", "the block asserts nothing: every key is false or empty"
            )
        return self
