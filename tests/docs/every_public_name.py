"""Uses every public name as users do: `make lint` checks it with mypy --strict.

The lines with `type: ignore` are mistakes; mypy reports a comment that hides none.
"""

from __future__ import annotations

from typing import Any

import assay


async def use(suite: assay.Suite, run: assay.Run, case: assay.EvalCase, store: assay.Store) -> None:
    """Every function, with options and keys; never called."""
    run = assay.run(suite, target=lambda question: question, repeat=3, tag="a", limit=5)
    run = await assay.arun([case], target="echo", workers=2, gate="strict", baseline=run)
    group: assay.RunGroup = assay.run(suite, target=["gpt", lambda question: question])
    group = await assay.arun(suite, target=["gpt", "claude"], baseline=group, repeat=2)
    best: list[str] = [target.target for target in group.comparison.best]
    run = group["gpt"] if best else group.runs[0]
    run = assay.regrade(run.id, strict=True)
    result: assay.EvalCaseResult = assay.evaluate(case, "hi")
    result = await assay.aevaluate(case, assay.Observation("hi", usage=assay.Usage(1, 2)))
    score: assay.EvaluationScore = result.scores[0]
    comparison: assay.Comparison = assay.compare(run, "latest")
    prefer: assay.Preference = assay.prefer(run, "latest", criteria="clarity", judge="echo")
    refs: tuple[assay.CaseRef, ...] = comparison.regressions
    results: tuple[assay.EvalSuiteResult, ...] = run.suites
    loaded: list[assay.Suite] = assay.load("evals/")
    problems: tuple[assay.Problem, ...] = assay.validate("evals/").problems
    problems = assay.lint("evals/").problems
    origin: assay.Origin = case.origin
    loaded[0].save("x.eval.yaml")
    made = [
        assay.Case("a", "Hi", expected_output="x", tags=["t"], evaluators=evaluators()),
        *assay.Cases("b", "{{x}}", expected_output="y", vars=[{"x": "1"}]),
    ]
    suite = assay.Suite("s", made, threshold=0.5)
    options = assay.RunOptions(repeat=3)
    text: str = assay.__version__
    print(score, prefer, refs, results, problems, origin, options, text, store)
    assay.run(suite, repaet=3)  # type: ignore[call-overload]
    assay.run(suite, repeat="3")  # type: ignore[call-overload]
    assay.run(suite, gate="strikt")  # type: ignore[call-overload]
    assay.Case("a", "Hi", tag=["x"])  # type: ignore[call-arg]
    assay.contains("x", negat=True)  # type: ignore[call-arg]
    assay.latency("1 s")  # type: ignore[arg-type]
    print(assay.no_such_name)  # type: ignore[attr-defined]


def evaluators() -> list[assay.EvaluatorSpec]:
    """Every built-in evaluator."""
    return [
        assay.code_judge(["python", "judge.py"], timeout_seconds=5),
        assay.composite([assay.contains("x")], aggregator={"type": "min"}),
        assay.contains("x", negate=True, weight=2),
        assay.contains_all(["x", "y"]),
        assay.contains_any(["x", "y"], name="any"),
        assay.cost(0.01),
        assay.ends_with("x"),
        assay.equals({"a": 1}),
        assay.execution_metrics(max_tool_calls=3),
        assay.expect(response_contains=["x"], tools_called=["t"]),
        assay.field_accuracy([{"path": "a", "match": "exact"}]),
        assay.icontains("x"),
        assay.icontains_any(["x"]),
        assay.is_json(),
        assay.json_schema({"type": "object"}),
        assay.latency(500, required=True),
        assay.llm_judge("Is it kind?", samples=3),
        assay.python("my_agent:is_polite", least=3),
        assay.regex("^x"),
        assay.rubric(["is polite"]),
        assay.similarity("x"),
        assay.starts_with("x"),
        assay.token_usage(max_total=100),
        assay.tool_trajectory("in_order", ["a", ("b", {"x": 1}), {"tool": "c"}]),
        assay.RubricEvaluator.model_validate({"rubrics": ["is polite"]}),
    ]


@assay.evaluator
def polite(context: assay.Context) -> bool:
    return "please" in context.response


class Parrot:
    """A target."""

    name = "parrot"

    async def ask(self, request: assay.Request) -> assay.Observation:
        message: assay.Message = request.messages[-1]
        if not message.text:
            raise assay.TargetError("nothing to repeat", retryable=True)
        return assay.Observation(message.text, (assay.ToolCall("repeat"),))

    async def close(self) -> None:
        pass


def ports(
    loader: assay.Loader,
    reporter: assay.Reporter,
    executor: assay.Executor,
    resources: assay.Resources,
) -> assay.Target:
    print(loader, reporter, executor, resources)
    return Parrot()


def errors(error: assay.AssayError) -> str:
    if isinstance(error, assay.EvalFileErrors):
        return str([each for each in error.exceptions if isinstance(each, assay.EvalFileError)])
    return error.slug


SHAPES: list[type[Any]] = [
    assay.GoldenEvalCase,
    assay.LabeledEvalCase,
    assay.RegressionEvalCase,
    assay.RubricEvalCase,
]
