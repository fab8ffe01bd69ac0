"""The fixture and the mark `assay` in tests of a project."""

from __future__ import annotations

import re

import pytest

from e2e.pytest_projects import APART

AGENT = """
import pytest

def agent(question):
    calls = [{"name": name, "params": {}} for name in ("lookup", "refund")]
    return {"response": f"{question}: 42.50", "toolCalls": calls}
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    return Run(pytester)


class Run:
    """Runs pytest on a module of tests, with an agent in it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester

    def __call__(self, code: str, *arguments: str) -> pytest.RunResult:
        self._pytester.makepyfile(AGENT + code)
        return self._pytester.runpytest_inprocess(*APART, *arguments)


def test_what_is_as_expected_passes(run: Run) -> None:
    code = """
def test_it(assay):
    seen = assay.ask(agent, "Refund A100")
    result = assay.check(seen, contains=["42.50", "A100"], tools=["lookup", "refund"])
    assert result.score == 1
"""
    run(code).assert_outcomes(passed=1)


def test_all_misses_are_reported_at_once(run: Run) -> None:
    code = """
from assay import starts_with

def test_it(assay):
    seen = assay.ask(agent, "Refund")
    assay.check(seen, starts_with("Done"), contains=["42.50", "43"], tools=["refund", "find"])
    assay.check(seen, is_json=True)
    assay.check("known", equals="unknown")
"""
    result = run(code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_*.py:11: starts_with: expected the answer to start with 'Done', found*",
            "test_*.py:11: contains: expected the answer to contain '43', found*",
            "test_*.py:11: tool_trajectory: find was not called",
            "test_*.py:12: is_json: expected JSON, found 'Refund: 42.50'",
            "test_*.py:13: equals: expected 'unknown', found 'known'",
        ]
    )


def test_misses_are_shown_with_the_error_that_ended_the_test(run: Run) -> None:
    code = """
def test_it(assay):
    assay.check("no", equals="yes")
    assert 1 == 2
"""
    result = run(code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*assert 1 == 2", "E*:8: equals: expected 'yes', found 'no'"])


def test_a_miss_of_a_fixture_is_not_lost(run: Run) -> None:
    code = """
@pytest.fixture
def checked(request):
    yield
    request.getfixturevalue("assay").check("no", equals="yes")

def test_it(assay, checked): pass
"""
    run(code).assert_outcomes(passed=1, errors=1)


@pytest.mark.parametrize(("rate", "outcome"), [("0.8", "passed"), ("0.9", "failed")])
def test_repeats_are_judged_by_their_pass_rate(run: Run, rate: str, outcome: str) -> None:
    code = """
numbers = iter(range(5))

@pytest.fixture
def prepared():
    print("once")

@pytest.mark.assay(repeat=5, min_pass_rate=RATE)
def test_it(assay, prepared):
    assay.check("no" if next(numbers) == 2 else "yes", equals="yes")
"""
    result = run(code.replace("RATE", rate), "--strict-markers", "-rA")
    result.assert_outcomes(**{outcome: 1})
    lines = [f"4 of 5 passed ({float(rate):.0%} must pass)".replace("%", " %")]
    result.stdout.fnmatch_lines([*lines, "*equals: expected 'yes', found 'no'"])
    assert result.outlines.count("once") == 1


def test_a_test_that_skips_itself_is_not_repeated(run: Run) -> None:
    code = """
@pytest.mark.assay(repeat=3)
def test_it():
    pytest.skip("not today")
"""
    run(code).assert_outcomes(skipped=1)


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("repeats=3", "has no 'repeats' (did you mean 'repeat'?)"),
        ("repeat=0", "repeat is 0; it must be a whole number, at least 1"),
        ("min_pass_rate=80", "min_pass_rate is 80; it must be a number from 0 to 1"),
        ("3", "takes no positional arguments, got (3,)"),
    ],
)
def test_a_mistake_in_the_mark(run: Run, mark: str, message: str) -> None:
    result = run(f"@pytest.mark.assay({mark})\ndef test_it(): pass\n")
    result.assert_outcomes(failed=1)
    assert f"pytest.mark.assay: {message}" in result.outlines


def test_a_misspelt_evaluator_is_named(run: Run) -> None:
    result = run('def test_it(assay):\n    assay.check("a", contians="a")\n')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*'contians' (did you mean 'contains'?)"])


ASYNC = """
import asyncio

@pytest.mark.MARK
@pytest.mark.assay(repeat=2)
async def test_it(assay):
    loop = asyncio.get_running_loop()

    async def on_this_loop(question):
        assert asyncio.get_running_loop() is loop
        return question

    seen = await assay.aask(on_this_loop, "hello")
    assay.check(seen, equals="hello")
    assert assay.ask(agent, "again").response == "again: 42.50"

@pytest.mark.MARK
async def test_that_fails(assay):
    assay.check("no", equals="yes")
"""


@pytest.mark.parametrize("mark", ["asyncio", "anyio"])
def test_async_tests(run: Run, mark: str) -> None:
    backend = "\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'\n"
    result = run(ASYNC.replace("MARK", mark) + backend)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*equals: expected 'yes', found 'no'"])


@pytest.mark.parametrize(
    "test",
    [
        'def test_it(assay):\n    assay.ask(broken, "Refund")\n',
        'def test_it(assay):\n    import asyncio\n    asyncio.run(assay.aask(broken, "Refund"))\n',
    ],
    ids=["ask", "aask"],
)
def test_the_traceback_of_an_agent_that_raises_has_no_frames_of_ours(run: Run, test: str) -> None:
    code = f"""
def broken(question):
    raise ValueError("no such order")

{test}
def test_unknown(assay):
    assay.ask("nope", "Refund")
"""
    result = run(code)
    result.assert_outcomes(failed=2)
    shown = result.stdout.str()
    assert '>       raise ValueError("no such order")' in re.sub(" +raise", "       raise", shown)
    assert "broken raised ValueError: no such order" in shown
    assert "no target is called 'nope'" in shown
    assert "no running event loop" not in shown
    for ours in ("assay/blocking.py", "pytest_plugin/fixture.py", "targets/pool"):
        assert ours not in shown.replace("\\", "/")
