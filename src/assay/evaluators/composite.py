"""`composite`: several evaluators that give one score together."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.evaluators.code_judge import Script
from assay.model.evaluator import Evaluators, EvaluatorSpec
from assay.model.shape import Empty, Key, Number, Rate, Shape, Text, problem


class Aggregator(Shape):
    """How the members' scores become one."""

    type: Literal[
        "weighted_average", "min", "all", "any", "threshold", "code_judge", "llm_judge"
    ] = "weighted_average"
    weights: dict[str, Annotated[Number, Field(ge=0)]] = Empty(dict)
    threshold: Rate | None = None
    script: Script | None = Key(None, aliases=("path",))
    prompt: Text | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Aggregator:
        needs = {"threshold": "threshold", "code_judge": "script", "llm_judge": "prompt"}
        key = needs.get(self.type)
        if key is not None and getattr(self, key) is None:
            raise problem("missing-key", f"the aggregator {self.type!r} needs {key!r}")
        return self


class CompositeEvaluator(EvaluatorSpec):
    """Members are evaluators of any type; the aggregator combines them."""

    evaluators: Annotated[Evaluators, Field(min_length=1)] = Key(aliases=("assert", "assertions"))
    aggregator: Aggregator = Aggregator()

    @property
    def members(self) -> tuple[EvaluatorSpec, ...]:
        return self.evaluators

    @model_validator(mode="after")
    def _weights_name_members(self) -> CompositeEvaluator:
        names = [member.name for member in self.members]
        for name in self.aggregator.weights:
            if name not in names:
                known = ", ".join(names)
                raise problem(
                    "wrong-value", f"the weight {name!r} names no member; members: {known}"
                )
        return self

    def cannot_fail(self) -> str:
        reasons = [member.cannot_fail() for member in self.members]
        return f"no member can fail: {reasons[0]}" if all(reasons) else ""
