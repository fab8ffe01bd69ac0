"""`expect`: the assertions of the tier files, usable in any list of evaluators."""

from __future__ import annotations

from typing import ClassVar

from assay.model.evaluator import EvaluatorSpec, Required
from assay.model.expect import ASSERTED, Expect
from assay.model.rules import Rule


class ExpectEvaluator(Expect, EvaluatorSpec):
    """All assertions run; the score is held / all; a failed one fails the case."""

    rules: ClassVar[tuple[Rule, ...]] = (*Expect.rules, ASSERTED)
    depends_on_case: ClassVar[bool] = True
    type: str = "expect"
    required: Required = True

    def cannot_fail(self) -> str:
        vacuous = {"minLength": self.minLength, "minToolCalls": self.minToolCalls}
        if all(key in vacuous and vacuous[key] == 0 for key in self.asserted()):
            return "a minimum of 0 always holds"
        return ""
