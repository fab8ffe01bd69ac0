"""The report in one file: strict HTML, a policy that fits, all cases, and a size that is kept."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
from html import unescape
from typing import Any

import pytest
from msgspec.structs import replace

from assay.model.comparison import CaseRef, Comparison
from assay.model.run_result import Baseline, RunResult
from assay.reporters import html
from assay.reporters.data_blocks import ChunkSpool
from assay.reporters.report_data import MAX_PLAIN
from assay.reporters.report_rows import COLUMNS
from strict_html import assert_strict
from unit.sample_runs import entry, mixed_run, run, suite, trajectory, written

_BLOCK = re.compile(r'<script type="application/gzip" id="([\w-]+)">([^<]*)</script>')
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!-- --><img src=x onerror=alert(1)>",
    "]]></title></style><svg onload=alert(1)>",
    "<!-- data -->",
    "{{ 7 * 7 }}",
    "\u202etxt.exe \x1b[31m \u2028 \x00",
    "%2f / # ? \n\r\n",
)


def report(result: RunResult, html_size: float = 20) -> str:
    out = io.StringIO()
    html.write(result, out, html_size)
    return out.getvalue()


def blocks(page: str) -> dict[str, Any]:
    """The data of a report, by the names of their elements."""
    return {
        name: json.loads(gzip.decompress(base64.b64decode(data)))
        for name, data in _BLOCK.findall(page)
    }


def rows(page: str) -> list[dict[str, Any]]:
    found = blocks(page)
    columns = [found[f"rows-{name}"] for name in COLUMNS]
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]


def details(page: str) -> dict[int, dict[str, Any]]:
    """The details in a report, by the position of their case."""
    found = blocks(page)
    known = {}
    for row in rows(page):
        number, spool = row["details"] // 2, ("main", "rest")[row["details"] % 2]
        chunk = found.get(f"{spool}-{number // ChunkSpool.CHUNK}")
        if row["details"] >= 0 and chunk is not None:
            known[row["position"]] = chunk[number % ChunkSpool.CHUNK]
    return known


def test_it_is_strict_html_that_stands_alone() -> None:
    page = report(mixed_run())
    assert_strict(page, alone=True)
    assert "http:" not in page.replace("http://www.w3.org", "")
    assert "<link" not in page


def test_the_policy_allows_exactly_its_script_and_its_style() -> None:
    page = report(mixed_run())
    (policy,) = re.findall(r'"Content-Security-Policy" content="([^"]*)"', page)
    policy = unescape(policy)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for text, name in ((script, "script-src"), (style, "style-src")):
        found = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{found}';" in policy
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("require-trusted-types-for 'script'; trusted-types 'none'")
    assert "unsafe" not in policy


def test_every_case_has_a_row_and_details() -> None:
    page = report(mixed_run())
    found = rows(page)
    assert [row["id"] for row in found] == [
        *("lisbon", "porto", "faro", "evora", "braga", "gs-get_time-001")
    ]
    assert [row["position"] for row in found] == [0, 1, 2, 3, 4, 5]
    meta = blocks(page)["meta"]
    assert [meta["outcomes"][row["outcome"]] for row in found] == [
        *("passed", "failed", "failed", "errored", "skipped", "passed")
    ]
    changes = [row["changed"] for row in found]
    named = [meta["changes"][change] if change >= 0 else None for change in changes]
    assert named == ["fixed", "regressed", "regressed", "not-judged", "added", None]
    assert (found[2]["passes"], found[2]["judged"]) == (1, 3)
    assert found[1]["why"].startswith("contains: expected the answer to contain '23.5'")
    assert meta["counts"]["all"] == 6
    assert "6 cases, all with details" in page
    porto = details(page)[1]
    assert porto["answer"] == "It is warm"
    ((_, aligned),) = porto["checks"][1]["rows"]
    assert [row["sign"] for row in aligned] == ["~", "-", "+"]
    assert aligned[0]["actual"][1] == ['city="Oporto"', True]


def test_failures_are_shown_without_the_script() -> None:
    page = report(mixed_run())
    plain = page[page.index('id="failures"') : page.index('id="case"')]
    listed = re.findall(r"<b>([\w-]+)</b> <small>", plain)
    assert listed == ["porto", "faro", "evora"]
    assert "passed before, fails now: the failure repeats" in plain
    assert "<mark>city=&#34;Oporto&#34;</mark>" in plain
    assert "the target gave no answer: connection refused" in plain


def test_regressions_come_first_and_the_rest_is_counted() -> None:
    cases = [entry(f"c{n}", "failed", "wrong") for n in range(MAX_PLAIN + 30)]
    last = CaseRef("evals/weather.eval.yaml", f"c{MAX_PLAIN + 29}")
    compared = Comparison("main", "x", "regressed", 230, "failed", regressions=(last,))
    page = report(run(suite(*cases), comparison=compared))
    listed = re.findall(r"<summary>.*?<b>(c\d+)</b>", page, re.DOTALL)
    assert listed[0] == last.id
    assert len(listed) == MAX_PLAIN
    assert "the first 200 of 230" in page


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_leaves_its_place(text: str) -> None:
    case = entry(
        text,
        "failed",
        text,
        description=text,
        response=text,
        tags=[text],
        input=[{"role": text, "content": text}],
        calls=[{"name": text, "params": {text: text}, "result": text, "error": text}],
        evaluators=[
            {"name": text, "type": "llm_judge", "reasoning": text, "misses": [text]},
            trajectory({"status": "missing", "expected": {"tool": text}}, name=text),
        ],
    )
    compared = Comparison(
        text, "x", "regressed", 1, "failed", regressions=(CaseRef(text, text),), explanation=text
    )
    named = suite(case, name=text, file=text, staleness_warnings=[text])
    page = report(run(named, comparison=compared, reasons=(text,), notes=(text,)))
    assert_strict(page, alone=True)
    assert page.count("<script") == len(blocks(page)) + 1
    assert page.count("<!--") == 0
    assert "alert(1)>" not in page
    assert "49" not in details(page)[0]["answer"]
    assert details(page)[0]["answer"] == text
    assert rows(page)[0]["id"] == text


def test_failures_are_grouped_by_their_reason() -> None:
    cases = [
        *(entry(f"a{n}", "failed", f"contains: expected '{n}', found 'x{n}'") for n in range(3)),
        *(entry(f"b{n}", "errored", "no answer within 30 s") for n in range(2)),
    ]
    page = report(run(suite(*cases)))
    groups = blocks(page)["meta"]["groups"]
    assert [(group["reason"], group["cases"]) for group in groups] == [
        ("contains: expected …, found …", 3),
        ("no answer within 30 s", 2),
    ]
    assert [row["group"] for row in rows(page)] == [1, 1, 1, 2, 2]


def noise(seed: int, length: int) -> str:
    """A text that hardly compresses."""
    found = b""
    while len(found) < length:
        found += hashlib.sha256(b"%d %d" % (seed, len(found))).hexdigest().encode()
    return found.decode()[:length]


def test_details_fill_the_size_and_the_rest_is_counted() -> None:
    cases = [entry(f"p{n}", response=noise(n, 2000)) for n in range(640)]
    cases[100] = entry("f100", "failed", "wrong", response=noise(100, 2000))
    cases[500] = entry("f500", "errored", "wrong", response=noise(500, 2000))
    result = run(suite(*cases))
    sizes = {}
    for megabytes in (0.0, 0.4, 0.8, 5.0):
        page = report(result, megabytes)
        known = details(page)
        sizes[megabytes] = len(known)
        assert len(rows(page)) == 640
        if known:
            assert len(page.encode()) <= 1e6 * megabytes
            assert {100, 500} <= set(known)
        left = blocks(page)["meta"]["left"]
        assert left["main"] + left["rest"] == 640 - len(known)
        if left["main"]:
            assert "2 that did not just pass and 638 that passed" in page
        elif left["rest"]:
            assert f"to stay within the size: {left['rest']} that passed" in page
    assert sizes[0.0] == 0
    assert 2 < sizes[0.4] < sizes[0.8] < 640
    assert sizes[5.0] == 640


def test_the_answer_of_the_baseline_is_beside_the_new_one() -> None:
    result = mixed_run()
    asked = []

    def answer(ref: CaseRef) -> str | None:
        asked.append(ref.id)
        return f"{ref.id} before"

    page = report(replace(result, baseline=Baseline(answer, lambda: None)))
    assert asked == ["lisbon", "porto", "faro", "evora"]
    assert details(page)[1]["before"] == "porto before"
    assert ">porto before</div>" in page


def test_words_that_changed_against_the_baseline_are_marked() -> None:
    result = mixed_run()
    answer = details(report(result))[1]["answer"]
    before = f"{answer} <b>or</b> so"
    page = report(replace(result, baseline=Baseline(lambda ref: before, lambda: None)))
    found = details(page)[1]
    assert "before" not in found
    sides = ["".join(text for sign, text in found["diff"] if sign in ("=", side)) for side in "-+"]
    assert sides == [before, answer]
    assert f"{answer}<del> &lt;b&gt;or&lt;/b&gt; so</del>" in page


def test_huge_texts_are_cut_in_the_middle() -> None:
    page = report(run(suite(entry("long", "failed", "wrong", response="a" * 999_999 + "z"))))
    answer = details(page)[0]["answer"]
    assert len(answer) <= 100_000
    assert answer.startswith("aaa")
    assert answer.endswith("aaz")
    assert " ... " in answer


def test_the_same_run_gives_the_same_file() -> None:
    assert written("html", mixed_run()) == written("html", mixed_run())
