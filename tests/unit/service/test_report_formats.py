"""The reports for programs: JSON, JSONL, CSV, JUnit XML, Markdown, annotations of GitHub."""

from __future__ import annotations

import csv
import io
import json
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
import xmlschema

from assay.model.comparison import CaseRef, Comparison, Loss, Reasks
from assay.model.run import TrialRecord
from assay.model.run_result import RunResult
from assay.registry import reporters
from assay.reporters import markdown
from assay.reporters.rows import COLUMNS
from unit.sample_runs import (
    LISBON,
    PORTO,
    entry,
    mixed_run,
    run,
    suite,
    summary,
    trials_of,
    written,
)

JUNIT = xmlschema.XMLSchema(str(Path(__file__).parents[1] / "junit.xsd"))
EVIL = [
    "\x1b[2J\x1b]0;owned\x07",
    "]]></failure><testcase name='x'/>",
    "<script>alert(1)</script></pre></details><img src=x onerror=alert(1)>",
    "::error file=a,line=1::owned",
    "\n::error::owned\r\n::add-mask::a\n",
    "%0A::error::owned",
    "| a | `b` | **c** | [d](http://e) | @admin | #1 | www.example.com | ![x](y) | $x$",
    "\n\n# Heading\n\n- list\n\n```\ncode",
    "=HYPERLINK(1)",
    "\x00\x0b\ufffe\uffff\u202e",
    "😀 日本語 é\u00a0",
    "x" * 1_000_000,
    "",
]


def evil_run(text: str) -> RunResult:
    """A run whose every text is this one; cases are JSON and hold no lone surrogates."""
    name = f"{text[:10_000]}\ud800"
    cases = [
        entry(text, outcome, text, text, description=text, file=text, line=3, response=text)
        for outcome in ("failed", "errored", "skipped", "passed")
    ]
    tools = {"toolsCalled": [text, text]}
    cases.append(entry(text, "failed", **tools))
    refs = (CaseRef(name, text),)
    losses = (Loss(*refs[0], "repeated", False, Reasks(), name),)
    lists = {"losses": losses, "added": refs, "warnings": (name,), "explanation": name}
    return run(
        suite(*cases, name=name, file=name, staleness_warnings=[name], notes=[name], target=name),
        comparison=Comparison(name, "x", "regressed", 1, "failed", **lists),  # type: ignore[arg-type]
        reasons=(name,),
        notes=(name,),
        folder=name,
    )


RUNS = [mixed_run(), run(suite(LISBON)), run(suite()), run(), run(suite(entry("a", "errored")))]
every_run = pytest.mark.parametrize("run", [*RUNS, *map(evil_run, EVIL)])


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode())


# JUnit


@every_run
def test_junit_follows_the_schema_of_build_servers(run: RunResult) -> None:
    text = written("xml", run)
    JUNIT.validate(text)
    tree = parsed(text)
    cases = tree.findall("testsuite/testcase")
    assert len(cases) == int(tree.attrib["tests"]) == run.summary.total_cases
    assert len(tree.findall(".//failure")) == int(tree.attrib["failures"]) == run.summary.failed
    assert len(tree.findall(".//error")) == int(tree.attrib["errors"]) == run.summary.errored
    assert len(tree.findall(".//skipped")) == int(tree.attrib["skipped"]) == run.summary.skipped


def test_junit_names_the_place_the_time_and_the_reasons() -> None:
    tree = parsed(written("xml", mixed_run()))
    porto = tree.findall("testsuite/testcase")[1]
    assert porto.attrib == {
        "name": "porto",
        "classname": "weather",
        "time": "0.250",
        "file": "evals/weather.eval.yaml",
        "line": "9",
    }
    (failure,) = porto.findall("failure")
    message = failure.attrib["message"]
    assert message.startswith(
        "passed before, fails now: the failure repeats; 0 of 5 re-asks passed"
    )
    assert "contains: expected the answer to contain '23.5'" in message
    assert (failure.text or "").splitlines()[-1] == "+ get_time()"
    (error,) = tree.findall(".//error")
    assert error.attrib["message"] == "the target gave no answer: connection refused"


def test_junit_marks_long_texts_as_cut() -> None:
    case = entry("a", "failed", *["y" * 900] * 15)
    (failure,) = parsed(written("xml", run(suite(case)))).findall(".//failure")
    assert len(failure.attrib["message"]) in (999, 1000)
    assert "y ... y" in failure.attrib["message"]
    assert len(failure.text or "") == 8000
    assert (failure.text or "").endswith("...")


# JSON, JSONL, CSV


@pytest.mark.parametrize("run", RUNS)
def test_json_is_the_document_of_the_run(run: RunResult) -> None:
    assert json.loads(written("json", run)) == run.to_dict()


@every_run
def test_jsonl_has_a_line_for_each_case(run: RunResult) -> None:
    text = written("jsonl", run)
    text.encode()
    lines = text.split("\n")
    assert lines.pop() == ""
    rows = [json.loads(line) for line in lines]
    assert len(rows) == run.summary.total_cases
    assert all(tuple(row) and set(row) == set(COLUMNS) for row in rows)


def test_jsonl_keeps_the_answer_unchanged() -> None:
    for text in EVIL:
        first, *_, last = written("jsonl", evil_run(text)).splitlines()
        row = json.loads(first)
        assert row["id"] == row["response"] == text
        assert (row["line"], row["failures"]) == (3, [text, text])
        assert row["file"].startswith(text[:100])
        assert json.loads(last)["toolsCalled"] == [text, text]


def test_repeats_are_counted() -> None:
    rows = [json.loads(line) for line in written("jsonl", mixed_run()).splitlines()]
    assert [(row["repeats"], row["passes"]) for row in rows] == [
        *[(1, 1), (1, 0), (3, 1), (1, 0), (1, 0)],
        (1, 1),
    ]


def table(text: str) -> list[dict[str, str]]:
    csv.field_size_limit(10_000_000)
    return list(csv.DictReader(io.StringIO(text, newline="")))


@every_run
def test_csv_has_a_row_for_each_case(run: RunResult) -> None:
    text = written("csv", run)
    text.encode()
    rows = table(text)
    assert len(rows) == run.summary.total_cases
    assert all(None not in row and None not in row.values() for row in rows)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\xa0\uff20"])
def test_csv_holds_no_formula(sign: str) -> None:
    text = f"{sign}1+1"
    case = entry(text, "failed", text, response=text)
    (row,) = table(written("csv", run(suite(case, name=text))))
    for column in ("id", "failures", "response", "suite"):
        assert row[column] == "'" + text.replace("\r", "\\r")


def test_csv_moves_no_cursor() -> None:
    said = "a\x1b[2J \x9b \u202e \x07\r\nb\tc\u3000\xa0d"
    (row,) = table(written("csv", run(suite(entry(said, "failed", said, response=said)))))
    escaped = "a\\x1b[2J \\x9b \\u202e \\x07\r\nb\tc\u3000\xa0d"
    assert (row["id"], row["failures"], row["response"]) == (escaped, escaped, escaped)


def test_csv_leaves_numbers_and_other_texts_alone() -> None:
    (row,) = table(written("csv", run(suite(entry("a-1", score=0.5, response="1=1")))))
    assert (row["id"], row["score"], row["response"]) == ("a-1", "0.5", "1=1")


# GitHub

COMMAND = re.compile(r"::(error|warning) (?:(?:file|line|title)=[^:,\r\n]*,?)+::[^\r\n]*")


@every_run
def test_annotations_are_one_command_a_line(run: RunResult) -> None:
    text = written("github", run)
    text.encode()
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(COMMAND.fullmatch(line) for line in lines)
    failing = run.summary.failed + run.summary.errored
    stale = sum(len(suite.staleness_warnings) for suite in run.suites)
    warned = len(run.comparison.warnings) if run.comparison is not None else 0
    assert len(lines) == failing + stale + warned + (not run.passed or bool(run.reasons))


def test_annotations_are_on_the_line_of_the_case() -> None:
    last, first, *_, stale, _ = written("github", mixed_run()).splitlines()
    where, reasons = first.split("::")[1], first.split("::", 2)[2]
    assert where == "error file=evals/weather.eval.yaml,line=9,title=failed%3A porto"
    assert reasons.count("%0A") == 3
    assert stale == (
        "::warning file=evals/weather.eval.yaml,title=stale%3A weather"
        "::the description of get_weather changed"
    )
    assert last.startswith("::error title=Assay%3A failed::the gate failed: 1 critical")
    assert last.endswith("%0Acoverage is 80 %25, below 100 %25")


def test_annotations_name_files_from_the_checkout_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "services/weather"
    home.mkdir(parents=True)
    monkeypatch.chdir(home)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    _, first, *_, stale, _ = written("github", mixed_run()).splitlines()
    assert first.startswith("::error file=services/weather/evals/weather.eval.yaml,line=9,")
    assert stale.startswith("::warning file=services/weather/evals/weather.eval.yaml,")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "elsewhere"))
    first = written("github", mixed_run()).splitlines()[1]
    assert first.startswith("::error file=evals/weather.eval.yaml,")


def test_percent_colon_and_comma_cannot_leave_their_property() -> None:
    case = entry("50%, a:b", "failed", "100% :: wrong", line=1, file="a,line=7:b.yaml")
    line = written("github", run(suite(case))).splitlines()[1]
    assert line == (
        "::error file=a%2Cline=7%3Ab.yaml,line=1,title=failed%3A 50%25%2C a%3Ab::100%25 :: wrong"
    )


def test_failures_of_a_run_that_passes_its_gate_are_warnings() -> None:
    text = written("github", run(suite(PORTO), exit_code=0))
    assert text.startswith("::warning file=evals/weather.eval.yaml,line=9")
    assert "::error" not in text


def test_annotations_beyond_a_hundred_are_counted() -> None:
    cases = [entry(f"f{n}", "failed", "wrong") for n in range(130)]
    lines = written("github", run(suite(*cases))).splitlines()
    assert len(lines) == 102
    assert lines[-1] == "::error title=Assay::30 more cases did not pass"


# Markdown


def test_markdown_reads_like_this() -> None:
    golden = Path(__file__).parents[1] / "goldens/mixed.md"
    assert written("md", mixed_run()) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", EVIL)
def test_markdown_escapes_text_of_users_and_models(text: str) -> None:
    report = written("md", evil_run(text))
    report.encode()
    plain = re.sub(r"(?s)\n<pre>\n.*?</pre>\n", "\n", report)
    plain = re.sub(r"</?(code|details|summary)>", "", plain)
    for line in plain.splitlines():
        own = line.replace("**All**", "")
        assert not re.search(r"[<>`@\[\]\\$~!]|(?<!&)#(?!#* )", own), line
        assert not re.search("(?i)www\\.|https?:", own), line
        assert line.count("|") in (0, 8)
    inside = "".join(re.findall(r"(?s)\n<pre>\n(.*?)</pre>\n", report))
    assert "<" not in inside
    assert report.count("<pre>") == report.count("</pre>") == 3


def test_markdown_stays_below_the_limit_of_a_summary() -> None:
    cases = [entry(f"f{n}", "failed", *["<" * 900] * 20) for n in range(100)]
    names = [suite(entry("x"), name=f"{n}{'|' * 400}") for n in range(300)]
    report = written("md", run(suite(*cases), *names))
    assert len(report.encode()) < 1024 * 1024
    listed = report.count("<details>")
    assert 0 < listed < 100
    assert f"and {100 - listed} more failed cases\n" in report
    assert "| and 101 more suites |" in report


def test_markdown_counts_omitted_entries() -> None:
    refs = tuple(CaseRef("", f"c{n}") for n in range(25))
    compared = Comparison("main", "x", "regressed", 25, "failed", new_passes=refs)
    why = tuple(f"g{n}" for n in range(25))
    report = written("md", run(suite(), comparison=compared, reasons=why))
    assert "- and 5 more\n" in report
    assert "<code>c19</code> and 5 more\n" in report


def test_code_is_never_cut_inside_a_reference() -> None:
    assert markdown.code("|" * 400) == f"<code>{'&#124;' * 297}...</code>"


# All of them


class Nowhere(io.TextIOBase):
    """Takes everything and keeps nothing."""

    def write(self, text: str) -> int:
        return len(text)


@pytest.mark.parametrize("name", list(reporters))
def test_memory_does_not_grow_with_the_cases(name: str) -> None:
    one = entry("a", "failed", "wrong", response="x" * 100_000)
    encoded = msgspec.json.encode(one)

    def entries() -> Iterator[bytes]:
        return (encoded for _ in range(400))  # 40 MB in all

    def records() -> Iterator[tuple[bytes, list[TrialRecord]]]:
        trials = list(trials_of(one, "evals/weather.eval.yaml", 0))
        return ((encoded, trials) for _ in range(400))

    counts = msgspec.structs.replace(summary([one]), total_cases=400, failed=400)
    big = run(suite(entries=entries, records=records, summary=counts))
    reporter = reporters.get(name)
    out: Any = Nowhere()
    tracemalloc.start()
    try:
        reporter.write(big, out)
        # A page has templates, and a compressor for each column.
        most = 12_000_000 if name == "html" else 4_000_000
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def test_the_reporters_are_found_by_the_suffix_of_a_file() -> None:
    assert {"csv", "github", "html", "json", "jsonl", "md", "text", "xml"} <= set(reporters)
