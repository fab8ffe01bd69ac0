"""Finds weak cases among those that load. Every finding is a warning."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from assay.model.case import EvalCase, EvalSuite, Origin
from assay.model.expect import NO_TOOL, ExpectBase
from assay.problems import Problem, Problems
from assay.suites.ledger import PREFIX
from assay.text import count

Finding = tuple[str, str, tuple[str | int, ...], str]  # slug, message, path in the case, hint


class Block(NamedTuple):
    """The `expect` block of a case, and its path in the case."""

    expect: ExpectBase
    path: tuple[str | int, ...]


class _FirstUse(NamedTuple):
    """The first case with a prompt. Not the case itself: its file may be larger than memory."""

    id: str
    origin: Origin


def find_weak_cases(suites: Iterable[EvalSuite]) -> list[Problem]:
    """All findings in all suites; prompts are compared across suites too."""
    problems: list[Problem] = []
    prompts: dict[bytes, _FirstUse] = {}
    for suite in suites:
        found = Problems(suite.file)
        for case in suite.cases:
            findings = [finding for rule in RULES for finding in rule(case, suite)]
            findings += _duplicate_prompt(case, prompts)
            for code, message, path, hint in findings:
                place = case.origin_of(path)
                text = f"{case.id}: {message}"
                found.append(Problem(*place, "warning", code, text, hint))
        problems += found.sorted()
    return problems


def _blocks(case: EvalCase) -> Iterator[Block]:
    for path, spec in case.walk_evaluators():
        if isinstance(spec, ExpectBase):
            yield Block(spec, path)


def _few_golden_values(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    for block in _blocks(case):
        values = len(set(block.expect.responseContains))
        if case.tier == "golden" and values < 2:
            hint = "add exact values that only the tool could have returned"
            found = f"checks {count(values, 'exact value')}"
            yield "few-golden-values", found, block.path, hint


def _echoed_prompt(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    """Only if all evaluators look for texts: others may reject a repeated question."""
    prompt = case.question.casefold()
    leaves = [(path, spec) for path, spec in case.walk_evaluators() if not spec.members]
    if leaves and all(_echoed(spec.texts_to_contain(), prompt) for _, spec in leaves):
        message = "every expected text is in the prompt: repeating the question would pass"
        yield "echoed-prompt", message, leaves[0][0], "expect what only an answer can contain"


def _echoed(texts: list[str], prompt: str) -> bool:
    return bool(texts) and all(text.casefold() in prompt for text in texts)


def _ambiguous_one_way(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    for block in _blocks(case):
        if case.difficulty == "ambiguous" and _get(block, "toolsAcceptable") is None:
            hint = "list the acceptable sets in toolsAcceptable"
            yield "ambiguous-one-way", "ambiguous, but without toolsAcceptable", block.path, hint


def _edge_no_negative(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    for block in _blocks(case):
        negative = block.expect.responseNotContains or block.expect.toolsNotCalled
        if case.difficulty == "edge" and not negative and not _limits_tools(block):
            hint = "add responseNotContains, toolsNotCalled or toolsAcceptable: [['__none__']]"
            yield "edge-no-negative", "an edge case that forbids nothing", block.path, hint


def _lonely_synonym(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    for block in _blocks(case):
        for index, group in enumerate(block.expect.responseContainsAny):
            if len(group) == 1:
                path = (*block.path, "responseContainsAny", index)
                hint = "add synonyms, or use responseContains"
                yield "lonely-synonym", f"the group has one member, {group[0]!r}", path, hint


def _passes_without_tool(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    """An edge case may want no tool; elsewhere, not expecting one is likely a mistake."""
    if case.tier not in ("golden", "labeled", "regression") or case.difficulty == "edge":
        return
    for block in _blocks(case):
        if block.expect.toolParams or block.expect.minToolCalls:
            continue
        message = "could pass although no tool was called"
        acceptable = _get(block, "toolsAcceptable")
        if acceptable is not None:
            free = [index for index, tools in enumerate(acceptable) if tools in ([], [NO_TOOL])]
            if free and len(free) < len(acceptable):
                path = (*block.path, "toolsAcceptable", free[0])
                hint = "remove the set without a tool, or make it an edge case"
                yield "passes-without-tool", message, path, hint
        elif _get(block, "toolsCalled") is None:
            hint = "add toolsCalled or toolsAcceptable; toolsCalled: [] expects no tool call"
            yield "passes-without-tool", message, block.path, hint


def _cannot_fail(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    if case.skip is not None:
        return
    if case.min_pass_rate == 0:
        yield "cannot-fail", "min_pass_rate is 0: no outcome fails it", ("min_pass_rate",), ""
    gates = any(spec.required for spec in case.evaluators)
    if case.threshold == 0 and not gates:
        yield "cannot-fail", "the threshold is 0: every score reaches it", ("threshold",), ""
    counted = [spec for spec in case.evaluators if spec.weight > 0 or spec.required]
    reasons = [spec.cannot_fail() for spec in counted]
    if reasons and all(reasons):
        yield "cannot-fail", f"no evaluator can fail: {reasons[0]}", ("evaluators",), ""


def _cannot_pass(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    weightless = case.evaluators and not any(spec.weight for spec in case.evaluators)
    if weightless and case.skip is None and case.threshold != 0:
        message = "every evaluator has the weight 0, so the score is always 0"
        yield "cannot-pass", message, ("evaluators",), "give one of them a weight"


def _tier_names(case: EvalCase, suite: EvalSuite) -> Iterator[Finding]:
    if case.tier in ("golden", "labeled", "regression"):
        tool = case.id.split("-", 1)[1].rpartition("-")[0]
        if tool.replace("_", "-") != suite.tool_name.replace("_", "-"):
            message = f"the id names the tool {tool!r}; the file is about {suite.tool_name!r}"
            yield "foreign-tool-id", message, ("id",), ""
    if case.tier == "regression" and not case.description.startswith(PREFIX.rstrip()):
        message = f"the description does not begin with {PREFIX.rstrip()!r}"
        yield "regression-description", message, ("description",), "describe the bug after it"


def _duplicate_prompt(case: EvalCase, prompts: dict[bytes, _FirstUse]) -> Iterator[Finding]:
    prompt = "\n".join(f"{m.role}:{m.text.strip().casefold()}" for m in case.input_messages)
    digest = hashlib.blake2b(prompt.encode(), digest_size=16).digest()
    other = prompts.get(digest)
    if other is None:
        prompts[digest] = _FirstUse(case.id, case.origin)
    else:
        message = f"has the same prompt as {other.id} ({other.origin})"
        place = ("input_messages",) if case.tier == "suite" else ("input", "message")
        yield "duplicate-prompt", message, place, "one of the two is enough"


def _get(block: Block, key: str) -> Any:
    return getattr(block.expect, key, None)


def _limits_tools(block: Block) -> bool:
    """Does the block define the right tools, or that none is?"""
    acceptable = _get(block, "toolsAcceptable")
    return acceptable is not None or _get(block, "toolsCalled") == []


RULES: tuple[Callable[[EvalCase, EvalSuite], Iterator[Finding]], ...] = (
    _few_golden_values,
    _echoed_prompt,
    _ambiguous_one_way,
    _edge_no_negative,
    _lonely_synonym,
    _passes_without_tool,
    _cannot_fail,
    _cannot_pass,
    _tier_names,
)
