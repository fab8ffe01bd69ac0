"""`tool_trajectory`: which tools were called, how often, in which order, with what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
)

from assay.errors import nearest
from assay.evaluators.steps import ExpectedStep, Option
from assay.evaluators.trajectory import Trajectory
from assay.evaluators.trajectory_expect import failed_steps
from assay.model.arguments import is_condition, result_comparison, texts_only
from assay.model.context import Context
from assay.model.diff import call_text
from assay.model.evaluator import CheckPlace, EvaluatorSpec
from assay.model.expectations import NOTHING, Expectation, Expected
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.model.predicates import Arguments, Output
from assay.model.score import EvaluationScore
from assay.model.values import MISSING, value_at
from assay.ports import Check, Resources
from assay.wire.fields import Count, Empty, Flag, Positive, Text
from assay.wire.key_names import Key
from assay.wire.rules import Asserts, CustomRule, Excludes, NeedsOne, Rule, Ruled
from assay.wire.validation_errors import AnyValidationError, problem, shown

ARGS_MODES = ("exact", "superset", "subset", "ignore")


def literal(value: Any) -> Any:
    """The value with mappings that look like conditions quoted."""
    if is_condition(value):
        return {"equals": value}
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    return [literal(item) for item in value] if isinstance(value, list) else value


def _literal_args(call: ToolCall) -> dict[str, Any]:
    """The `args` of a step that expects the input of this call, if it has one.

    `input: null` expects a call without arguments.
    """
    value = call.input
    if call.has_null_input:
        return {"args": {}, "args_match": "exact"}
    if isinstance(value, dict):
        return {"args": {key: literal(item) for key, item in value.items()}}
    return {} if value is None else {"args": literal(value)}


def _args_match(raw: Any) -> Any:
    if isinstance(raw, list) and raw and all(isinstance(item, str) and item for item in raw):
        return raw
    if raw in ARGS_MODES:
        return raw
    hint = nearest(raw, ARGS_MODES) if isinstance(raw, str) else ""
    message = f"is {shown(raw)}, neither one of {', '.join(ARGS_MODES)} nor a list of paths"
    raise problem("wrong-value", message, hint)


ArgsMatch = Annotated[
    Any,
    BeforeValidator(
        _args_match,
        json_schema_input_type=Literal["exact", "superset", "subset", "ignore"]
        | Annotated[list[Text], Field(min_length=1)],
    ),
]


def _paths_without_value(call: Call) -> Sequence[AnyValidationError]:
    if not isinstance(call.args_match, list):
        return ()
    return [
        problem("wrong-value", f"the path {path!r} is not in 'args'", at=("args_match", index))
        for index, path in enumerate(call.args_match)
        if value_at(call.args, path) is MISSING
    ]


class Call(Ruled):
    """A call to look for."""

    rules: ClassVar[tuple[Rule, ...]] = (CustomRule(_paths_without_value),)

    tool: Text
    args: Arguments = Key(None, aliases=("input",))
    output: Output = None
    args_match: ArgsMatch = "superset"
    max_duration_ms: Positive | None = None


class Step(Call):
    """A step of the expected path: one call, or any one of several."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *Call.rules,
        NeedsOne(("tool", "any_of"), "a step needs 'tool', or 'any_of' with several calls"),
        Excludes("tool", ("any_of",)),
        Excludes(
            "any_of",
            tuple(key for key in Call.model_fields if key != "tool"),
            "other keys belong to the calls inside 'any_of'",
        ),
    )

    tool: Text | None = None  # type: ignore[assignment]
    optional: Flag = False
    any_of: Annotated[list[Call], Field(min_length=1)] | None = None


def _above_maximum(spec: ToolTrajectoryEvaluator) -> Sequence[AnyValidationError]:
    if not spec.minimums:
        return ()
    found = []
    for tool, least in spec.minimums.items():
        most = spec.maximums.get(tool, least)
        if least > most:
            message = f"is {least}, above its maximum {most}"
            found.append(problem("conflicting-keys", message, at=("minimums", tool)))
    return found


def _ignored_and_forbidden(spec: ToolTrajectoryEvaluator) -> Sequence[AnyValidationError]:
    """An ignored tool cannot be forbidden as well."""
    if not spec.ignore or not spec.forbidden:
        return ()
    return [
        problem("conflicting-keys", f"{tool!r} is in 'ignore' too", at=("forbidden", index))
        for index, tool in enumerate(spec.forbidden)
        if tool in spec.ignore
    ]


class ToolTrajectoryEvaluator(EvaluatorSpec, Ruled):
    """Compares the calls the agent made with the calls it should have made."""

    version: ClassVar[int] = 2
    # An empty list of expected steps counts: in `exact` and `subset` it allows no call at all.
    rules: ClassVar[tuple[Rule, ...]] = (
        Asserts(
            ("expected", "minimums", "maximums", "forbidden"),
            "give 'expected', 'minimums', 'maximums' or 'forbidden'",
            even_empty=("expected",),
        ),
        CustomRule(_above_maximum),
        CustomRule(_ignored_and_forbidden),
    )

    reads: ClassVar[frozenset[Expectation]] = frozenset({"tool_calls"})
    allowed_in_requests: ClassVar[bool] = True
    type: str = "tool_trajectory"
    mode: Literal["any_order", "in_order", "exact", "superset", "subset"] = "in_order"
    expected: list[Step] = Empty(list)
    minimums: dict[str, Count] = Empty(dict)
    maximums: dict[str, Count] = Empty(dict)
    ignore: list[Text] = Empty(list)
    forbidden: list[Text] = Empty(list)

    def runs_in(self) -> CheckPlace:
        return "worker"

    @classmethod
    def of_calls(
        cls, calls: Sequence[ToolCall], *, required: bool = False
    ) -> ToolTrajectoryEvaluator:
        """The calls of expected messages in order; their inputs are data, never conditions."""
        steps = [{"tool": call.tool} | _literal_args(call) for call in calls]
        entry = {"type": "tool_trajectory", "mode": "in_order", "expected": steps}
        return cls.model_validate(entry | ({"required": True} if required else {}))

    def reads_of(self, expected: Expected) -> frozenset[Expectation]:
        """The expected calls of the case, if the steps name all their tools."""
        calls = [call for step in self.expected for call in (step.any_of or [step])]
        named = {call.tool for call in calls}
        return self.reads if all(call.tool in named for call in expected.calls) else NOTHING

    def cannot_fail(self) -> str:
        demanding = any(not step.optional for step in self.expected) or self.mode in (
            "exact",
            "subset",
        )
        if demanding or self.maximums or self.forbidden or any(self.minimums.values()):
            return ""
        return "it requires no call"

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        return failed_steps(self._trajectory(), seen.tool_calls)

    def _trajectory(self) -> Trajectory:
        return Trajectory(
            mode=self.mode,
            steps=tuple(map(_prepare_step, self.expected))
            if "expected" in self.model_fields_set
            else None,
            minimums=self.minimums,
            maximums=self.maximums,
            ignore=frozenset(self.ignore) if self.ignore else (),
            forbidden=frozenset(self.forbidden) if self.forbidden else (),
        )

    def prepare(self, resources: Resources) -> Check:
        trajectory = self._trajectory()

        def check(context: Context) -> EvaluationScore:
            calls = context.observation.tool_calls
            if calls is None:
                return _NO_TRACE
            try:
                return trajectory.judge(calls)
            except TimeoutError as error:
                return EvaluationScore.errored(str(error))

        return check


_NO_TRACE = EvaluationScore.errored(
    "no trace available: the target reports no tool calls (an empty list means that it made none)"
)


def _prepare_step(step: Step) -> ExpectedStep:
    if step.any_of is None:
        given = step.__pydantic_fields_set__
        # Faster than model_dump: the fields of a single call are plain data, and never changed.
        written = {key: value for key, value in step.__dict__.items() if key in given}
        options: tuple[Option, ...] = (_option(step),)
    else:
        written = step.model_dump(exclude_unset=True)
        options = tuple(map(_option, step.any_of))
    return ExpectedStep(options, step.optional, call_text(written), written)


def _option(call: Call) -> Option:
    return Option(
        call.tool,
        call.args,
        call.args_match,
        result_comparison(call.output),
        call.max_duration_ms,
        texts_only(call.args, call.args_match),
    )
