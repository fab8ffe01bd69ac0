"""Lost cases are asked again, and the verdict and exit code follow from what that shows."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.engine.losses import MAX_CASES
from assay.model.comparison import Comparison, Reasks
from assay.model.events import Event, Notice
from assay.service.history import show
from assay.service.runs import RunHooks, RunRequest, execute
from unit.numbered_cases import good_but, numbered, write

Agent = Callable[[str], Any]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("assay.yaml").touch()
    return tmp_path


class Scripted:
    """Gives a case these answers in turn, then the last one again; other cases are good."""

    def __init__(self, **answers: list[Any]) -> None:
        self.answers, self.asked = answers, Counter[str]()

    def __call__(self, message: str) -> Any:
        script = self.answers.get(message, ["good"])
        answer = script[min(self.asked[message], len(script) - 1)]
        self.asked[message] += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(target: Agent | str, **options: Any) -> assay.Run:
    return assay.run("s.eval.jsonl", target=target, **options)


def compared(found: assay.Run) -> Comparison:
    assert found.comparison is not None
    return found.comparison


def ending(found: assay.Run) -> tuple[str, int]:
    """The verdict and the exit code; a shown run and a comparison must say the same."""
    if found.comparison is not None:
        again = show(found.id)
        assert (again.verdict, again.exit_code) == (found.verdict, found.exit_code)
        assert again.comparison == found.comparison
    return found.verdict, found.exit_code


def statuses(found: assay.Run) -> dict[str, str]:
    return {loss.ref.id: loss.status for loss in compared(found).losses}


# Asking again


def test_a_deterministic_agent_that_breaks_one_case_fails() -> None:
    write(*numbered(20))
    base = run(good_but())
    agent = Scripted(c7=["bad"])
    found = run(agent, baseline=base)
    assert ending(found) == ("failed", 1)
    assert agent.asked["c7"] == 6
    assert sum(agent.asked.values()) == 25, "no other case is asked again"
    assert (found.summary.failed, found.summary.total_cases) == (1, 20)
    assert assay.compare(base, found).verdict == "failed"


def test_a_case_that_passes_again_is_excused() -> None:
    write(*numbered(20))
    agent = Scripted(c7=["bad", "bad", "good"])
    found = run(agent, baseline=run(good_but()))
    assert ending(found) == ("passed", 0)
    assert agent.asked["c7"] == 3, "it stops at the first pass"
    assert compared(found).losses[0].reasks == Reasks(passed=1, failed=1)
    assert [ref.id for ref in compared(found).regressions] == ["c7"]
    assert "flaky, so excused; 1 of 2 re-asks passed" in found.report()


def test_a_noisy_agent_with_one_dead_case_is_inconclusive() -> None:
    write(*numbered(20))
    agent = Scripted(c1=["bad", "good"], c2=["bad", "good"], c7=["bad"])
    found = run(agent, baseline=run(good_but()))
    assert ending(found) == ("inconclusive", 0)
    assert statuses(found) == {"c1": "excused", "c2": "excused", "c7": "repeated"}
    assert found.report().startswith("INCONCLUSIVE: 17 of 20 judged cases passed; against ")
    strict = Scripted(c1=["bad", "good"], c2=["bad", "good"], c7=["bad"])
    assert ending(run(strict, baseline=run(good_but()), strict=True)) == ("inconclusive", 4)


def test_nothing_is_asked_again_once_the_pass_rate_fell() -> None:
    write(*numbered(20))
    agent = Scripted(**{f"c{n}": ["bad"] for n in range(5)})
    found = run(agent, baseline=run(good_but()))
    assert ending(found) == ("failed", 1)
    assert sum(agent.asked.values()) == 20


def test_other_gates_ask_nothing_again() -> None:
    write(*numbered(20))
    agent = Scripted(c7=["bad"])
    found = run(agent, baseline=run(good_but()), gate="strict")
    assert (ending(found), agent.asked["c7"]) == (("failed", 1), 1)


def test_the_number_of_re_asks_can_be_set() -> None:
    write(*numbered(6))
    agent = Scripted(c3=["bad"])
    found = run(agent, baseline=run(good_but()), confirm=2)
    assert (ending(found), agent.asked["c3"]) == (("failed", 1), 3)


@pytest.mark.parametrize(
    ("critical", "wanted"), [(False, ("inconclusive", 0)), (True, ("failed", 1))]
)
def test_without_re_asks_a_loss_is_unconfirmed(critical: bool, wanted: tuple[str, int]) -> None:
    write(*numbered(6, critical=critical))
    agent = Scripted(c3=["bad"])
    found = run(agent, baseline=run(good_but()), confirm=0)
    assert (ending(found), agent.asked["c3"]) == (wanted, 1)


def test_a_target_may_forbid_re_asks() -> None:
    write(*numbered(4))
    replies = {f"c{n}": "good" for n in range(4)}
    target = {"name": "a", "provider": "scripted", "replies": replies}
    Path("assay.yaml").write_text(json.dumps({"targets": [target]}))
    base = run("a")
    target["replies"] = replies | {"c1": "bad"}
    Path("assay.yaml").write_text(json.dumps({"targets": [target | {"confirm": 0}]}))
    found = run("a", baseline=base.id)
    assert ending(found) == ("inconclusive", 0)
    assert statuses(found) == {"c1": "unconfirmed"}
    assert ending(run("a", baseline=base.id, confirm=1)) == ("failed", 1), "an option wins"


def test_critical_cases_are_asked_first_and_at_most_fifty_cases() -> None:
    # As many got better, so that the paired test does not end it.
    count = MAX_CASES + 5
    write(*numbered(2 * count))
    old = {f"c{n}" for n in range(count)}
    base = run(good_but(*old))
    cases = numbered(2 * count)
    cases[-1]["critical"] = True
    write(*cases)
    agent = Scripted(**{f"c{n}": ["bad", "good"] for n in range(count, 2 * count)})
    found = run(agent, baseline=base, workers=1)
    again = [name for name, times in agent.asked.items() if times > 1]
    assert len(again) == MAX_CASES
    assert f"c{2 * count - 1}" in again
    assert Counter(statuses(found).values()) == {"excused": MAX_CASES, "unconfirmed": 5}
    assert found.notes == ("at most 50 lost cases are asked again; there were more",)
    assert ending(found) == ("inconclusive", 0)


def test_re_asks_never_come_from_the_cache() -> None:
    write(*numbered(3))
    base = run(good_but())
    for asked in (6, 5):  # the planned trial of the second run comes from the cache
        agent = Scripted(c1=["bad"])
        assert ending(run(agent, baseline=base, cache=True)) == ("failed", 1)
        assert agent.asked["c1"] == asked


def test_re_asks_are_announced_with_their_cost() -> None:
    write(*numbered(3))
    base = run(good_but())
    events: list[Event] = []

    def answer(message: str) -> Any:
        return assay.Observation("bad" if message == "c1" else "good", cost_usd=0.02)

    request = RunRequest(["s.eval.jsonl"], target=answer, hooks=RunHooks(events.append))
    asyncio.run(execute(request, {"baseline": base.id}))
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert notices == [
        "asking 1 case again that passed in the baseline: up to 5 trials, at most about $0.1"
    ]


# Every way a run can go


def test_errored_re_asks_confirm_nothing() -> None:
    write(*numbered(6))
    agent = Scripted(c3=["bad", RuntimeError("down")])
    found = run(agent, baseline=run(good_but()))
    assert ending(found) == ("inconclusive", 0)
    assert compared(found).losses[0].reasks == Reasks(errored=5)
    assert found.summary.errored == 0, "re-asks are not planned trials"
    write(*numbered(6, critical=True))
    critical = run(Scripted(c3=["bad", RuntimeError("down")]), baseline=run(good_but()))
    assert ending(critical) == ("inconclusive", 3)
    assert "INCOMPLETE (exit code 3)" in critical.report()


def test_max_failures_does_not_count_re_asks() -> None:
    write(*numbered(6))
    agent = Scripted(c3=["bad"])
    found = run(agent, baseline=run(good_but()), max_failures=2)
    assert (ending(found), agent.asked["c3"]) == (("failed", 1), 6)


def replay(*answers: str) -> str:
    lines = [json.dumps({"id": f"c{n}", "response": a}) + "\n" for n, a in enumerate(answers)]
    Path("seen.jsonl").write_text("".join(lines))
    return "replay:seen.jsonl"


@pytest.mark.parametrize(
    ("critical", "wanted"), [(False, ("inconclusive", 0)), (True, ("failed", 1))]
)
def test_recorded_answers_are_not_asked_again(critical: bool, wanted: tuple[str, int]) -> None:
    write(*numbered(4, critical=critical))
    base = run(replay(*["good"] * 4))
    found = run(replay("good", "bad", "good", "good"), baseline=base.id)
    assert ending(found) == wanted
    assert statuses(found) == {"c1": "unconfirmed"}


def test_a_flip_of_all_repeats_fails_on_recorded_answers() -> None:
    write(*numbered(3))
    good = [json.dumps({"id": f"c{n}", "response": "good"}) + "\n" for n in (0, 1, 2)]
    bad = json.dumps({"id": "c1", "response": "bad"}) + "\n"
    Path("seen.jsonl").write_text("".join(good * 3))
    base = run("replay:seen.jsonl", repeat=3)
    Path("seen.jsonl").write_text("".join([good[0], bad, good[2]] * 3))
    found = run("replay:seen.jsonl", repeat=3, baseline=base.id)
    assert ending(found) == ("failed", 1)
    assert compared(found).gate_failures == ("1 case passed every trial before and none now",)


def test_repeats_that_differ_excuse_a_loss_without_re_asks() -> None:
    write(*numbered(4))
    agent = Scripted(c1=["bad", "good", "good"])
    found = run(agent, baseline=run(good_but(), repeat=3), repeat=3, workers=1)
    assert (ending(found), agent.asked["c1"]) == (("passed", 0), 3)
    assert statuses(found) == {"c1": "excused"}


def test_losses_of_one_cluster_are_asked_again() -> None:
    cases = numbered(60)
    for case in cases:
        case["cluster"] = "one" if case["id"] in ("c0", "c1", "c2", "c3", "c4") else case["id"]
    write(*cases)
    base = run(good_but())
    agent = Scripted(**{f"c{n}": ["bad"] for n in range(5)})
    found = run(agent, baseline=base)
    assert not compared(found).is_worse, "five losses of one cluster are one event"
    assert agent.asked["c0"] == 6
    assert ending(found) == ("failed", 1)


def test_an_early_stop_uses_the_sequential_test() -> None:
    write(*numbered(40))
    base = run(good_but())
    found = run(good_but(*(f"c{n}" for n in range(40))), baseline=base, stop_when="decided")
    assert ending(found) == ("failed", 1)
    assert compared(found).worse is not None
    assert compared(found).worse.name == "e-process"  # type: ignore[union-attr]
    one = Scripted(c7=["bad"])
    undecided = run(one, baseline=base, stop_when="decided")
    assert (ending(undecided), one.asked["c7"]) == (("failed", 1), 6)


def test_an_early_stop_does_not_count_accepted_losses() -> None:
    write(*numbered(20))
    base = run(good_but())
    accepted = [{"case": f"c{n}", "reason": "gone"} for n in range(20)]
    Path("assay.yaml").write_text(json.dumps({"accepted": accepted}))
    bad = good_but(*(f"c{n}" for n in range(20)))
    found = run(bad, baseline=base.id, stop_when="decided", workers=1)
    assert (ending(found), found.summary.skipped) == (("passed", 0), 0)


def test_a_filtered_run_is_compared_with_its_cases() -> None:
    write(*numbered(6))
    base = run(good_but())
    assert ending(run(good_but("c3"), baseline=base, filter="c1")) == ("passed", 0)
    assert ending(run(good_but("c3"), baseline=base, filter="c3")) == ("failed", 1)
    partial = run(good_but(), filter="c1")
    found = run(good_but(), baseline=partial.id)
    assert compared(found).notes == (
        f"the run {partial.id} is partial: it asked only the cases of --filter c1",
    )
    assert f"the run {partial.id} is partial" in found.report()
    notes = assay.compare(base, partial).notes
    assert notes == (f"the run {partial.id} is partial: it asked only the cases of --filter c1",)


def test_a_baseline_may_be_a_file() -> None:
    write(*numbered(6))
    Path("main.json").write_text(run(good_but()).report("json"))
    found = run(good_but("c3"), baseline="main.json")
    assert ending(found) == ("failed", 1)
    Path("found.json").write_text(found.report("json"))
    Path("found.jsonl").write_text(found.report("jsonl"))
    for name in ("found.json", "found.jsonl"):
        assert assay.compare("main.json", name).verdict == "failed"
    Path("part.json").write_text(run(good_but(), limit=2).report("json"))
    (note, *_) = assay.compare("part.json", "found.json").notes
    assert note.endswith("is partial: it asked only the cases of --limit 2")


def test_an_accepted_loss_is_not_asked_again() -> None:
    write(*numbered(6))
    base = run(good_but())
    Path("assay.yaml").write_text('accepted: [{case: c3, reason: "the tool is gone"}]\n')
    agent = Scripted(c3=["bad"])
    found = run(agent, baseline=base.id)
    assert (ending(found), agent.asked["c3"]) == (("passed", 0), 1)
    for form in ("text", "md", "xml"):
        assert "the tool is gone" in found.report(form)
    fixed = run(good_but(), baseline=base.id)
    assert compared(fixed).warnings == (
        "accepted case 'c3' in the configuration: the case passes; remove the entry",
    )


# Rubric cases


def tiered(folder: Path) -> None:
    golden = [
        {
            "id": f"gs-look-{n:03}",
            "description": "d",
            "input": {"message": f"g{n}"},
            "expect": {"toolsCalled": [], "noToolErrors": True, "responseNonEmpty": True}
            | {"responseContains": ["good"]},
        }
        for n in (1, 2)
    ]
    rubric = [
        {
            "id": "rb-look-001",
            "description": "d",
            "input": {"message": "r"},
            "rubric": [{"dimension": "clear", "maxScore": 1, "criteria": "is clear"}],
        }
    ]
    Path("look.golden.json").write_text(json.dumps(golden))
    Path("look.rubric.json").write_text(json.dumps(rubric))
    replies = {"checks": [{"id": "clear", "satisfied": True, "reasoning": "yes"}]}
    judge = {"provider": "scripted", "replies": [{"response": replies}]}
    Path("assay.yaml").write_text(json.dumps({"judge": judge}))


def answers_of(agent: Agent) -> Agent:
    return lambda message: {"response": agent(message), "toolCalls": []}


def test_at_most_fifty_cases_are_asked_again_before_and_after_the_rubric_cases(
    folder: Path,
) -> None:
    tiered(folder)
    count = MAX_CASES + 5
    write(*numbered(2 * count))
    base = assay.run(".", target=answers_of(good_but(*(f"c{n}" for n in range(count)))))
    agent = Scripted(**{f"c{n}": ["bad", "good"] for n in range(count, 2 * count)})
    found = assay.run(".", target=answers_of(agent), baseline=base)
    assert sum(times > 1 for times in agent.asked.values()) == MAX_CASES
    assert found.notes == ("at most 50 lost cases are asked again; there were more",)


@pytest.mark.parametrize(
    ("answers", "asked", "outcome"),
    [(["bad", "good"], 4, "passed"), (["bad"], 4, "skipped")],
)
def test_a_flaky_deterministic_case_does_not_hold_rubric_cases_back(
    folder: Path, answers: list[str], asked: int, outcome: str
) -> None:
    tiered(folder)
    base = assay.run(".", target=answers_of(Scripted()))
    assert [case.outcome for suite in base.suites for case in suite.cases] == ["passed"] * 3
    agent = Scripted(g1=answers)
    found = assay.run(".", target=answers_of(agent), baseline=base)
    assert agent.asked["g1"] == asked
    (rubric,) = [case for suite in found.suites for case in suite.cases if "rb" in case.id]
    assert rubric.outcome == outcome
