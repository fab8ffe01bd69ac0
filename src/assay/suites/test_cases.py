"""Test cases of the store as a suite that can be run.

A run pins their versions: `store:` means all test cases in their current versions, `store:` with a
digest a selection of versions that is kept in the store. So a resumed run asks the same test
cases, even if some were edited or deleted since.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from assay import registry
from assay.errors import UsageError
from assay.model.case import EvalCase, EvalSuite, Origin
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import Message
from assay.model.run import TEST_CASES
from assay.model.test_case import TestCase
from assay.ports import Store

NAME = "test cases"
#: The evaluator of test cases unless another one is given.
DEFAULT_EVALUATOR = "equals"
_DIGEST_LENGTH = 32


def is_reference(path: str) -> bool:
    """Does it refer to test cases of the store rather than to a file?"""
    return path.startswith(TEST_CASES)


def all_cases(store: Store, tag: str | None = None) -> list[TestCase]:
    """The test cases in their order: all, or those with a tag that contains `tag`.

    They are read as one page: if some were deleted between two pages, others would be skipped.
    """
    return store.test_cases.page(sys.maxsize, 0, tag).test_cases


def pinned(cases: Iterable[TestCase], store: Store) -> str:
    """A reference to exactly these versions, which are kept in the store."""
    pins = [[case.id, case.version] for case in cases]
    digest = sha256(msgspec.json.encode(pins)).hexdigest()[:_DIGEST_LENGTH]
    store.keep(_store_key(digest), {"test_cases": pins})
    return TEST_CASES + digest


def suite_of(reference: str, store: Store) -> tuple[EvalSuite, str]:
    """The suite of a reference, and a reference that pins its versions."""
    digest = reference.removeprefix(TEST_CASES)
    if digest:
        cases = _selected(digest, store)
    else:
        cases = all_cases(store)
        reference = pinned(cases, store)
    if not cases:
        raise UsageError("the store has no test case: `assay import` or `assay serve` adds some")
    judge = registry.evaluators.get(DEFAULT_EVALUATOR).model_validate({"type": DEFAULT_EVALUATOR})
    judge = judge.model_copy(update={"name": DEFAULT_EVALUATOR})
    return EvalSuite(NAME, [_case(case, judge) for case in cases], TEST_CASES), reference


def _selected(digest: str, store: Store) -> list[TestCase]:
    known = store.get(_store_key(digest))
    if known is None:
        message = f"the store has no selection {digest!r} of test cases"
        raise UsageError(f"{message}: write '{TEST_CASES}' for all of them")
    pins = [(case_id, version) for case_id, version in known["test_cases"]]
    found = store.test_cases.find_versions(pins)
    for case_id, version in pins:  # one is missing only if the store was restored from a backup
        if (case_id, version) not in found:
            missing = f"there is no version {version} of the test case {case_id}"
            raise UsageError(f"the selection cannot be run: {missing}")
    return [found[pin] for pin in pins]


def _case(case: TestCase, judge: EvaluatorSpec) -> EvalCase:
    place = Origin(f"{TEST_CASES}{case.id}@{case.version}", 0, 0)

    def locate(steps: Sequence[str | int]) -> Origin:
        return place

    # The version is not metadata: targets see that, and it would be part of the cache key.
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


def _store_key(digest: str) -> str:
    return f"test-cases:{digest}"
