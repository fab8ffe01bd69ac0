"""Targets by name, inline, and in the role of judge."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ConfigError, PluginError, TargetError, UnknownName, UsageError
from assay.model.message import Message
from assay.model.observation import Observation
from assay.model.target import RateLimits
from assay.ports import Request, Target
from assay.settings import Settings
from assay.targets.pool.retries import RetryPolicy
from assay.targets.pool.target_pool import TargetPool
from unit.targets.pool.test_retries import FakeClock
from unit.virtual_time import LoopClock, at_once

HELLO = Request((Message("user", "hello"),))


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chat targets of providers need a key before they are connected."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, "key-of-tests")


def pool(folder: Path, config: str = "", judge: Any = None, **options: Any) -> TargetPool:
    (folder / "assay.yaml").write_text(config or "{}\n")
    return TargetPool(Settings.find(folder), judge, **options)


def answer(target: Target) -> str:
    return asyncio.run(target.ask(HELLO)).response


JUDGES = """\
targets:
  - {name: mine, provider: scripted, replies: [mine]}
  - {name: gpt, provider: openai, model: gpt-6-sol, api_key: sk-1, temperature: 0}
judge: mine
"""


def test_a_target_of_the_configuration_is_found_by_its_name(tmp_path: Path) -> None:
    assert answer(pool(tmp_path, JUDGES).target("mine")) == "mine"


def test_a_target_may_be_written_inline(tmp_path: Path) -> None:
    assert answer(pool(tmp_path).target("echo:")) == "hello"
    assert pool(tmp_path).target("openai:gpt-6-sol").name == "openai:gpt-6-sol"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/ask?key=secret", "https://host/ask"])
def test_an_address_is_an_inline_target(tmp_path: Path, url: str) -> None:
    spec: Any = pool(tmp_path).spec(url)
    assert (spec.provider, spec.url, spec.label) == ("http", url, url.partition("?")[0])


def test_paths_of_an_inline_target_begin_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pool(tmp_path, "targets: [{name: old, provider: replay, file: seen.jsonl}]\n")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    inline: Any = known.spec("replay:seen.jsonl")
    configured: Any = known.spec("old")
    assert inline.file == str(here / "seen.jsonl")
    assert configured.file == str(tmp_path / "seen.jsonl")
    command: Any = known.spec("command:cat -n")
    assert (command.command, command.cwd) == (["cat", "-n"], str(here))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("replay:", "the key 'file' is missing"),
        ("command:a | b", "'|' is shell syntax"),
        ("cli:agent {PROMT}", "did you mean 'PROMPT'"),
        ("python:agent", "'package.module:function'"),
        ("http:ask", "'http:ask' is not an address"),
        ("https://", "is not an address"),
    ],
)
def test_an_invalid_inline_target_is_reported(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pool(tmp_path).target(name)
    assert f"target {name!r}: error[" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["desk.py:ask", "./desk.py:ask", "python:desk.py:ask"])
def test_a_file_with_a_function_is_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    here = tmp_path / "agents"
    here.mkdir()
    (here / "desk.py").write_text("")
    monkeypatch.chdir(here)
    spec: Any = pool(tmp_path).spec(name)
    assert (spec.callable, spec.label) == ("agents.desk:ask", "python:agents.desk:ask")


def test_a_configured_function_may_name_its_file(tmp_path: Path) -> None:
    config = "targets: [{name: desk, provider: python, callable: agents/desk.py:ask}]\n"
    spec: Any = pool(tmp_path, config).spec("desk")
    assert spec.callable == "agents.desk:ask"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dek.py:ask", "there is no file 'dek.py' (did you mean 'desk.py'?)"),
        ("my-desk.py:ask", "'my-desk.py' cannot be imported: .* such as 'my_desk.py'"),
        ("../other.py:ask", "'../other.py' is outside the project root"),
    ],
)
def test_a_file_that_cannot_be_a_target_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for file in ("desk.py", "my-desk.py", "../other.py"):
        (root / file).write_text("")
    monkeypatch.chdir(root)
    with pytest.raises(UsageError, match=words.replace("(", r"\(").replace("?)", r"\?\)")):
        pool(root).spec(name)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("provider: openai, model: m", "has no API key: set the environment variable OPENAI_API"),
        ("provider: anthropic, model: m", "set the environment variable ANTHROPIC_API_KEY"),
        ("provider: command, command: [no-such-program]", "has no program 'no-such-program'"),
        ("provider: command, command: [./assay.yaml]", "not executable, '"),
    ],
)
def test_a_target_with_unmet_needs_is_refused_before_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, words: str
) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    known = pool(tmp_path, f"targets: [{{name: mine, {entry}}}]\njudge: mine\n")
    with pytest.raises(UsageError, match=f"the target 'mine' .*{words}"):
        known.target("mine")
    with pytest.raises(UsageError, match=words):
        known.judge(None, None)


@pytest.mark.parametrize(
    "setting", ["api_key: abc", "headers: {Authorization: abc}", "base_url: 'http://127.0.0.1:9'"]
)
def test_a_target_with_a_key_or_another_server_is_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    entry = f"{{name: mine, provider: openai, model: m, {setting}}}"
    assert pool(tmp_path, f"targets: [{entry}]\n").target("mine").name == "mine"


def test_an_unknown_target_offers_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no target is called 'mien'.*did you mean 'mine'"):
        pool(tmp_path, JUDGES).target("mien")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("my_agent:answer", "did you mean 'python:my_agent:answer'?"),
        ("./my_agent.py", "did you mean 'my_agent.py:FUNCTION'?"),
        ("localhost:8000/ask", "did you mean 'http://localhost:8000/ask'?"),
        ("127.0.0.1:8000", "did you mean 'http://127.0.0.1:8000'?"),
        ("./agent.sh", "did you mean 'command:./agent.sh'?"),
        ("opnai:gpt-6-sol", "did you mean 'openai'?"),
        ("nope:answer", "did you mean 'python:nope:answer'?"),
        ("production", "configured: 'a', 'b'; or write one inline, such as python:my_agent:answer"),
    ],
)
def test_an_unknown_target_gets_a_suggestion(tmp_path: Path, name: str, hint: str) -> None:
    config = "targets: [{name: b, provider: echo}, {name: a, provider: echo}]\n"
    with pytest.raises(UnknownName) as caught:
        pool(tmp_path, config).target(name)
    assert str(caught.value) == f"no target is called {name!r} ({hint})"


def test_no_configured_targets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="configured: none; or write one inline"):
        pool(tmp_path).target("production")


def test_the_judge_of_the_configuration_judges(tmp_path: Path) -> None:
    assert answer(pool(tmp_path, JUDGES).judge(None, None)) == "mine"


def test_a_judge_may_be_written_in_place(tmp_path: Path) -> None:
    config = "judge: {provider: scripted, replies: [there]}\n"
    assert answer(pool(tmp_path, config).judge(None, None)) == "there"


def test_the_evaluators_target_wins(tmp_path: Path) -> None:
    assert pool(tmp_path, JUDGES).judge("gpt", None).name == "gpt"


def test_the_judge_that_is_given_wins_over_the_configuration(tmp_path: Path) -> None:
    assert answer(pool(tmp_path, JUDGES, "echo:").judge(None, None)) == "hello"

    class Mine:
        name = "own"

        async def ask(self, request: Request) -> Observation:
            return Observation("own")

        async def close(self) -> None: ...

    assert answer(pool(tmp_path, JUDGES, Mine()).judge(None, None)) == "own"


class Busy:
    """Has an answer for who asks twice."""

    name = "busy"
    identity = "busy at noon"

    def __init__(self) -> None:
        self.asked = self.closed = 0

    async def ask(self, request: Request) -> Observation:
        self.asked += 1
        if self.asked == 1:
            raise TargetError("not now", retryable=True)
        return Observation("now")

    async def close(self) -> None:
        self.closed += 1


class Unclosable(Busy):
    name = "odd"

    def __init__(self, fault: Exception | None) -> None:
        super().__init__()
        self._fault = fault

    async def close(self) -> None:
        if self._fault is None:
            await asyncio.Event().wait()
        else:
            raise self._fault


@pytest.mark.parametrize("fault", [None, LookupError("gone")])
def test_a_target_that_cannot_be_closed_keeps_no_other_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception | None
) -> None:
    monkeypatch.setattr("assay.targets.pool.target_pool.CLOSING_SECONDS", 0.01)

    other = Busy()

    async def close_all(*faults: Exception) -> None:
        async with pool(tmp_path) as known:
            made: Any = {("b", None): other, ("a", None): Unclosable(fault), ("c", None): other}
            known._connected = made
            for first in faults:
                raise first

    words = "TimeoutError" if fault is None else "LookupError: gone"
    with pytest.raises(PluginError, match=f"'odd' failed to close: {words}"):
        asyncio.run(close_all())
    with pytest.raises(UsageError, match="first"):
        asyncio.run(close_all(UsageError("first")))
    assert other.closed == 4


def test_a_given_judge_is_retried_but_not_closed(
    tmp_path: Path,
) -> None:
    busy, clock = Busy(), FakeClock()

    async def use() -> str:
        async with pool(tmp_path, judge=busy, clock=clock) as judges:
            judge = judges.judge(None, None)
            assert (judge.name, judge.identity) == ("busy", "busy at noon")
            assert judge is judges.judge(None, None)
            return (await judge.ask(HELLO)).response

    assert asyncio.run(use()) == "now"
    assert (busy.asked, busy.closed, len(clock.slept)) == (2, 0, 1)


def test_a_model_overrides_that_of_the_judge(tmp_path: Path) -> None:
    judges = pool(tmp_path, JUDGES.replace("judge: mine", "judge: gpt"))
    assert judges.judge(None, "gpt-6-luna").name == "openai:gpt-6-luna"
    assert judges.judge(None, None).name == "gpt"


def test_a_model_may_pick_the_provider_too(tmp_path: Path) -> None:
    judges = pool(tmp_path, JUDGES.replace("judge: mine", "judge: gpt"))
    assert judges.judge(None, "anthropic:claude-sonnet-5-5").name == "anthropic:claude-sonnet-5-5"


def test_a_model_without_a_judge_is_one_of_openai(tmp_path: Path) -> None:
    assert pool(tmp_path).judge(None, "gpt-4").name == "openai:gpt-4"


def test_a_judge_without_a_model_cannot_change_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'mine' has no model"):
        pool(tmp_path, JUDGES).judge(None, "gpt-4")


def test_no_judge_says_how_to_set_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"judge: openai:MODEL.*assay\.yaml") as caught:
        pool(tmp_path).judge(None, None)
    assert caught.value.exit_code == 2


def test_one_target_serves_all_callers(tmp_path: Path) -> None:
    judges = pool(tmp_path, JUDGES)
    assert judges.judge(None, None) is judges.judge(None, None)


def test_the_identity_of_a_judge_depends_on_its_settings(tmp_path: Path) -> None:
    def identity(temperature: float, key: str) -> str:
        judge = f"{{provider: openai, model: m, temperature: {temperature}, api_key: {key}}}"
        found: Any = pool(tmp_path, f"judge: {judge}\n").judge(None, None)
        return str(found.identity)

    assert identity(0, "sk-1") == identity(0, "sk-2") != identity(1, "sk-1")


# How often, how fast and how long


FLAKY = "{error: busy, retryable: true}"


def test_the_policy_of_the_run_holds_for_targets_and_judges(tmp_path: Path) -> None:
    config = f"targets: [{{name: t, provider: scripted, replies: [{FLAKY}]}}]\njudge: t\n"
    known = pool(tmp_path, config, policy=RetryPolicy(max_retries=5), clock=FakeClock())
    for target in (known.target("t"), known.judge(None, None)):
        with pytest.raises(TargetError, match="gave up after 6 attempts"):
            answer(target)


def test_a_time_limit_of_the_run_holds(tmp_path: Path) -> None:
    class Slow(Busy):
        async def ask(self, request: Request) -> Observation:
            await asyncio.sleep(100)
            return Observation("late")

    async def use() -> None:
        policy = RetryPolicy(timeout=60.0)
        async with pool(tmp_path, judge=Slow(), policy=policy, clock=LoopClock()) as known:
            await known.judge(None, None).ask(HELLO)

    with pytest.raises(TargetError, match="no answer within 60 s"):
        at_once(use())


def test_a_seed_makes_the_waits_repeatable(tmp_path: Path) -> None:
    config = f"targets: [{{name: t, provider: scripted, replies: [{FLAKY}]}}]\n"

    def slept(seed: int) -> list[float]:
        clock = FakeClock()
        with pytest.raises(TargetError):
            answer(pool(tmp_path, config, clock=clock, seed=seed).target("t"))
        return clock.slept

    assert slept(1) == slept(1) != slept(2)


LIMITS = "workers: 3, requests_per_minute: 30, tokens_per_minute: 6000"


def limits(known: TargetPool, name: str) -> list[float | None]:
    gate: Any = known.target(name)._limiter
    buckets = (gate._requests, gate._tokens)
    return [gate.limit, *(bucket and bucket._rate * 60 for bucket in buckets)]


def test_limits_of_the_run_override_those_of_the_target(tmp_path: Path) -> None:
    config = f"targets: [{{name: t, provider: echo, {LIMITS}}}, {{name: free, provider: echo}}]\n"
    known = pool(tmp_path, config)
    assert limits(known, "t") == [3, 30, 6000]
    assert limits(pool(tmp_path, config), "free") == [10, None, None]
    known = pool(tmp_path, config, limits=RateLimits(workers=7, requests_per_minute=60))
    assert limits(known, "t") == [7, 60, 6000]


@pytest.mark.parametrize(
    "wrong", ["workers: 0", "workers: 1.5", "requests_per_minute: 0", "tokens_per_minute: lots"]
)
def test_wrong_limits_are_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"assay\.yaml:1:\d+: error"):
        pool(tmp_path, f"targets: [{{name: t, provider: echo, {wrong}}}]\n").target("t")


@pytest.mark.parametrize(
    ("settings", "all_attempts"),
    [("", 120), (", timeout_seconds: 30", 120), (", timeout_seconds: 300", 300)],
)
def test_a_target_has_the_time_that_it_says_it_needs(
    tmp_path: Path, settings: str, all_attempts: float
) -> None:
    entry = "provider: http, url: 'http://localhost/'" + settings
    known: Any = pool(tmp_path, f"targets: [{{name: a, {entry}}}]\njudge: {{{entry}}}\n")
    for asked in (known.target("a"), known.judge(None, None)):
        assert asked._policy.timeout == all_attempts


def test_a_target_that_is_also_the_judge_has_one_rate_limiter(tmp_path: Path) -> None:
    known: Any = pool(tmp_path, JUDGES)
    assert known.target("mine")._limiter is known.judge(None, None)._limiter
    assert known.target("mine")._limiter is not known.target("gpt")._limiter


def test_optional_members_of_a_target_are_reachable(tmp_path: Path) -> None:
    (tmp_path / "seen.jsonl").write_text('{"id": "a", "response": "x"}\n')
    config = "targets: [{name: old, provider: replay, file: seen.jsonl}]\n"
    replay: Any = pool(tmp_path, config).target("old").target
    assert (replay.unused(["b"]), replay.problems(), replay.recorded) == (1, [], True)
    asyncio.run(replay.close())
    http: Any = pool(tmp_path).target("http://127.0.0.1:1/ask").target
    assert http.faults([]) == []


# Settings


@pytest.mark.parametrize(
    ("entry", "place", "words"),
    [
        ("{name: x, provider: opnai}", "2:25", "did you mean 'openai'"),
        ("{name: x, provider: openai, modle: y}", "2:33", "did you mean 'model'"),
        ("{name: x, provider: openai}", "2:5", "'model' is missing"),
        ("{name: x, provider: openai, model: y, temperature: hot}", "2:56", "a number"),
        ("{name: x, provider: openai, model: '${{ NOBODY_SET_THIS }}'}", "2:40", "not set"),
        ("{name: x, provider: openai, model: '{{ env.NOBODY_SET_THIS }}'}", "2:40", "not set"),
    ],
)
def test_wrong_settings_are_reported_with_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, place: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        pool(tmp_path, f"targets:\n  - {entry}\n").target("x")
    assert f"assay.yaml:{place}: error[" in str(caught.value)
    assert words in str(caught.value)
    if words == "not set":
        assert len(caught.value.problems) == 1, "that it is empty follows from it"


def test_a_variable_that_is_not_set_hides_no_other_problem(tmp_path: Path) -> None:
    target = '{name = "x", provider = "openai", model = "${{ NOBODY_SET_THIS }}", modle = "y"}'
    (tmp_path / "pyproject.toml").write_text(f"[tool.assay]\ntargets = [{target}]\n")
    with pytest.raises(ConfigError) as caught:
        TargetPool(Settings.find(tmp_path)).target("x")
    assert {"unset-variable", "unknown-key"} <= {p.code for p in caught.value.problems}


@pytest.mark.parametrize("written", ["${{ MY_MODEL }}", "{{ env.MY_MODEL }}", "${{MY_MODEL}}"])
def test_settings_may_refer_to_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("MY_MODEL", "gpt-9")
    judges = pool(tmp_path, f"judge: {{provider: openai, model: '{written}'}}\n")
    spec = judges._judge_spec(None)
    assert spec is not None
    assert spec.model_dump()["model"] == "gpt-9"


def test_the_providers_own_variable_has_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    spec = pool(tmp_path).spec("openai:gpt-4")
    assert spec.model_dump()["api_key"].get_secret_value() == "sk-from-environment"
    assert "sk-from" not in repr(spec)
    assert "sk-from" not in spec.identity


def test_prices_of_the_configuration_reach_the_target(tmp_path: Path) -> None:
    config = "prices: {local: {input: 1, output: 2}}\n"
    spec: Any = pool(tmp_path, config).spec("openai:local")
    assert spec.prices["local"].output == 2


@pytest.mark.parametrize(
    "config",
    ["judge: 5\n", "judge: {model: x}\n", "targets: [{provider: echo}]\n", "plugins: ['a b']\n",
     "prices: {x: {input: -1, output: 1}}\n"],
)  # fmt: skip
def test_a_wrong_configuration_is_refused(tmp_path: Path, config: str) -> None:
    with pytest.raises(ConfigError):
        pool(tmp_path, config)
