"""`is_json` and `json_schema`: checks of an answer that is JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, field_validator

from assay.evaluators.answers import SLOW_PATTERN, TOO_DEEP, TextCheck, inverted, not_json, single
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, NegatableSpec
from assay.model.expectations import NOTHING, Expectation, Expected
from assay.model.json_schema import answer_schema, check_schema
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.model.values import MISSING, parse_json
from assay.wire.validation_errors import problem, shown

if TYPE_CHECKING:
    from assay.ports import Check, Resources


class IsJsonEvaluator(NegatableSpec):
    """The answer is valid JSON."""

    reads: ClassVar[frozenset[Expectation]] = NOTHING
    allowed_in_requests: ClassVar[bool] = True
    type: str = "is_json"

    def runs_in(self) -> CheckPlace:
        return "loop"

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        return {} if self.negate else {"jsonValid": True}

    def prepare(self, resources: Resources) -> Check:
        check = TextCheck(lambda text: parse_json(text) is not MISSING, "is JSON", not_json)
        if self.negate:
            check = inverted(check, "is not JSON", "expected an answer that is not JSON")
        return single(check)


def _schema(raw: Any) -> Any:
    if isinstance(raw, (dict, bool)):
        return raw
    raise problem("wrong-type", f"is {shown(raw)}, not a JSON Schema")


class JsonSchemaEvaluator(NegatableSpec):
    """The answer is JSON that matches the schema."""

    reads: ClassVar[frozenset[Expectation]] = NOTHING
    allowed_in_requests: ClassVar[bool] = True
    type: str = "json_schema"
    value: Annotated[Any, BeforeValidator(_schema, json_schema_input_type=dict[str, Any] | bool)]

    def runs_in(self) -> CheckPlace:
        return "worker"

    @field_validator("value")
    @classmethod
    def _is_a_schema(cls, schema: Any) -> Any:
        return check_schema(schema)

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        plain = isinstance(self.value, dict) and not self.negate
        return {"jsonSchema": self.value} if plain else {}

    def prepare(self, resources: Resources) -> Check:
        faults = answer_schema(self.value).faults
        negate = self.negate
        accepted = EvaluationScore(1.0, hits=("matches the schema",))
        if negate:
            miss = "expected the answer not to match the schema, but it does"
            accepted = EvaluationScore(0.0, misses=(miss,))
        rejected = EvaluationScore(1.0, hits=("does not match the schema",))

        def judge(context: Context) -> EvaluationScore:
            text = context.observation.response
            value = parse_json(text)
            try:
                found = [not_json(text)] if value is MISSING else faults(value)
            except TimeoutError:
                return EvaluationScore.errored(SLOW_PATTERN)
            except RecursionError:
                return EvaluationScore.errored(TOO_DEEP)
            if not found:
                return accepted
            return rejected if negate else EvaluationScore(0.0, misses=tuple(found))

        return judge
