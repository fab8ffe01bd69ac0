"""The report in one file, from disk: with and without its script, by keyboard, hostile."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from assay.errors import FilterError
from assay.model.case_filter import FilterRow, folded, parse_filter
from assay.reporters.html import case_foldings
from assay.text import duration, money
from assay.web.content import visible
from assay.web.environment import static_url
from browser.conftest import LOOKS, Look
from browser.hostile import PAYLOADS, write_suites
from browser.sites import Site, example
from browser.tabs import Tab
from e2e.projects import Project

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of the example: one critical case got worse."""
    project = example(tmp_path_factory.mktemp("report"))
    project.run("report", "-o", "report.html")
    return (project.root / "report.html").as_uri()


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report in which every text is hostile."""
    project = Project(tmp_path_factory.mktemp("hostile-report"))
    write_suites(project.root)
    project.run("run", "evals/", code=1)
    project.run("baseline", "set", "main", "latest")
    project.run("run", "evals/", "--baseline", "main", "-o", "report.html", code=3)
    return (project.root / "report.html").as_uri()


def show(tab: Tab, address: str, look: Look) -> Page:
    """Open a report, and wait until its list is there, if its script runs."""
    tab.page.goto(address)
    if look.script:
        expect(tab.page.locator("html[data-ready]")).to_be_attached()
    return tab.page


def test_it_leads_from_the_verdict_to_the_cause(tab: Tab, look: Look, report: str) -> None:
    page = show(tab, report, look)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Failed: 1 critical case passed")
    expect(page.locator(".verdict").first).to_contain_text("21 of 22 judged cases passed")
    expect(page.locator("#failures")).to_be_visible(visible=not look.script)
    expect(page.get_by_role("grid")).to_be_visible(visible=look.script)
    tab.check()
    if not look.script:
        page.get_by_text("oslo-alert").first.click()
        expect(page.get_by_role("cell", name='get_alerts(city="Oslo")')).to_be_visible()
        expect(page.get_by_text("Yes: ice, until 18:00.")).to_be_visible()
        return
    row = page.get_by_role("row").nth(1)
    expect(row).to_contain_text("regressed")
    row.get_by_text("oslo-alert").click()
    expect(page.get_by_role("cell", name='get_alerts(city="Oslo")')).to_be_visible()
    expect(page.locator("#case")).to_contain_text("Yes: ice, until 18:00.")
    tab.check()
    page.go_back()
    expect(page.get_by_role("grid")).to_be_visible()


def test_it_is_used_by_keyboard_alone(open_tab: Callable[..., Tab], report: str) -> None:
    page = show(open_tab(), report, LOOKS[0])
    press = page.keyboard.press
    press("j")
    press("j")
    expect(page.locator(".grid-row.current")).to_contain_text("both-units")
    press("Enter")
    expect(page.locator("#case h1")).to_have_text("Fixed: both-units")
    press("k")
    expect(page.locator("#case h1")).to_have_text("Regressed: oslo-alert")
    expect(page.locator("#case-place")).to_have_text("case 1 of 23")
    press("u")
    expect(page.get_by_role("grid")).to_be_visible()
    press("/")
    page.keyboard.type("tag:sky lisbon")
    press("Enter")
    expect(page.locator("#status")).to_have_text("1 of 23 cases shown.")
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", "2")
    press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next case")
    press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_address_keeps_what_is_shown(open_tab: Callable[..., Tab], report: str) -> None:
    page = show(open_tab(), f"{report}#filter=outcome:passed&sort=-tokens&case=8", LOOKS[0])
    expect(page.locator("#case h1")).to_have_text("Regressed: oslo-alert")
    expect(page.locator("#case-place")).to_have_text("not in the list")
    page.keyboard.press("u")
    expect(page.locator("#status")).to_have_text("21 of 23 cases shown.")
    expect(page.get_by_role("row").nth(1)).to_contain_text("sail-from-log")
    expect(page.get_by_role("columnheader", name="Tokens")).to_have_attribute(
        "aria-sort", "descending"
    )
    page.get_by_role("link", name=re.compile("Regressed 1")).click()
    expect(page).to_have_url(re.compile(r"#filter=changed%3Aregressed&sort=-tokens$"))
    expect(page.locator("#status")).to_have_text("1 of 23 cases shown.")
    page.get_by_label("Filter").fill("outcome:broken")
    expect(page.locator("#status")).to_have_text(
        re.compile("column 9: outcome cannot be 'broken'; known: passed")
    )


def test_hostile_texts_are_shown_and_never_run(tab: Tab, look: Look, hostile_report: str) -> None:
    page = show(tab, hostile_report, look)
    if not look.script:
        for summary in page.locator("#failures summary").all():
            summary.click()
        tab.check()
        return
    expect(page.locator("#status")).to_have_text("80 cases.")
    for position in range(0, len(PAYLOADS), 1 if look == LOOKS[0] else 8):
        page.evaluate("position => { location.hash = `#case=${position}`; }", position)
        expect(page.locator("#case dl").first).to_contain_text(f"position {position}")
        title = page.locator("#case h1").inner_text()
        payload = PAYLOADS[int(re.findall(r"^\w+: (\d+)", title)[0])]
        shown = page.locator("#case-content").text_content() or ""
        for line in payload.splitlines():
            assert line in shown or not line.isprintable(), position
    tab.check()


def rows_and_filters(seed: int) -> tuple[list[FilterRow], list[str], list[str]]:
    """Random cases, the text of each, and filters that are often right and often not."""
    chance = random.Random(seed)
    words = ["refund", "Straße", "STRASSE", "é", "e\u0301", "ΑΣ", "ας", "İ", "a b", "x*", "", "ﬃ"]

    def some(names: list[str], most: int = 3) -> tuple[str, ...]:
        return tuple(chance.choices(names, k=chance.randrange(most)))

    def number() -> float | None:
        return chance.choice([None, 0.0, 0.5, 1.0, 0.6, 1e-5, 2000.0, chance.random()])

    rows, texts = [], []
    for _ in range(40):
        judged = chance.randrange(4)
        texts.append("\n".join(some(words, 5)))
        rows.append(
            FilterRow(
                id=chance.choice(words) + chance.choice(words),
                suites=some(words),
                tags=some(words),
                evaluators=some(words),
                text=folded(texts[-1]),
                outcome=chance.choice(["passed", "failed", "errored", "skipped"]),
                changed=chance.choice([None, "regressed", "fixed", "added"]),
                flaky=0 < chance.randrange(judged + 1) < judged,
                score=number(),
                cost=number(),
                latency=number(),
            )
        )
    parts = [
        *("id:", "suite:", "tag:", "evaluator:", "outcome:", "changed:", "flaky", "score", "cost"),
        *("latency", "<", "<=", "=", ">=", ">", "0.5", "1e-5", "1_0", ".5", "5.", "-", '"', "\\"),
        *(",", " ", " ", " ", "\u2028", "\ufeff", "*", "failed", "regressed", "fail", "flakey"),
        *("flaku", "http://", ":", "²:", *words),
    ]
    fields = ["id", "suite", "tag", "evaluator"]
    filters = ["", "  ", '"', '""', "-", "- flaky", "x" * 2001, " ".join("abcdefghi")]
    filters += [
        "a AND tag:b",
        "id:a OR id:b",
        "NOT flaky",
        "-NOT",
        "(tag:a)",
        "!score>1",
        "(see",
        "!",
    ]
    for _ in range(400):
        filters.append("".join(chance.choices(parts, k=chance.randrange(1, 7))))
        value = chance.choice(words).replace(" ", "") or "*"
        filters.append(f"{chance.choice(['', '-'])}{chance.choice(fields)}:{value},*{value[:1]}*")
        filters.append(f'{chance.choice(["", "-"])}"{chance.choice(words)}" score>={number() or 0}')
    return rows, texts, filters


#: Matches each filter against all rows; a mistake is its column.
_MATCH = """async ([address, rows, texts, filters, foldings]) => {
  const { parseFilter, matcher, folding, FilterMistake } = await import(address);
  const fold = folding(foldings);
  const column = (name) => rows.map((row) => row[name]);
  const outcomes = ["passed", "failed", "errored", "skipped"];
  const changes = ["regressed", "fixed", "still-failing", "added", "not-comparable", "not-judged"];
  const table = {
    count: rows.length,
    kinds: rows.map((row) => ({ suites: row.suites, tags: row.tags, evaluators: row.evaluators })),
    outcomes, changes,
    columns: {
      id: column("id"), kind: rows.map((_, index) => index),
      outcome: rows.map((row) => outcomes.indexOf(row.outcome)),
      changed: rows.map((row) => changes.indexOf(row.changed)),
      score: column("score"), cost: column("cost"), latency: column("latency"),
    },
    isFlaky: (index) => rows[index].flaky,
  };
  return filters.map((filter) => {
    try {
      const terms = parseFilter(filter, fold);
      const found = new Map();
      for (const term of terms.filter((term) => term.field === "text")) {
        const wanted = String(term.values[0]);
        found.set(wanted, Uint8Array.from(texts, (text) => Number(fold(text).includes(wanted))));
      }
      const matches = matcher(terms, table, found);
      return rows.map((_, index) => matches(index));
    } catch (error) {
      if (!(error instanceof FilterMistake)) throw error;
      return error.column;
    }
  });
}"""


@pytest.mark.parametrize("seed", range(3))
def test_the_script_filters_as_python_does(
    seed: int, open_tab: Callable[..., Tab], site: Site
) -> None:
    rows, texts, filters = rows_and_filters(seed)
    tab = open_tab()
    tab.go(f"{site.url}/docs")
    plain: list[dict[str, Any]] = [
        {field: getattr(row, field) for field in row.__struct_fields__} for row in rows
    ]
    address = static_url("case_filter.js")
    given = [address, plain, texts, filters, case_foldings()]
    found = tab.page.evaluate(_MATCH, given)
    matched = 0
    for text, theirs in zip(filters, found, strict=True):
        assert theirs == ours(text, rows), text
        matched += isinstance(theirs, list) and any(theirs)
    assert matched > 100


def ours(text: str, rows: list[FilterRow]) -> list[bool] | int:
    """What Python finds."""
    try:
        where = parse_filter(text)
    except FilterError as error:
        return error.mistakes[0].column
    return [where.matches(row) for row in rows]


def test_the_script_writes_out_what_hides_text_as_python_does(
    open_tab: Callable[..., Tab], site: Site
) -> None:
    texts = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    texts += ["a\u202eb\x1b[31m\tc\nd\r", "\U0001f469\u200d\U0001f4bb"]
    tab = open_tab()
    tab.go(f"{site.url}/docs")
    script = """async ([address, texts]) => {
      const { visible } = await import(address);
      return texts.map(visible);
    }"""
    assert tab.page.evaluate(script, [static_url("elements.js"), texts]) == list(
        map(visible, texts)
    )


def test_the_script_writes_numbers_as_python_does(open_tab: Callable[..., Tab], site: Site) -> None:
    chance = random.Random(1)
    numbers = [0.0, 0.5, 1.5, 812.5, 999.49, 999.5, 59_949.9, 59_950.0, 3_599_500.0, 1e9]
    numbers += [10 ** chance.uniform(-6, 9) for _ in range(2000)]
    tab = open_tab()
    tab.go(f"{site.url}/docs")
    script = """async ([address, numbers]) => {
      const { duration, money } = await import(address);
      return numbers.map((number) => [duration(number), money(number)]);
    }"""
    found = tab.page.evaluate(script, [static_url("numbers.js"), numbers])
    assert found == [[duration(number), money(number)] for number in numbers]
