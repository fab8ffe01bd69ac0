"""The order of answers to label, what labels say about a judge, and the criteria that are shown."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from assay.model.calibration import JudgeUse
from assay.model.case_content import CaseContent
from assay.model.comparison import CaseRef
from assay.model.label import AnswerLabel
from assay.results.judgements import Judgement
from assay.service.labelling import Criterion, LabelQueue, criteria
from assay.stats.calibration import Confusion

USE = JudgeUse("j1", "quality", "llm_judge", "judge")


def answer(number: int, *, passed: bool = True) -> Judgement:
    return Judgement(CaseRef("suite.yaml", f"c{number}"), number, "j1", "quality", passed)


def label(number: int, time: str = "1", **more: Any) -> AnswerLabel:
    given: dict[str, Any] = {
        "evaluator": "quality",
        "criterion": "",
        "author": "ann",
        "repeat": 0,
        "passed": True,
    }
    given |= {"run_id": "r", "suite": "suite.yaml", "case_id": f"c{number}", "answer_hash": ""}
    return AnswerLabel(**given | {"created_at": time} | more)


@pytest.fixture
def queue() -> LabelQueue:
    order = (3, 0, 2, 1)
    return LabelQueue.of(USE, {at: answer(at, passed=at != 2) for at in order})


def test_open_answers_come_in_order_and_from_the_start_again(queue: LabelQueue) -> None:
    labels = queue.labels([label(0)])
    assert [queue.next_open(labels, after) for after in (None, 3, 0, 2, 1, 99)] == [
        3,
        2,
        2,
        1,
        3,
        3,
    ]
    assert queue.next_open(queue.labels(map(label, range(4)))) is None


def test_only_the_newest_label_of_this_judge_counts(queue: LabelQueue) -> None:
    given = [
        label(0, "2", passed=False),
        label(0, "1", author="bob"),
        label(1, evaluator="other"),
        label(1, criterion="tone"),
        label(1, repeat=1),
        label(9),
    ]
    (kept,) = queue.labels(given).items()
    assert kept == (CaseRef("suite.yaml", "c0"), given[0])


def test_the_judge_is_compared_with_the_labels(queue: LabelQueue) -> None:
    result = queue.so_far(queue.labels([label(0), label(1, passed=False), label(2, passed=False)]))
    assert result.table == Confusion(1, 1, 0, 1)
    assert (result.passed, result.judged) == (3, 4)
    assert result.corrected is not None
    assert result.gain is not None
    assert result.gain >= 0


def test_without_labels_there_is_no_forecast(queue: LabelQueue) -> None:
    result = queue.so_far({})
    assert (result.table.n, result.corrected, result.gain) == (0, None, None)


RUBRIC = {
    "name": "quality",
    "type": "rubric",
    "rubrics": [
        {"description": "polite", "required": True},
        {
            "description": "calm",
            "score_ranges": [
                {"score_range": [0, 1], "expected_outcome": "shouts"},
                {"score_range": [2, 2], "expected_outcome": "calm"},
            ],
        },
    ],
}
CONTENT = CaseContent(
    expected_outcome="A refund",
    expected_messages=[{"role": "assistant", "content": "Refunded"}],
    reference_data={"amount": 42},
    evaluators=[RUBRIC, {"name": "other", "type": "llm_judge", "prompt": "Is it?"}],
)


def test_criteria_are_those_of_the_judge() -> None:
    reference = [
        Criterion("reference answer", "Refunded"),
        Criterion("reference data", '{\n  "amount": 42\n}'),
    ]
    assert criteria(CONTENT, "quality") == [
        Criterion("rubric", "polite", "required"),
        Criterion("rubric", "calm", "0 to 1: shouts; 2: calm"),
        *reference,
    ]
    assert criteria(CONTENT, "other") == [
        Criterion("expected outcome", "A refund"),
        Criterion("prompt", "Is it?"),
        *reference,
    ]
    assert criteria(CaseContent(), "quality") == []


def test_the_members_of_a_composite_judge_too() -> None:
    composite = {"name": "both", "type": "composite", "evaluators": [RUBRIC]}
    found = criteria(replace(CONTENT, evaluators=[composite]), "both")
    assert [one.text for one in found][:2] == ["polite", "calm"]
