"""Runs in memory: a few lines make a RunResult with suites, cases and a comparison."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from assay.comparison.gate import loss_of
from assay.model.comparison import AcceptedCase, CaseOutcome, CaseRef, Comparison, Reasks
from assay.model.result import Outcome
from assay.model.run import RunRecord, SuiteMetadata, TrialRecord
from assay.model.run_result import RunResult
from assay.model.suite_result import EvalSuiteResult, Summary
from assay.ports import Reporter
from assay.registry import reporters

RUN_ID = "01938c4e-0000-7000-8000-000000000001"
BEGAN, ENDED = "2026-01-31T12:00:00Z", "2026-01-31T12:00:08.500Z"


_EVALUATOR: dict[str, Any] = {"weight": 1.0, "score": None, "verdict": None}
_EVALUATOR |= {"hits": [], "misses": []}
_TRIAL: dict[str, Any] = {"score": None, "durationMs": 1.0}
_LISTS = (
    *("staleness_warnings", "regressions", "new_passes", "added", "removed"),
    *("not_comparable", "unjudged"),
)


def entry(id: str, outcome: Outcome = "passed", *failures: str, **details: Any) -> dict[str, Any]:  # noqa: A002
    """A case as a result file has it; `line`, `description` and `durationMs` may be given."""
    file, line = details.pop("file", "evals/weather.eval.yaml"), details.pop("line", 0)
    score = {"passed": 1.0, "failed": 0.0}.get(outcome)
    result: dict[str, Any] = {
        "id": id,
        "description": details.pop("description", ""),
        "passed": outcome == "passed",
        "durationMs": details.pop("durationMs", 250.0),
    }
    if failures:
        result["error"] = "; ".join(failures)
    known: dict[str, Any] = {"outcome": outcome, "score": score, "verdict": None}
    known |= {"evaluators": [], "failures": list(failures), "trials": [], "response": ""}
    known["evaluators"] = [_EVALUATOR | e for e in details.pop("evaluators", ())]
    known["trials"] = [_TRIAL | {"repeat": n} | t for n, t in enumerate(details.pop("trials", ()))]
    if line:
        known["source"] = f"{file}:{line}"
    return result | {"details": known | details}


def trajectory(*steps: dict[str, Any], name: str = "tool_trajectory") -> dict[str, Any]:
    """An evaluator of a case whose trajectory has this diff."""
    details = {"diff": list(steps)}
    return {"name": name, "type": "tool_trajectory", "score": 0.5, "details": details}


def summary(entries: Iterable[dict[str, Any]], **more: Any) -> Summary:
    """The counts of these cases."""
    counts = dict.fromkeys(("passed", "failed", "errored", "skipped"), 0)
    spent = 0.0
    for case in entries:
        counts[case["details"]["outcome"]] += 1
        spent += case["durationMs"]
    total = sum(counts.values())
    planned, judged = total - counts["skipped"], counts["passed"] + counts["failed"]
    coverage = judged / planned if planned else None
    known = {"total_cases": total, "total_duration_ms": spent, "coverage": coverage}
    known["skipped_assertions"] = 0
    return Summary(**{**known, **counts, **more})


def suite(*entries: dict[str, Any], name: str = "weather", **more: Any) -> EvalSuiteResult:
    """A suite with these cases; its fields may be given."""

    file = more.get("file", f"evals/{name}.eval.yaml")

    def encoded() -> Iterator[bytes]:
        return map(msgspec.json.encode, entries)

    def records() -> Iterator[tuple[bytes, list[TrialRecord]]]:
        for place, one in enumerate(entries):
            yield msgspec.json.encode(one), list(trials_of(one, file, place))

    fields: dict[str, Any] = {
        "run_id": RUN_ID,
        "timestamp": BEGAN,
        "name": name,
        "file": f"evals/{name}.eval.yaml",
        "tier": "suite",
        "tool_name": name,
        "metadata": SuiteMetadata("", "", 0, ""),
        "entries": encoded,
        "records": records,
        "summary": summary(entries),
        "target": "echo",
        "options": {},
        "environment": {},
        "statistics": {},
        **dict.fromkeys(_LISTS, ()),
    }
    return EvalSuiteResult(**fields | more)


def trials_of(one: dict[str, Any], file: str, position: int) -> Iterator[TrialRecord]:
    """The trials of a case: those in its details, or else a single one."""
    details = dict(one["details"])
    answer, asked = details.pop("response"), details.pop("input", [])
    calls = details.pop("calls", None)
    tags, trials = details.pop("tags", []), details["trials"]
    given = trials or [{"repeat": 0, "outcome": details["outcome"], "score": details["score"]}]
    observation = msgspec.json.encode({"response": answer, "toolCalls": calls})
    content = msgspec.json.encode({"input": asked, "tags": tags})
    result = msgspec.json.encode(one | {"details": details})
    for trial in given:
        yield TrialRecord(
            RUN_ID,
            position,
            trial["repeat"],
            file,
            one["id"],
            trial["outcome"],
            trial["score"],
            one["durationMs"],
            details.get("costUsd"),
            None,
            "",
            False,
            None,
            1.0,
            0,
            trial.get("confirms", False),
            True,
            result,
            observation,
            content,
        )


def run(*suites: EvalSuiteResult, comparison: Comparison | None = None, **more: Any) -> RunResult:
    """A run with these suites; it failed when a case did."""
    record = RunRecord(RUN_ID, BEGAN, "finished", "echo", finished_at=ENDED)
    total = together([suite.summary for suite in suites])
    exit_code = 1 if total.failed else 3 if total.errored else 0
    fields: dict[str, Any] = {"summary": total, "exit_code": exit_code, "comparison": comparison}
    return RunResult(record, suites, **fields | more)


def together(summaries: Iterable[Summary]) -> Summary:
    """The sum of some summaries."""
    totals: dict[str, Any] = dict.fromkeys(Summary.__struct_fields__[:7], 0)
    for one in summaries:
        for name in Summary.__struct_fields__:
            value = getattr(one, name)
            if value is not None:
                totals[name] = totals.get(name, 0) + value
    whole = Summary(**totals | {"coverage": None})
    coverage = whole.judged / whole.planned if whole.planned else None
    return msgspec.structs.replace(whole, coverage=coverage)


def written(name: str, run: RunResult) -> str:
    """What the reporter of this name writes."""
    reporter: Reporter = reporters.get(name)
    out = io.StringIO()
    reporter.write(run, out)
    return out.getvalue()


#: A city that is right, two that are not, one that could not be asked, one that was left out.
LISBON = entry("lisbon", line=3, description="The temperature of today", durationMs=1200.0)
PORTO = entry(
    "porto",
    "failed",
    "contains: expected the answer to contain '23.5', found 'It is warm'",
    'tool_trajectory: get_weather(city="Porto") was called with different arguments: '
    'city = "Oporto"',
    "the score 0.25 is below the threshold 0.8",
    line=9,
    description="A city with two names",
    score=0.25,
    verdict="fail",
    response="It is warm",
    toolsCalled=["get_weather", "get_time"],
    costUsd=0.0021,
    evaluators=[
        {"name": "contains", "type": "contains", "score": 0.0},
        trajectory(
            {
                "status": "wrong_args",
                "expected": {"tool": "get_weather", "args": {"city": "Porto"}},
                "actual": {"tool": "get_weather", "args": {"city": "Oporto"}},
                "differences": [{"path": "city", "expected": "Porto", "actual": "Oporto"}],
            },
            {"status": "missing", "expected": {"tool": "get_forecast"}},
            {"status": "unexpected", "actual": {"tool": "get_time", "args": {}}},
        ),
    ],
)
FARO = entry(
    "faro",
    "failed",
    "2 of 3 repeats failed",
    line=15,
    trials=[{"outcome": outcome} for outcome in ("failed", "passed", "failed")],
)
EVORA = entry("evora", "errored", "the target gave no answer: connection refused", line=21)
BRAGA = entry("braga", "skipped", "no data for {{snapshot:weather.braga}}", line=27)


def mixed_run() -> RunResult:
    """A run with all outcomes, two suites, a baseline, warnings and notes."""

    def ref(id: str) -> CaseRef:  # noqa: A002
        return CaseRef("evals/weather.eval.yaml", id)

    bounds = {"estimate": 1 / 3, "low": 0.0615, "high": 0.7923, "level": 0.95, "method": "wilson"}
    cases = (LISBON, PORTO, FARO, EVORA, BRAGA)
    weather = suite(
        *cases,
        statistics={"passRate": bounds},
        staleness_warnings=["the description of get_weather changed"],
        summary=summary(cases, estimated_cost_usd=0.0123, judge_cost_usd=0.004),
    )
    clock = suite(entry("gs-get_time-001"), name="get_time", tier="golden", notes=["1 of 5 cases"])
    comparison = Comparison(
        "main",
        RUN_ID,
        "regressed",
        pairs=4,
        verdict="failed",
        losses=(loss_of(CaseOutcome(ref("porto"), "failed", 0, 1, None, reasks=Reasks(0, 5, 0))),),
        accepted=(AcceptedCase(*ref("faro"), "the station is closed", "2026-12-31"),),
        regressions=(ref("porto"), ref("faro")),
        new_passes=(ref("lisbon"),),
        added=(ref("braga"),),
        unjudged=(ref("evora"),),
        gate_failures=("1 lost case failed every re-ask",),
        warnings=("slow decline: of 4 cases, 3 stopped passing and 0 started to",),
        explanation="2 cases got worse and 1 got better",
    )
    return run(
        weather,
        clock,
        comparison=comparison,
        reasons=("the gate failed: 1 critical case regressed", "coverage is 80 %, below 100 %"),
        notes=("answers came from the cache",),
        statistics={"passRate": {**bounds, "low": 0.15, "high": 0.85}},
        folder=f".assay/runs/{RUN_ID}",
    )
