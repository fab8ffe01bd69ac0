"""CSV suites: a header row, then one case a row."""

from __future__ import annotations

import csv
import tracemalloc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import assay
from assay.loaders.csv import _rows
from assay.wire.document import MAX_SCALAR

if TYPE_CHECKING:
    from unit.conftest import Project

FILE = "talk.csv"
HEADER = "id,input,expected_output\n"


def test_columns_become_keys(project: Project) -> None:
    suite = project.suite(
        "id,description,input,expected_output,expected_outcome,conversation_id,cluster,skip\n"
        "a,Greets,Hello,Hi,Is kind,talk-1,greetings,not yet\n",
        FILE,
    )
    (case,) = suite
    assert (suite.name, suite.file, suite.tier) == ("talk", FILE, "suite")
    assert (case.id, case.description, case.question) == ("a", "Greets", "Hello")
    assert (case.expected_output, case.expected_outcome) == ("Hi", "Is kind")
    assert (case.conversation_id, case.cluster, case.skip) == ("talk-1", "greetings", "not yet")


def test_messages(project: Project) -> None:
    case = project.case(HEADER + "a,Hello,4\n", FILE)
    assert [message.to_dict() for message in case.input_messages] == [
        {"role": "user", "content": "Hello"}
    ]
    assert [message.to_dict() for message in case.expected_messages] == [
        {"role": "assistant", "content": "4"}
    ]
    assert [spec.type for spec in case.evaluators] == ["equals"]


@pytest.mark.parametrize("column", ["expected_outcome", "outcome", "criteria"])
def test_spellings_of_expected_outcome(project: Project, column: str) -> None:
    case = project.case(f"id,input,{column}\na,Hello,Is kind\n", FILE)
    assert case.expected_outcome == "Is kind"
    assert [spec.type for spec in case.evaluators] == ["llm_judge"]


def test_cells_are_text(project: Project) -> None:
    case = project.case("id,input,expected_output,metadata.n\n012,true,null,1e3\n", FILE)
    assert (case.id, case.question, case.expected_output) == ("012", "true", "null")
    assert case.metadata == {"n": "1e3"}


def test_metadata_columns(project: Project) -> None:
    suite = project.suite(
        "id,metadata.owner,input,metadata.a.b,expected_output\na,me,Hello,deep,Hi\nb,,Hello,,Hi\n",
        FILE,
    )
    assert [case.metadata for case in suite] == [{"owner": "me", "a.b": "deep"}, {}]


@pytest.mark.parametrize(
    ("cell", "tags"),
    [
        ("one", ("one",)),
        ("one;two", ("one", "two")),
        ('"one, two"', ("one", "two")),
        ("one; ;two;", ("one", "two")),
        ("", ()),
        (";", ()),
    ],
)
def test_tags(project: Project, cell: str, tags: tuple[str, ...]) -> None:
    assert project.case(f"tags,id,input,expected_output\n{cell},a,Hello,Hi\n", FILE).tags == tags


def test_own_columns_start_with_x(project: Project) -> None:
    suite = project.suite("id,x-owner,input,expected_output\na,me,Hello,Hi\n", FILE)
    assert suite.cases[0].metadata == {}
    assert suite.warnings == ()


def test_the_header_and_ids_are_trimmed(project: Project) -> None:
    case = project.case(" id , input ,expected_output\n a , Hello ,Hi\n", FILE)
    assert (case.id, case.question) == ("a", " Hello ")


def test_quoted_and_multi_line_cells(project: Project) -> None:
    suite = project.suite(
        HEADER + 'a,"one, ""two""\nthree",Hi\nb,Hello,"x\n\ny"\nc,Hello,Hi\n', FILE
    )
    assert [(case.id, case.question, case.expected_output) for case in suite] == [
        ("a", 'one, "two"\nthree', "Hi"),
        ("b", "Hello", "x\n\ny"),
        ("c", "Hello", "Hi"),
    ]
    assert [case.origin.line for case in suite] == [2, 4, 7]


def test_byte_order_mark_and_crlf(project: Project) -> None:
    text = "\ufeff" + (HEADER + "a,Hello,Hi\n\nb,Bye,Ciao\n").replace("\n", "\r\n")
    suite = project.suite(text, FILE)
    assert [(case.id, case.question, case.expected_output) for case in suite] == [
        ("a", "Hello", "Hi"),
        ("b", "Bye", "Ciao"),
    ]
    assert [case.origin for case in suite] == [(FILE, 2, 1), (FILE, 4, 1)]


def test_blank_rows_are_skipped(project: Project) -> None:
    suite = project.suite((HEADER + "\na,Hello,Hi\n\n\nb,Hello,Hi\n\n").encode(), FILE)
    assert [(case.id, case.origin.line) for case in suite] == [("a", 3), ("b", 6)]


def test_positions_of_cells(project: Project) -> None:
    text = (
        "id,input,metadata.owner,tags,outcome\n"
        'a,"two\nlines, and a ""quote""",me,one;two,Is kind\n'
        "bb,Hello,you,three,Is short\n"
    )
    first, second = project.suite(text, FILE)
    assert first.origin == (FILE, 2, 1)
    assert first.origin_of("id") == (FILE, 2, 1)
    assert first.origin_of("input_messages") == (FILE, 2, 3)
    assert first.origin_of("metadata.owner") == (FILE, 3, 25)
    assert first.origin_of("tags.1") == (FILE, 3, 28)
    assert first.origin_of("expected_outcome") == (FILE, 3, 36)
    assert first.origin_of("threshold") == (FILE, 2, 1)
    assert second.origin == (FILE, 4, 1)
    assert second.origin_of("input") == (FILE, 4, 4)
    assert second.origin_of("metadata.owner") == (FILE, 4, 10)


# What is refused


@pytest.mark.parametrize(
    ("header", "place", "word"),
    [
        ("id,input,expected_ouput", "1:10 unknown-key", "did you mean 'expected_output'?"),
        ("id,owner,input", "1:4 unknown-key", "metadata.<name>"),
        ("id,input,", "1:10 unknown-key", "''"),
        ("id,input,id", "1:10 duplicate-key", "'id' appears twice"),
        ("id,input,metadata.a,metadata.a", "1:21 duplicate-key", "'metadata.a' appears twice"),
        ("id,expected_output", "1:1 missing-key", "no 'input' column"),
        ("id;input;expected_output", "1:1 csv-syntax", "separate the columns by commas"),
    ],
)
def test_wrong_headers(project: Project, header: str, place: str, word: str) -> None:
    found, message = project.refused(f"{header}\n", FILE)
    assert found == place
    assert word in message


def test_all_faults_of_a_header_are_reported(project: Project) -> None:
    assert project.refusals("id,one,two,id\na,b,c,d\n", FILE) == [
        "1:1 missing-key",
        "1:4 unknown-key",
        "1:8 unknown-key",
        "1:12 duplicate-key",
    ]


def test_ragged_rows(project: Project) -> None:
    problems = project.problems(HEADER + "a,Hello\nb,Hello,Hi\nc,Hello,Hi,more\n", FILE)
    assert [project.place(problem) for problem in problems] == ["2:1 csv-syntax", "4:1 csv-syntax"]
    assert "2 cells; the header has 3" in problems[0].message
    assert "4 cells; the header has 3" in problems[1].message


def test_an_empty_input_is_reported_at_its_cell(project: Project) -> None:
    problems = project.problems(HEADER + "a,,Hi\n,  ,Hi\n", FILE)
    assert [project.place(problem) for problem in problems] == [
        "2:3 wrong-value",
        "3:1 missing-key",
        "3:2 wrong-value",
    ]
    assert problems[0].message == "'input': the text is empty"


def test_all_bad_rows_are_reported(project: Project) -> None:
    text = HEADER + 'a,,Hi\n,"two\nlines",Hi\nb,Hello,\nc,Hello,Hi\nc,Hello,Hi\n'
    problems = project.problems(text, FILE)
    assert [project.place(problem) for problem in problems] == [
        "2:3 wrong-value",
        "3:1 missing-key",
        "5:1 asserts-nothing",
        "7:1 duplicate-id",
    ]
    assert "'input'" in problems[0].message
    assert "'id'" in problems[1].message
    assert "'b'" in problems[2].message
    assert "'c' is taken by the case on line 6" in problems[3].message


def test_an_id_cannot_span_lines(project: Project) -> None:
    text = 'input,id,expected_output\nHello,"a\nb",Hi\n'
    assert project.refusals(text, FILE) == ["2:7 wrong-value"]


def test_both_spellings_are_a_warning(project: Project) -> None:
    suite = project.suite("id,input,outcome,expected_outcome\na,Hello,one,two\n", FILE)
    assert suite.cases[0].expected_outcome == "two"
    assert [project.place(warning) for warning in suite.warnings] == ["2:9 ignored-alias"]


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        (b"", "1:1 no-cases", "empty"),
        (b"\n\n", "1:1 no-cases", "empty"),
        (HEADER.encode(), "1:1 no-cases", "no row below the header"),
        ((HEADER + "a,Hel\x00lo,Hi\n").encode(), "2:6 bad-character", "NUL"),
        (HEADER.encode() + b"a,caf\xe9,Hi\n", "2:6 encoding", "0xe9"),
        ((HEADER + "a,Hello,Hi\n").encode("utf-16"), "1:1 encoding", "UTF-16"),
    ],
)
def test_files_without_cases(project: Project, text: bytes, place: str, word: str) -> None:
    found, message = project.refused(text, FILE)
    assert found == place
    assert word in message


@pytest.mark.parametrize(
    ("rows", "line"), [('a,"Hello" there,Hi\n', 2), ('a,Hello,Hi\nb,"Hello,Hi\n', 3)]
)
def test_wrong_quotes(project: Project, rows: str, line: int) -> None:
    (problem,) = project.problems(HEADER + rows, FILE)
    assert (problem.line, problem.code) == (line, "csv-syntax")


def test_faults_before_wrong_quotes_are_reported_too(project: Project) -> None:
    codes = [p.code for p in project.problems(HEADER + 'a,,Hi\nb,"Hello" x,Hi\n', FILE)]
    assert codes == ["wrong-value", "csv-syntax"]


def test_a_cell_past_the_limit(project: Project) -> None:
    problems = project.problems(HEADER + f"a,{'x' * (10 * 1024 * 1024 + 1)},Hi\n", FILE)
    assert [(problem.line, problem.severity) for problem in problems] == [(2, "error")]


def test_the_name_drops_eval(project: Project) -> None:
    project.write("talk.eval.csv", HEADER + "a,Hello,Hi\n")
    assert [suite.name for suite in assay.load(".")] == ["talk"]


def test_cells_full_of_quotes_cost_a_few_times_their_size(project: Project) -> None:
    cell = '"' + '""' * 1_000_000 + '"'
    text = f"expected_output,input,id\n{cell},{cell},a\nx,y,a\n{cell},{cell},a\n"
    project.write(FILE, text)
    tracemalloc.start()
    with pytest.raises(assay.EvalFileErrors) as refused:
        assay.load(FILE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [project.place(p) for p in refused.value.problems] == [
        "3:5 duplicate-id",
        f"4:{2 * len(cell) + 3} duplicate-id",
    ]
    assert peak < 12 * len(text)


def test_rows_are_checked_even_if_a_column_is_wrong(project: Project) -> None:
    text = "id,input,expected_ouput,id\na,,b,c\nd,e\n"
    assert project.refusals(text, "a.csv") == [
        "1:10 unknown-key",
        "1:25 duplicate-key",
        "2:3 wrong-value",
        "3:1 csv-syntax",
    ]


@pytest.mark.parametrize(
    ("row", "column"),
    [('"c"x,1,2', 4), ('c,"q" z,2', 6), ('c,"say ""hi""" ,2', 15), ('"",""x,2', 6)],
)
def test_text_after_a_closing_quote_is_reported_at_its_position(
    project: Project, row: str, column: int
) -> None:
    (problem,) = project.problems(f"id,input,expected_output\n{row}\n", "a.eval.csv")
    assert project.place(problem) == f"2:{column} csv-syntax"


@pytest.fixture
def cell_limit() -> Iterator[int]:
    """The limit that a new process has for cells; as it was afterwards."""
    usual = 131_072
    before = csv.field_size_limit(usual)
    yield usual
    csv.field_size_limit(before)


def test_concurrent_loads_have_the_same_limit(cell_limit: int) -> None:
    text = f"{'x' * 2 * cell_limit}\n" * 2
    first, second = _rows(text, "a.csv"), _rows(text, "b.csv")
    assert [next(first).line, next(second).line] == [1, 1]
    assert [row.line for row in (*first, *second)] == [2, 2]


def test_a_higher_limit_of_the_process_does_not_raise_that_of_a_file(
    project: Project, cell_limit: int
) -> None:
    csv.field_size_limit(3 * MAX_SCALAR)
    long = "x" * (MAX_SCALAR + 1)
    assert project.refusals(f"{HEADER}a,{long},b\n", FILE) == ["2:3 too-large"]
    assert csv.field_size_limit() == 3 * MAX_SCALAR
