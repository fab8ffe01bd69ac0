"""The fixture `assay`: asks an agent, and checks what it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.errors import AssayError, UnknownName
from assay.loaders import factories
from assay.loaders.python_cases import Case, calling_line
from assay.model.case import EvalCase
from assay.model.evaluator import EvaluatorSpec
from assay.model.observation import Observation
from assay.model.result import EvalCaseResult
from assay.registry import evaluators as registered
from assay.service import asking
from assay.service.evaluation import evaluate
from assay.service.runs import AnyTarget

#: What a test asks: a text, or messages as eval files write them.
Question = str | Sequence[Mapping[str, Any]]
#: Of these, a list means that each of its texts is checked.
_OF_EACH = ("contains", "icontains", "regex")


class AssayFixture:
    """Asks agents, and checks what they did. A miss does not end the test.

    def test_refund(assay):
        seen = assay.ask(my_agent, "Refund order A100")
        assay.check(seen, contains="42.50", tools=["lookup_order", "refund"])
    """

    def __init__(self) -> None:
        self._misses: list[str] = []
        #: What was asked, for judges; with the observation, so that its id stays its own.
        self._asked: dict[int, tuple[Observation, EvalCase]] = {}

    def ask(self, agent: AnyTarget, question: Question) -> Observation:
        """What the agent does: a function, a Target, or the name of a target."""
        __tracebackhide__ = True
        case = Case("ask", question)
        try:
            return self._remembered(asking.ask(agent, case), case)
        except AssayError as error:  # its cause has the frames of the agent; ours explain nothing
            raise error.with_traceback(None) from error.__cause__

    async def aask(self, agent: AnyTarget, question: Question) -> Observation:
        """`ask` in an async test, on its event loop."""
        __tracebackhide__ = True
        case = Case("ask", question)
        try:
            return self._remembered(await asking.aask(agent, case), case)
        except AssayError as error:
            raise error.with_traceback(None) from error.__cause__

    def check(self, seen: Any, *evaluators: EvaluatorSpec, **expected: Any) -> EvalCaseResult:
        """Grade what an agent did; all must pass.

        `seen` is what `ask` returned, or an answer that is known. A keyword is the type of an
        evaluator, with its first argument: `contains="42.50"`. `tools` lists calls to expect, in
        this order. All misses of a test are reported when it ends.
        """
        made = [*evaluators, *_made(expected)]
        required = [spec.model_copy(update={"required": True}) for spec in made]
        asked = self._asked.get(id(seen))
        question = [m.to_dict() for m in asked[1].input_messages] if asked else "(not known)"
        result = evaluate(Case("check", question, evaluators=required), seen)
        if not result.passed:
            line = calling_line()
            place = f"{line.file}:{line.line}"
            self._misses += [f"{place}: {reason}" for reason in _reasons(result)]
        return result

    def take_misses(self) -> list[str]:
        """The misses since the last call."""
        misses, self._misses = self._misses, []
        return misses

    def _remembered(self, seen: Observation, case: EvalCase) -> Observation:
        self._asked[id(seen)] = seen, case
        return seen


def _made(expected: Mapping[str, Any]) -> Iterator[EvaluatorSpec]:
    """The evaluators that keywords stand for."""
    for name, value in expected.items():
        if name == "tools":
            yield factories.tool_trajectory("in_order", value)
            continue
        if name not in registered or not hasattr(factories, name):
            raise UnknownName("evaluator", name, (*registered, "tools"))
        factory = getattr(factories, name)
        if name in _OF_EACH and isinstance(value, (list, tuple)):
            yield from map(factory, value)
        else:
            yield factory() if value is True else factory(value)


def _reasons(result: EvalCaseResult) -> Sequence[str]:
    """Why it did not pass: what its evaluators found, or else what the whole result says."""
    found = []
    for evaluator in result.evaluators:
        score = evaluator.score
        if score.verdict != "pass":
            texts = score.misses or (score.failed_gate or score.error or score.reasoning,)
            found += [f"{evaluator.type}: {text}" for text in texts if text]
    return found or result.failures
