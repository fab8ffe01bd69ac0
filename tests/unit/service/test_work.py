"""Work orders: any process grades a run from plain data, and gives the same results."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.blocking import wait_for
from assay.errors import StoreError, UnknownName
from assay.executors.processes import Processes
from assay.loaders import jsonl
from assay.model.events import Notice
from assay.ports import WorkOrder
from assay.registry import evaluators, executors
from assay.service import eval_files
from assay.service.runs import RunHooks, RunRequest, execute
from assay.stores.postgres_store import PostgresStore
from assay.targets.scripted import ScriptedTarget
from contract.postgres import PASSWORD, Server
from unit.conftest import Project

REPLAY = "replay:seen.jsonl"
SECRET = "k9-secret-of-the-judge"


class Recorder:
    """Records the names and the orders of the executors that runs use."""

    def __init__(self, make: Callable[[str], Any] | None = None) -> None:
        self._get, self._make = executors.get, make
        self.names: list[str] = []
        self.orders: list[WorkOrder] = []

    def get(self, name: str) -> Any:
        real = self._make(name) if self._make else self._get(name)()
        recorder = self

        class Executor:
            def run(self, order: WorkOrder, pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
                recorder.names.append(name)
                recorder.orders.append(order)
                run: AsyncGenerator[bytes, None] = real.run(order, pieces)
                return run

        return Executor


@pytest.fixture
def streamed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of which every file is streamed, in chunks of a line or two."""
    monkeypatch.setattr(eval_files, "STREAMED_BYTES", 0)
    monkeypatch.setattr(jsonl, "CHUNK_BYTES", 300)
    monkeypatch.setenv("JUDGE_KEY", SECRET)
    judge = {
        "name": "judge",
        "provider": "scripted",
        "replies": {"it is": '{"score": 1.0}'},
    }
    keyed = {"name": "m", "provider": "openai", "model": "m", "api_key": "${{ JUDGE_KEY }}"}
    project.write("assay.yaml", json.dumps({"judge": judge, "targets": [keyed]}))
    project.write("evals/seed-manifest.json", json.dumps({"town": "Oslo"}))
    project.write("plain.py", "def polite(response):\n    return 'please' in response\n")
    checks: list[Any] = [
        {"type": "contains", "value": "it is"},
        {"type": "python:plain:polite"},
        {"type": "expect", "responseContains": ["{{seed:town}}"]},
        {"type": "llm_judge", "prompt": "Is it true?"},
    ]
    cases: list[dict[str, Any]] = [{"id": f"c{n}", "input": "where?"} for n in range(12)]
    for n, case in enumerate(cases):
        case["expected_output"] = f"it is Oslo {n}, please"
        if n % 3:
            case["evaluators"] = checks[: n % 4 + 1]
    said = [f"it is Oslo {n}" + (", please" if n % 2 else f" {SECRET}") for n in range(12)]
    seen = [{"id": f"c{n}", "response": text} for n, text in enumerate(said)]
    project.write("a.eval.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
    project.write("seen.jsonl", "".join(json.dumps(one) + "\n" for one in seen))
    return project


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found = Recorder()
    monkeypatch.setattr("assay.engine.streamed_suites.executors.get", found.get)
    return found


def run(**options: Any) -> assay.Run:
    return assay.run(
        "a.eval.jsonl",
        target=REPLAY,
        evaluators=[{"type": "similarity"}],
        **options,
    )


def result_of(found: assay.Run) -> dict[str, Any]:
    (file,) = Path(".assay/runs", found.id).glob("*.json")
    document: dict[str, Any] = json.loads(file.read_text())
    for name in ("runId", "timestamp", "environment", "options"):
        document.pop(name, None)
    return document


def notices_of(executor: str, **wanted: Any) -> list[str]:
    notices: list[str] = []

    def listen(event: Any) -> None:
        if isinstance(event, Notice) and "executor" in event.text:
            notices.append(event.text)

    request = RunRequest("a.eval.jsonl", REPLAY, hooks=RunHooks(listen), **wanted)
    wait_for(lambda: execute(request, {"executor": executor}))
    return notices


def test_all_executors_give_the_same_results(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, forked = run(executor="local"), run(executor="processes")
    recorder = Recorder(lambda name: Processes(2, "spawn"))
    monkeypatch.setattr("assay.engine.streamed_suites.executors.get", recorder.get)
    spawned = run(executor="processes")
    assert result_of(local) == result_of(forked) == result_of(spawned)
    assert local.record.environment["judges"]
    assert local.record.environment["judges"] == spawned.record.environment["judges"]
    assert local.summary.passed
    assert local.summary.failed
    assert "[redacted]" in json.dumps(result_of(spawned))
    assert SECRET.encode() not in recorder.orders[0].details


def test_processes_are_chosen_by_default(streamed: Project, recorder: Recorder) -> None:
    run()
    assert recorder.names == ["processes"]


def test_the_configuration_may_choose_an_executor(streamed: Project, recorder: Recorder) -> None:
    written = json.loads(Path("assay.yaml").read_text()) | {"defaults": {"executor": "local"}}
    streamed.write("assay.yaml", json.dumps(written))
    run()
    assert recorder.names == ["local"]


def test_an_unknown_executor_is_refused_with_the_nearest_name(streamed: Project) -> None:
    with pytest.raises(UnknownName, match="did you mean 'processes'"):
        run(executor="proceses")


def test_a_judge_that_is_an_object_is_used_locally(streamed: Project, recorder: Recorder) -> None:
    judge = ScriptedTarget(name="mine", replies={"it is": '{"score": 1.0}'}).connect()
    (notice,) = notices_of("processes", judge=judge)
    assert "the executor is 'local' instead of 'processes'" in notice
    assert "'mine' is an object of this process" in notice
    run(judge=judge)
    assert recorder.names == ["local"] * 2


def test_an_evaluator_of_a_script_is_used_locally(
    streamed: Project, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluators, "_added", dict(evaluators.added))
    monkeypatch.setattr(evaluators, "_loaded", dict(evaluators._loaded))

    @assay.evaluator
    def only_here(response: str) -> bool:
        return bool(response)

    (notice,) = notices_of("processes")
    assert "the evaluator 'only_here' is defined in" in notice
    assert recorder.names == ["local"]


def test_evaluators_of_modules_are_imported_by_other_processes(
    streamed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluators, "_added", dict(evaluators.added))
    monkeypatch.setattr(evaluators, "_loaded", dict(evaluators._loaded))
    streamed.write(
        "registering.py",
        "import assay\n\n@assay.evaluator\ndef short(response):\n    return len(response) < 99\n",
    )
    monkeypatch.syspath_prepend(str(Path.cwd()))
    __import__("registering")
    streamed.write("a.eval.jsonl", '{"id": "c1", "input": "?", "evaluators": [{"type": "short"}]}')
    recorder = Recorder(lambda name: Processes(1, "spawn"))
    monkeypatch.setattr("assay.engine.streamed_suites.executors.get", recorder.get)
    assert assay.run("a.eval.jsonl", target=REPLAY).passed
    assert recorder.names == ["processes"]


def test_replies_in_a_cache_of_this_process_are_used_locally(
    streamed: Project, recorder: Recorder
) -> None:
    run(cache=True)
    assert recorder.names == ["local"]


# PostgreSQL


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    url = postgres.new_database()
    yield url
    postgres.give_back(url)


def refuse(self: Any, *trials: Any) -> Any:
    raise StoreError("the main process saves nothing")


def test_workers_save_to_postgresql_themselves(
    streamed: Project, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = result_of(run())
    monkeypatch.setenv("ASSAY_STORE", url)
    monkeypatch.setattr(PostgresStore, "save", refuse)  # not in processes that are spawned
    recorder = Recorder(lambda name: Processes(2, "spawn"))
    monkeypatch.setattr("assay.engine.streamed_suites.executors.get", recorder.get)
    found = run()
    assert result_of(found) == expected
    assert len(list(found.store.trials(found.id))) == 12
    details = recorder.orders[0].details.decode()
    assert "postgresql://" in details
    assert url not in details
    assert PASSWORD not in details.replace("%20", " ")


def test_forked_workers_know_the_password_of_a_store_that_is_given(
    streamed: Project, url: str
) -> None:
    expected = result_of(run())
    assert result_of(run(store=url)) == expected
