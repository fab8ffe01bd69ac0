"""JSONL suites: one case a line, a sidecar, all bad lines, and files too large to hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.loaders.jsonl import StreamedCases

if TYPE_CHECKING:
    from unit.conftest import Project

FILE = "talk.jsonl"


def line(identity: str, **more: Any) -> str:
    return json.dumps({"id": identity, "input": "Hello", "expected_output": "Hi", **more})


def lines(*parts: str) -> str:
    return "".join(f"{part}\n" for part in parts)


@pytest.fixture(params=["held", "streamed"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of keeping the cases; a test that uses this runs in both."""
    if request.param == "streamed":
        monkeypatch.setattr("assay.loaders.jsonl.HELD_BYTES", 0)
    return str(request.param)


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.loaders.jsonl.HELD_BYTES", 0)


# Reading


def test_one_case_a_line(project: Project, mode: str) -> None:
    suite = project.suite(
        lines(
            line("a", tags=["x"], metadata={"n": [1, None]}),
            '{"id": "b", "input": [{"role": "user", "content": "Bye"}], "outcome": "Is kind"}',
        ),
        FILE,
    )
    assert (suite.name, suite.file, suite.tier) == ("talk", FILE, "suite")
    first, second = suite
    assert (first.id, first.question, first.expected_output) == ("a", "Hello", "Hi")
    assert (first.tags, first.metadata) == (("x",), {"n": [1, None]})
    assert [spec.type for spec in first.evaluators] == ["equals"]
    assert (second.question, second.expected_outcome) == ("Bye", "Is kind")
    assert [spec.type for spec in second.evaluators] == ["llm_judge"]
    assert isinstance(suite.cases, StreamedCases) is (mode == "streamed")


def test_numbering_of_equal_evaluators_does_not_depend_on_earlier_lines(
    project: Project, mode: str
) -> None:
    entry = {"type": "regex", "value": "v"}
    counts = (1, 1, 2, 3, 1)
    cases = [line(f"c{n}", evaluators=[entry] * count) for n, count in enumerate(counts)]
    project.write("a.eval.jsonl", lines(*cases))
    (suite,) = assay.load("a.eval.jsonl")
    names = ["regex", "regex_2", "regex_3"]
    assert [[spec.name for spec in case.evaluators] for case in suite.cases] == [
        names[:count] for count in counts
    ]


def test_the_name_drops_eval(project: Project, mode: str) -> None:
    assert project.suite(line("a"), "talk.eval.jsonl").name == "talk"


def test_a_last_line_without_a_line_break(project: Project, mode: str) -> None:
    assert [case.id for case in project.suite(lines(line("a")) + line("b"), FILE)] == ["a", "b"]


def test_blank_lines_are_counted_but_skipped(project: Project, mode: str) -> None:
    suite = project.suite(lines("", line("a"), "   ", "\t", line("b"), "").encode(), FILE)
    assert [(case.id, case.origin) for case in suite] == [
        ("a", (FILE, 2, 1)),
        ("b", (FILE, 5, 1)),
    ]
    assert len(suite) == 2


def test_byte_order_mark_and_crlf(project: Project, mode: str) -> None:
    text = "\ufeff" + lines(line("a"), line("b", note="old")).replace("\n", "\r\n")
    suite = project.suite(text, FILE)
    assert [case.id for case in suite] == ["a", "b"]
    assert suite.cases[0].origin_of("input") == (FILE, 1, 22)
    assert [project.place(warning) for warning in suite.warnings] == ["2:56 deprecated-key"]


def test_positions_have_the_right_line_and_column(project: Project, mode: str) -> None:
    text = lines(
        line("a"), "", '  {"id": "b", "input": "x", "expect": {"responseContains": ["é", "y"]}}'
    )
    case = project.suite(text, FILE).cases[1]
    assert case.origin == (FILE, 3, 3)
    assert case.origin_of("id") == (FILE, 3, 10)
    assert case.origin_of("input_messages") == (FILE, 3, 24)
    assert case.origin_of("expect.responseContains.1") == (FILE, 3, 66)
    assert case.origin_of("threshold") == (FILE, 3, 3)


def test_warnings_have_positions(project: Project, mode: str) -> None:
    text = lines(line("a"), line("b", expected_messages="Hi"))
    assert project.warned(text, FILE) == ["2:31 ignored-alias"]


# What is refused


def test_all_bad_lines_are_reported_with_their_numbers(project: Project, mode: str) -> None:
    problems = project.problems(
        lines(
            line("a"),
            '{"id": "b", "input": "x"',
            line("c", threshold=7),
            "",
            "[1, 2]",
            '{"id": "d", "expected_output": "x"}',
            line("e"),
            '{"id": "f", "id": "g", "input": "x", "expected_output": "y"}',
            '{"input": "x", "expected_output": "y", "treshold": 1, "repeat": 0}',
            '{"id": "h", "input": "x"}',
            "not json",
        ),
        FILE,
    )
    assert [project.place(problem) for problem in problems] == [
        "2:25 json-syntax",
        "3:69 wrong-value",
        "5:1 wrong-type",
        "6:1 missing-key",
        "8:13 duplicate-key",
        "9:1 missing-key",
        "9:40 unknown-key",
        "9:65 wrong-value",
        "10:1 asserts-nothing",
        "11:1 json-syntax",
    ]
    assert {problem.file for problem in problems} == {FILE}


@pytest.mark.parametrize(
    ("bad", "place", "word"),
    [
        ("{'id': 1}", "2:2 json-syntax", "double quotes"),
        ('{"id": "b",}', "2:12 json-syntax", "comma"),
        ('{"id": "b"} {"id": "c"}', "2:13 json-syntax", "extra data"),
        ("// a comment", "2:1 json-syntax", "no comments"),
        ("5", "2:1 wrong-type", "is 5; it must be a mapping"),
        ("null", "2:1 wrong-type", "null"),
        (line("b", metadata={"n": 0}).replace("0", "NaN"), "2:74 bad-number", "NaN"),
        (line("b", metadata={"n": 0}).replace("0", "1e999"), "2:74 bad-number", "1e999"),
        (line("b").replace("Hello", "\\ud800"), "2:22 bad-character", "surrogate"),
        (line("b").replace("Hello", "\\u0000"), "2:22 bad-character", "NUL"),
    ],
)
def test_a_bad_line(project: Project, mode: str, bad: str, place: str, word: str) -> None:
    found, message = project.refused(lines(line("a"), bad, line("z")), FILE)
    assert found == place
    assert word in message


def test_an_unknown_key_of_an_evaluator_is_reported_once_at_its_position(
    project: Project, mode: str
) -> None:
    bad = '{"id": "b", "input": "x", "evaluators": [{"type": "equals", "value": "x", "foo": 1}]}'
    assert project.refusals(lines(line("a"), bad), FILE) == ["2:75 unknown-key"]


HALF_CHECK = {"type": "contains", "value": "\ud800"}


@pytest.mark.parametrize(
    ("bad", "count"),
    [
        ({"evaluators": [HALF_CHECK, {"type": "equals"}]}, 1),
        ({"evaluators": [HALF_CHECK, {"type": "equals"}], "tags": ["\ud801"]}, 2),
        ({"id": "\udfff"}, 1),
        ({"metadata": {"\ud800": 1}}, 1),
    ],
)
def test_half_of_a_surrogate_pair_is_reported_once(
    project: Project, mode: str, bad: dict[str, Any], count: int
) -> None:
    text = json.dumps({"id": "b", "input": "Hello", "expected_output": "Hi"} | bad)
    found = project.refusals(lines(line("a"), text), FILE)
    assert [problem.partition(" ")[2] for problem in found] == ["bad-character"] * count


def test_a_key_with_half_of_a_surrogate_pair_does_not_make_its_value_invalid(
    project: Project, mode: str
) -> None:
    text = line("b", evaluators=[{"type": "contains", "value": "x", "\ud801": 1}])
    found = project.refusals(lines(text), FILE)
    assert {problem.partition(" ")[2] for problem in found} == {"bad-character", "unknown-key"}


def test_a_line_that_is_not_utf_8(project: Project, mode: str) -> None:
    text = lines(line("a"), line("caf@"), line("b", threshold=7)).encode().replace(b"@", b"\xe9")
    assert project.refusals(text, FILE) == ["2:12 encoding", "3:69 wrong-value"]


def test_utf_16_is_reported_once(project: Project, mode: str) -> None:
    place, message = project.refused(lines(line("a"), line("b")).encode("utf-16"), FILE)
    assert place == "1:1 encoding"
    assert "UTF-16" in message


def test_nesting_past_the_limit(project: Project, mode: str) -> None:
    deep = line("b", metadata={"n": 0}).replace("0", "[" * 50_000 + "]" * 50_000)
    place, message = project.refused(lines(line("a"), deep), FILE)
    assert place == "2:172 too-deep"
    assert "100 levels" in message


@pytest.mark.parametrize("text", ["", "\n\n", "  \r\n"])
def test_a_file_without_a_case(project: Project, mode: str, text: str) -> None:
    # A text that begins with a line break would be dedented.
    place, message = project.refused(text.encode(), FILE)
    assert place == "1:1 no-cases"
    assert "no case" in message


def test_ids_are_required(project: Project, mode: str) -> None:
    place, message = project.refused('{"input": "x", "expected_output": "y"}\n', FILE)
    assert place == "1:1 missing-key"
    assert "'id'" in message


def test_ids_are_unique(project: Project, mode: str) -> None:
    text = lines(line("a"), line("b"), "", '{"input": "x", "expected_output": "y", "id": "a"}')
    problems = project.problems(text + lines(line("a")), FILE)
    assert [project.place(problem) for problem in problems] == [
        "4:46 duplicate-id",
        "5:8 duplicate-id",
    ]
    assert all("'a' is taken by the case on line 1" in p.message for p in problems)


def test_duplicate_ids_are_reported_together_with_other_faults(project: Project, mode: str) -> None:
    text = lines(line("a"), "broken", line("a"), line("b", threshold=7))
    assert project.refusals(text, FILE) == [
        "2:1 json-syntax",
        "3:8 duplicate-id",
        "4:69 wrong-value",
    ]


# The sidecar

SIDECAR = """
    description: About greetings
    dataset: greetings
    execution:
      target: bot
      threshold: 0.5
      repeat: 2
      timeout_seconds: 3
      workers: 4
      evaluators: [{type: is_json}]
    """


def test_the_sidecar_is_applied(project: Project, mode: str) -> None:
    project.write("talk.yaml", SIDECAR)
    suite = project.suite(
        lines(
            line("a"),
            line("b", threshold=0.9, repeat=1, evaluators=[{"type": "contains", "value": "x"}]),
        ),
        FILE,
    )
    assert (suite.name, suite.description) == ("greetings", "About greetings")
    assert (suite.target, suite.workers) == ("bot", 4)
    first, second = suite
    assert [spec.type for spec in first.evaluators] == ["is_json", "equals"]
    assert [spec.type for spec in second.evaluators] == ["contains"]
    assert (first.target, first.threshold, first.repeat, first.timeout_seconds) == (
        "bot",
        0.5,
        2,
        3,
    )
    assert (second.threshold, second.repeat, second.timeout_seconds) == (0.9, 1, 3)


def test_evaluators_of_the_sidecar_make_a_case_complete(project: Project, mode: str) -> None:
    project.write("talk.yaml", SIDECAR)
    assert len(project.suite('{"id": "a", "input": "x"}\n', FILE)) == 1


def test_an_evaluator_of_the_sidecar_has_its_position(project: Project, mode: str) -> None:
    project.write("talk.yaml", SIDECAR)
    case = project.suite(line("a"), FILE).cases[0]
    assert case.origin_of("evaluators.0.type") == ("talk.yaml", 9, 23)


def test_an_empty_sidecar(project: Project, mode: str) -> None:
    project.write("talk.yaml", "# nothing yet\n")
    assert project.suite(line("a"), FILE).name == "talk"


@pytest.mark.parametrize(
    ("sidecar", "place", "word"),
    [
        ("descripton: x\n", "1:1 unknown-key", "'description'"),
        ("execution: {threshold: 7}\n", "1:24 wrong-value", "<= 1"),
        ("execution: {evaluators: [{type: is_jsn}]}\n", "1:33 unknown-evaluator", "'is_json'"),
        ("- a\n", "1:1 wrong-type", "a mapping"),
        ("dataset: a\ndataset: b\n", "2:1 duplicate-key", "twice"),
        ("a: [\n", "2:1 yaml-syntax", ""),
        ("description: x\ncases: [{id: z}]\n", "2:8 conflicting-keys", FILE),
        ("description: x\ntests: [{id: z}]\n", "2:8 conflicting-keys", FILE),
    ],
)
def test_a_wrong_sidecar(project: Project, mode: str, sidecar: str, place: str, word: str) -> None:
    project.write("talk.yaml", sidecar)
    problem = project.problems(line("a"), FILE)[-1]
    assert (problem.file, project.place(problem)) == ("talk.yaml", place)
    assert word in f"{problem.message} {problem.hint}"


def test_bad_lines_are_reported_together_with_a_wrong_sidecar(project: Project, mode: str) -> None:
    project.write("talk.yaml", "execution: {threshold: 7}\n")
    problems = project.problems(lines(line("a"), "broken"), FILE)
    assert [(problem.file, project.place(problem)) for problem in problems] == [
        ("talk.yaml", "1:24 wrong-value"),
        (FILE, "2:1 json-syntax"),
    ]


def test_a_warning_about_the_sidecar(project: Project, mode: str) -> None:
    project.write("talk.yaml", "execution: {assert: [], evaluators: [{type: is_json}]}\n")
    (warning,) = project.suite(line("a"), FILE).warnings
    assert (warning.file, project.place(warning)) == ("talk.yaml", "1:13 ignored-alias")


# Streaming

MANY = lines("", *(line(f"case-{n}", metadata={"n": n}) for n in range(25)), "", line("last"))


@pytest.mark.usefixtures("streamed")
def test_a_streamed_file_gives_the_same_cases(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed = project.suite(MANY.encode(), FILE)
    monkeypatch.setattr("assay.loaders.jsonl.HELD_BYTES", 2**20)
    held = project.suite(MANY.encode(), FILE)
    assert isinstance(held.cases, tuple)
    assert list(streamed) == list(held)
    assert [case.origin for case in streamed] == [case.origin for case in held]
    assert [case.origin_of("metadata.n") for case in streamed] == [
        case.origin_of("metadata.n") for case in held
    ]


@pytest.mark.usefixtures("streamed")
def test_a_streamed_file_is_a_sequence(project: Project) -> None:
    suite = project.suite(MANY.encode(), FILE)
    ids = [case.id for case in suite]
    cases = suite.cases
    assert len(suite) == len(cases) == 26
    assert ids == [f"case-{n}" for n in range(25)] + ["last"]
    assert [case.id for case in suite] == ids
    assert (cases[0].id, cases[24].id, cases[-1].id, cases[-26].id) == (
        "case-0",
        "case-24",
        "last",
        "case-0",
    )
    assert [case.id for case in cases[2:9:3]] == ["case-2", "case-5", "case-8"]
    assert [case.id for case in cases[-2:]] == ["case-24", "last"]
    assert cases[30:] == []
    assert [case.id for case in reversed(cases)] == ids[::-1]
    assert cases[3] in cases
    with pytest.raises(IndexError):
        cases[26]


@pytest.mark.usefixtures("streamed")
def test_two_iterations_do_not_disturb_each_other(project: Project) -> None:
    cases = project.suite(MANY.encode(), FILE).cases
    pairs = [(one.id, other.id) for one, other in zip(cases, cases, strict=True)]
    assert all(one == other for one, other in pairs)
    assert len(pairs) == 26


@pytest.mark.usefixtures("streamed")
def test_an_indexed_case_has_the_right_line_number(project: Project) -> None:
    cases = project.suite(MANY.encode(), FILE).cases
    assert cases[0].origin == (FILE, 2, 1)
    assert cases[24].origin == (FILE, 26, 1)
    assert cases[-1].origin == (FILE, 28, 1)
    assert cases[10].origin_of("metadata.n") == (FILE, 12, 80)


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize(
    ("changed", "place"),
    [
        (lines(line("a"), "broken"), "2:1 json-syntax"),
        (lines(line("a"), line("b", threshold=7)), "2:69 wrong-value"),
        (lines(line("a"), "[]"), "2:1 wrong-type"),
        (lines(line("a"), '{"id": "b", "input": "x"}'), "2:1 asserts-nothing"),
    ],
)
def test_a_file_that_became_invalid_is_an_error(project: Project, changed: str, place: str) -> None:
    suite = project.suite(lines(line("a"), line("b")), FILE)
    project.write(FILE, changed)
    with pytest.raises(assay.EvalFileErrors) as while_iterating:
        list(suite)
    assert [project.place(p) for p in while_iterating.value.problems] == [place]
    with pytest.raises(assay.EvalFileErrors) as while_indexing:
        suite.cases[1]
    assert [project.place(p) for p in while_indexing.value.problems] == [place]


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("changed", [b"", b"\n\n", line("a").encode()])
def test_a_file_that_lost_cases_is_an_error(project: Project, changed: bytes) -> None:
    """A run over fewer cases than were counted would pass without a word."""
    suite = project.suite(lines(line("a"), line("b")), FILE)
    project.write(FILE, changed)
    with pytest.raises(assay.EvalFileErrors):
        list(suite)
    with pytest.raises(assay.EvalFileErrors):
        suite.cases[1]


@pytest.mark.usefixtures("streamed")
def test_a_deleted_file_is_an_error(project: Project) -> None:
    suite = project.suite(lines(line("a"), line("b")), FILE)
    (project.root / FILE).unlink()
    with pytest.raises(assay.EvalFileErrors) as refused:
        list(suite)
    assert [problem.code for problem in refused.value.problems] == ["not-found"]


@pytest.mark.usefixtures("streamed")
def test_the_sidecar_is_applied_on_every_pass(project: Project) -> None:
    project.write("talk.yaml", SIDECAR)
    suite = project.suite(lines(line("a"), line("b")), FILE)
    for case in [*suite, *suite, suite.cases[1]]:
        assert [spec.type for spec in case.evaluators] == ["is_json", "equals"]
        assert case.threshold == 0.5


def test_any_case_of_a_large_file_is_found(project: Project, streamed: None) -> None:
    """Only the places of some lines are kept; blank lines between them do not count."""
    text = "".join(line(f"c{i}") + ("\n\n" if i % 7 == 0 else "\n") for i in range(300))
    cases = project.suite(text, FILE).cases
    assert len(cases) == 300
    for index in (0, 1, 63, 64, 65, 127, 128, 200, 299, -1, -300):
        assert cases[index].id == f"c{index % 300}"
        number = text[: text.index(f'"c{index % 300}"')].count("\n") + 1
        assert cases[index].origin.line == number
    assert [case.id for case in cases[60:70:3]] == ["c60", "c63", "c66", "c69"]
    for index in (300, -301):
        with pytest.raises(IndexError):
            cases[index]


def test_the_index_of_cases_is_small(project: Project, streamed: None) -> None:
    cases = project.suite(lines(*(line(f"c{i}") for i in range(1000))), FILE).cases
    assert isinstance(cases, StreamedCases)
    starts = cases._index
    used = sum(part.itemsize * len(part) for part in (starts._offsets, starts._numbers))
    assert used <= 12 * 1000
