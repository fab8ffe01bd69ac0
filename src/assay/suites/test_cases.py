"""The test cases of the store as a suite that can be run.

A run pins the versions that it asks: `store:` stands for all test cases as they are now, and
`store:` with a digest for a selection of versions that the store remembers. So a resumed run
asks what it began with, whoever edited or deleted a test case meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from assay import registry
from assay.errors import UsageError
from assay.model.case import EvalCase, Origin, Suite
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message
from assay.model.run import TEST_CASES
from assay.model.test_case import TestCase
from assay.ports import Store

NAME = "test cases"
#: What judges a test case when nobody says otherwise.
DEFAULT_EVALUATOR = "equals"
_DIGEST = 32


def is_reference(path: str) -> bool:
    """Does it name test cases of the store, and no file?"""
    return path.startswith(TEST_CASES)


def all_cases(store: Store, tag: str | None = None) -> list[TestCase]:
    """The test cases in their order, all or those with a part of a tag.

    They are read in one go: between two pages others may delete some, and more would be missing.
    """
    return store.test_cases.page(sys.maxsize, 0, tag).test_cases


def pinned(cases: Iterable[TestCase], store: Store) -> str:
    """The reference that stands for just these versions; the store remembers which they are."""
    pins = [[case.id, case.version] for case in cases]
    digest = sha256(msgspec.json.encode(pins)).hexdigest()[:_DIGEST]
    store.keep(_key(digest), {"test_cases": pins})
    return TEST_CASES + digest


def suite_of(reference: str, store: Store) -> tuple[Suite, str]:
    """The suite of a reference, and the reference with its versions pinned."""
    digest = reference.removeprefix(TEST_CASES)
    if digest:
        cases = _remembered(digest, store)
    else:
        cases = all_cases(store)
        reference = pinned(cases, store)
    if not cases:
        raise UsageError("the store has no test case: `assay import` or `assay serve` adds some")
    judge = registry.evaluators.get(DEFAULT_EVALUATOR).model_validate({"type": DEFAULT_EVALUATOR})
    judge = judge.model_copy(update={"name": DEFAULT_EVALUATOR})
    return Suite(NAME, TEST_CASES, [_case(case, judge) for case in cases]), reference


def _remembered(digest: str, store: Store) -> list[TestCase]:
    known = store.get(_key(digest))
    if known is None:
        message = f"the store knows no selection {digest!r} of test cases"
        raise UsageError(f"{message}: write '{TEST_CASES}' for all of them")
    pins = [(case_id, version) for case_id, version in known["test_cases"]]
    found = store.test_cases.find_versions(pins)
    for case_id, version in pins:  # only a store that was restored from a copy forgets one
        if (case_id, version) not in found:
            missing = f"there is no version {version} of the test case {case_id}"
            raise UsageError(f"the selection cannot be run: {missing}")
    return [found[pin] for pin in pins]


def _case(case: TestCase, judge: EvaluatorSpec) -> EvalCase:
    place = Origin(f"{TEST_CASES}{case.id}@{case.version}", 0, 0)

    def locate(steps: Sequence[str | int]) -> Origin:
        return place

    # The version is no metadata: targets are told that, and answers are kept by what they are told.
    return EvalCase(
        id=case.id,
        input_messages=(Message("user", case.input),),
        evaluators=(judge,),
        description=case.description or "",
        expected_messages=(Message("assistant", case.expected_output),),
        tags=case.tags,
        has_default_evaluators=True,
        locate=locate,
    )


def _key(digest: str) -> str:
    return f"test-cases:{digest}"
