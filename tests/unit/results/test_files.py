"""Results of any tool become outcomes; invalid ones are reported with their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assay.errors import ResultFileError
from assay.model.comparison import CaseOutcome, CaseRef, Reasks
from assay.model.result import Outcome
from assay.model.suite_result import EvalSuiteResult
from assay.results import files
from assay.results.files import ResultFile, read_results
from unit import sample_runs
from unit.case_outcomes import SUITE


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str | bytes, name: str = "results.json") -> ResultFile:
    file = Path(name)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_results(file)


def cases(document: Any, name: str = "results.json") -> list[CaseOutcome]:
    return list(read(json.dumps(document), name).read())


def lines(*documents: Any) -> list[CaseOutcome]:
    text = "\n".join(json.dumps(document) for document in documents)
    return list(read(text, "results.jsonl").read())


def brief(found: list[CaseOutcome]) -> list[tuple[str, str, int, int, float | None]]:
    return [(c.ref.id, c.outcome, c.passes, c.judged, c.score) for c in found]


def entry(identity: str, outcome: Outcome, score: float | None = None, **details: Any) -> bytes:
    return msgspec.json.encode(sample_runs.entry(identity, outcome, score=score, **details))


def a_suite(*entries: bytes, **keys: str) -> EvalSuiteResult:
    return sample_runs.suite(
        run_id="run-1",
        file=SUITE,
        tier="golden",
        entries=lambda: iter(entries),
        comparability=lambda: iter(keys.items()),
    )


# Ours


def test_our_result_file() -> None:
    repeats = [{"outcome": "passed"}, {"outcome": "failed"}, {"outcome": "errored"}]
    suite = a_suite(
        entry("a", "passed", 0.9, critical=True),
        entry("b", "failed", 0.5, trials=[*repeats, {"outcome": "passed", "confirms": True}]),
        entry("c", "errored"),
        a="one",
    )
    found = read(b"".join(suite.chunks()))
    assert found.run_id == "run-1"
    wanted = [
        CaseOutcome(CaseRef(SUITE, "a"), "passed", 1, 1, 0.9, "one", True),
        CaseOutcome(CaseRef(SUITE, "b"), "failed", 1, 2, 0.5, reasks=Reasks(passed=1)),
        CaseOutcome(CaseRef(SUITE, "c"), "errored", 0, 0, None),
    ]
    assert list(found.read()) == wanted
    assert list(found.read()) == wanted


def test_the_document_of_a_run() -> None:
    suites = [
        a_suite(entry("a", "passed", 1.0)).to_dict(),
        a_suite(entry("b", "skipped")).to_dict(),
    ]
    found = read(json.dumps({"runId": "run-9", "suites": suites, "exitCode": 0}))
    assert found.run_id == "run-9"
    assert brief(list(found.read())) == [("a", "passed", 1, 1, 1.0), ("b", "skipped", 0, 0, None)]


def test_the_contract_alone_is_enough() -> None:
    """Another tool's details may be anything, and its tier says what is critical."""
    document = {
        "runId": "x",
        "tier": "regression",
        "cases": [
            {"id": "a", "description": "", "passed": True, "durationMs": 1},
            {"id": "b", "passed": False, "error": "no", "details": {"outcome": 3, "trials": "?"}},
        ],
    }
    assert cases(document) == [
        CaseOutcome(CaseRef("", "a"), "passed", 1, 1, None, "", True),
        CaseOutcome(CaseRef("", "b"), "failed", 0, 1, None, "", True),
    ]


def test_our_export() -> None:
    head = {"runId": "run-1", "file": SUITE, "suite": "weather"}
    found = lines(
        head | {"id": "a", "outcome": "passed", "score": 1.0, "repeats": 3, "passes": 3},
        head | {"id": "b", "outcome": "failed", "score": 0.2, "repeats": 3, "passes": 1},
        head | {"id": "c", "outcome": "errored", "score": None, "repeats": 1, "passes": 0},
        head | {"id": "d", "outcome": "passed", "critical": True, "cluster": "x"},
    )
    assert [c.ref for c in found] == [CaseRef(SUITE, i) for i in "abcd"]
    assert brief(found) == [
        ("a", "passed", 3, 3, 1.0),
        ("b", "failed", 1, 3, 0.2),
        ("c", "errored", 0, 0, None),
        ("d", "passed", 1, 1, None),
    ]
    assert (found[3].critical, found[3].cluster) == (True, "x")


def test_our_export_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_CASES", 1)
    assert len(lines(*({"id": str(i), "outcome": "passed"} for i in range(5)))) == 5


# AgentV


def test_agentv() -> None:
    found = lines(
        {"eval_id": "a", "score": 0.8, "hits": [], "target": "azure"},
        {"eval_id": "b", "score": 0.79, "misses": ["x"], "target": "azure"},
        {"eval_id": "c", "score": 0, "error": "timed out", "target": "azure"},
        {"test_id": "d", "score": 1, "error": None, "target": "azure"},
    )
    assert brief(found) == [
        ("a", "passed", 1, 1, 0.8),
        ("b", "failed", 0, 1, 0.79),
        ("c", "errored", 0, 0, None),
        ("d", "passed", 1, 1, 1.0),
    ]
    assert {c.ref.suite for c in found} == {""}


def test_lines_of_one_case_are_repeats() -> None:
    found = lines(
        {"eval_id": "a", "score": 1.0},
        {"eval_id": "b", "score": 1.0},
        {"eval_id": "a", "score": 0.5},
        {"eval_id": "b", "score": 0, "error": "x"},
    )
    assert brief(found) == [("a", "failed", 1, 2, 0.75), ("b", "passed", 1, 1, 1.0)]


def test_several_targets_in_a_file_are_distinguished() -> None:
    found = lines(
        {"eval_id": "a", "score": 1.0, "target": "x"},
        {"eval_id": "a", "score": 0.0, "target": "y"},
    )
    assert [c.ref.id for c in found] == ["a [x]", "a [y]"]


# promptfoo


def promptfoo(**rest: Any) -> dict[str, Any]:
    return {"success": True, "score": 1, "promptIdx": 0, "testIdx": 0, "error": None} | rest


def test_promptfoo() -> None:
    rows = [
        promptfoo(testCase={"description": "Lisbon", "vars": {"city": "Lisbon"}}),
        promptfoo(vars={"city": "Oslo", "day": 1}, success=False, score=0.5, failureReason=1)
        | {"error": "Expected output to contain 4"},
        promptfoo(vars={"city": "Bern"}, success=False, score=0, failureReason=2, error="HTTP 500"),
        promptfoo(testIdx=3, score=7),
    ]
    document = {"evalId": "eval-1", "results": {"version": 3, "results": rows, "stats": {}}}
    assert read(json.dumps(document)).run_id == "eval-1"
    wanted = [
        ("Lisbon", "passed", 1, 1, 1.0),
        ('{"city": "Oslo", "day": 1}', "failed", 0, 1, 0.5),
        ('{"city": "Bern"}', "errored", 0, 0, None),
        ("test 4", "passed", 1, 1, None),
    ]
    assert brief(cases(document)) == wanted
    assert brief(cases({"results": rows})) == wanted
    assert brief(lines(*rows)) == wanted


def test_an_older_promptfoo_does_not_say_why_a_case_failed() -> None:
    failed = promptfoo(success=False, error="no", gradingResult={"pass": False}, vars={"a": 1})
    broken = promptfoo(success=False, error="HTTP 500", gradingResult=None, vars={"a": 2})
    assert [c.outcome for c in cases({"results": [failed, broken]})] == ["failed", "errored"]


def test_several_prompts_in_a_file_are_distinguished() -> None:
    rows = [promptfoo(vars={"a": 1}, promptIdx=i) for i in (0, 1)]
    found = [c.ref.id for c in cases({"results": rows})]
    assert found == ['{"a": 1} [prompt 1]', '{"a": 1} [prompt 2]']


def test_long_variables_are_cut_and_still_distinguished() -> None:
    rows = [promptfoo(vars={"text": "x" * 5000 + end}) for end in "ab"]
    one, two = cases({"results": rows})
    assert one.ref.id != two.ref.id
    assert len(one.ref.id) < 120


# What is wrong


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ('{"cases": [}', "r.json", "r.json:1:12: invalid character"),
        ('{"cases":\n [{"id": "a", tru}]}', "r.json", "r.json:2:15: expected '\"'"),
        ('{"cases": [', "r.json", "r.json:1:12: the JSON ends too early"),
        (
            '{"cases": [{"id": 3, "passed": true}]}',
            "r.json",
            "Expected `str`, got `int` - at",
        ),
        (
            '{"runs": []}',
            "r.json",
            "r.json: not a result file: it has none of 'cases', 'suites' and",
        ),
        ('{"cases": []}', "r.json", "r.json: it has no case results"),
        ('{"results": {"results": []}}', "r.json", "it has no case results"),
        ("[1]", "r.json", "r.json:1: Expected `object`, got `array`"),
        (b'{"cases": [{"id": "\xff", "passed": true}]}', "r.json", "r.json:1: it is not UTF-8"),
        ('{"a": ' + "[" * 100_000, "r.json", "r.json:1: it is nested too deeply"),
        ("", "r.jsonl", "r.jsonl: the file is empty"),
        ("\n \n", "r.jsonl", "r.jsonl: the file is empty"),
        ('{"id": "a", "outcome": "ok"}', "r.jsonl", "r.jsonl:1: Invalid enum value 'ok'"),
        ('{"id": "a", "outcome": "passed"}\n{"id": "b"}', "r.jsonl", "r.jsonl:2: the line lacks"),
        ('{"eval_id": "a", "score": 1}\n\n{"id": 1}', "r.jsonl", "r.jsonl:3: this is not the"),
        (
            '{"eval_id": "a"}',
            "r.jsonl",
            "r.jsonl:1: this is not the result of a case: it has none of",
        ),
        ('{"eval_id": "a", "score": 1}\n{"eval_id"', "r.jsonl", "r.jsonl:2:11: the JSON ends"),
        ('{"file": "x", "cases": [{"id": "a", "passed": true}]}', "r.json", "required field `run"),
    ],
)
def test_an_invalid_result_is_reported_with_its_place(
    text: str | bytes, name: str, message: str
) -> None:
    with pytest.raises(ResultFileError, match=message) as caught:
        list(read(text, name).read())
    assert caught.value.exit_code == 2
    assert len(str(caught.value)) < 1000


def test_a_case_of_ours_that_is_not_complete_is_named() -> None:
    broken = a_suite(b'{"id": "a", "passed": true, "description": "", "durationMs": 1}')
    with pytest.raises(ResultFileError, match="case 'a':1: Object missing required field `detai"):
        read(b"".join(broken.chunks()))


def test_keys_of_a_later_version_are_ignored() -> None:
    document = a_suite(entry("a", "passed")).to_dict()
    document["cases"][0]["details"]["mood"] = document["cases"][0]["mood"] = "good"
    assert brief(cases(document | {"mood": "good"})) == [("a", "passed", 1, 1, None)]


def test_a_byte_order_mark_is_accepted() -> None:
    mark = b"\xef\xbb\xbf"
    assert len(list(read(mark + b'{"cases": [{"id": "a", "passed": true}]}').read())) == 1
    assert len(list(read(mark + b'{"id": "a", "outcome": "passed"}', "r.jsonl").read())) == 1


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 100)
    monkeypatch.setattr(files, "MAX_LINE", 100)
    monkeypatch.setattr(files, "MAX_CASES", 2)
    with pytest.raises(ResultFileError, match="more than 100 bytes; export the run as JSONL"):
        read('{"cases": [' + " " * 200 + "]}")
    with pytest.raises(ResultFileError, match=r"jsonl:1: the line has more than 100 bytes"):
        read('{"id": "' + "a" * 200, "r.jsonl")
    with pytest.raises(ResultFileError, match="there are more than 2 cases"):
        lines(*({"eval_id": str(i), "score": 1} for i in range(3)))


def test_a_missing_file_is_reported_with_the_most_similar_name(folder: Path) -> None:
    Path("results-old.json").write_text("{}")
    with pytest.raises(ResultFileError, match=r"there is no such file \(did you mean 'results-old"):
        read_results(Path("results-odl.json"))
    with pytest.raises(ResultFileError, match="not a regular file"):
        read_results(folder)
