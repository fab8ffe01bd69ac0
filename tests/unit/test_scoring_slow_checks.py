"""Where checks run: a slow one never keeps the event loop, and gives the score of a quick one."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

import pytest

from assay import scoring
from assay.blocking import wait_for
from assay.evaluators.python import spec_class
from assay.model.context import Context
from assay.model.evaluator import EvaluatorSpec
from assay.model.message import ToolCall
from assay.model.observation import Observation
from assay.model.score import EvaluationScore
from assay.ports import Resources
from assay.registry import evaluators
from assay.scoring import prepare
from timeouts import WAIT_SECONDS
from unit.evaluator_calls import awaited, context_of, spec_of

T = TypeVar("T")


def guarded(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that must not hang."""
    return asyncio.run(asyncio.wait_for(work, WAIT_SECONDS))


def exponential(levels: int) -> dict[str, Any]:
    """A schema that checks an answer two to the power of `levels` times."""
    defs: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$defs": defs | {f"d{levels}": {"type": "integer"}}, "$ref": "#/$defs/d0"}


BACKTRACKING = "(a|b)(?=c)"
CALLS = Observation("", tool_calls=tuple(ToolCall("t", {"n": n}) for n in range(4)))
STEPS = [{"tool": "t", "args": {"n": n}} for n in (2, 1, 0)]
SEEDS = {"seed": {"city": "abba"}}

#: By the kind of check: keys, and an answer for which the check notices a deadline.
SLOW: dict[str, tuple[dict[str, Any], Observation]] = {
    "similarity": ({"kind": "similarity", "value": "abba"}, Observation("abca")),
    "similarity to the expected output": ({"kind": "similarity"}, Observation("abca")),
    "schema": ({"kind": "json_schema", "value": exponential(3)}, Observation("1")),
    "unique items": (
        {"kind": "json_schema", "value": {"uniqueItems": True}},
        Observation("[1, 2, 1]"),
    ),
    "pattern": ({"kind": "regex", "value": BACKTRACKING}, Observation("acbc")),
    "patterns": ({"kind": "regex", "values": ["a", BACKTRACKING]}, Observation("acbc")),
    "in_order": ({"kind": "tool_trajectory", "expected": STEPS}, CALLS),
    **{
        mode: ({"kind": "tool_trajectory", "mode": mode, "expected": STEPS}, CALLS)
        for mode in ("any_order", "exact", "superset", "subset")
    },
    "expected schema": ({"kind": "expect", "jsonSchema": exponential(3)}, Observation("1")),
    "expected pattern": ({"kind": "expect", "responseMatches": [BACKTRACKING]}, Observation("ac")),
    "expected seed": (
        {
            "kind": "expect",
            "responseMatches": [BACKTRACKING],
            "responseContains": ["{{seed:city}}", "{{seed:river}}"],
        },
        Observation("ac abba"),
    ),
    "expected parameter": (
        {
            "kind": "expect",
            "toolParams": [
                {"tool": "t", "paramName": "q", "assertion": "matches", "value": BACKTRACKING}
            ],
        },
        Observation("", tool_calls=(ToolCall("t", {"q": "ac"}),)),
    ),
    "composite": (
        {
            "kind": "composite",
            "evaluators": [spec_of("similarity", name="near", value="abba")],
        },
        Observation("abca"),
    ),
}


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    return lambda seconds: monkeypatch.setattr(scoring, "LOOP_SECONDS", seconds)


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_check_is_awaited_and_scores_like_a_quick_one(
    name: str, no_time: Callable[[float], None]
) -> None:
    keys, seen = SLOW[name]
    check = prepare(spec_of(**keys), Resources(sources=SEEDS))
    context = context_of(seen, "abba")
    no_time(WAIT_SECONDS)
    quick = check(context)
    assert isinstance(quick, EvaluationScore), "no thread, no process"
    assert quick.error == ""
    no_time(0.0)
    slow = check(context)
    assert inspect.isawaitable(slow)
    assert awaited(slow) == quick


@pytest.mark.parametrize("kind", ["similarity", "json_schema"])
def test_a_large_answer_is_not_tried_on_the_event_loop(kind: str) -> None:
    value: Any = {"maxLength": 3} if kind == "json_schema" else "abc"
    answer = '"' + "x" * scoring.LARGE_ANSWER + '"'
    score = prepare(spec_of(kind, value=value), Resources())(context_of(answer))
    assert inspect.isawaitable(score)
    assert awaited(score).verdict == "fail"


def test_a_check_that_does_not_end_is_stopped_and_errored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "LIMIT_SECONDS", 0.5)
    bomb = exponential(30)
    for spec in (spec_of("json_schema", value=bomb), spec_of("expect", jsonSchema=bomb)):
        score = awaited(prepare(spec, Resources())(context_of("1")))
        assert score.error == "it needed more than 0.5 s of processor time and was stopped"
    small = prepare(spec_of("json_schema", value=exponential(2)), Resources())
    assert awaited(small(context_of("1"))).score == 1.0


def built_in() -> Iterator[tuple[str, type[EvaluatorSpec]]]:
    for name in evaluators:
        spec = evaluators.get(name)
        if spec.__module__.startswith("assay."):
            yield name, spec


def test_plugin_evaluators_run_in_a_thread_and_built_in_ones_do_not() -> None:
    in_threads = {name for name, spec in built_in() if spec.runs_in is EvaluatorSpec.runs_in}
    assert in_threads == {"python"}


# Functions of a project


def check_of(
    function: Callable[..., Any],
) -> Callable[[Context], Coroutine[Any, Any, EvaluationScore]]:
    spec = spec_class(function).model_construct(type="f", name="f")
    return cast(
        "Callable[[Context], Coroutine[Any, Any, EvaluationScore]]", prepare(spec, Resources())
    )


def test_the_event_loop_goes_on_while_a_function_judges() -> None:
    asked, answered = threading.Event(), threading.Event()

    def judge(response: str) -> bool:
        asked.set()
        return answered.wait(WAIT_SECONDS)

    async def work() -> EvaluationScore:
        judging = asyncio.ensure_future(check_of(judge)(context_of("x")))
        while not asked.is_set():
            await asyncio.sleep(0)
        answered.set()
        return await judging

    assert guarded(work()).score == 1.0


def test_functions_of_a_run_judge_one_at_a_time() -> None:
    lock = threading.Lock()

    def judge(response: str) -> bool:
        with_nobody = lock.acquire(blocking=False)
        if with_nobody:
            for _ in range(1000):  # others could begin
                pass
            lock.release()
        return with_nobody

    async def work() -> list[EvaluationScore]:
        check = check_of(judge)
        return await asyncio.gather(*(check(context_of("x")) for _ in range(50)))

    assert {score.score for score in guarded(work())} == {1.0}


def test_a_function_that_hangs_is_left_and_the_next_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scoring, "THREAD_SECONDS", 0.05)
    release = threading.Event()

    def judge(response: str) -> bool:
        return response == "quick" or release.wait(WAIT_SECONDS)

    async def work() -> tuple[EvaluationScore, EvaluationScore]:
        check = check_of(judge)
        late = await check(context_of("hangs"))
        monkeypatch.setattr(scoring, "THREAD_SECONDS", WAIT_SECONDS)
        return late, await check(context_of("quick"))

    late, quick = guarded(work())
    release.set()
    assert late.error == "it took longer than 0.05 s and was abandoned"
    assert quick.score == 1.0


@pytest.mark.parametrize("error", [ValueError("7"), SystemExit(7), StopIteration(7)])
def test_an_exception_of_a_function_makes_its_evaluator_errored(error: BaseException) -> None:
    def judge(response: str) -> bool:
        raise error

    score = awaited(check_of(judge)(context_of("x")))
    assert score.error == f"it raised {type(error).__name__}: 7"


def test_a_coroutine_that_blocks_does_not_block_our_loop() -> None:
    asked, answered = threading.Event(), threading.Event()

    async def judge(response: str) -> bool:
        asked.set()
        return answered.wait(WAIT_SECONDS)

    async def work() -> EvaluationScore:
        judging = asyncio.ensure_future(check_of(judge)(context_of("x")))
        while not asked.is_set():
            await asyncio.sleep(0)
        answered.set()
        return await judging

    assert wait_for(lambda: asyncio.wait_for(work(), WAIT_SECONDS)).score == 1.0


def test_a_coroutine_runs_on_the_loop_of_the_user() -> None:
    """What it uses, such as a client, may be bound to that loop."""

    async def work() -> EvaluationScore:
        theirs = asyncio.get_running_loop()

        async def judge(response: str) -> bool:
            return asyncio.get_running_loop() is theirs

        return await check_of(judge)(context_of("x"))

    assert guarded(work()).score == 1.0
