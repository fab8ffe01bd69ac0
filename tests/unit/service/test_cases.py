"""Cases of recorded runs: one of them, lists of them, comparisons, and people's labels."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import assay
from assay.comparison.gate import GateRules
from assay.comparison.outcomes import find_run
from assay.errors import NotInStore
from assay.model.case_filter import parse_filter
from assay.model.case_rows import parse_sort
from assay.model.run import RunRecord
from assay.ports import Store
from assay.service import comparisons, history
from assay.service.answer_labels import (
    Labelled,
    export_labels,
    hash_of_answer,
    import_labels,
    put_label,
    remove_label,
)
from assay.service.cases import case_at, case_facets, case_page, case_rows, find_case
from assay.service.comparisons import compare_with_tables
from assay.service.labels import read
from assay.service.trends import points_of
from assay.stores.sqlite import SqliteStore

OLDER = Path(__file__).parents[2] / "contract" / "older"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECRET = "sk-" + "a1b2" * 8
WEATHER = """
cases:
  - {id: skipped, input: x, expected_output: x, skip: not now}
  - id: paris
    tags: [geo, two words]
    metadata: {owner: ann}
    input: Is it warm in Paris?
    expect: {responseContains: [Paris]}
  - id: rome
    tags: [geo]
    input: [{role: system, content: "the key is %s"}, {role: user, content: "And in ROME?"}]
    expected_output: Sunny
    evaluators: [{type: contains, value: %s}]
"""
ORDERS = """
cases:
  - {id: refund, tags: [billing], input: Refund me, expect: {responseContains: [Refund]}}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store of a project with two suites and an agent that repeats the question."""
    targets = "targets: [{name: echo, provider: echo}]"
    (tmp_path / "assay.yaml").write_text(f"{{store: 'sqlite:s.db', {targets}}}")
    (tmp_path / "a-weather.eval.yaml").write_text(WEATHER % (SECRET, "sunny"))
    (tmp_path / "b-orders.eval.yaml").write_text(ORDERS)
    monkeypatch.chdir(tmp_path)
    with closing(SqliteStore(tmp_path / "s.db")) as opened:
        yield opened


def run(store: Store, **options: Any) -> RunRecord:
    """A run of the suites as they are now."""
    return store.run(assay.run(".", target="echo", **options).id)


def test_a_case_has_what_was_asked_even_if_the_file_has_changed_since(store: Store) -> None:
    record = run(store, repeat=2)
    Path("a-weather.eval.yaml").unlink()
    case = case_at(store, record, 1)
    assert (case.row.id, case.row.passes, case.row.judged) == ("paris", 2, 2)
    assert case.content.input == [{"role": "user", "content": "Is it warm in Paris?"}]
    assert case.content.tags == ["geo", "two words"]
    assert case.content.metadata == {"owner": "ann"}
    given = {"name": "expect", "type": "expect", "responseContains": ["Paris"]}
    assert case.content.evaluators == [given]
    assert case.source == "a-weather.eval.yaml:4"
    assert [trial.repeat for trial in case.trials] == [0, 1]
    assert case.trials[0].observation["response"] == "Is it warm in Paris?"
    assert case.trials[0].details.evaluators[0].score == 1.0


def test_positions_count_the_cases_of_all_suites(store: Store) -> None:
    whole = run(store)
    assert [row.id for row in case_rows(store, whole)] == ["skipped", "paris", "rome", "refund"]
    assert [row.position for row in case_rows(store, whole)] == [0, 1, 2, 3]
    part = run(store, filter=["re*"])
    assert [(row.position, row.id) for row in case_rows(store, part)] == [(3, "refund")]
    assert case_at(store, part, 3).row.id == "refund"
    for position in (0, 4, 10**9):
        with pytest.raises(NotInStore, match="no case"):
            case_at(store, part, position)
    found = find_case(store, whole, "b-orders.eval.yaml", "refund")
    assert found is not None
    assert found.row.position == 3
    assert find_case(store, whole, "b-orders.eval.yaml", "rome") is None


def test_lists_are_filtered_sorted_and_counted(store: Store) -> None:
    record = run(store)
    page = case_page(
        store, record, parse_filter("-outcome:skipped"), sort=parse_sort("-id"), limit=2
    )
    assert [row.id for row in page.rows] == ["rome", "refund"]
    rest = case_page(
        store, record, parse_filter("-outcome:skipped"), sort=parse_sort("-id"), after=page.next
    )
    assert [row.id for row in rest.rows] == ["paris"]
    assert page.facets == rest.facets
    assert page.facets.outcome == {"failed": 1, "passed": 2}
    assert page.facets.tag == {"billing": 1, "geo": 2, "two words": 1}
    assert page.facets.suite == {"a-weather.eval.yaml": 2, "b-orders.eval.yaml": 1}
    assert case_facets(store, record, parse_filter("suite:b-orders")).total == 1
    assert case_facets(store, record, parse_filter('"and in rome"')).total == 1
    assert case_facets(store, record, parse_filter("evaluator:contains")).total == 1


def test_a_run_at_work_is_listed_as_far_as_it_is(store: Store) -> None:
    record = run(store)
    store.reopen(record.id)
    at_work = store.run(record.id)
    assert [row.id for row in case_page(store, at_work, parse_filter("tag:geo")).rows] == [
        "paris",
        "rome",
    ]
    assert not store.case_index.has(record.id)


def test_secrets_are_not_in_contents(store: Store) -> None:
    record = run(store)
    case = msgspec.json.encode(case_at(store, record, 2)).decode()
    assert SECRET not in case
    assert "the key is [redacted]" in case
    assert SECRET.encode() not in Path("s.db").read_bytes()


def test_equal_contents_are_stored_once(store: Store) -> None:
    first = run(store, repeat=3)
    run(store)
    with store._database.reading() as connection:  # type: ignore[attr-defined]

        def contents() -> int:
            return int(connection.execute("SELECT count(*) FROM content", ()).fetchone()[0])

        assert contents() == 4
        changed = (WEATHER % (SECRET, "cloudy")).replace("Rome", "ROME")
        Path("a-weather.eval.yaml").write_text(changed)
        last = run(store)
        assert contents() == 5
        store.delete(last.id)
        assert contents() == 4
        store.delete(first.id)
        assert contents() == 4


def test_result_files_have_tags_and_input(store: Store) -> None:
    record = run(store)
    files = Path(f".assay/runs/{record.id}").glob("*.json")
    cases = [case for file in files for case in json.loads(file.read_text())["cases"]]
    rome = next(case["details"] for case in cases if case["id"] == "rome")
    assert rome["tags"] == ["geo"]
    assert rome["input"][1] == {"role": "user", "content": "And in ROME?"}


def test_changes_since_the_baseline_are_found(store: Store) -> None:
    base = run(store)
    store.set_baseline("main", base.id)
    Path("b-orders.eval.yaml").write_text(ORDERS.replace("[Refund]", "[Money]"))
    Path("a-weather.eval.yaml").write_text((WEATHER % (SECRET, "rome")).replace("sunny", "ROME"))
    record = run(store, baseline="main")
    found = {row.id: row.changed for row in case_rows(store, record)}
    assert found["paris"] is None
    assert found["refund"] == "not-comparable"
    where = parse_filter("changed:not-comparable tag:billing")
    assert case_facets(store, record, where).total == 1
    assert case_at(store, record, 3).row.changed == "not-comparable"
    assert case_at(store, base, 3).row.changed is None


def test_a_baseline_of_another_tool_has_no_suites(store: Store) -> None:
    lines = ('{"test_id": "refund", "score": 0}', '{"test_id": "paris", "score": 1}')
    Path("old.jsonl").write_text("\n".join(lines))
    record = run(store, baseline="old.jsonl")
    alone = [case_at(store, record, position).row for position in range(4)]
    assert not store.case_index.has(record.id)
    assert alone == list(case_rows(store, record))
    assert [row.changed for row in alone] == ["added", None, "added", "fixed"]


def test_a_comparison_counts_pairs_by_suite_and_tag(store: Store) -> None:
    base, other = run(store), run(store)
    for _ in range(2):  # the second time from the store
        found = json.loads(compare_with_tables(base.id, other.id, store, GateRules()))
        total = found["tables"]["total"]
        assert (total["bothPassed"], total["bothFailed"], total["pairs"]) == (2, 1, 3)
        assert [row["name"] for row in found["tables"]["suites"]] == [
            "a-weather.eval.yaml",
            "b-orders.eval.yaml",
        ]
        tags = {row["name"]: row["pairs"] for row in found["tables"]["tags"]}
        assert tags == {"billing": 1, "geo": 2, "two words": 1}
    assert store.case_index.comparison(base.id, other.id, "other rules") is None
    strict = json.loads(compare_with_tables(base.id, other.id, store, GateRules(strict=True)))
    assert strict["gate"] == found["gate"]


def test_a_comparison_is_of_the_runs_that_were_found_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, other = run(store), run(store)

    def find_before_the_next_run_ends(name: str, store: Store) -> RunRecord:
        found = find_run(name, store)
        if name == "latest":
            run(store)
        return found

    monkeypatch.setattr(comparisons, "find_run", find_before_the_next_run_ends)
    monkeypatch.setattr(history, "find_run", find_before_the_next_run_ends)
    found = json.loads(compare_with_tables(base.id, "latest", store, GateRules()))
    assert (found["base"], found["candidate"]) == (base.id, other.id)


def test_a_comparison_of_another_version_is_made_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, other = run(store), run(store)
    kept = compare_with_tables(base.id, other.id, store, GateRules())
    monkeypatch.setattr(comparisons, "tables", lambda *_: "of a later version")
    assert compare_with_tables(base.id, other.id, store, GateRules()) == kept
    monkeypatch.setattr(comparisons, "__version__", "later")
    assert b"of a later version" in compare_with_tables(base.id, other.id, store, GateRules())


def test_points_with_the_same_questions_are_comparable(store: Store) -> None:
    for _ in range(2):
        run(store)
    Path("b-orders.eval.yaml").write_text(ORDERS.replace("Refund me", "Refund me now"))
    run(store)
    first, second, third = points_of(store)
    assert first.comparability == second.comparability != third.comparability
    first, second, third = points_of(store, "a-weather")
    assert first.comparability == second.comparability == third.comparability is not None


def test_a_run_of_an_older_version_shows_what_is_known(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    file.write_bytes(gzip.decompress((OLDER / "sqlite-5.db.gz").read_bytes()))
    with closing(SqliteStore(file)) as store:
        record = store.runs(9)[-1]
        assert [row.id for row in case_page(store, record).rows] == ["paris", "rome"]
        case = case_at(store, record, 1)
        assert (case.row.outcome, case.row.judged, case.row.tags) == ("failed", 2, ())
        assert case.content.input == ()
        assert case.source == "evals/weather.eval.yaml:8"
        assert case.row.evaluators == ("expect",)
        assert case_facets(store, record, parse_filter('"weather in rome"')).total == 1


def test_labels_are_put_removed_exported_and_imported(store: Store, tmp_path: Path) -> None:
    record, other = run(store), run(store)
    given = Labelled(True, "ann", "polite")
    label = put_label(store, record, 2, given, NOW)
    assert (label.case_id, label.author, label.passed) == ("rome", "ann", True)
    (trial,) = (one for one in store.trials(record.id) if one.case_id == "rome")
    assert label.answer_hash == hash_of_answer(trial)
    put_label(store, record, 1, Labelled(False, "ann", "polite"), NOW)
    put_label(store, record, 1, Labelled(True, "ann", "other"), NOW)
    file = tmp_path / "labels.csv"
    assert export_labels(store, record, file, "polite") == 2
    assert export_labels(store, record, file, "polite") == 0
    assert [(one.id, one.passed, one.run) for one in read(file)] == [
        ("paris", False, record.id),
        ("rome", True, record.id),
    ]
    assert import_labels(store, other, file, Labelled(True, "zoe"), NOW) == 0
    file.write_text(file.read_text().replace(record.id, ""))
    assert import_labels(store, other, file, Labelled(True, "zoe"), NOW) == 2
    said = {one.case_id: (one.author, one.passed) for one in store.labels.of_run(other.id)}
    assert said == {"paris": ("zoe", False), "rome": ("zoe", True)}
    remove_label(store, record, 2, given)
    with pytest.raises(NotInStore, match="no label"):
        remove_label(store, record, 2, given)
    with pytest.raises(NotInStore, match="no case"):
        put_label(store, record, 2, Labelled(True, "ann", repeat=1), NOW)
