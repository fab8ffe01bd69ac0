"""Conditions in expected values."""

from __future__ import annotations

from assay.model.arguments import CONDITIONS
from assay.model.predicates import Predicate


def test_the_names_of_conditions_are_those_that_files_may_use() -> None:
    assert set(Predicate.model_fields) == CONDITIONS
