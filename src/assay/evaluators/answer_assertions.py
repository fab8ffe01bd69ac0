"""The assertions of an `expect` block on the text of the answer."""

from __future__ import annotations

from typing import Any

from assay.evaluators.answers import SLOW_PATTERN, TOO_DEEP, not_json, other_case
from assay.evaluators.assertions import Assertion, Maker, Notes, search
from assay.evaluators.measures import Unjudged
from assay.model.expect import Expect
from assay.model.json_schema import answer_schema
from assay.model.observation import Observation
from assay.model.values import MISSING, parse_json, quoted


def _non_empty(key: str, wanted: bool, block: Expect) -> Assertion:
    def judge(seen: Observation, notes: Notes) -> str:
        if seen.response.strip():
            return ""
        return f"{key}: expected an answer, found {quoted(seen.response)}"

    return Assertion(f"{key}: there is an answer", judge)


def _contains(key: str, value: str, block: Expect) -> Assertion:
    def judge(seen: Observation, notes: Notes) -> str:
        text = seen.response
        if value in text:
            return ""
        return f"{key}: expected {quoted(value)}, found {quoted(text)}{other_case(text, value)}"

    return Assertion(f"{key}: {quoted(value)}", judge)


def _contains_any(key: str, group: list[str], block: Expect) -> Assertion:
    listed = " or ".join(quoted(value, 40) for value in group)

    def judge(seen: Observation, notes: Notes) -> str:
        text = seen.response
        if any(value in text for value in group):
            return ""
        hint = next(filter(None, (other_case(text, value) for value in group)), "")
        return f"{key}: expected {listed}, found {quoted(text)}{hint}"

    return Assertion(f"{key}: {listed}", judge)


def _not_contains(key: str, value: str, block: Expect) -> Assertion:
    def judge(seen: Observation, notes: Notes) -> str:
        if value not in seen.response:
            return ""
        return f"{key}: expected no {quoted(value)}, but it is in the answer"

    return Assertion(f"{key}: no {quoted(value)}", judge)


def _matches(key: str, pattern: str, block: Expect) -> Assertion:
    def judge(seen: Observation, notes: Notes) -> str:
        if search(pattern, seen.response):
            return ""
        return f"{key}: expected a match of {quoted(pattern)}, found {quoted(seen.response)}"

    return Assertion(f"{key}: {quoted(pattern)}", judge)


def _json_valid(key: str, wanted: bool, block: Expect) -> Assertion:
    def judge(seen: Observation, notes: Notes) -> str:
        return f"{key}: {not_json(seen.response)}" if parse_json(seen.response) is MISSING else ""

    return Assertion(f"{key}: the answer is JSON", judge)


def _json_schema(key: str, schema: dict[str, Any], block: Expect) -> Assertion:
    faults = answer_schema(schema).faults

    def judge(seen: Observation, notes: Notes) -> str:
        value = parse_json(seen.response)
        if value is MISSING:
            return f"{key}: {not_json(seen.response)}"
        try:
            found = faults(value)
        except TimeoutError:
            raise Unjudged(SLOW_PATTERN) from None
        except RecursionError:
            raise Unjudged(TOO_DEEP) from None
        return f"{key}: the answer does not match the schema: {'; '.join(found)}" if found else ""

    return Assertion(f"{key}: the answer matches the schema", judge)


ON_ANSWERS: dict[str, Maker] = {
    "responseNonEmpty": _non_empty,
    "responseContains": _contains,
    "responseContainsAny": _contains_any,
    "responseNotContains": _not_contains,
    "responseMatches": _matches,
    "jsonValid": _json_valid,
    "jsonSchema": _json_schema,
}
