"""`composite`: several evaluators that give one score together."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from assay.evaluators.aggregators import (
    Combine,
    Member,
    by_judge,
    by_program,
    by_weight,
    lowest,
    settle,
    share_of_passes,
)
from assay.evaluators.llm_judge import Prompt, prompt_text
from assay.evaluators.programs import missing_program
from assay.evaluators.prompt import material_of, read_by
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec, MissingDependency, SomeEvaluators
from assay.model.expect import merged
from assay.model.expectations import EVERYTHING, NOTHING, Expectation, Expected
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.model.script import Script
from assay.model.tokens import RESULTS
from assay.ports import Check, Resources
from assay.scoring import prepare, scores_of
from assay.wire.fields import Empty, Number, Rate
from assay.wire.key_names import Key
from assay.wire.rules import BelongsTo, Rule, Ruled
from assay.wire.validation_errors import problem, raise_all

Kind = Literal["weighted_average", "min", "all", "any", "threshold", "code_judge", "llm_judge"]
Spelled = Kind | Literal["weighted-average", "code-judge", "llm-judge"]


def _snake(raw: Any) -> Any:
    return raw.replace("-", "_") if isinstance(raw, str) else raw


class Aggregator(Ruled):
    """How the members' scores become one."""

    rules: ClassVar[tuple[Rule, ...]] = (
        BelongsTo("threshold", "type", ("threshold",), needed=True),
        BelongsTo("script", "type", ("code_judge",), needed=True),
        BelongsTo("prompt", "type", ("llm_judge",), needed=True),
    )

    type: Annotated[Kind, BeforeValidator(_snake, json_schema_input_type=Spelled)] = (
        "weighted_average"
    )
    weights: dict[str, Annotated[Number, Field(ge=0)]] = Empty(dict)
    threshold: Rate | None = None
    script: Script | None = Key(None, aliases=("path",))
    prompt: Prompt | None = None


class CompositeEvaluator(EvaluatorSpec):
    """Members are evaluators of any type; the aggregator combines them."""

    depends_on_case: ClassVar[bool] = True
    allowed_in_requests: ClassVar[bool] = True
    type: str = "composite"
    evaluators: SomeEvaluators = Key(aliases=("assert", "assertions"))
    aggregator: Aggregator = Aggregator()

    def runs_in(self) -> CheckPlace:
        return "loop"

    @property
    def members(self) -> tuple[EvaluatorSpec, ...]:
        return self.evaluators

    def reads_of(self, expected: Expected) -> frozenset[Expectation]:
        return self._read_by_aggregator().union(*(m.reads_of(expected) for m in self.members))

    def _read_by_aggregator(self) -> frozenset[Expectation]:
        aggregator = self.aggregator
        if aggregator.prompt is not None:
            return read_by(prompt_text(self.name, aggregator.prompt), frozenset(RESULTS))
        return NOTHING if aggregator.script is None else EVERYTHING

    @model_validator(mode="after")
    def _weights_name_members(self) -> CompositeEvaluator:
        names = [member.name for member in self.members]
        message = "is not the name of a member; members: " + ", ".join(names)
        raise_all(
            problem("wrong-value", message, at=("aggregator", "weights", name))
            for name in self.aggregator.weights
            if name not in names
        )
        return self

    def missing_dependencies(self, folder: str) -> Iterator[MissingDependency]:
        """Those of its own program; members report theirs separately."""
        script = self.aggregator.script
        return iter(()) if script is None else missing_program(script, folder)

    def cannot_fail(self) -> str:
        reasons = [member.cannot_fail() for member in self.members]
        return f"no member can fail: {reasons[0]}" if all(reasons) else ""

    def judge_sees(self, context: Context) -> list[tuple[str, str]]:
        """What the judges among its members and its aggregator see, each piece once."""
        judging = [member for member in self.members if hasattr(member, "judge_sees")]
        pairs = [pair for member in judging for pair in member.judge_sees(context)]
        if self.aggregator.prompt is not None:
            prompt = prompt_text(self.name, self.aggregator.prompt)
            material = material_of(context)
            pairs += [("prompt", prompt), *material.labelled(prompt, frozenset(RESULTS))]
        return list(dict.fromkeys(pairs))

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        """What its members require, if all of them should hold."""
        if self.aggregator.type not in ("weighted_average", "min", "all"):
            return {}
        return merged(member.as_expect(expected, seen) for member in self.members)

    def prepare(self, resources: Resources) -> Check:
        checks = [prepare(member, resources) for member in self.members]
        overrides = self.aggregator.weights
        weights = [overrides.get(member.name, member.weight) for member in self.members]
        combine = _combine(self.name, self.aggregator, resources)

        def settled(
            context: Context, scores: list[EvaluationScore]
        ) -> EvaluationScore | Awaitable[EvaluationScore]:
            return settle(context, list(map(Member, self.members, weights, scores)), combine)

        async def later(
            context: Context, scores: Awaitable[list[EvaluationScore]]
        ) -> EvaluationScore:
            score = settled(context, await scores)
            return score if isinstance(score, EvaluationScore) else await score

        def check(context: Context) -> EvaluationScore | Awaitable[EvaluationScore]:
            scores = scores_of(checks, context)
            if isinstance(scores, list):
                return settled(context, scores)
            return later(context, scores)

        return check


def _combine(owner: str, aggregator: Aggregator, resources: Resources) -> Combine:
    """The function that combines the members' scores."""
    if aggregator.script is not None:
        return by_program(aggregator.script)
    if aggregator.prompt is not None:
        return by_judge(owner, aggregator.prompt, resources)
    if aggregator.type == "weighted_average":
        return by_weight
    if aggregator.type == "min":
        return lowest
    return share_of_passes(aggregator.type, aggregator.threshold)
