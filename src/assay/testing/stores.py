"""Conformance tests for implementations of Store, to be run with pytest.

    class TestMyStore(StoreConformance):
        def make_store(self, folder: Path) -> Store:
            return MyStore(...)

Each test gets its own empty `folder`, and closes the stores it opens.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from assay.errors import NotInStore, RunHeld, StoreError
from assay.model.result import Outcome
from assay.model.run import RunRecord, SuiteHeader, TrialFacts, TrialRecord
from assay.ports import Store
from assay.testing.case_index import CaseIndexConformance
from assay.testing.labels import LabelConformance
from assay.testing.login_sessions import LoginSessionConformance

#: The timeout for writing what a test saves.
SECONDS = 600


def make_run(run_id: str = "run-1", **rest: Any) -> RunRecord:
    return RunRecord(run_id, "2026-01-31T12:00:00Z", "running", "echo", **rest)


def make_trial(position: int, repeat: int = 0, run_id: str = "run-1", **rest: Any) -> TrialRecord:
    fields: dict[str, Any] = {
        "suite": "evals/weather.eval.yaml",
        "case_id": f"case-{position}",
        "outcome": "passed",
        "score": 1.0,
        "duration_ms": 12.5,
        "cost_usd": None,
        "judge_cost_usd": None,
        "comparability": "c0ffee",
        "critical": False,
        "cluster": None,
        "min_pass_rate": 1.0,
        "skipped_assertions": 0,
        "confirms": False,
        "final": True,
        "result": b'{"passed":true}',
        "observation": b'{"response":"23.5 \xc2\xb0C"}',
    }
    return TrialRecord(run_id, position, repeat, **fields | rest)


def saved(store: Store, *trials: TrialRecord) -> None:
    """Save the trials and wait until they are on disk."""
    for future in [store.save(trial) for trial in trials]:
        future.result(SECONDS)


class StoreConformance(CaseIndexConformance, LabelConformance, LoginSessionConformance, ABC):
    """Subclass it, implement `make_store`, and pytest finds the tests."""

    @abstractmethod
    def make_store(self, folder: Path) -> Store:
        """Create an empty store; it may keep files in the folder."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = self.make_store(tmp_path)
        yield store
        store.close()

    # Runs

    def test_a_run_is_read_as_it_was_begun(self, store: Store) -> None:
        run = make_run(
            options={"workers": 10},
            environment={"git": None},
            suites=[SuiteHeader("b", "b.yaml"), SuiteHeader("a", "a.yaml")],
        )
        store.begin(run)
        assert store.run("run-1") == run

    def test_a_run_begins_once(self, store: Store) -> None:
        store.begin(make_run())
        with pytest.raises(StoreError, match="'run-1'"):
            store.begin(make_run(suites=[SuiteHeader("other", "other.yaml")]))
        assert store.run("run-1") == make_run()

    def test_runs_begin_together_or_not_at_all(self, store: Store) -> None:
        store.begin(make_run("run-2"))
        with pytest.raises(StoreError, match="'run-2'"):
            store.begin(make_run("run-1"), make_run("run-2"), make_run("run-3"))
        assert store.runs(9) == [make_run("run-2")]

    def test_the_runs_of_a_group_are_in_the_order_of_their_ids(self, store: Store) -> None:
        runs = [make_run(f"run-{i}", group=g) for i, g in enumerate(["a", None, "b", "a", None])]
        store.begin(*runs)
        assert store.group("a") == [runs[0], runs[3]]
        assert store.group("b") == [runs[2]]
        store.finish("run-3", "finished", "2026-01-31T12:05:00Z", {})
        store.delete("run-0")
        assert [(run.id, run.status) for run in store.group("a")] == [("run-3", "finished")]

    @pytest.mark.parametrize("name", ["a", "", "run-1", "\x00"])
    def test_an_error_names_the_unknown_group(self, store: Store, name: str) -> None:
        store.begin(make_run())
        with pytest.raises(NotInStore, match="no group"):
            store.group(name)

    def test_a_description_is_replaced(self, store: Store) -> None:
        store.begin(make_run(suites=[SuiteHeader("a", "a.yaml")]))
        grown = SuiteHeader("a", "a.yaml", selected=3, notes=["it grew"])
        store.describe("run-1", [grown], {"judges": [{"id": "j"}]})
        assert store.run("run-1").environment == {"judges": [{"id": "j"}]}
        assert store.run("run-1").suites == [grown]

    def test_a_trial_that_was_not_asked_is_replaced_by_one_that_was(self, store: Store) -> None:
        store.begin(make_run())
        saved(store, make_trial(0, outcome="errored", final=False), make_trial(1))
        assert list(store.finished("run-1")) == [(1, 0)]
        saved(store, make_trial(0, critical=True), make_trial(1, outcome="failed"))
        assert list(store.finished("run-1")) == [(0, 0), (1, 0)]
        first, second = store.trials("run-1")
        assert (first, second) == (make_trial(0, critical=True), make_trial(1))

    def test_trials_of_some_positions(self, store: Store) -> None:
        store.begin(make_run())
        saved(store, *(make_trial(i, outcome="failed" if i % 2 else "passed") for i in range(6)))
        found = store.trials("run-1", positions=range(2, 5))
        assert [trial.position for trial in found] == [2, 3, 4]
        found = store.trials("run-1", ["failed"], range(2, 5))
        assert [trial.position for trial in found] == [3]

    def test_the_content_of_a_case_is_read_with_each_of_its_trials(self, store: Store) -> None:
        question, other = b'{"input":[]}', b'{"input":["\xc2\xb0C"]}'
        for run_id in ("run-1", "run-2"):
            store.begin(make_run(run_id))
        kept = [
            make_trial(0, 0, content=question),
            make_trial(0, 1, content=question),
            make_trial(1),
        ]
        later = [make_trial(i, run_id="run-2", content=question) for i in range(40)]
        saved(store, *kept)
        store.save(*later, make_trial(40, run_id="run-2", content=other)).result(SECONDS)
        assert list(store.trials("run-1")) == kept
        assert list(store.trials("run-2", positions=range(40))) == later
        store.delete("run-1")
        first, *_, last = store.trials("run-2")
        assert (first.content, last.content) == (question, other)

    def test_facts_match_the_trials(self, store: Store) -> None:
        store.begin(make_run())
        kept = [make_trial(0, cluster="x", min_pass_rate=0.5), make_trial(1, critical=True)]
        saved(store, *reversed(kept))
        names = TrialFacts.__struct_fields__
        wanted = [TrialFacts(*(getattr(trial, name) for name in names)) for trial in kept]
        assert list(store.facts("run-1")) == wanted
        assert list(store.facts("run-1", range(1, 2))) == wanted[1:]

    def test_a_finished_run_says_how_it_ended(self, store: Store) -> None:
        store.begin(make_run())
        store.finish("run-1", "interrupted", "2026-01-31T12:01:00Z", {"passed": 1})
        store.finish("run-1", "finished", "2026-01-31T12:05:00Z", {"passed": 2})
        run = store.run("run-1")
        assert (run.status, run.finished_at) == ("finished", "2026-01-31T12:05:00Z")
        assert run.summary == {"passed": 2}

    def test_a_resumed_run_is_running_again(self, store: Store) -> None:
        begun = make_run()
        store.begin(begun)
        store.finish("run-1", "interrupted", "2026-01-31T12:01:00Z", {"passed": 1})
        store.reopen("run-1")
        assert store.run("run-1") == begun

    def test_finish_waits_for_earlier_saves(self, store: Store) -> None:
        store.begin(make_run())
        futures = [store.save(make_trial(i)) for i in range(500)]
        store.finish("run-1", "finished", "2026-01-31T12:05:00Z", {})
        assert len(list(store.trials("run-1"))) == 500
        assert not wait(futures, SECONDS).not_done

    def test_runs_come_newest_first_and_in_pages(self, store: Store) -> None:
        for name in ("run-2", "run-3", "run-1"):
            store.begin(make_run(name))
        assert [run.id for run in store.runs(2)] == ["run-3", "run-2"]
        assert [run.id for run in store.runs(2, before="run-2")] == ["run-1"]
        assert store.runs(2, before="run-1") == []

    def test_an_error_names_the_unknown_run(self, store: Store) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.run("run-9"),
            lambda: store.trials("run-9"),
            lambda: store.finished("run-9"),
            lambda: store.facts("run-9"),
            lambda: store.describe("run-9", [], {}),
            lambda: store.finish("run-9", "finished", "2026-01-31T12:05:00Z", {}),
            lambda: store.reopen("run-9"),
            lambda: store.delete("run-9"),
            lambda: store.set_baseline("main", "run-9"),
            lambda: store.move_baseline("main", "run-9", None),
            lambda: store.save(make_trial(0, run_id="run-9")).result(SECONDS),
        ]
        for call in calls:
            with pytest.raises(NotInStore, match="no run 'run-9'"):
                call()

    # TrialRunner

    def test_a_trial_is_read_byte_for_byte(self, store: Store) -> None:
        store.begin(make_run())
        strange = make_trial(
            2**40,
            3,
            case_id="città ☂ 'quoted'",
            score=None,
            outcome="errored",
            cost_usd=0.1,
            result=b'{ "kept": "as it is" }\n',
            observation=b"",
        )
        saved(store, strange)
        assert list(store.trials("run-1")) == [strange]

    def test_trials_come_by_position_and_repeat(self, store: Store) -> None:
        store.begin(make_run())
        saved(
            store, *(make_trial(position, repeat) for repeat in (1, 0) for position in (10, 2, 0))
        )
        keys = [(0, 0), (0, 1), (2, 0), (2, 1), (10, 0), (10, 1)]
        assert [(t.position, t.repeat) for t in store.trials("run-1")] == keys
        assert list(store.finished("run-1")) == keys

    def test_of_trials_with_the_same_key_the_first_is_kept(self, store: Store) -> None:
        store.begin(make_run())
        saved(store, make_trial(0, result=b"1"), make_trial(0, result=b"2"))
        saved(store, make_trial(0, result=b"3"))
        assert [t.result for t in store.trials("run-1")] == [b"1"]

    def test_trials_are_chosen_by_outcome(self, store: Store) -> None:
        store.begin(make_run())
        outcomes: list[Outcome] = ["passed", "failed", "errored", "failed"]
        saved(store, *(make_trial(i, outcome=outcome) for i, outcome in enumerate(outcomes)))
        assert [t.position for t in store.trials("run-1", ["failed"])] == [1, 3]
        assert [t.position for t in store.trials("run-1", ["errored", "passed"])] == [0, 2]
        assert list(store.trials("run-1", [])) == []

    def test_trials_stay_with_their_run(self, store: Store) -> None:
        store.begin(make_run("run-1"))
        store.begin(make_run("run-2"))
        saved(store, *(make_trial(i, run_id=f"run-{1 + i % 2}") for i in range(10)))
        assert [t.position for t in store.trials("run-2")] == [1, 3, 5, 7, 9]

    def test_an_unknown_run_does_not_affect_other_trials(self, store: Store) -> None:
        store.begin(make_run())
        trials = [make_trial(i, run_id="run-1" if i % 2 else "run-9") for i in range(10)]
        futures = [store.save(trial) for trial in trials]
        assert [f.exception(SECONDS) is None for f in futures] == [bool(i % 2) for i in range(10)]
        assert [t.position for t in store.trials("run-1")] == [1, 3, 5, 7, 9]

    def test_trials_that_are_saved_together_are_there_together_or_not_at_all(
        self, store: Store
    ) -> None:
        store.begin(make_run())
        store.save(make_trial(0), make_trial(1), make_trial(2)).result(SECONDS)
        with pytest.raises(NotInStore, match="no run 'run-9'"):
            store.save(make_trial(3), make_trial(4, run_id="run-9")).result(SECONDS)
        store.save().result(SECONDS)
        assert [t.position for t in store.trials("run-1")] == [0, 1, 2]

    def test_a_save_cannot_be_cancelled(self, store: Store) -> None:
        store.begin(make_run())
        futures = [store.save(make_trial(i)) for i in range(100)]
        assert not any(future.cancel() for future in futures)
        assert not wait(futures, SECONDS).not_done
        assert len(list(store.finished("run-1"))) == 100

    def test_an_iterator_ignores_later_saves(self, store: Store) -> None:
        store.begin(make_run())
        saved(store, *(make_trial(i) for i in range(0, 20, 2)))
        trials = store.trials("run-1")
        first = next(trials)
        saved(store, *(make_trial(i) for i in range(1, 20, 2)))
        assert [first.position, *(t.position for t in trials)] == list(range(0, 20, 2))
        assert len(list(store.trials("run-1"))) == 20

    def test_an_abandoned_iterator_does_not_hide_later_runs(self, store: Store) -> None:
        store.begin(make_run())
        saved(store, make_trial(0), make_trial(1))
        left = store.trials("run-1")
        next(left)
        store.begin(make_run("run-2"))
        assert [run.id for run in store.runs(10)] == ["run-2", "run-1"]

    def test_many_threads_save_and_read_at_once(self, store: Store) -> None:
        store.begin(make_run())
        faults: list[BaseException] = []

        def work(start: int) -> None:
            try:
                saved(store, *(make_trial(i) for i in range(start, start + 50)))
                assert {(start, 0), (start + 49, 0)} <= set(store.finished("run-1"))
            except BaseException as fault:
                faults.append(fault)

        threads = [threading.Thread(target=work, args=(i * 50,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert faults == []
        assert [t.position for t in store.trials("run-1")] == list(range(400))

    def test_deleting_a_run_deletes_its_trials(self, store: Store) -> None:
        store.begin(make_run())
        saved(store, make_trial(0))
        store.delete("run-1")
        assert store.runs(10) == []
        store.begin(make_run())
        assert list(store.trials("run-1")) == []

    # Leases

    def test_a_lease_is_exclusive(self, store: Store) -> None:
        for run_id in ("run-1", "../any 'text' \U0001f3f3 at all" * 20):
            assert not store.held(run_id)
            with store.lease(run_id):
                assert store.held(run_id)
                with (
                    pytest.raises(RunHeld, match="running in another process"),
                    store.lease(run_id),
                ):
                    pass
                assert store.held(run_id)
                with store.lease("another"):
                    pass
            assert not store.held(run_id)

    def test_concurrent_threads_get_the_lease_one_after_the_other(self, store: Store) -> None:
        holders: list[int] = []
        most = 0

        def work(number: int) -> int:
            nonlocal most
            times = 0
            while times < 5:
                try:
                    with store.lease("run-1"):
                        holders.append(number)
                        most = max(most, len(holders))
                        holders.remove(number)
                        times += 1
                except RunHeld:
                    pass
            return times

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(work, range(8))) == 40
        assert most == 1

    def test_asking_whether_a_run_is_held_never_blocks_its_lease(self, store: Store) -> None:
        done = threading.Event()

        def ask() -> None:
            while not done.is_set():
                store.held("run-1")

        with ThreadPoolExecutor(2) as pool:
            askers = [pool.submit(ask) for _ in range(2)]
            try:
                for _ in range(100):
                    with store.lease("run-1"):
                        pass
            finally:
                done.set()
            for asker in askers:
                asker.result(SECONDS)

    # Baselines

    def test_a_baseline_is_found_by_its_name(self, store: Store) -> None:
        store.begin(make_run("run-1"))
        store.begin(make_run("run-2"))
        store.set_baseline("main", "run-1")
        store.set_baseline("first", "run-1")
        store.set_baseline("main", "run-2")
        assert store.baseline("main") == "run-2"
        assert list(store.baselines().items()) == [("first", "run-1"), ("main", "run-2")]

    def test_a_baseline_keeps_its_history(self, store: Store) -> None:
        for number in (1, 2, 3):
            store.begin(make_run(f"run-{number}"))
        for run_id in ("run-1", "run-2", "run-2", "run-1", "run-3"):
            store.set_baseline("main", run_id)
        assert store.baseline_history("main") == ["run-1", "run-2", "run-1", "run-3"]
        store.set_baseline("main", "run-2", reset_history=True)
        assert (store.baseline("main"), store.baseline_history("main")) == ("run-2", ["run-2"])
        store.remove_baseline("main")
        store.set_baseline("main", "run-3")
        assert store.baseline_history("main") == ["run-3"], "the old history went with the name"

    def test_a_baseline_moves_only_from_the_run_that_it_points_to(self, store: Store) -> None:
        for number in (1, 2, 3):
            store.begin(make_run(f"run-{number}"))
        assert store.move_baseline("main", "run-1", None)
        assert not store.move_baseline("main", "run-2", None)
        assert store.move_baseline("main", "run-3", "run-1")
        assert not store.move_baseline("main", "run-2", "run-1")
        assert store.move_baseline("main", "run-3", "run-1"), "the name points to it already"
        assert store.baseline_history("main") == ["run-1", "run-3"]

    def test_runs_between_the_first_and_the_last_of_a_history_can_be_deleted(
        self, store: Store
    ) -> None:
        for number in (1, 2, 3):
            store.begin(make_run(f"run-{number}"))
            store.set_baseline("main", f"run-{number}")
        with pytest.raises(StoreError, match="'run-1' is the first run of the baseline 'main'"):
            store.delete("run-1")
        store.delete("run-2")
        assert store.baseline_history("main") == ["run-1", "run-3"]

    def test_an_unknown_baseline_is_named_with_the_nearest(self, store: Store) -> None:
        store.begin(make_run())
        store.set_baseline("main", "run-1")
        for call in (store.baseline, store.baseline_history, store.remove_baseline):
            with pytest.raises(NotInStore, match=r"no baseline 'mian'.*did you mean 'main'"):
                call("mian")

    @pytest.mark.parametrize("name", ["a\0b", "\ud800"], ids=ascii)
    def test_a_name_that_cannot_be_stored_is_not_found(self, store: Store, name: str) -> None:
        for call in (store.baseline, store.baseline_history, store.remove_baseline):
            with pytest.raises(NotInStore, match="no baseline"):
                call(name)

    def test_the_run_of_a_baseline_cannot_be_deleted(self, store: Store) -> None:
        store.begin(make_run())
        store.set_baseline("main", "run-1")
        with pytest.raises(StoreError, match="'run-1' is the baseline 'main'"):
            store.delete("run-1")
        store.remove_baseline("main")
        assert store.baselines() == {}
        store.delete("run-1")

    # Cache

    def test_a_reply_is_remembered(self, store: Store) -> None:
        assert store.get("key") is None
        value: dict[str, Any] = {"replies": ["23.5 °C", 1, None]}
        store.put("key", value)
        value["replies"] = []
        assert store.get("key") == {"replies": ["23.5 °C", 1, None]}

    def test_a_reply_is_overwritten(self, store: Store) -> None:
        for i in range(100):
            store.put("key", {"reply": i})
            assert store.get("key") == {"reply": i}

    def test_keep_overwrites_as_put_does(self, store: Store) -> None:
        store.put("key", {"reply": 1})
        store.keep("key", {"reply": 2})
        assert store.get("key") == {"reply": 2}

    # Closing

    def test_closing_waits_for_pending_writes(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.begin(make_run())
        futures = [store.save(make_trial(i)) for i in range(2000)]
        store.close()
        assert all(future.done() and future.exception() is None for future in futures)

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.begin(make_run())
        store.close()
        store.close()
        calls: list[Callable[[], object]] = [
            lambda: store.begin(make_run("run-2")),
            lambda: store.save(make_trial(0)),
            lambda: store.run("run-1"),
            lambda: store.trials("run-1"),
            lambda: store.runs(1),
            lambda: store.baselines(),
            lambda: store.put("key", {}),
            lambda: store.keep("key", {}),
            lambda: store.get("key"),
        ]
        for call in calls:
            with pytest.raises(StoreError, match="closed"):
                call()
