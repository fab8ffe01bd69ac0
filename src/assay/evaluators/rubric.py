"""`rubric`: criteria in words, checked one by one by a judge."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from assay.evaluators.judge import Judge, JudgeFault, Question, Spending, closed
from assay.evaluators.prompt import SHOWN, material_of
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec
from assay.model.expectations import Expectation
from assay.model.rubric import Rubric, Rubrics
from assay.model.score import TOLERANCE, EvaluationScore, reaches, weighted
from assay.ports import Check, Resources
from assay.redaction import cut
from assay.wire.fields import Text
from assay.wire.key_names import Key
from assay.wire.validation_errors import shown

#: A graded item is met from this share of its maximum, unless it sets `required_min_score`.
MET_FROM = 0.6
_SHOWN = 100


class RubricEvaluator(EvaluatorSpec):
    """One judge call decides all items; a required item that is not met fails the case."""

    reads: ClassVar[frozenset[Expectation]] = SHOWN
    allowed_in_requests: ClassVar[bool] = True
    version: ClassVar[int] = 2
    type: str = "rubric"
    rubrics: Rubrics = Key(aliases=("criteria",))
    model: Text | None = None
    target: Text | None = None

    def runs_in(self) -> CheckPlace:
        return "loop"

    def instructions(self) -> bytes:
        """Without the items: they belong to the case, like the question."""
        return self.settings_but({"name", "weight", "required", "rubrics"}) + TASK.encode()

    def judge_sees(self, context: Context) -> list[tuple[str, str]]:
        items = "\n".join(map(_described, self.rubrics))
        return [("rubric", items), *material_of(context).labelled()]

    def prepare(self, resources: Resources) -> Check:
        judge = Judge.find(resources, self.target, self.model)
        items = "\n".join(map(_described, self.rubrics))

        async def check(context: Context) -> EvaluationScore:
            form, material, spending = ChecksForm(self.rubrics), material_of(context), Spending()
            task = TASK.format(items=items, sections=material.sections())
            try:
                await judge.fill_in(Question(form, task, material, context.repeat), spending)
            except JudgeFault as fault:
                return judge.errored(fault, spending)
            return form.score(judge=judge.spent(spending))

        return check


TASK = """Check the agent's answer against each of these items. Evaluate each item independently. \
An item is satisfied only if the material shows that it is; if you are unsure, mark it as not \
satisfied.

{items}

{sections}"""


def is_graded(item: Rubric) -> bool:
    return bool(item.score_ranges) or item.max_score != 1


def _described(item: Rubric) -> str:
    """An item as the judge sees it."""
    scale = f"`score` from 0 to {item.max_score:g}" if is_graded(item) else "`satisfied`"
    lines = [f"- id {json.dumps(item.id, ensure_ascii=False)}, {scale}: {item.description}"]
    for step in item.score_ranges or ():
        low, high = step.score_range
        lines.append(f"  - {low}{f' to {high}' if high != low else ''}: {step.expected_outcome}")
    return "\n".join(lines)


class ChecksForm:
    """Asks for one check of each item, and again for those that a reply leaves out."""

    described = """{"checks": [{"id": "...", "reasoning": "...", "satisfied": true}, \
{"id": "...", "reasoning": "...", "score": 0}], "overall_reasoning": "..."}
Give one check for each requested item, with its id exactly as given. `satisfied` is true or \
false; items on a scale have `score` instead, a number on that scale. `reasoning` is one \
sentence."""

    def __init__(self, items: tuple[Rubric, ...]) -> None:
        self.items = items
        self.checks: dict[str, dict[str, Any]] = {}
        self.reasoning = ""

    @property
    def open(self) -> list[Rubric]:
        """The items that are not checked yet."""
        return [item for item in self.items if item.id not in self.checks]

    def schema(self) -> dict[str, Any]:
        binary = [item.id for item in self.open if not is_graded(item)]
        graded = [item.id for item in self.open if is_graded(item)]
        shapes = []
        if binary:
            shapes.append(_check_schema(binary, {"satisfied": {"type": "boolean"}}))
        if graded:
            shapes.append(_check_schema(graded, {"score": {"type": "number", "minimum": 0}}))
        checks = {"type": "array", "items": shapes[0] if len(shapes) == 1 else {"anyOf": shapes}}
        return closed({"checks": checks, "overall_reasoning": {"type": "string"}})

    def fault(self, reply: dict[str, Any]) -> str:
        checks = reply.get("checks")
        if not isinstance(checks, list):
            return "it has no list 'checks'" if checks is None else "its 'checks' is not a list"
        wanted = {item.id: item for item in self.open}
        seen: set[str] = set()
        for check in checks:
            if not isinstance(check, dict) or not isinstance(check.get("id"), str):
                return f"one of its checks is {shown(check)} without an 'id'"
            if check["id"] not in wanted:
                continue
            if check["id"] in seen:
                return f"the item {check['id']!r} is checked twice"
            seen.add(check["id"])
            if fault := _check_fault(wanted[check["id"]], check):
                return fault
        overall = reply.get("overall_reasoning")
        if overall is not None and not isinstance(overall, str):
            return f"its 'overall_reasoning' is {shown(overall)}, not a text"
        return ""

    def take(self, reply: dict[str, Any]) -> str:
        wanted = {item.id for item in self.open}
        self.checks |= {check["id"]: check for check in reply["checks"] if check["id"] in wanted}
        self.reasoning = self.reasoning or reply.get("overall_reasoning") or ""
        if not self.open:
            return ""
        left_out = ", ".join(repr(item.id) for item in self.open)
        return f"it has no check for {left_out}; reply with the checks of these items only"

    def score(self, **details: Any) -> EvaluationScore:
        """The weighted mean of the items; a required item that is not met is a failed gate."""
        hits: list[str] = []
        misses: list[str] = []
        unmet: list[str] = []
        checks: list[dict[str, Any]] = []
        points: list[tuple[float, float]] = []
        for item in self.items:
            result = _result(item, self.checks[item.id])
            checks.append(result)
            points.append((item.weight, result["score"] / item.max_score if item.max_score else 0))
            (hits if result["met"] else misses).append(_sentence(item, result))
            if item.required and not result["met"]:
                unmet.append(item.id)
        return EvaluationScore(
            weighted(points),
            verdict="fail" if unmet else None,
            hits=tuple(hits),
            misses=tuple(misses),
            reasoning=self.reasoning,
            details={"checks": checks, **details},
            failed_gate=_gate(unmet),
        )


def _check_schema(ids: list[str], verdict: dict[str, Any]) -> dict[str, Any]:
    return closed({"id": {"enum": ids}, "reasoning": {"type": "string"}} | verdict)


def _check_fault(item: Rubric, check: dict[str, Any]) -> str:
    if is_graded(item):
        score: Any = check.get("score")
        top = item.max_score
        if type(score) not in (int, float) or not -TOLERANCE <= score <= top + TOLERANCE:
            return f"the 'score' of {item.id!r} is {shown(score)}, not a number from 0 to {top:g}"
    elif fault := _binary_fault(item, check):
        return fault
    reasoning = check.get("reasoning")
    if reasoning is not None and not isinstance(reasoning, str):
        return f"the 'reasoning' of {item.id!r} is {shown(reasoning)}, not a text"
    return ""


def _binary_fault(item: Rubric, check: dict[str, Any]) -> str:
    """A judge may also answer a yes-or-no item with `score`, 0 or 1; not with both differently."""
    satisfied, score = check.get("satisfied"), check.get("score")
    if satisfied is not None or score is None:
        if type(satisfied) is not bool:
            return f"'satisfied' of {item.id!r} is {shown(satisfied)}, not true or false"
        if score is None or score == satisfied:
            return ""
        return f"'satisfied' and 'score' of {item.id!r} contradict each other"
    if type(score) in (int, float) and score in (0, 1):
        return ""
    return f"the 'score' of {item.id!r} is {shown(score)}, neither 0 nor 1"


def _result(item: Rubric, check: dict[str, Any]) -> dict[str, Any]:
    given = check.get("satisfied")
    score = float(check["score"] if is_graded(item) or given is None else given)
    score = min(item.max_score, max(0.0, score))
    least = item.required_min_score
    return {
        "id": item.id,
        "score": score,
        "maxScore": item.max_score,
        "met": reaches(score, MET_FROM * item.max_score if least is None else least),
        "required": item.required,
        "weight": item.weight,
        "reasoning": check.get("reasoning") or "",
    }


def _sentence(item: Rubric, result: dict[str, Any]) -> str:
    """An item, its score if it is graded, and the reason."""
    words = cut(" ".join(cut(item.description, 4 * _SHOWN).split()), _SHOWN)
    if is_graded(item):
        words += f", {result['score']:g} of {item.max_score:g}"
    reason = result["reasoning"] or ("met" if result["met"] else "not met")
    return f"{item.id} ({words}): {reason}"


def _gate(unmet: list[str]) -> str:
    if not unmet:
        return ""
    if len(unmet) == 1:
        return f"required item {unmet[0]!r} is not met"
    return f"required items {', '.join(map(repr, unmet))} are not met"
