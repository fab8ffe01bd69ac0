"""`/compare`: the verdict in words, what moved and where, the lists, and one case of both runs."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from assay.model.accepted import AcceptedLoss
from assay.model.result import Outcome
from assay.ports import Store
from assay.server.app import create_app
from assay.settings import Config, Settings
from server.compared_sample import BASE, CANDIDATE, OUTCOMES, SUITE, add_run, fill
from server.conftest import ADDRESS, Clock
from server.test_pages import read_page
from unit.charts.drawn_charts import HOSTILE


@pytest.fixture
def runs(store: Store) -> None:
    fill(store, OUTCOMES)


def compare(client: TestClient, **query: object) -> str:
    """The text of a comparison of the two runs."""
    known = {"base": "main", "candidate": CANDIDATE} | query
    return read_page(client, "/compare?" + urlencode(known))


def words(page: str) -> str:
    """What a person reads."""
    text = re.sub(r"<(script|style|title)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def cases(page: str) -> list[str]:
    """The ids in the list of cases."""
    return [unescape(found) for found in re.findall(r"<a [^>]*data-row>([^<]*)</a>", page)]


def links_of(page: str) -> list[str]:
    """Where the links of a page lead, without the part of that page."""
    found = re.findall(r'<a [^>]*?href="([^"]+)"', page)
    return [unescape(address).partition("#")[0] for address in found]


@pytest.mark.usefixtures("runs")
def test_the_page_begins_with_the_verdict_in_words(client: TestClient) -> None:
    read = words(compare(client))
    start = read.index("Failed: 1 lost (1 not confirmed), 1 new pass")
    assert start < 100
    assert "1 case that changed since the baseline fails." in read
    assert "Pass rate alone: Too early to tell: 2 of 4 cases changed" in read
    assert "4 cases compared, pass rate +0.0 points (" in read


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("regressed", ["lost"]),
        ("fixed", ["gained"]),
        ("not-comparable", ["edited"]),
        ("not-judged", ["broken"]),
        ("still-failing", ["bad"]),
        ("both-passed", ["stays"]),
        ("added", ["new"]),
        ("removed", ["gone"]),
        ("flaky", []),
        ("accepted", []),
    ],
)
def test_every_list_has_its_cases(client: TestClient, name: str, found: list[str]) -> None:
    assert cases(compare(client, list=name)) == found


@pytest.mark.usefixtures("runs")
def test_every_link_of_the_page_leads_to_its_cases(client: TestClient) -> None:
    page = compare(client)
    links = [link for link in links_of(page) if link.startswith("/compare")]
    lists = {parse_qs(urlsplit(link).query).get("list", [""])[0] for link in links}
    assert {"regressed", "fixed", "still-failing", "both-passed", "not-comparable"} <= lists
    for link in links:
        read_page(client, link)


@pytest.mark.usefixtures("runs")
def test_a_case_that_is_not_comparable_says_what_changed(client: TestClient) -> None:
    assert "the question changed" in words(compare(client, list="not-comparable"))


@pytest.mark.usefixtures("runs")
def test_answers_are_compared_word_by_word(client: TestClient) -> None:
    page = compare(client, list="regressed")
    assert "Yes: ice, until <del>noon</del>. lost" in page
    assert "Yes: ice, until <ins>night</ins>. lost" in page
    assert "call 1 is get_weather(), expected get_alerts()" in page


@pytest.mark.usefixtures("runs")
def test_one_case_is_shown_in_three_columns(client: TestClient) -> None:
    query = {"base": "main", "candidate": CANDIDATE, "list": "regressed", "at": 0}
    page = read_page(client, "/compare/case?" + urlencode(query))
    read = words(page)
    for text in ("What about lost?", "Expected call 1 is get_alerts()", "1 of 1", "not confirmed"):
        assert text in read
    assert "get_alerts(city=&#34;Oslo&#34;)" in page
    assert f"/runs/{BASE}/cases/1" in links_of(page)
    assert f"/runs/{CANDIDATE}/cases/1" in links_of(page)


@pytest.mark.usefixtures("runs")
def test_without_names_the_newest_run_is_compared_with_the_baseline(client: TestClient) -> None:
    page = read_page(client, "/compare")
    assert cases(page) == ["lost"]
    chosen = re.findall(r'<option value="([^"]*)" selected>', page)
    assert chosen == ["main", CANDIDATE]


def test_without_a_baseline_the_newest_run_is_compared_with_the_one_before(
    client: TestClient, store: Store
) -> None:
    fill(store, OUTCOMES)
    store.remove_baseline("main")
    page = read_page(client, "/compare")
    assert cases(page) == ["lost"]
    assert re.findall(r'<option value="([^"]*)" selected>', page) == [BASE, CANDIDATE]


def test_a_slow_decline_is_part_of_the_verdict(client: TestClient, store: Store) -> None:
    names = [f"case-{n:02}" for n in range(40)]
    first = "01938c4e-0000-7000-8000-000000000001"
    add_run(store, first, dict.fromkeys(names, "passed"))
    kinds: tuple[Outcome, Outcome] = ("passed", "failed")
    fill(store, {name: (kinds[n < 8], kinds[n < 9]) for n, name in enumerate(names)})
    store.remove_baseline("main")
    store.set_baseline("main", first)
    store.set_baseline("main", BASE)
    read = words(compare(client))
    assert "Slow decline: of 40 cases, 9 stopped passing and 0 started to since" in read


def test_accepted_losses_have_a_list_with_their_reasons(
    store: Store, tmp_path: Path, clock: Clock
) -> None:
    fill(store, OUTCOMES)
    accepted = AcceptedLoss(case="lost", reason="the vendor is late")
    settings = Settings(tmp_path, Config(accepted=[accepted]))
    with TestClient(create_app(settings, store, now=clock), ADDRESS) as client:
        page = compare(client, list="accepted")
    assert cases(page) == ["lost"]
    assert "accepted: the vendor is late" in words(page)


@pytest.mark.usefixtures("runs")
def test_the_runs_can_be_swapped(client: TestClient) -> None:
    link = next(link for link in links_of(compare(client)) if link.endswith("candidate=main"))
    assert cases(read_page(client, link)) == ["gained"]


def test_without_runs_the_page_says_what_it_needs(client: TestClient) -> None:
    assert "needs two finished runs" in words(read_page(client, "/compare"))


def test_a_list_is_paged(client: TestClient, store: Store) -> None:
    fill(store, {f"case-{n:02}": ("passed", "failed") for n in range(45)})
    first = compare(client, list="regressed")
    assert cases(first) == [f"case-{n:02}" for n in range(20)]
    assert "1 to 20 of 45" in words(first)
    second = next(link for link in links_of(first) if "at=20" in link)
    assert cases(read_page(client, second))[0] == "case-20"
    last = compare(client, list="regressed", at=40)
    assert cases(last) == [f"case-{n:02}" for n in range(40, 45)]
    assert "at=60" not in last


def test_cases_that_passed_in_both_are_paged_too(client: TestClient, store: Store) -> None:
    fill(store, {f"case-{n:02}": ("passed", "passed") for n in range(25)})
    assert cases(compare(client, list="both-passed", at=20)) == [f"case-{n}" for n in range(20, 25)]
    assert "Unchanged: none lost, 0 new passes" in words(compare(client))


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.isprintable() and name])
def test_hostile_names_are_only_text(client: TestClient, store: Store, name: str) -> None:
    fill(store, {name: ("passed", "failed")})
    (shown,) = cases(compare(client))
    assert shown == name or "..." in shown
    query = {"base": name, "candidate": CANDIDATE}
    assert read_page(client, "/compare?" + urlencode(query), 404)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"list": "regresed"}, 400, "did you mean 'regressed'"),
        ({"at": "-1"}, 400, "it must be a whole number from 0"),
        ({"at": "1" * 30}, 400, "it must be a whole number from 0"),
        ({"base": "mian"}, 404, "did you mean 'main'"),
    ],
)
def test_a_mistake_in_the_address_is_explained(
    client: TestClient, query: dict[str, str], status: int, said: str
) -> None:
    known = {"base": "main", "candidate": CANDIDATE} | query
    assert said in words(read_page(client, "/compare?" + urlencode(known), status))


@pytest.mark.usefixtures("runs")
def test_a_case_beyond_the_list_is_refused(client: TestClient) -> None:
    query = {"base": "main", "candidate": CANDIDATE, "list": "fixed", "at": 7}
    page = read_page(client, "/compare/case?" + urlencode(query), 400)
    assert "The list has 1 case; there is none at 7" in words(page)


@pytest.mark.usefixtures("runs")
def test_rows_of_a_forest_lead_to_the_cases_of_the_run(client: TestClient) -> None:
    links = [link for link in links_of(compare(client)) if link.startswith("/runs/")]
    assert f"/runs/{CANDIDATE}?filter=tag%3Aalerts" in links
    assert SUITE not in "".join(links)
