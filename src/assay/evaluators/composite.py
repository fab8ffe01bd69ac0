"""`composite`: several evaluators that give one score together."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from assay.evaluators.code_judge import Script
from assay.evaluators.llm_judge import Prompt
from assay.model.evaluator import EvaluatorSpec, SomeEvaluators
from assay.model.shape import Empty, Key, Number, Rate, Shape, problem, raise_all

Kind = Literal["weighted_average", "min", "all", "any", "threshold", "code_judge", "llm_judge"]
Spelled = Kind | Literal["weighted-average", "code-judge", "llm-judge"]
_OWN_KEY = {
    "threshold": "threshold",
    "code_judge": "script",
    "llm_judge": "prompt",
}


def _snake(raw: Any) -> Any:
    return raw.replace("-", "_") if isinstance(raw, str) else raw


class Aggregator(Shape):
    """How the members' scores become one."""

    type: Annotated[Kind, BeforeValidator(_snake, json_schema_input_type=Spelled)] = (
        "weighted_average"
    )
    weights: dict[str, Annotated[Number, Field(ge=0)]] = Empty(dict)
    threshold: Rate | None = None
    script: Script | None = Key(None, aliases=("path",))
    prompt: Prompt | None = None

    @model_validator(mode="after")
    def _keys_fit(self) -> Aggregator:
        """Some kinds of aggregator need a key that the others do not have."""
        own = _OWN_KEY.get(self.type)
        if own is not None and getattr(self, own) is None:
            raise problem("missing-key", f"the aggregator {self.type!r} needs {own!r}")
        message = f"has no meaning for the aggregator {self.type!r}"
        raise_all(
            problem("conflicting-keys", message, at=key)
            for key in self.model_fields_set - {"type", "weights", own}
        )
        return self


class CompositeEvaluator(EvaluatorSpec):
    """Members are evaluators of any type; the aggregator combines them."""

    depends_on_case: ClassVar[bool] = True
    evaluators: SomeEvaluators = Key(aliases=("assert", "assertions"))
    aggregator: Aggregator = Aggregator()

    @property
    def members(self) -> tuple[EvaluatorSpec, ...]:
        return self.evaluators

    @model_validator(mode="after")
    def _weights_name_members(self) -> CompositeEvaluator:
        names = [member.name for member in self.members]
        message = "names no member; members: " + ", ".join(names)
        raise_all(
            problem("wrong-value", message, at=("aggregator", "weights", name))
            for name in self.aggregator.weights
            if name not in names
        )
        return self

    def cannot_fail(self) -> str:
        reasons = [member.cannot_fail() for member in self.members]
        return f"no member can fail: {reasons[0]}" if all(reasons) else ""
