"""`/label/{run}`: blind labelling, as a browser without JavaScript does it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.results.judgements import judgements
from assay.server.app import create_app
from assay.settings import Settings
from assay.stores.sqlite import SqliteStore
from browser.labels_project import ANSWERS, PASSED, SECRET_OF_THE_JUDGE, judged_project
from e2e.projects import Project
from server.conftest import ADDRESS, Clock
from server.test_pages import BROWSER, read_page
from server.test_test_cases import refused
from strict_html import assert_strict

OWN = {"origin": ADDRESS}
HOSTILE = '</pre></p><script>alert(1)</script>" onfocus="x {{ 7 * 7 }}'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("judged") / "project")
    judged_project(project)
    return project.root


class Desk:
    """A browser at the page of the only run."""

    def __init__(self, client: TestClient, store: Store) -> None:
        self.client, self.store = client, store
        self.run = next(iter(store.runs(1))).id
        self.url = f"/label/{self.run}"

    def page(self, query: str = "") -> str:
        return read_page(self.client, self.url + query)

    def send(self, path: str = "", **fields: Any) -> str:
        """Send a form; returns the page that it leads to."""
        data = {"judge": "polite", **fields}
        response = self.client.post(self.url + path, data=data, headers=OWN | BROWSER)
        assert response.status_code == 200, response.text
        assert_strict(response.text)
        return response.text

    def begin(self, author: str = "Ann") -> str:
        return self.send("/author", author=author)

    def label(self, page: str, verdict: str) -> str:
        return self.send(**case_of(page), verdict=verdict)

    @property
    def labels(self) -> list[tuple[str, bool, str]]:
        found = self.store.labels.of_run(self.run)
        return [(label.case_id, label.passed, label.author) for label in found]


@pytest.fixture
def desk(made: Path, tmp_path: Path, clock: Clock) -> Iterator[Desk]:
    root = tmp_path / "project"
    shutil.copytree(made, root)
    with (
        closing(SqliteStore(root / ".assay" / "assay.db")) as store,
        TestClient(create_app(Settings.find(root), store, now=clock), ADDRESS) as client,
    ):
        yield Desk(client, store)


def position(page: str) -> str:
    (found,) = re.findall(r'name="position" value="(\d+)"', page)
    return str(found)


def case_of(page: str) -> dict[str, str]:
    """The fields that say which answer is labelled."""
    return dict(re.findall(r'name="(position|case)" value="(\w+)"', page))


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_name_comes_first_and_is_kept_by_the_browser(desk: Desk) -> None:
    assert 'name="author"' in desk.page()
    page = desk.begin("  Ann Önér; x=y ")
    assert "as Ann Önér; x=y" in page
    assert "Is this answer right?" in desk.page()
    for wrong in ("", " ", "x" * 101):
        data = {"judge": "polite", "author": wrong}
        response = desk.client.post(desk.url + "/author", data=data, headers=OWN)
        refused(response, 400, "INVALID_INPUT")


def test_the_page_shows_the_case_and_nothing_of_the_judge(desk: Desk) -> None:
    page = text_of(desk.begin())
    assert "Says sorry, and names the amount and the day of the refund" in page
    assert "Where is my refund for #" in page
    assert "find_order(order=" in page
    assert "0 of 40 labelled" in page
    seen = 0
    for number in range(ANSWERS):
        page = desk.page(f"?at={number}")
        assert SECRET_OF_THE_JUDGE not in page
        assert not re.search(r"0\.9\b|0\.2\b|passed|failed|score|badge", page)
        seen += "Your order" in page
    assert seen == PASSED


def test_labels_are_stored_with_author_and_lead_to_the_next_answer(desk: Desk) -> None:
    page, order = desk.begin(), list[str]()
    for verdict in ("pass", "fail", "pass"):
        order.append(position(page))
        page = desk.label(page, verdict)
        assert f"the last one as {verdict}" in page
    assert len({*order, position(page)}) == 4
    found = {case_id: passed for case_id, passed, author in desk.labels if author == "Ann"}
    assert found == {f"refund-{at}": at != order[1] for at in order}
    seeded = [str(j.position) for j in judgements(desk.store, desk.run) if j.evaluator == "polite"]
    Random(f"{desk.run} polite").shuffle(seeded)
    assert order == seeded[:3]


def test_labelling_goes_on_where_it_was_left_by_anyone(desk: Desk) -> None:
    page = desk.label(desk.begin(), "pass")
    wanted = position(page)
    assert position(desk.page()) == wanted
    desk.client.cookies.clear()
    assert position(desk.begin("Bob")) == wanted
    page = desk.label(desk.page(), "fail")
    assert "2 labels (1 by you)" in text_of(page)


def test_a_skipped_answer_comes_again_at_the_end(desk: Desk) -> None:
    page = desk.begin()
    first = position(page)
    (skip,) = re.findall(r'<a class="button" href="(\?[^"]+)" data-key="s"', page)
    page = desk.page(skip.replace("&amp;", "&"))
    for _ in range(ANSWERS - 1):
        assert position(page) != first
        page = desk.label(page, "pass")
    assert position(page) == first
    page = desk.label(page, "pass")
    assert f"All {ANSWERS} answers are labelled" in text_of(page)


def test_the_last_labels_can_be_taken_back(desk: Desk, clock: Clock) -> None:
    page = desk.begin()
    assert "/undo" not in page
    order = []
    for verdict in ("pass", "fail"):
        order.append(position(page))
        page = desk.label(page, verdict)
        clock.move(seconds=1)
    page = desk.send("/undo")
    assert position(page) == order[1]
    page = desk.send("/undo")
    assert position(page) == order[0]
    assert desk.labels == []
    assert position(desk.send("/undo")) == order[0]


def test_an_answer_can_be_labelled_anew(desk: Desk) -> None:
    page = desk.begin()
    at = position(page)
    desk.label(page, "pass")
    page = desk.page(f"?at={at}")
    assert "Labelled as <b>pass</b> by Ann" in page
    desk.label(page, "fail")
    assert desk.labels == [(f"refund-{at}", False, "Ann")]


def test_the_corrected_rate_follows_the_labels(desk: Desk) -> None:
    """People see that a judge which passes every refund overlooks a missing apology."""
    desk.begin()
    page = desk.page("?at=1")
    for number in range(1, 25):
        good = number % 4 and number % 5
        page = desk.label(desk.page(f"?at={number}"), "pass" if good else "fail")
    shown = text_of(page)
    assert "24 labels" in shown
    # The judge passes 20 of 24, people 15: of the 9 bad answers it notices 4.
    assert "both say the same 19 of 24" in shown
    assert "of the bad answers, the judge fails 44.4 % (18.9 to 73.3)" in shown
    rate = re.search(r"corrected pass rate ([\d.]+) % \(([\d.]+) to ([\d.]+)\)", shown)
    assert rate is not None
    assert float(rate[2]) < float(rate[1]) == 55 < float(rate[3])
    gain = re.search(r"20 more labels would make it about ([\d.]+) points narrower", shown)
    assert gain is not None
    assert 0 < float(gain[1]) < 30
    assert "assay labels export labels.csv --run" in shown


def test_without_bad_labels_the_rate_is_not_known(desk: Desk) -> None:
    page = text_of(desk.label(desk.begin(), "pass"))
    assert "not known: there is no label of a bad answer" in page


def test_names_of_the_run_lead_to_its_page(desk: Desk) -> None:
    response = desk.client.get("/label/latest", headers=BROWSER, follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, desk.url)
    assert read_page(desk.client, "/label/nothing", 404)
    assert f'href="{desk.url}"' in read_page(desk.client, f"/runs/{desk.run}")


@pytest.mark.parametrize("query", ["?at=99", "?at=x", "?judge=nobody"])
def test_what_was_not_judged_is_not_found(desk: Desk, query: str) -> None:
    desk.begin()
    read_page(desk.client, desk.url + query, 404)


def test_a_wrong_form_changes_nothing(desk: Desk) -> None:
    unnamed = desk.client.post(
        desk.url, data={"judge": "polite", "position": "1", "verdict": "pass"}, headers=OWN
    )
    assert "Say first who labels" in refused(unnamed, 400, "INVALID_INPUT")
    desk.begin()
    right = {"judge": "polite", "verdict": "pass"} | case_of(desk.page("?at=1"))
    for fields in ({"verdict": "maybe"}, {"position": "99"}, {"judge": "nobody"}, {"position": ""}):
        data = right | fields
        response = desk.client.post(desk.url, data=data, headers=OWN)
        assert response.status_code in (400, 404)
    for origin in ("https://evil.example", "null"):
        response = desk.client.post(desk.url, data=right, headers={"origin": origin})
        refused(response, 403, "FORBIDDEN")
    assert desk.labels == []


def test_a_form_whose_case_has_moved_labels_no_other_answer(desk: Desk) -> None:
    desk.begin()
    data = case_of(desk.page("?at=1")) | {"judge": "polite", "verdict": "pass", "position": "2"}
    response = desk.client.post(desk.url, data=data, headers=OWN)
    assert "open the page again" in refused(response, 400, "INVALID_INPUT")
    assert desk.labels == []


def test_the_address_by_name_keeps_the_judge(desk: Desk) -> None:
    response = desk.client.get("/label/latest?judge=polite", follow_redirects=False)
    assert response.headers["location"] == f"{desk.url}?judge=polite"


def test_a_hostile_name_stays_a_name(desk: Desk) -> None:
    page = desk.begin(HOSTILE[:100])
    page += desk.label(page, "pass")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    desk.client.cookies.clear()
    desk.client.cookies.set("assay-author", "%00", path="/label")
    assert 'name="author"' in desk.page()


def test_a_run_without_judge_has_nothing_to_label(running: TestClient) -> None:
    started = running.post("/api/runs", json={"suites": ["evals"]}).json()["data"]["runId"]
    running.get(f"/api/runs/{started}/events")
    assert "Nothing to label" in read_page(running, f"/label/{started}")
