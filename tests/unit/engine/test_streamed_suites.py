"""Suites that are read as a stream: the same results as when they are loaded whole."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import assay
from assay import scoring
from assay.blocking import wait_for
from assay.engine import stream
from assay.errors import EvalFileErrors, FunctionError, UsageError
from assay.executors.processes import Processes
from assay.loaders import jsonl
from assay.model.events import Notice
from assay.ports import Chunk, WorkOrder
from assay.service import eval_files
from assay.service.calibration import CalibrationSession
from assay.service.project import project as find_project
from assay.service.runs import RunHooks, RunRequest, execute
from assay.service.store import open_store
from assay.testing.stores import SECONDS
from assay.work_orders import keep, worker_of
from unit.conftest import Project

REPLAY = "replay:seen.jsonl"


@pytest.fixture
def streamed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose files are all streams, in chunks of a line or two."""
    project.write("assay.yaml")
    monkeypatch.setattr(eval_files, "STREAMED_BYTES", 0)
    monkeypatch.setattr(jsonl, "CHUNK_BYTES", 200)
    monkeypatch.setattr(jsonl, "PART_BYTES", 90)
    monkeypatch.setattr(stream, "SAVED_TOGETHER", 3)
    return project


def case(number: int, **more: Any) -> dict[str, Any]:
    checks: list[dict[str, Any]] = [
        {"type": "contains", "value": f"it is {number}"},
        {"type": "not_contains", "value": "no idea"},
    ]
    return {"id": f"c{number}", "input": f"number {number}", "evaluators": checks} | more


def seen(number: int, said: str = "") -> dict[str, Any]:
    calls = [{"name": "look", "params": {"n": number}, "success": True}]
    return {"id": f"c{number}", "response": said or f"it is {number}", "toolCalls": calls}


def write(project: Project, cases: list[Any], answers: list[Any]) -> None:
    project.write("a.eval.jsonl", "".join(json.dumps(c) + "\n" for c in cases))
    project.write("seen.jsonl", "".join(json.dumps(a) + "\n" for a in answers))


def document(run: assay.Run) -> dict[str, Any]:
    """The result file of a run without what differs from run to run."""
    (file,) = Path(".assay/runs", run.id).glob("*.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return {key: found[key] for key in found.keys() - {"runId", "timestamp", "environment"}}


def finished(run_id: str) -> list[tuple[int, int]]:
    store = open_store(find_project(), None)
    try:
        return list(store.finished(run_id))
    finally:
        store.close()


some_cases = st.lists(
    st.sampled_from(
        [
            {},
            {"skip": "later"},
            {"threshold": 0.3},
            {"repeat": 2, "min_pass_rate": 0.5},
            {"tags": ["x"], "critical": True, "cluster": "k"},
            {"expected_output": "it is 1", "evaluators": [{"type": "equals"}]},
        ]
    ),
    min_size=1,
    max_size=12,
)
some_answers = st.lists(st.sampled_from(["", "no idea", "?", None]), min_size=12, max_size=12)


@settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(some_cases, some_answers)
def test_a_stream_gives_the_results_of_the_same_cases_loaded_whole(
    streamed: Project, extras: list[dict[str, Any]], said: list[str | None]
) -> None:
    # A run without requests names no target; a stream does not know that before it is read.
    assume(any("skip" not in extra for extra in extras))
    cases = [case(number, **extra) for number, extra in enumerate(extras)]
    answers = [seen(n, text) for n, text in enumerate(said) for _ in range(2) if text is not None]
    write(streamed, cases, answers)
    results = []
    for smallest in (0, 1 << 30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(eval_files, "STREAMED_BYTES", smallest)
            run = assay.run("a.eval.jsonl", target=REPLAY)
        reported = re.sub(rf"{run.id}|Duration .*", "", run.report())
        results.append((document(run), run.summary, run.exit_code, reported))
    assert results[0] == results[1]


@pytest.mark.parametrize("executor", ["processes", "local"])
def test_slow_checks_and_functions_judge_a_stream_too(
    streamed: Project, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    monkeypatch.setattr(scoring, "LOOP_SECONDS", 0.0)
    streamed.write("judging.py", "def judge(response):\n    return response.startswith('it')\n")
    checks = [{"type": "similarity", "value": "it is 1"}, {"type": "python:judging:judge"}]
    write(streamed, [case(n, evaluators=checks) for n in range(3)], list(map(seen, range(3))))
    run = assay.run("a.eval.jsonl", target=REPLAY, executor=executor)
    [suite] = run.suites
    assert [round(result.score or 0, 3) for result in suite.cases] == [0.929, 1.0, 0.929]


@pytest.mark.parametrize("executor", ["processes", "local"])
@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ("tag:x", ["c2"]),
        ("-tag:x suite:a", ["c0", "c1"]),
        ("suite:b", ["c3"]),
        ("id:c1,c3", ["c1", "c3"]),
    ],
)
def test_a_filter_selects_cases_of_streams(
    streamed: Project, executor: str, chosen: str, found: list[str]
) -> None:
    write(streamed, [case(0), case(1), case(2, tags=["x"])], list(map(seen, range(4))))
    streamed.write("b.eval.jsonl", json.dumps(case(3)) + "\n")
    files = ["a.eval.jsonl", "b.eval.jsonl"]
    run = assay.run(files, target=REPLAY, select=chosen, executor=executor)
    assert [result.id for suite in run.suites for result in suite.cases] == found


def test_blank_lines_and_a_byte_order_mark_are_skipped(streamed: Project) -> None:
    lines = [json.dumps(case(number)) for number in range(3)]
    streamed.write("a.eval.jsonl", "\ufeff" + "\n\n \r\n".join(lines) + "\n\n")
    streamed.write("seen.jsonl", "".join(json.dumps(seen(n)) + "\n" for n in range(3)))
    run = assay.run("a.eval.jsonl", target=REPLAY)
    assert run.passed
    (suite,) = run.suites
    assert [(c.id, c.source[1]) for c in suite.cases] == [("c0", 1), ("c1", 4), ("c2", 7)]


def test_a_bad_line_ends_the_run_and_all_are_reported(streamed: Project) -> None:
    wrong = [case(3, threshold=2), case(5, evaluators=[{"type": "contians", "value": "x"}])]
    write(streamed, [case(0), case(1), wrong[0], case(4), wrong[1]], [seen(0)])
    with (Path("a.eval.jsonl")).open("a") as file:
        file.write("{")
    with pytest.raises(EvalFileErrors) as refused:
        assay.run("a.eval.jsonl", target=REPLAY)
    problems = refused.value.problems
    assert [(p.line, p.code) for p in problems] == [
        (3, "wrong-value"),
        (5, "unknown-evaluator"),
        (6, "json-syntax"),
    ]
    store = open_store(find_project(), None)
    assert store.runs(10) == []
    store.close()
    assert not list(Path(".assay/runs").glob("*/*"))


def test_the_id_of_a_skipped_case_counts_too(streamed: Project) -> None:
    write(streamed, [case(0, skip="later"), case(0)], [seen(0)])
    with pytest.raises(EvalFileErrors) as refused:
        assay.run("a.eval.jsonl", target=REPLAY)
    assert [(p.line, p.code) for p in refused.value.problems] == [(2, "duplicate-id")]


@pytest.mark.parametrize("answers", [[seen(0), seen(1), seen(1), seen(2)], []])
def test_a_duplicate_id_is_reported(streamed: Project, answers: list[Any]) -> None:
    write(streamed, [case(0), case(1), case(2), case(1)], answers)
    with pytest.raises(EvalFileErrors) as refused:
        assay.run("a.eval.jsonl", target=REPLAY)
    (problem,) = refused.value.problems
    assert (problem.line, problem.code) == (4, "duplicate-id")
    assert "line 2" in problem.message


def test_unused_answers_are_reported(streamed: Project) -> None:
    write(streamed, [case(0)], [seen(0), seen(7), seen(8)])
    run = assay.run("a.eval.jsonl", target=REPLAY)
    assert "2 lines have an id that no selected case has" in run.report()


def test_a_tier_that_is_not_wanted_is_not_read(streamed: Project) -> None:
    write(streamed, [case(0)], [seen(0)])
    assert assay.run("a.eval.jsonl", target=REPLAY, tier=("golden",)).exit_code == 5


class Wrapped:
    """One forked process, whose worker first calls a function with the piece."""

    def __init__(self, first: Callable[[bytes], None]) -> None:
        self._first = first

    def run(self, order: WorkOrder, pieces: Any) -> Any:
        keep(order, self._worker(worker_of(order)))
        return Processes(1, "fork").run(order, pieces)

    def _worker(self, real: Any) -> Any:
        first = self._first

        class Worker:
            close = real.close

            def __call__(self, piece: bytes) -> bytes:
                first(piece)
                return bytes(real(piece))

        return Worker()


def kill_once(piece: bytes) -> None:
    """Kill the process when it begins its second chunk."""
    [[number, *_], _] = msgspec.msgpack.decode(piece)
    if number > 1 and not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_replaced(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(streamed, [case(n) for n in range(12)], [seen(n) for n in range(12)])
    expected = document(assay.run("a.eval.jsonl", target=REPLAY))
    monkeypatch.setattr("assay.registry.executors.get", lambda name: lambda: Wrapped(kill_once))
    assert document(assay.run("a.eval.jsonl", target=REPLAY)) == expected
    assert Path("killed").exists()


def test_a_resumed_stream_does_only_the_rest(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [case(n, repeat=2, min_pass_rate=0.5) for n in range(12)]
    write(streamed, cases, [seen(n, said) for n in range(13) for said in ("", "?")])
    whole = assay.run("a.eval.jsonl", target=REPLAY)
    expected = document(whole)
    graded: list[tuple[int, int]] = []
    keep = stream.StreamRun._count

    def broken(self: Any, result: Any) -> None:
        keep(self, result)
        graded.extend((trial.position, trial.repeat) for trial in result.trials)
        if len(graded) > 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stream.StreamRun, "_count", broken)
        with pytest.raises(KeyboardInterrupt):
            assay.run("a.eval.jsonl", target=REPLAY)
    store = open_store(find_project(), None)
    (left,) = [record.id for record in store.runs(10) if record.status == "running"]
    store.close()
    before = finished(left)
    assert 0 < len(before) < 24
    graded.clear()

    def noted(self: Any, result: Any) -> None:
        keep(self, result)
        graded.extend((trial.position, trial.repeat) for trial in result.trials)

    monkeypatch.setattr(stream.StreamRun, "_count", noted)
    resumed = resume("a.eval.jsonl")
    assert resumed.id == left
    assert document(resumed) == expected
    assert "2 lines have an id that no selected case has" in " ".join(resumed.notes)
    assert resumed.notes == whole.notes
    assert not set(before) & set(graded)
    assert len(before) + len(graded) == 24


def resume(path: str) -> assay.Run:
    return wait_for(lambda: execute(RunRequest(path, REPLAY, resume=""), {}))


def test_cases_of_a_stream_that_were_not_selected_are_not_gone(streamed: Project) -> None:
    write(streamed, [case(n) for n in range(5)], [seen(n) for n in range(5)])
    base = assay.run("a.eval.jsonl", target=REPLAY)
    write(streamed, [case(n) for n in range(4)], [seen(n) for n in range(4)])
    found = assay.run("a.eval.jsonl", target=REPLAY, baseline=base.id, filter="c1")
    assert found.comparison is not None
    assert [ref.id for ref in found.comparison.removed] == ["c4"]
    whole = assay.run("a.eval.jsonl", target=REPLAY, baseline=base.id)
    assert whole.comparison is not None
    assert whole.comparison.removed == found.comparison.removed


# Judges


def judge(name: str, **keys: Any) -> dict[str, Any]:
    return {"name": name, "type": "llm_judge", "prompt": f"Judge the {name}."} | keys


def judged_project(project: Project, judges: list[list[dict[str, Any]]], **more: Any) -> None:
    """One case for each list of judges; the judge is content with everything."""
    replies = {"it is": '{"score": 1.0}'}
    project.write("assay.yaml", json.dumps({"judge": {"provider": "scripted", "replies": replies}}))
    cases = [case(n, criteria="true", evaluators=own, **more) for n, own in enumerate(judges)]
    write(project, cases, [seen(n) for n in range(len(judges))])


def environment_judges(run: assay.Run) -> list[tuple[str, bool]]:
    found = run.record.environment.get("judges", [])
    return [(use["evaluator"], use["counts"]) for use in found]


def test_the_judges_of_a_stream_are_those_of_the_same_cases_loaded_whole(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = {"type": "contains", "value": "it is"}
    unweighted = [judge("tone", weight=0), check]
    judged_project(streamed, [[judge("truth")]] * 6 + [unweighted] * 3 + [[judge("tone")]] * 3)
    run = assay.run("a.eval.jsonl", target=REPLAY)
    assert environment_judges(run) == [("tone", True), ("truth", True)]
    monkeypatch.setattr(eval_files, "STREAMED_BYTES", 1 << 30)
    whole = assay.run("a.eval.jsonl", target=REPLAY)
    assert run.record.environment["judges"] == whole.record.environment["judges"]
    assert document(run) == document(whole)


def test_judges_of_cases_that_are_not_selected_are_none_of_the_run(streamed: Project) -> None:
    judged_project(streamed, [[judge("truth")], [judge("tone")]])
    run = assay.run("a.eval.jsonl", target=REPLAY, filter=("c1",))
    assert environment_judges(run) == [("tone", True)]


def test_a_calibrated_judge_corrects_the_pass_rate_of_a_stream(streamed: Project) -> None:
    judged_project(streamed, [[judge("truth")]] * 4)
    first = assay.run("a.eval.jsonl", target=REPLAY, require_calibrated=True)
    assert first.exit_code == 1
    streamed.write("labels.csv", "id,label\nc0,pass\nc1,pass\nc2,fail\n")
    CalibrationSession("labels.csv").calibrate()
    second = assay.run("a.eval.jsonl", target=REPLAY, require_calibrated=True)
    assert second.exit_code == 0
    (reported,) = document(second)["statistics"]["judges"]
    assert reported["calibration"]["state"] == "current"
    assert reported["passRate"]["judged"] == 4
    assert "Judge" in second.report()


def test_a_resumed_stream_has_the_judges_of_earlier_trials(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_project(streamed, [[judge("truth")]] + [[judge("tone")]] + [[judge("style")]] * 6)
    keep, chunks = stream.StreamRun._drain_saves, []

    def broken(self: Any, under_way: Any) -> None:
        keep(self, under_way)
        chunks.append(1)
        if len(chunks) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stream.StreamRun, "_drain_saves", broken)
        with pytest.raises(KeyboardInterrupt):
            assay.run("a.eval.jsonl", target=REPLAY)
    resumed = resume("a.eval.jsonl")
    assert environment_judges(resumed) == [("style", True), ("tone", True), ("truth", True)]


def test_a_judge_that_is_missing_late_in_a_stream_leaves_no_run(streamed: Project) -> None:
    unknown = judge("truth", target="nobody")
    judged_project(streamed, [[judge("truth")]] * 5 + [[unknown]])
    with pytest.raises(UsageError, match="nobody"):
        assay.run("a.eval.jsonl", target=REPLAY)
    store = open_store(find_project(), None)
    assert store.runs(10) == []
    store.close()


# Streams together with other suites


def test_other_suites_are_checked_before_a_stream_is_graded(streamed: Project) -> None:
    write(streamed, [case(0)], [seen(0), seen(1)])
    suite = {"cases": [case(1, criteria="true", evaluators=[judge("truth")])]}
    streamed.write("b.eval.yaml", json.dumps(suite))
    with pytest.raises(UsageError, match="a judge is needed"):
        assay.run(["a.eval.jsonl", "b.eval.yaml"], target=REPLAY)
    store = open_store(find_project(), None)
    assert store.runs(10) == []
    store.close()


def test_judges_of_all_suites_are_recorded(streamed: Project) -> None:
    judged_project(streamed, [[judge("truth")]] * 2)
    suite = {"cases": [case(1, criteria="true", evaluators=[judge("tone")])]}
    streamed.write("b.eval.yaml", json.dumps(suite))
    run = assay.run(["a.eval.jsonl", "b.eval.yaml"], target=REPLAY)
    assert run.passed
    assert environment_judges(run) == [("tone", True), ("truth", True)]


def test_answers_of_other_suites_count_as_used(streamed: Project) -> None:
    write(streamed, [case(0)], [seen(n) for n in range(4)])
    Path("c.eval.jsonl").write_text(json.dumps(case(2)) + "\n")
    streamed.write("b.eval.yaml", json.dumps({"cases": [case(1), case(9)]}))
    run = assay.run(["a.eval.jsonl", "b.eval.yaml", "c.eval.jsonl"], target=REPLAY)
    assert "1 line has an id that no selected case has" in run.report()


def test_broken_lines_of_the_recording_are_reported_for_a_stream_too(streamed: Project) -> None:
    write(streamed, [case(0)], [seen(0), []])
    (note,) = assay.run("a.eval.jsonl", target=REPLAY).notes
    assert ": 1 line cannot be read; the first: seen.jsonl:2:1: " in note


@pytest.mark.parametrize("kept", [2, 9], ids=["shorter", "another"])
def test_a_file_that_changes_while_it_is_read_leaves_no_run(
    streamed: Project, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Some of its cases would be gone, or of another version than the hash of the run says."""
    write(streamed, [case(n) for n in range(9)], [seen(n) for n in range(9)])
    other = [case(n, description="other") for n in range(kept)]
    chunks = jsonl.UncheckedCases.chunks
    passes: list[int] = []

    def first(self: jsonl.UncheckedCases) -> Iterator[Chunk]:
        found = list(chunks(self))
        passes.append(len(found))
        if len(passes) == 2:  # the first pass only warms up
            write(streamed, other, [seen(n) for n in range(9)])
        yield from found

    monkeypatch.setattr(jsonl.UncheckedCases, "chunks", first)
    with pytest.raises(EvalFileErrors) as caught:
        assay.run("a.eval.jsonl", target=REPLAY)
    assert [problem.code for problem in caught.value.problems] == ["file-changed"]
    store = open_store(find_project(), None)
    assert store.runs(10) == []
    store.close()


# Errors and warnings are reported as for a file that is loaded whole


Reported = tuple[list[str], list[str], int | None]


def reported(path: str = "a.eval.jsonl", *, resume: str | None = None, **options: Any) -> Reported:
    """The notices of a run, the problems that it was refused for, and its exit code."""
    notices: list[str] = []

    def listen(event: Any) -> None:
        if isinstance(event, Notice) and not event.text.startswith("skipped "):
            notices.append(event.text)

    request = RunRequest(path, REPLAY, resume=resume, hooks=RunHooks(listen))
    try:
        run = wait_for(lambda: execute(request, options))
    except EvalFileErrors as error:
        return notices, [str(problem) for problem in error.problems], None
    return notices, [], run.exit_code


def reported_both_ways(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Reported:
    """What is reported for a stream; asserts that a file loaded whole reports the same."""
    found = reported(**options)
    with monkeypatch.context() as patch:
        patch.setattr(eval_files, "STREAMED_BYTES", 1 << 30)
        assert found == reported(**options)
    return found


def runs() -> list[str]:
    store = open_store(find_project(), None)
    try:
        return [record.status for record in store.runs(10)]
    finally:
        store.close()


def warned(number: int) -> dict[str, Any]:
    """A case with two spellings of a key, of which one is ignored."""
    return case(number, input_messages=f"number {number}")


def test_a_warning_does_not_stop_a_stream(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [warned(n) if n in (2, 7) else case(n) for n in range(9)]
    write(streamed, cases, [seen(n) for n in range(9)])
    notices, problems, exit_code = reported_both_ways(monkeypatch)
    assert [notice.partition(" warning")[0] for notice in notices] == [
        "a.eval.jsonl:3:14:",
        "a.eval.jsonl:8:14:",
    ]
    assert (problems, exit_code) == ([], 0)
    assert runs() == ["finished"] * 2
    assert assay.run("a.eval.jsonl", target=REPLAY).summary.passed == 9


def test_warnings_refuse_a_strict_stream(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [warned(n) if n in (2, 7) else case(n) for n in range(9)]
    write(streamed, cases, [seen(n) for n in range(9)])
    notices, problems, _ = reported_both_ways(monkeypatch, strict=True)
    assert notices == []
    assert [problem.partition(" error[ignored-alias]")[0] for problem in problems] == [
        "a.eval.jsonl:3:14:",
        "a.eval.jsonl:8:14:",
    ]
    assert runs() == []


def test_warnings_of_an_invalid_stream_are_reported_with_its_errors(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(streamed, [warned(0), case(1), case(2, threshold=2), warned(3)], [seen(0)])
    for strict in (False, True):
        notices, problems, _ = reported_both_ways(monkeypatch, strict=strict)
        assert notices == []
        assert [problem.split("[")[0].rpartition(" ")[2] for problem in problems] == [
            "warning",
            "error",
            "warning",
        ]
    assert runs() == []


def test_the_warnings_of_a_stream_are_limited(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.problems.MAX_PROBLEMS", 3)
    write(streamed, [warned(n) for n in range(9)], [seen(n) for n in range(9)])
    notices, _, exit_code = reported()
    assert len(notices) == 4
    assert "there are more than 3 warnings" in notices[-1]
    assert exit_code == 0


def test_a_resumed_stream_reports_its_warnings_once(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(streamed, [warned(0), *map(case, range(1, 9))], [seen(n) for n in range(9)])
    saves: list[int] = []
    keep = stream.StreamRun._drain_saves

    def broken(self: Any, most: int) -> None:
        keep(self, most)
        saves.append(most)
        if len(saves) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stream.StreamRun, "_drain_saves", broken)
        with pytest.raises(KeyboardInterrupt):
            assay.run("a.eval.jsonl", target=REPLAY)
    _, problems, _ = reported(resume="", strict=True)
    assert len(problems) == 1
    assert runs() == ["running"]  # it can be gone on with
    notices, _, exit_code = reported(resume="")
    assert (len(notices), exit_code) == (1, 0)
    assert "ignored-alias" in notices[0]


@pytest.mark.parametrize("answers", [[], [seen(n) for n in range(4)]], ids=["alone", "answered"])
@pytest.mark.parametrize(
    "options",
    [{"filter": ("c0",)}, {"tag": ("x",)}, {"repeat": 2}],
    ids=["filter", "tag", "repeat"],
)
def test_the_ids_of_cases_that_are_not_selected_count_too(
    streamed: Project,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    answers: list[Any],
) -> None:
    write(streamed, [case(0), case(1, tags=["x"]), case(2), case(3), case(1), case(2)], answers)
    _, problems, _ = reported_both_ways(monkeypatch, **options)
    assert [problem.partition(" error[duplicate-id]")[0] for problem in problems] == [
        "a.eval.jsonl:5:8:",
        "a.eval.jsonl:6:8:",
    ]
    assert runs() == []


def test_hashes_that_are_equal_by_chance_refuse_no_stream(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_hash", lambda identity: 7)
    write(streamed, [case(0), case(1)], [seen(0)])
    assert reported(filter=("c0",)) == ([], [], 0)


UNKNOWN = {"type": "python:nope:x"}


@pytest.mark.parametrize("first", [True, False])
def test_bad_lines_are_reported_before_an_evaluator_that_cannot_be_prepared(
    streamed: Project, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    unprepared = case(9, evaluators=[UNKNOWN])
    cases = [case(0), *(case(n, threshold=2) for n in (1, 2, 3, 4)), case(5)]
    write(streamed, [unprepared, *cases] if first else [*cases, unprepared], [seen(0)])
    _, problems, _ = reported_both_ways(monkeypatch)
    assert len(problems) == 4
    assert all("error[wrong-value]" in problem for problem in problems)
    assert runs() == []


def test_bad_lines_are_reported_before_an_evaluator_of_another_suite(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(streamed, [case(0), case(1, threshold=2)], [seen(0)])
    streamed.write("b.eval.yaml", json.dumps({"cases": [case(2, evaluators=[UNKNOWN])]}))
    _, problems, _ = reported_both_ways(monkeypatch, path=".")
    assert [problem.partition(" ")[0] for problem in problems] == ["a.eval.jsonl:2:152:"]
    assert runs() == []


def test_an_evaluator_that_cannot_be_prepared_refuses_a_stream(streamed: Project) -> None:
    write(streamed, [*map(case, range(8)), case(8, evaluators=[UNKNOWN])], [seen(0)])
    with pytest.raises(FunctionError, match="nope"):
        reported()
    assert runs() == []


def test_all_streams_are_looked_through_when_one_is_wrong(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(streamed, [case(0, threshold=2), case(1)], [seen(0)])
    Path("b.eval.jsonl").write_text(json.dumps(case(3, threshold=2)) + "\n")
    _, problems, _ = reported_both_ways(monkeypatch, path=".")
    assert [problem.partition(":")[0] for problem in problems] == ["a.eval.jsonl", "b.eval.jsonl"]


def test_a_line_that_is_too_long_does_not_hide_earlier_problems(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 400)
    write(streamed, [case(0, threshold=2), case(1), case(2, description="x" * 900)], [seen(0)])
    _, problems, _ = reported_both_ways(monkeypatch)
    assert ["wrong-value" in problems[0], "too-large" in problems[1]] == [True, True]
    assert len(problems) == 2
    assert runs() == []


@pytest.mark.parametrize("options", [{}, {"filter": ("c0",)}], ids=["all", "filter"])
def test_a_stream_of_blank_lines_has_no_case(
    streamed: Project, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    streamed.write("a.eval.jsonl", "\n" * 500)
    streamed.write("seen.jsonl", json.dumps(seen(0)))
    _, problems, _ = reported_both_ways(monkeypatch, **options)
    assert [problem.partition(" the")[0] for problem in problems] == [
        "a.eval.jsonl:1:1: error[no-cases]:"
    ]
    assert runs() == []


def test_a_stream_of_which_nothing_is_selected_is_not_wrong(streamed: Project) -> None:
    write(streamed, [case(0)], [seen(0)])
    _, problems, exit_code = reported(filter=("nobody",))
    assert (problems, exit_code) == ([], 5)


def text(run: assay.Run) -> str:
    """The result file, in which 2 and 2.0 are different."""
    return json.dumps(document(run), sort_keys=True)


def test_whole_numbers_are_written_the_same_however_a_run_came_to_its_end(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [case(n, **({"repeat": 2} if n % 2 else {})) for n in range(9)]
    answers = [seen(n) | {"costUsd": 1, "durationMs": 3} for n in range(9) for _ in range(2)]
    write(streamed, cases, answers)
    expected = text(assay.run("a.eval.jsonl", target=REPLAY))
    saves: list[int] = []
    keep = stream.StreamRun._drain_saves

    def broken(self: Any, most: int) -> None:
        keep(self, 0)
        saves.append(most)
        if len(saves) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stream.StreamRun, "_drain_saves", broken)
        with pytest.raises(KeyboardInterrupt):
            assay.run("a.eval.jsonl", target=REPLAY)
    assert text(resume("a.eval.jsonl")) == expected
    monkeypatch.setattr(eval_files, "STREAMED_BYTES", 1 << 30)
    assert text(assay.run("a.eval.jsonl", target=REPLAY)) == expected
    assert text(assay.run("a.eval.jsonl", target=REPLAY, store="memory:")) == expected


# Others in the event loop


class Asking(Wrapped):
    """One process that asks the event loop of its parent before each piece of work."""

    def __init__(self) -> None:
        super().__init__(self.ask)
        self.asks, self.asked = os.pipe()
        self.answers, self.answered = os.pipe()

    def ask(self, piece: bytes) -> None:
        os.write(self.asked, b"?")
        if not wait([self.answers], SECONDS):  # of a file with any number
            raise AssertionError("the event loop of the parent stands still")
        os.read(self.answers, 1)

    def answer(self) -> None:
        os.write(self.answered, os.read(self.asks, 1))

    def close(self) -> None:
        for file in (self.asks, self.asked, self.answers, self.answered):
            os.close(file)


@pytest.fixture
def asking(streamed: Project) -> Iterator[Asking]:
    write(streamed, [case(n) for n in range(9)], [seen(n) for n in range(9)])
    with closing(Asking()) as found, pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.registry.executors.get", lambda name: lambda: found)
        yield found


def test_the_event_loop_runs_while_a_stream_is_graded(asking: Asking) -> None:
    async def with_another_suite() -> assay.Run:
        asyncio.get_running_loop().add_reader(asking.asks, asking.answer)
        return await assay.arun("a.eval.jsonl", target=REPLAY)

    assert asyncio.run(with_another_suite()).summary.passed == 9


def test_a_stream_that_is_cancelled_ends_its_processes_and_can_be_resumed(asking: Asking) -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(assay.arun("a.eval.jsonl", target=REPLAY))
        asyncio.get_running_loop().add_reader(asking.asks, task.cancel)
        await task

    others = set(multiprocessing.active_children())  # a cluster that other tests use
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert set(multiprocessing.active_children()) <= others
    assert runs() == ["running"]

    async def resumed() -> assay.Run:
        asyncio.get_running_loop().add_reader(asking.asks, asking.answer)
        return await execute(RunRequest("a.eval.jsonl", REPLAY, resume=""), {})

    assert asyncio.run(resumed()).summary.passed == 9
