"""Assay shows whether your AI agent got better or worse.

    import assay
    suites = assay.load("evals/")
    run = assay.run(suites, target=my_agent)
    assert run.passed, run.report()

Names are imported on first use: `import assay` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.version import __version__

if TYPE_CHECKING:
    from assay.errors import AssayError, EvalFileError, EvalFileErrors, TargetError
    from assay.evaluators.python import evaluator
    from assay.evaluators.rubric import RubricEvaluator
    from assay.loaders.factories import (
        code_judge,
        composite,
        contains,
        contains_all,
        contains_any,
        cost,
        ends_with,
        equals,
        execution_metrics,
        expect,
        field_accuracy,
        icontains,
        icontains_any,
        is_json,
        json_schema,
        latency,
        llm_judge,
        python,
        regex,
        rubric,
        similarity,
        starts_with,
        token_usage,
        tool_trajectory,
    )
    from assay.loaders.python_cases import Case, Cases
    from assay.model.case import EvalCase, Origin
    from assay.model.comparison import CaseRef, Comparison
    from assay.model.context import Context
    from assay.model.evaluator import EvaluatorSpec
    from assay.model.message import Message, ToolCall
    from assay.model.observation import Observation, Usage
    from assay.model.options import RunOptions
    from assay.model.preference import Preference
    from assay.model.result import EvalCaseResult
    from assay.model.score import EvaluationScore
    from assay.model.suite_result import EvalSuiteResult
    from assay.model.tiers import (
        GoldenEvalCase,
        LabeledEvalCase,
        RegressionEvalCase,
        RubricEvalCase,
    )
    from assay.ports import Executor, Loader, Reporter, Request, Resources, Store, Target
    from assay.problems import Problem
    from assay.service.eval_files import lint, load, validate
    from assay.service.evaluation import aevaluate, evaluate
    from assay.service.history import compare
    from assay.service.matrix import arun, run
    from assay.service.preferences import prefer
    from assay.service.result import Run
    from assay.service.run_group import RunGroup
    from assay.service.runs import regrade
    from assay.service.suite import Suite

__all__ = [
    "AssayError",
    "Case",
    "CaseRef",
    "Cases",
    "Comparison",
    "Context",
    "EvalCase",
    "EvalCaseResult",
    "EvalFileError",
    "EvalFileErrors",
    "EvalSuiteResult",
    "EvaluationScore",
    "EvaluatorSpec",
    "Executor",
    "GoldenEvalCase",
    "LabeledEvalCase",
    "Loader",
    "Message",
    "Observation",
    "Origin",
    "Preference",
    "Problem",
    "RegressionEvalCase",
    "Reporter",
    "Request",
    "Resources",
    "RubricEvalCase",
    "RubricEvaluator",
    "Run",
    "RunGroup",
    "RunOptions",
    "Store",
    "Suite",
    "Target",
    "TargetError",
    "ToolCall",
    "Usage",
    "__version__",
    "aevaluate",
    "arun",
    "code_judge",
    "compare",
    "composite",
    "contains",
    "contains_all",
    "contains_any",
    "cost",
    "ends_with",
    "equals",
    "evaluate",
    "evaluator",
    "execution_metrics",
    "expect",
    "field_accuracy",
    "icontains",
    "icontains_any",
    "is_json",
    "json_schema",
    "latency",
    "lint",
    "llm_judge",
    "load",
    "prefer",
    "python",
    "regex",
    "regrade",
    "rubric",
    "run",
    "similarity",
    "starts_with",
    "token_usage",
    "tool_trajectory",
    "validate",
]

_HOMES = {
    "assay.errors": ("AssayError", "EvalFileError", "EvalFileErrors", "TargetError"),
    "assay.evaluators.python": ("evaluator",),
    "assay.evaluators.rubric": ("RubricEvaluator",),
    "assay.model.case": ("EvalCase", "Origin"),
    "assay.model.comparison": ("CaseRef", "Comparison"),
    "assay.model.context": ("Context",),
    "assay.model.evaluator": ("EvaluatorSpec",),
    "assay.model.message": ("Message", "ToolCall"),
    "assay.model.observation": ("Observation", "Usage"),
    "assay.model.options": ("RunOptions",),
    "assay.model.preference": ("Preference",),
    "assay.model.result": ("EvalCaseResult",),
    "assay.model.score": ("EvaluationScore",),
    "assay.model.suite_result": ("EvalSuiteResult",),
    "assay.model.tiers": (
        "GoldenEvalCase",
        "LabeledEvalCase",
        "RegressionEvalCase",
        "RubricEvalCase",
    ),
    "assay.ports": ("Executor", "Loader", "Reporter", "Request", "Resources", "Store", "Target"),
    "assay.problems": ("Problem",),
    "assay.service.eval_files": ("lint", "load", "validate"),
    "assay.service.evaluation": ("aevaluate", "evaluate"),
    "assay.loaders.factories": (
        "code_judge",
        "composite",
        "contains",
        "contains_all",
        "contains_any",
        "cost",
        "ends_with",
        "equals",
        "execution_metrics",
        "expect",
        "field_accuracy",
        "icontains",
        "icontains_any",
        "is_json",
        "json_schema",
        "latency",
        "llm_judge",
        "python",
        "regex",
        "rubric",
        "similarity",
        "starts_with",
        "token_usage",
        "tool_trajectory",
    ),
    "assay.service.history": ("compare",),
    "assay.service.preferences": ("prefer",),
    "assay.loaders.python_cases": ("Case", "Cases"),
    "assay.service.result": ("Run",),
    "assay.service.matrix": ("arun", "run"),
    "assay.service.run_group": ("RunGroup",),
    "assay.service.runs": ("regrade",),
    "assay.service.suite": ("Suite",),
}


if not TYPE_CHECKING:  # a type checker would take any name for a known one

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        for module, names in _HOMES.items():
            if name in names:
                return getattr(import_module(module), name)
        raise AttributeError(f"module 'assay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
