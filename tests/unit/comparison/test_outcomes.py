"""Finding runs in the store and in files, and the errors for those that are not found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from assay.comparison.outcomes import MAX_NAME, NAME_PATTERN, check_name, find_run, outcomes_of
from assay.errors import AssayError, NotInStore, ResultFileError, UsageError
from assay.model.comparison import Reasks
from assay.model.run import RunStatus
from assay.ports import Store
from assay.stores.memory import MemoryStore
from assay.testing.stores import make_run, make_trial, saved

IDS = [f"0198c0d{i}-0000-7000-8000-000000000000" for i in range(4)]


def add(store: Store, run_id: str, status: RunStatus = "finished") -> None:
    store.begin(make_run(run_id))
    saved(store, make_trial(0, run_id=run_id), make_trial(1, run_id=run_id, outcome="failed"))
    if status != "running":
        store.finish(run_id, status, "2026-01-31T12:01:00Z", {})


@pytest.fixture
def store() -> Store:
    store = MemoryStore()
    add(store, IDS[0])
    add(store, IDS[1])
    add(store, IDS[2], "interrupted")
    add(store, IDS[3], "running")
    store.set_baseline("main", IDS[0])
    return store


@pytest.mark.parametrize(
    ("reference", "run_id"),
    [
        ("latest", IDS[1]),
        ("main", IDS[0]),
        (IDS[2], IDS[2]),
        (IDS[1][:8], IDS[1]),
        (IDS[1][:20].upper(), IDS[1]),
    ],
)
def test_runs_of_the_store(store: Store, tmp_path: Path, reference: str, run_id: str) -> None:
    found = outcomes_of(reference, store, tmp_path)
    assert (found.run_id, found.name, found.label) == (run_id, run_id, reference)
    assert [case.outcome for case in found] == ["passed", "failed"]
    assert len(list(found)) == 2


GROUP = "0198c0e0-0000-7000-8000-000000000000"
TARGETS = {"0198c0e1-0000-7000-8000-00000000000a": "gpt"}
TARGETS |= {"0198c0e1-0000-7000-8000-00000000000b": "python:agent:answer"}


@pytest.fixture
def with_group(store: Store) -> Store:
    runs = [
        replace(make_run(run_id), target=target, group=GROUP) for run_id, target in TARGETS.items()
    ]
    store.begin(*runs)
    for run in runs:
        store.finish(run.id, "finished", "2026-01-31T12:01:00Z", {})
    return store


@pytest.mark.parametrize("group", [GROUP, GROUP.upper(), "latest", *TARGETS, "nightly"])
@pytest.mark.parametrize(("run_id", "target"), list(TARGETS.items()))
def test_a_run_of_a_group_is_named_by_its_target(
    with_group: Store, group: str, run_id: str, target: str
) -> None:
    with_group.set_baseline("nightly", next(iter(TARGETS)))
    assert find_run(f"{group}:{target}", with_group).id == run_id


def test_a_run_without_a_group_has_its_own_target_only(store: Store) -> None:
    target = store.run(IDS[0]).target
    assert find_run(f"main:{target}", store).id == IDS[0]
    with pytest.raises(UsageError, match=f"no target of main is called 'gpt'.*{target}"):
        find_run("main:gpt", store)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("latest:gtp", "no target of latest is called 'gtp' \\(did you mean 'gpt'"),
        ("nobody:gpt", "no run or baseline 'nobody:gpt'"),
        ("latest:", "no run or baseline 'latest:'"),
        (":gpt", "no run or baseline ':gpt'"),
    ],
)
def test_a_target_that_is_not_found_is_named(with_group: Store, reference: str, words: str) -> None:
    with pytest.raises(AssayError, match=words):
        find_run(reference, with_group)


def test_a_baseline_with_a_colon_in_its_name_comes_first(with_group: Store) -> None:
    with_group.set_baseline("latest:gpt", IDS[0])
    assert find_run("latest:gpt", with_group).id == IDS[0]


@pytest.mark.parametrize(
    ("number", "reasks"),
    [(0, Reasks(0, 2)), (2, Reasks(0, 2, 3)), (3, Reasks(0, 2, 3))],
    ids=["finished", "interrupted", "running"],
)
def test_re_asks_that_an_unfinished_run_has_left_are_errored(
    store: Store, tmp_path: Path, number: int, reasks: Reasks
) -> None:
    for repeat in (1, 2):
        again = make_trial(1, repeat, run_id=IDS[number], outcome="failed", confirms=True)
        saved(store, again)
    passed, failed = outcomes_of(IDS[number], store, tmp_path)
    assert (passed.reasks, failed.reasks) == (Reasks(), reasks)


def test_a_run_that_is_not_complete_says_so(store: Store, tmp_path: Path) -> None:
    assert outcomes_of(IDS[0], store, tmp_path).notes == ()
    (note,) = outcomes_of(IDS[2], store, tmp_path).notes
    assert note == f"the run {IDS[2]} is partial: it is interrupted"


def test_the_latest_is_found_behind_many_others(tmp_path: Path) -> None:
    store = MemoryStore()
    add(store, "run-000")
    for number in range(1, 120):
        store.begin(make_run(f"run-{number:03}"))
    assert outcomes_of("latest", store, tmp_path).run_id == "run-000"
    with pytest.raises(UsageError, match="no finished run"):
        outcomes_of("latest", MemoryStore(), tmp_path)


@pytest.mark.parametrize("reference", ["mian", "0198c", "0198c0e", "nothing", ""])
def test_an_unknown_run_is_not_an_empty_run(store: Store, tmp_path: Path, reference: str) -> None:
    with pytest.raises(NotInStore, match="run or baseline") as caught:
        outcomes_of(reference, store, tmp_path)
    assert caught.value.exit_code == 2
    assert ("'main'" in str(caught.value)) == (reference == "mian")


def test_an_ambiguous_start_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than one run starts with '0198c0'"):
        outcomes_of("0198c0", store, tmp_path)


def test_files(store: Store, tmp_path: Path) -> None:
    text = '{"id": "a", "outcome": "passed", "runId": "far"}'
    for name in ("one.jsonl", "main", "other.txt"):
        (tmp_path / name).write_text(text)
    assert outcomes_of("one.jsonl", store, tmp_path).run_id == "far"
    assert outcomes_of("main", store, tmp_path).run_id == IDS[0]  # a name wins over a file
    with pytest.raises(ResultFileError, match="no such file"):
        outcomes_of("two.jsonl", store, tmp_path)
    with pytest.raises(ResultFileError, match="not a result file"):
        outcomes_of("other.txt", store, tmp_path)


def test_a_run_without_results_is_refused(store: Store, tmp_path: Path) -> None:
    store.begin(make_run("empty"))
    with pytest.raises(UsageError, match="the run empty has no case results"):
        outcomes_of("empty", store, tmp_path).not_empty()
    assert outcomes_of("main", store, tmp_path).not_empty().run_id == IDS[0]


@pytest.mark.parametrize("name", ["main", "feature/x", "release 2", "v1.0", "decade", "x" * 100])
def test_names_of_baselines(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("latest", "newest run"),
        ("a.json", "taken for a file"),
        ("x.jsonl", "taken for a file"),
        (IDS[0], "the id of a run"),
        ("0198C0DE", "the id of a run"),
        ("", "1 to 100 printable"),
        ("  ", "1 to 100 printable"),
        ("a\nb", "1 to 100 printable"),
        ("a" * 101, "1 to 100 printable"),
    ],
)
def test_names_that_mean_something_else(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_name(name)


PARTS = ["a", "F", "0", "-", " ", "é", "latest", ".json", ".jsonl", "0198c0de", "x" * 50]


@given(st.lists(st.sampled_from(PARTS), max_size=7).map("".join))
def test_the_pattern_of_names_says_the_same(name: str) -> None:
    fits = re.search(NAME_PATTERN, name) is not None and len(name) <= MAX_NAME
    try:
        check_name(name)
        assert fits
    except UsageError:
        assert not fits
