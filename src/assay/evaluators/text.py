"""`equals`, `contains` and their family: checks of the answer's text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from assay.evaluators.answers import (
    NO_EXPECTED_OUTPUT,
    TextCheck,
    equal,
    equality,
    expected_output,
    inverted,
    other_case,
    share,
    single,
)
from assay.evaluators.edit_distance import MAX_COMPARED, similarity
from assay.model.context import Context
from assay.model.evaluator import CheckPlace, NegatableSpec
from assay.model.expect import Regex
from assay.model.expectations import NOTHING, Expectation, Expected
from assay.model.numbers import rounded
from assay.model.observation import Observation
from assay.model.score import PASS_FROM, EvaluationScore, reaches
from assay.model.tokens import as_text
from assay.model.values import MISSING, quoted
from assay.patterns import compile_pattern, literal
from assay.wire.fields import Json, Text
from assay.wire.rules import Excludes, NeedsOne, Rule, Ruled
from assay.wire.validation_errors import problem, shown

if TYPE_CHECKING:
    from assay.ports import Check, Resources


def _listed(raw: Any) -> Any:
    if isinstance(raw, (str, list)):
        return [raw] if isinstance(raw, str) else raw
    raise problem(
        "wrong-type", f"is {shown(raw)}, neither text nor a list of texts", "put it in quotes"
    )


_NOT_BOTH = Excludes("value", ("values",))


class _TextSpec(NegatableSpec, Ruled):
    """`value` is one text, `values` is a list; each is one check."""

    reads: ClassVar[frozenset[Expectation]] = NOTHING
    rules: ClassVar[tuple[Rule, ...]] = (
        NeedsOne(("value", "values"), "'value' is missing, or 'values' for a list"),
        _NOT_BOTH,
    )

    value: Text | None = None
    values: Annotated[list[Text], Field(min_length=1)] | None = None

    def runs_in(self) -> CheckPlace:
        return "loop"

    @property
    def wanted(self) -> list[str]:
        """The texts to look for, from `value` or `values`."""
        return self.values if self.values is not None else [self.value or ""]

    #: What a right answer does, for messages: "contain", "contains".
    verb: ClassVar[tuple[str, str]]
    #: Follows the value in messages.
    remark: ClassVar[str] = ""
    #: The same as a regular expression, with `%s` for the value.
    pattern: ClassVar[str] = "%s"

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        if self.negate:
            return {}
        return {"responseMatches": [self.pattern % literal(value) for value in self.wanted]}

    @abstractmethod
    def finder(self, value: str) -> Callable[[str], bool]:
        """A test of an answer for one value, regardless of `negate`."""

    def hint(self, text: str, value: str) -> str:
        """A hint for the author if an answer fails the test for a value."""
        return other_case(text, value)

    def prepare(self, resources: Resources) -> Check:
        if self.values is None:
            return single(self.text_check(self.value or ""))
        return share([self.text_check(value) for value in self.values])

    def text_check(self, value: str) -> TextCheck:
        """The check for one value."""
        do, shown_value = self.verb[0], quoted(value) + self.remark
        if self.negate:
            miss = f"expected the answer not to {do} {shown_value}, but it does"
            return TextCheck(self.holder(value), self.hit(shown_value), lambda text: miss)
        return TextCheck(
            self.holder(value),
            self.hit(shown_value),
            lambda text: (
                f"expected the answer to {do} {shown_value}, found {quoted(text)}"
                f"{self.hint(text, value)}"
            ),
        )

    def holder(self, value: str) -> Callable[[str], bool]:
        """A test whether the check for one value holds."""
        finds = self.finder(value)
        return (lambda text: not finds(text)) if self.negate else finds

    def hit(self, shown_value: str) -> str:
        """The message if the check holds."""
        do, does = self.verb
        verb = f"does not {do}" if self.negate else does
        return f"{verb} {shown_value}"


class ContainsEvaluator(_TextSpec):
    """The answer contains the text, case-sensitive."""

    verb = "contain", "contains"
    allowed_in_requests: ClassVar[bool] = True
    type: str = "contains"

    def texts_to_contain(self) -> list[str]:
        return [] if self.negate else self.wanted

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        return {"responseNotContains" if self.negate else "responseContains": self.wanted}

    def finder(self, value: str) -> Callable[[str], bool]:
        return lambda text: value in text


class IContainsEvaluator(_TextSpec):
    """The answer contains the text, ignoring case."""

    verb = "contain", "contains"
    remark = " (ignoring case)"
    pattern = "(?i)%s"
    allowed_in_requests: ClassVar[bool] = True
    type: str = "icontains"

    def texts_to_contain(self) -> list[str]:
        return [] if self.negate else self.wanted

    def finder(self, value: str) -> Callable[[str], bool]:
        folded = value.casefold()
        return lambda text: folded in text.casefold()


class StartsWithEvaluator(_TextSpec):
    """The answer starts with the text."""

    verb = "start with", "starts with"
    pattern = "^%s"
    allowed_in_requests: ClassVar[bool] = True
    type: str = "starts_with"

    def finder(self, value: str) -> Callable[[str], bool]:
        return lambda text: text.startswith(value)

    def hint(self, text: str, value: str) -> str:
        if text.lstrip().startswith(value):
            return "; it does if leading whitespace is ignored"
        return other_case(text[: 2 * len(value)], value)


class EndsWithEvaluator(_TextSpec):
    """The answer ends with the text."""

    verb = "end with", "ends with"
    pattern = "%s$"
    allowed_in_requests: ClassVar[bool] = True
    type: str = "ends_with"

    def finder(self, value: str) -> Callable[[str], bool]:
        return lambda text: text.endswith(value)

    def hint(self, text: str, value: str) -> str:
        if text.rstrip().endswith(value):
            return "; it does if trailing whitespace is ignored"
        return other_case(text[-2 * len(value) :], value)


class RegexEvaluator(_TextSpec):
    """The regular expression is found in the answer."""

    allowed_in_requests: ClassVar[bool] = True
    type: str = "regex"
    value: Regex | None = None
    values: Annotated[list[Annotated[Regex, Field(min_length=1)]], Field(min_length=1)] | None = (
        None
    )

    def cannot_fail(self) -> str:
        probes = ("", "x", "0 \n~")
        if not self.negate and all(_finds(p, probes) for p in self.wanted):
            return "the regular expression is found in every text"
        return ""

    def runs_in(self) -> CheckPlace:
        return "loop" if all(compile_pattern(p).linear for p in self.wanted) else "worker"

    verb = "match", "matches"

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        return {} if self.negate else {"responseMatches": self.wanted}

    def finder(self, value: str) -> Callable[[str], bool]:
        return compile_pattern(value).search

    def hint(self, text: str, value: str) -> str:
        return ""


def _finds(pattern: str, texts: tuple[str, ...]) -> bool:
    return all(compile_pattern(pattern).search(text) for text in texts)


class _ManySpec(NegatableSpec):
    reads: ClassVar[frozenset[Expectation]] = NOTHING
    values: Annotated[
        list[Text],
        Field(min_length=1, json_schema_extra={"aliases": ("value",)}),
        BeforeValidator(
            _listed, json_schema_input_type=Text | Annotated[list[Text], Field(min_length=1)]
        ),
    ]

    def runs_in(self) -> CheckPlace:
        return "loop"

    def texts_to_contain(self) -> list[str]:
        return [] if self.negate else self.values


class ContainsAnyEvaluator(_ManySpec):
    """The answer contains at least one of the texts."""

    allowed_in_requests: ClassVar[bool] = True
    type: str = "contains_any"

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        if self.negate:
            return {"responseNotContains": self.values}
        return {"responseContainsAny": [self.values]}

    def prepare(self, resources: Resources) -> Check:
        values, listed = tuple(self.values), _listing(self.values)

        def holds(text: str) -> bool:
            return any(value in text for value in values)

        def miss(text: str) -> str:
            hints = filter(None, (other_case(text, value) for value in values))
            found = quoted(text) + next(hints, "")
            return f"expected the answer to contain one of {listed}, found {found}"

        check = TextCheck(holds, f"contains one of {listed}", miss)
        if self.negate:
            found = f"expected the answer to contain none of {listed}, but it does"
            check = inverted(check, f"contains none of {listed}", found)
        return single(check)


class IContainsAnyEvaluator(_ManySpec):
    """The answer contains at least one of the texts, ignoring case."""

    allowed_in_requests: ClassVar[bool] = True
    type: str = "icontains_any"

    def prepare(self, resources: Resources) -> Check:
        listed = f"{_listing(self.values)} (ignoring case)"
        folded = [value.casefold() for value in self.values]

        def holds(text: str) -> bool:
            answer = text.casefold()
            return any(value in answer for value in folded)

        def miss(text: str) -> str:
            return f"expected the answer to contain one of {listed}, found {quoted(text)}"

        check = TextCheck(holds, f"contains one of {listed}", miss)
        if self.negate:
            found = f"expected the answer to contain none of {listed}, but it does"
            check = inverted(check, f"contains none of {listed}", found)
        return single(check)


class ContainsAllEvaluator(_ManySpec):
    """The answer contains all of the texts."""

    allowed_in_requests: ClassVar[bool] = True
    type: str = "contains_all"

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        return {} if self.negate else {"responseContains": self.values}

    def prepare(self, resources: Resources) -> Check:
        values, listed = tuple(self.values), _listing(self.values)

        def holds(text: str) -> bool:
            return all(value in text for value in values)

        def miss(text: str) -> str:
            missing = [value for value in values if value not in text]
            hint = next(filter(None, (other_case(text, value) for value in missing)), "")
            return f"expected the answer to contain {_listing(missing)}, found {quoted(text)}{hint}"

        check = TextCheck(holds, f"contains all of {listed}", miss)
        if self.negate:
            found = f"expected the answer not to contain all of {listed}, but it does"
            check = inverted(check, f"does not contain all of {listed}", found)
        return single(check)


def _listing(values: Sequence[str]) -> str:
    shown_values = [quoted(value, 40) for value in values[:10]]
    return ", ".join(shown_values) + (", ..." if len(values) > 10 else "")


class _ComparingSpec(NegatableSpec, Ruled):
    """Compares with its value, or with the expected output when none is given."""

    rules: ClassVar[tuple[Rule, ...]] = (_NOT_BOTH,)
    compares_with_expected: ClassVar[bool] = True
    reads: ClassVar[frozenset[Expectation]] = frozenset({"expected_output"})

    def reads_of(self, expected: Expected) -> frozenset[Expectation]:
        return NOTHING if self.is_given("value") or self.is_given("values") else self.reads


class EqualsEvaluator(_ComparingSpec):
    """The answer equals the value, or the case's expected output when none is given."""

    allowed_in_requests: ClassVar[bool] = True
    type: str = "equals"
    value: Json = None
    values: Annotated[list[Json], Field(min_length=1)] | None = None

    def runs_in(self) -> CheckPlace:
        return "loop"

    def as_expect(self, expected: Expected, seen: Observation) -> dict[str, Any]:
        """Only for text: JSON may occur anywhere in an answer, which no key can express."""
        wanted = self.value if self.is_given("value") else expected.output
        if self.negate or self.values is not None or not isinstance(wanted, str):
            return {}
        return {"responseMatches": [rf"^\s*{literal(wanted.strip())}\s*$"]}

    def prepare(self, resources: Resources) -> Check:
        if self.values is not None:
            return share([equality(value, self.negate) for value in self.values])
        if self.is_given("value"):
            return single(equality(self.value, self.negate))
        negate = self.negate
        passed = EvaluationScore(1.0, hits=(_EQUALITY[negate],))

        def judge(context: Context) -> EvaluationScore:
            wanted = expected_output(context)
            if wanted is MISSING:
                return EvaluationScore.errored(NO_EXPECTED_OUTPUT)
            text = context.observation.response
            if equal(text, wanted) is not negate:
                return passed
            return EvaluationScore(0.0, misses=(equality(wanted, negate).miss(text),))

        return judge


_EQUALITY = {False: "equals the expected output", True: "does not equal the expected output"}


class SimilarityEvaluator(_ComparingSpec):
    """Similarity by edit distance to the value, or to the expected output when none is given."""

    allowed_in_requests: ClassVar[bool] = True
    type: str = "similarity"
    value: Text | None = None
    values: Annotated[list[Text], Field(min_length=1)] | None = None

    def runs_in(self) -> CheckPlace:
        return "worker"

    def evaluate(self, context: Context) -> EvaluationScore:
        wanted = self.values or ([] if self.value is None else [self.value])
        if not wanted:
            expected = expected_output(context)
            if expected is MISSING:
                return EvaluationScore.errored(NO_EXPECTED_OUTPUT)
            wanted = [as_text(expected)]
        answer = context.observation.response.strip()
        found = [similarity(answer, value.strip()) for value in wanted]
        scores = [1 - near if self.negate else near for near in found]
        messages = [
            f"similarity {rounded(near, PASS_FROM, 3)} to {quoted(v)}"
            for near, v in zip(found, wanted, strict=True)
        ]
        pairs = list(zip(scores, messages, strict=True))
        details: dict[str, Any] = {"similarity": [round(near, 6) for near in found]}
        if max(len(answer), *map(len, wanted)) > MAX_COMPARED:
            details["comparedCharacters"] = MAX_COMPARED
        return EvaluationScore(
            sum(scores) / len(scores),
            hits=tuple(text for score, text in pairs if reaches(score, PASS_FROM)),
            misses=tuple(text for score, text in pairs if not reaches(score, PASS_FROM)),
            details=details,
        )
