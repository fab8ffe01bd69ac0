"""`expect`: the assertions of the tier files, usable in any list of evaluators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from msgspec.structs import replace

from assay.evaluators.answer_assertions import ON_ANSWERS
from assay.evaluators.assertions import ON_LIMITS, Assertion, Maker, Notes
from assay.evaluators.measures import Unjudged
from assay.evaluators.tool_assertions import ON_TOOLS
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, EvaluatorSpec, Required
from assay.model.expect import ASSERTED, Expect
from assay.model.expectations import NOTHING, Expectation, Expected
from assay.model.observation import Observation
from assay.model.score import EvaluationScore, checks
from assay.ports import Check, Resources
from assay.wire.rules import Rule


class ExpectEvaluator(Expect, EvaluatorSpec):
    """Runs all assertions; the score is the share that hold, and a failed one fails the case."""

    rules: ClassVar[tuple[Rule, ...]] = (*Expect.rules, ASSERTED)
    depends_on_case: ClassVar[bool] = True
    reads: ClassVar[frozenset[Expectation]] = NOTHING
    allowed_in_requests: ClassVar[bool] = True
    type: str = "expect"
    required: Required = True

    def cannot_fail(self) -> str:
        vacuous = {"minLength": self.minLength, "minToolCalls": self.minToolCalls}
        if all(key in vacuous and vacuous[key] == 0 for key in self.asserted()):
            return "a minimum of 0 always holds"
        return ""

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        """The whole block, including what this answer gets right."""
        keys = {*self.asserted(), "toolsCalledMode"} & Expect.model_fields.keys()
        return self.model_dump(mode="json", include=keys, exclude_defaults=True)

    def runs_in(self) -> CheckPlace:
        return "worker" if not _MAY_TAKE_LONG.isdisjoint(self.asserted()) else "loop"

    def prepare(self, resources: Resources) -> Check:
        block, skipped, dropped = self.resolve(resources.sources)
        lists = {"skipped": skipped, "dropped": dropped}
        details: dict[str, Any] = {key: entries for key, entries in lists.items() if entries}
        assertions = list(_assertions(block))
        if not assertions:
            nothing = EvaluationScore(
                skipped="nothing verified", details=details, skipped_assertions=tuple(skipped)
            )
            return lambda context: nothing
        return _judging(assertions, details, tuple(skipped))


#: The keys with patterns and schemas.
_MAY_TAKE_LONG = frozenset({"responseMatches", "toolParams", "jsonSchema"})
_MAKERS: dict[str, Maker] = ON_TOOLS | ON_ANSWERS | ON_LIMITS
#: The keys of which each item is an assertion of its own.
_LISTS = {
    "toolsNotCalled",
    "toolParams",
    "responseContains",
    "responseContainsAny",
    "responseNotContains",
    "responseMatches",
}


def _assertions(block: Expect) -> Iterator[Assertion]:
    for key in block.asserted():
        value = getattr(block, key)
        for item in value if key in _LISTS else [value]:
            yield _MAKERS[key](key, item, block)


def _judging(
    assertions: list[Assertion], details: dict[str, Any], skipped: tuple[str, ...]
) -> Check:
    hits = [assertion.hit for assertion in assertions]
    passed = checks(hits, [], details=details, skipped_assertions=skipped)

    def judge(context: Context) -> EvaluationScore:
        seen = context.observation
        notes: Notes = {}
        misses: dict[int, str] = {}
        unjudged: dict[int, str] = {}
        for index, (_, holds) in enumerate(assertions):
            try:
                if miss := holds(seen, notes):
                    misses[index] = miss
            except Unjudged as reason:
                unjudged[index] = str(reason)
        if not misses and not unjudged and not notes:
            return passed
        summary = _summary(assertions, misses, unjudged, {**details, **notes})
        return replace(summary, skipped_assertions=skipped)

    return judge


def _summary(
    assertions: list[Assertion],
    misses: dict[int, str],
    unjudged: dict[int, str],
    details: dict[str, Any],
) -> EvaluationScore:
    """A failed assertion fails the block; otherwise one that could not be judged is an error."""
    if unjudged:
        reasons = [f"{assertions[index].hit}: {why}" for index, why in unjudged.items()]
        details = {**details, "unjudged": reasons}
        if not misses:
            return EvaluationScore.errored("; ".join(dict.fromkeys(unjudged.values())), **details)
    unmet = misses.keys() | unjudged.keys()
    hits = [assertion.hit for index, assertion in enumerate(assertions) if index not in unmet]
    verdict = "fail" if misses else None
    return checks(hits, misses.values(), verdict=verdict, details=details)
