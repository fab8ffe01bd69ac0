"""Conformance tests for the labels of a store; part of StoreConformance."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from assay.model.label import AnswerLabel
from assay.ports import Store


def make_label(**rest: Any) -> AnswerLabel:
    fields: dict[str, Any] = {
        "run_id": "run-1",
        "suite": "evals/weather.eval.yaml",
        "case_id": "paris",
        "repeat": 0,
        "evaluator": "polite",
        "criterion": "",
        "author": "ann",
        "passed": True,
        "answer_hash": "c0ffee",
        "created_at": "2026-01-31T12:00:00.000Z",
    }
    return AnswerLabel(**fields | rest)


class LabelConformance:
    """What a store must do with labels."""

    def test_labels_of_a_run_are_read_in_order(self, store: Store) -> None:
        labels = [make_label(case_id=name, author=author) for name in "ab" for author in "xy"]
        store.labels.put(*reversed(labels), make_label(run_id="run-2"))
        assert store.labels.of_run("run-1") == labels
        assert store.labels.of_run("run-2") == [make_label(run_id="run-2")]
        assert store.labels.of_run("run-3") == []

    def test_an_author_has_one_label_of_a_kind_for_an_answer(self, store: Store) -> None:
        others = [make_label(author="zoe"), make_label(criterion="x"), make_label(repeat=1)]
        store.labels.put(make_label(), *others)
        changed = replace(make_label(), passed=False, answer_hash="other")
        store.labels.put(changed)
        assert changed in store.labels.of_run("run-1")
        assert len(store.labels.of_run("run-1")) == 4

    def test_a_label_is_removed_once(self, store: Store) -> None:
        store.labels.put(make_label(), make_label(author="zoe"))
        assert store.labels.remove(make_label())
        assert not store.labels.remove(make_label())
        assert store.labels.of_run("run-1") == [make_label(author="zoe")]
