"""`rubric`: criteria in words, checked one by one by a judge."""

from __future__ import annotations

from assay.model.evaluator import EvaluatorSpec
from assay.model.rubric import Rubrics
from assay.model.shape import Text


class RubricEvaluator(EvaluatorSpec):
    """One judge call decides all items; a required item that is not met fails the case."""

    type: str = "rubric"
    rubrics: Rubrics
    model: Text | None = None
    target: Text | None = None
