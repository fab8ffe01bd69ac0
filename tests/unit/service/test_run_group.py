"""`assay.run` with a list of targets."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import UsageError
from assay.service.store import open_store
from assay.settings import Settings

SUITE = assay.Suite(
    "s", [assay.Case(name, name, expected_output=name) for name in ("lisbon", "porto", "faro")]
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("assay.yaml").write_text("targets: [{name: parrot, provider: echo}]")
    return tmp_path


class Named:
    def __init__(self, name: str, wrong: str = "") -> None:
        self.name, self._wrong = name, wrong

    async def ask(self, request: assay.Request) -> assay.Observation:
        question = request.messages[-1].text
        return assay.Observation("no" if question == self._wrong else question)

    async def close(self) -> None:
        pass


def sailor(question: str) -> str:
    return "Ask a sailor."


def test_elements_may_be_names_functions_and_targets() -> None:
    group = assay.run(SUITE, target=["parrot", sailor, Named("<b>")])
    assert [run.target for run in group.runs] == ["parrot", f"python:{__name__}:sailor", "<b>"]
    assert [run.exit_code for run in group.runs] == [0, 1, 0]
    assert (group.passed, group.exit_code) == (False, 1)
    assert group["parrot"] is group.runs[0]
    with pytest.raises(UsageError, match=r"no target of the group is called 'parot'"):
        group["parot"]
    assert [target.target for target in group.comparison.targets if target.passed] == [
        "parrot",
        "<b>",
    ]
    assert repr(group).startswith(f"<RunGroup {group.id}: parrot, python:")
    assert repr(group).endswith("<b>, exit code 1>")
    shown = group._repr_html_()
    assert "<td>&lt;b&gt;</td><td>3</td><td>0</td>" in shown
    assert "<b>failed</b>" in shown
    assert group.report("json").startswith('{"groupId":')
    assert group.id in group.report()


def test_arun_does_the_same() -> None:
    async def run() -> assay.RunGroup:
        return await assay.arun(SUITE, target=[Named("a"), Named("b")])

    assert [run.target for run in asyncio.run(run()).runs] == ["a", "b"]


def test_a_list_of_one_is_a_group_too() -> None:
    group = assay.run(SUITE, target=["parrot"])
    assert isinstance(group, assay.RunGroup)
    assert [target.target for target in group.comparison.best] == ["parrot"]


def test_the_store_stays_open_as_long_as_one_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    settings = Settings.find(Path())
    kind = type(open_store(settings, None))
    close = kind.close

    def note(store: Any) -> None:
        closed.append("closed")
        close(store)

    monkeypatch.setattr(kind, "close", note)
    group = assay.run(SUITE, target=["parrot", Named("b")])
    first = group.runs[0]
    del group
    gc.collect()
    assert closed == []
    assert [case.id for case in first.cases()] == ["lisbon", "porto", "faro"]
    del first
    gc.collect()
    assert closed == ["closed"], "and is closed once"


def test_a_group_is_a_baseline() -> None:
    base = assay.run(SUITE, target=[Named("a"), Named("b")])
    worse = [Named("b", "porto"), Named("a"), Named("c")]
    group = assay.run(SUITE, target=worse, baseline=base, confirm=0)
    compared = [run.comparison.base if run.comparison else None for run in group.runs]
    assert compared == [base["b"].id, base["a"].id, None]
    assert group["c"].notes[0] == f"it has no baseline: {base.id} has no run of this target"
    alone = assay.run(SUITE, target=Named("b"), baseline=base)
    assert alone.comparison is not None
    assert alone.comparison.base == base["b"].id
    one = assay.run(SUITE, target=[Named("a"), Named("b")], baseline=base["a"])
    assert [run.comparison is None for run in one.runs] == [False, True]
    with pytest.raises(UsageError, match="has no run of c: it is of a and b"):
        assay.run(SUITE, target=[Named("c")], baseline=base)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([], "the list of targets is empty"),
        ([Named("a"), Named("a")], "two targets are called 'a'"),
        ([lambda text: text, lambda text: text], "two targets are called 'python:.*<lambda>'"),
        (["parrot", 3], "int is not a target"),
        (["parrot", None], "None is not a target"),
        (["parrot", "nobody"], "no target is called 'nobody'"),
    ],
)
def test_mistakes(targets: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        assay.run(SUITE, target=targets)


def test_runs_are_named_by_their_targets_even_if_all_cases_are_skipped() -> None:
    skipped = assay.Suite("s", [assay.Case("lisbon", "lisbon", expected_output="x", skip="later")])
    group = assay.run(skipped, target=["parrot", Named("b")])
    assert [run.target for run in group.runs] == ["parrot", "b"]
    assert [target.target for target in group.comparison.targets] == ["parrot", "b"]
    assert "parrot has no judged case" in group.report()


def test_one_target_stays_one_whatever_is_configured() -> None:
    Path("assay.yaml").write_text(
        "targets: [{name: a, provider: echo}, {name: b, provider: echo}]\n"
        "defaults: {target: [a, b]}\n"
    )
    with pytest.raises(UsageError, match="one target is asked here, and 'a', 'b' are configured"):
        assay.run(SUITE)
    assert assay.run(SUITE, target="a").target == "a"


def test_early_stops_need_a_baseline_for_each_target() -> None:
    base = assay.run(SUITE, target=[Named("a")])
    with pytest.raises(UsageError, match="decided against a baseline: 'b' has none"):
        assay.run(SUITE, target=[Named("a"), Named("b")], baseline=base, stop_when="decided")
