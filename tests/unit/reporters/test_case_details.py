"""What a person reads of one case."""

from __future__ import annotations

from msgspec.structs import replace

from assay.reporters.case_details import MAX_LISTED, details_of
from unit.reporters.test_pair_words import view


def test_attempts_are_counted_beyond_those_that_are_listed() -> None:
    one = view("Yes", "failed")
    failed = replace(one.trials[0], outcome="failed")
    passed = replace(failed, outcome="passed")
    again = replace(passed, confirms=True)
    repeated = replace(one, trials=[*[failed] * MAX_LISTED, passed, again])
    found = details_of(repeated, "", "", None)
    assert len(found.attempts) == MAX_LISTED
    assert found.attempted == "1 of 201 passed; 1 of 1 re-ask passed"
    assert details_of(one, "", "", None).attempted == ""
