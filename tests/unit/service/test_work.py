"""Work orders: any process grades a run from plain data, and gives the same results."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

import assay
from assay.blocking import wait_for
from assay.errors import ExecutorError, StoreError, UnknownName, UsageError
from assay.executors import dask
from assay.executors.processes import Processes
from assay.loaders import jsonl
from assay.model.events import Notice
from assay.ports import WorkOrder
from assay.registry import evaluators, executors
from assay.service import doctor, eval_files
from assay.service.runs import RunHooks, RunRequest, execute
from assay.service.work import order_to_check
from assay.service.workers import make_grader
from assay.settings import Settings
from assay.stores.postgres_store import PostgresStore
from assay.targets.scripted import ScriptedTarget
from contract.clusters import SECRET
from contract.postgres import PASSWORD, PORTS, Server
from unit.conftest import Project

REPLAY = "replay:seen.jsonl"


class Recorder:
    """Records the names and the orders of the executors that runs use."""

    def __init__(self, make: Callable[[str], Any] | None = None) -> None:
        self._get, self._make = executors.get, make
        self.names: list[str] = []
        self.orders: list[WorkOrder] = []

    def get(self, name: str) -> Any:
        chosen, make, recorder = self._get(name), self._make, self

        class Executor:
            remote = getattr(chosen, "remote", False)

            def __init__(self, real: Any = None) -> None:
                self.real = real or (make(name) if make else chosen())

            @classmethod
            def at(cls, address: str, workers: int | None) -> Executor:
                placed: Any = chosen
                return cls(placed.at(address, workers) if address or workers else None)

            def run(self, order: WorkOrder, pieces: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
                recorder.names.append(name)
                recorder.orders.append(order)
                run: AsyncGenerator[bytes, None] = self.real.run(order, pieces)
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
    monkeypatch.setattr("assay.registry.executors.get", found.get)
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
    monkeypatch.setattr("assay.registry.executors.get", recorder.get)
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
    monkeypatch.setattr("assay.registry.executors.get", recorder.get)
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
    monkeypatch.setattr("assay.registry.executors.get", recorder.get)
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


# Clusters


@pytest.fixture
def on_dask(url: str, dask_cluster: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an executor whose workers have the password of the store from elsewhere."""
    monkeypatch.setenv("ASSAY_STORE", url)
    monkeypatch.setattr(PostgresStore, "save", refuse)
    return f"dask://{dask_cluster}"


def configured(project: Project, **keys: Any) -> None:
    written = json.loads(Path("assay.yaml").read_text()) | keys
    project.write("assay.yaml", json.dumps(written))


def test_a_cluster_that_sees_the_folder_gives_the_same_results(
    streamed: Project, on_dask: str, recorder: Recorder
) -> None:
    expected = result_of(run(store="sqlite:.assay/assay.db"))
    configured(streamed, shared_folder=True)
    found = run(executor=on_dask)
    assert result_of(found) == expected
    assert found.record.environment["judges"]
    assert SECRET.encode() not in recorder.orders[-1].details
    assert PASSWORD.encode() not in recorder.orders[-1].details.replace(b"%20", b" ")


def test_a_project_travels_to_a_cluster(
    streamed: Project, on_dask: str, recorder: Recorder
) -> None:
    expected = result_of(run(store="sqlite:.assay/assay.db"))
    configured(streamed, bundle=["*"])
    before = run(executor=on_dask)
    assert result_of(before) == expected
    assert b'"root": ""' in recorder.orders[-1].details
    # The processes of a cluster outlive a run, and must not go on with its modules.
    streamed.write("plain.py", "def polite(response):\n    return True\n")
    assert run(executor=on_dask).summary.passed > before.summary.passed


def test_a_file_that_does_not_travel_is_named(streamed: Project, on_dask: str) -> None:
    configured(streamed, bundle=["assay.yaml"])
    with pytest.raises(ExecutorError, match=r"no a\.eval\.jsonl .*list it under 'bundle'"):
        run(executor=on_dask)

    configured(streamed, bundle=["*"])
    assert run(executor=on_dask).summary.passed  # the same processes work for the next run


def test_a_worker_without_the_folder_refuses_and_leaves_everything_as_it_was(
    streamed: Project, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("ASSAY_JUDGE", "mine")
    before = Path.cwd(), [*sys.path], dict(os.environ)
    root = str(tmp_path / "elsewhere")
    order = make_order(root=root, suites={"0": "a.eval.jsonl"}, variables={"ASSAY_JUDGE": "yours"})
    with pytest.raises(ExecutorError, match=r"no a\.eval\.jsonl.*mount it at the same path"):
        make_grader(order)
    assert (Path.cwd(), sys.path, dict(os.environ)) == before


def test_settings_are_overridden_where_the_run_was_started(
    streamed: Project, on_dask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = {"name": "strict", "provider": "scripted", "replies": {"it is": '{"score": 0.0}'}}
    configured(streamed, shared_folder=True, targets=[strict])
    as_configured = run(executor=on_dask)
    monkeypatch.setenv("ASSAY_JUDGE", "strict")
    overridden = run(executor=on_dask)
    assert overridden.summary.passed < as_configured.summary.passed
    assert result_of(overridden) == result_of(run(store="sqlite:.assay/assay.db"))
    monkeypatch.delenv("ASSAY_JUDGE")
    assert result_of(run(executor=on_dask)) == result_of(as_configured)


def test_a_setting_with_a_secret_does_not_travel(
    streamed: Project, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_TOOLS", f"https://tools.example/{SECRET}")
    monkeypatch.setenv("ASSAY_ALLOW_OUTSIDE_ROOT", "true")
    configured(streamed, shared_folder=True)
    found = order_to_check(Settings.find(Path()), url, "dask://127.0.0.1:1")
    assert found is not None
    order = json.loads(found[1].details)
    assert SECRET not in str(order)
    assert "ASSAY_TOOLS" not in order["variables"]
    assert order["variables"]["ASSAY_ALLOW_OUTSIDE_ROOT"] == "true"
    assert order["variables"]["ASSAY_JUDGE"] == "", "that of a worker is not used"


def make_order(**values: Any) -> bytes:
    order: dict[str, Any] = dict.fromkeys(("run_id", "root", "folder"), "")
    order |= {"modules": [], "files": [], "suites": {}, "options": {}, "sources": {}}
    return json.dumps(order | values).encode() + b"\n"


def test_a_cluster_is_refused_a_store_of_this_machine(streamed: Project) -> None:
    with pytest.raises(
        UsageError, match=r"'dask' needs a store in PostgreSQL.*'sqlite' is a store"
    ):
        run(executor="dask")


def test_a_cluster_is_refused_what_only_this_process_has(streamed: Project, on_dask: str) -> None:
    judge = ScriptedTarget(name="mine", replies={"it is": '{"score": 1.0}'}).connect()
    with pytest.raises(UsageError, match="'mine' is an object of this process"):
        run(executor=on_dask, judge=judge)


def test_an_executor_without_an_address_says_so(streamed: Project) -> None:
    for name in ("processes", "local"):
        with pytest.raises(UsageError, match=f"'{name}' has no address, and 'host:1' is one"):
            run(executor=f"{name}://host:1")


def test_processes_are_as_many_as_asked_for(streamed: Project) -> None:
    assert run(executor="processes", workers_per_machine=1).summary.passed


def test_doctor_checks_a_cluster(
    streamed: Project, on_dask: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(executor: str) -> tuple[str, str]:
        findings = doctor.examine(store=url, executor=executor)
        (finding,) = (each for each in findings if each.area == "executor")
        return finding.state, finding.message

    configured(streamed, shared_folder=True)
    state, message = found(on_dask)
    assert state == "ok"
    assert re.fullmatch(r"reached [12] workers? on 1 machine: same version, .* written", message)
    assert found("local") == ("ok", "it works on this machine")
    for wrong, words in {
        "local://host:1": "the executor 'local' has no address",
        "dask://host": "the address 'host' has no port: for example dask://host:8786",
        "ray://host:": "for example ray://host:10001",
        "dsk://host:1": "did you mean 'dask'?",
    }.items():
        state, message = found(wrong)
        assert state == "problem"
        assert words in message
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.2)
    state, message = found(f"dask://127.0.0.1:{PORTS.start - 1}")
    assert state == "problem"
    assert "cannot be reached" in message


def executor_finding(url: str, executor: str) -> doctor.Finding:
    found = doctor.examine(store=url, executor=executor)
    (finding,) = (each for each in found if each.area == "executor")
    return finding


def test_doctor_refuses_a_store_that_runs_could_not_use(streamed: Project, on_dask: str) -> None:
    finding = executor_finding("sqlite:.assay/assay.db", on_dask)
    assert (finding.state, finding.exit_code) == ("problem", 2)
    assert "needs a store in PostgreSQL" in finding.message
    assert not Path(".assay/assay.db").exists()


def test_doctor_says_that_workers_cannot_use_the_store(
    streamed: Project, on_dask: str, url: str, postgres: Server
) -> None:
    """They know another password."""
    PostgresStore(url).close()  # its tables have another owner
    postgres.sql("CREATE USER other SUPERUSER PASSWORD 'only here'")
    try:
        configured(streamed, shared_folder=True)
        elsewhere = urlsplit(url)._replace(netloc=f"other:only%20here@127.0.0.1:{postgres.port}")
        finding = executor_finding(elsewhere.geturl(), on_dask)
    finally:
        postgres.sql("DROP USER other")
    assert (finding.state, finding.exit_code) == ("problem", 3)
    assert finding.message.startswith("a worker cannot use postgresql://other@127.0.0.1")
    assert "the server refuses the user or the password" in finding.message
    assert "set PGPASSWORD or ASSAY_STORE" in finding.fix


def test_doctor_says_that_a_worker_has_another_version(
    streamed: Project, on_dask: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def order_of_another_version(*arguments: Any) -> Any:
        found = order_to_check(*arguments)
        assert found is not None
        return found[0], replace(found[1], version="0.0.7")

    configured(streamed, shared_folder=True)
    monkeypatch.setattr(doctor, "order_to_check", order_of_another_version)
    finding = executor_finding(url, on_dask)
    assert finding.state == "problem"
    assert "the run was started by 0.0.7: install the same version" in finding.message
