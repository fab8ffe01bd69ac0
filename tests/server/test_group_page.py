"""`/groups/{id}` and `GET /api/groups/{id}`: several targets on one page."""

from __future__ import annotations

import asyncio
import re
from html import unescape

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from assay.ports import Store
from assay.reporters.group_words import (
    HOW_BEST,
    HOW_PAIRS,
    counts_of,
    differing_note,
    facts,
    headline,
    run_words,
    significant,
    target_rows,
)
from assay.server import preparing
from assay.server.app import create_app
from assay.server.preparing import Preparer
from assay.service import groups
from assay.service.groups import group_with, kept_comparison
from assay.service.history import restored
from assay.settings import Settings
from assay.testing.stores import make_run
from server.conftest import ADDRESS
from server.test_compare_page import links_of, words
from server.test_pages import read_page
from server.test_test_cases import refused
from unit.charts.drawn_charts import HOSTILE
from unit.sample_groups import GROUP, TARGETS, fill_group, run_id


def storable(name: str) -> bool:
    return bool(name) and not any("\ud800" <= char <= "\udfff" for char in name)


PAGE = f"/groups/{GROUP}"
API = f"/api/groups/{GROUP}"


def cells(page: str) -> dict[str, list[str]]:
    """The rows of the differing cases: the id, then what each target did."""
    table = re.search(r'<table class="named cells".*?</table>', page, re.DOTALL)
    assert table is not None
    found = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table[0].partition("<tbody>")[2], re.DOTALL):
        name = words(re.sub(r"<small>.*?</small>", "", row.partition("<td>")[0]))
        found[name] = [words(cell) for cell in row.split("<td>")[1:]]
    return found


def test_the_page_has_the_words_of_the_report(
    client: TestClient, store: Store, project: Settings
) -> None:
    fill_group(store, cost_usd=0.001)
    found = kept_comparison(group_with(GROUP, store), store)
    read = words(read_page(client, PAGE))
    assert headline(found) in read
    assert counts_of(found).capitalize() in read
    assert HOW_BEST in read
    assert HOW_PAIRS in read
    for text in significant(found):
        assert text in read
    for row in target_rows(found):
        assert " ".join(cell for cell in row.cells[:8] if cell) in read
        assert row.cells[8] in read
    for label, text in facts(found):
        assert label in ("Group", "Cases") or f"{label} {text}" in read
    for place in range(3):
        run = run_words(restored(store.run(run_id(place)), store, project))
        assert f"{run.word} {run.target} {run.sentence}" in read
    assert differing_note(found, 11) in read
    for note in found.notes:
        assert note in read


def test_the_cases_that_differ_lead_to_the_case_of_each_target(
    client: TestClient, store: Store
) -> None:
    fill_group(store)
    page = read_page(client, PAGE)
    assert cells(page)["case-11"] == ["✓ passed", "✕ failed", "✕ failed"]
    assert "case-0" not in cells(page)
    links = links_of(page)
    for place in range(3):
        assert f"/runs/{run_id(place)}" in links
        assert f"/runs/{run_id(place)}/cases/11" in links
    assert f"/compare?base={run_id(0)}&candidate={run_id(2)}" in links
    for link in set(links):
        read_page(client, link)


def test_repeats_are_counted_and_cells_say_when_a_target_was_not_asked(
    client: TestClient, store: Store
) -> None:
    fill_group(store, {"a": ["PPPFF", "P"], "b": ["PPPPP"], "c": ["FFFFF", "E"]})
    found = cells(read_page(client, PAGE))
    assert found == {"case-0": ["~ 3 of 5 passed", "✓ 5 of 5 passed", "✕ 0 of 5 passed"]}


def test_the_list_is_paged(client: TestClient, store: Store) -> None:
    fill_group(store, {"a": "P" * 120, "b": "F" * 120})
    first = read_page(client, PAGE)
    assert len(cells(first)) == 50
    assert "1 to 50 of 120" in words(first)
    last = read_page(client, f"{PAGE}?at=100")
    assert len(cells(last)) == 20
    assert f"{PAGE}?at=120" not in links_of(last)
    assert "The list ends before this place" in words(read_page(client, f"{PAGE}?at=500"))
    assert "must be a whole number" in read_page(client, f"{PAGE}?at=x", 400)


def test_targets_that_do_not_differ_have_no_list(client: TestClient, store: Store) -> None:
    fill_group(store, {"a": "PPF", "b": "PPF"})
    read = words(read_page(client, PAGE))
    assert "Cannot tell: neither target is significantly better than the other" in read
    assert "No case: all targets pass the same ones equally often." in read


@pytest.mark.parametrize("name", ["nothing", "01938c4e-0000-7000-8000-00000000dead", "%3Cb%3E"])
def test_an_unknown_group_is_not_found(client: TestClient, name: str) -> None:
    assert "Group not found" in read_page(client, f"/groups/{name}", 404)
    refused(client.get(f"/api/groups/{name}"), 404, "NOT_FOUND")


@pytest.mark.parametrize("name", [name for name in HOSTILE if storable(name)])
def test_hostile_names_are_only_text(client: TestClient, store: Store, name: str) -> None:
    fill_group(store, {f"{name}1": "PF", f"{name}2": "FP"}, case_ids=[f"{name}a", f"{name}b"])
    page = read_page(client, PAGE)
    (shown,) = re.findall(r'<table class="named cells".*?</table>', page, re.DOTALL)
    assert words(shown).count("✕ failed") == words(shown).count("✓ passed") == 2
    for link in set(links_of(page)):
        read_page(client, link)


def test_runs_and_cases_lead_to_their_group(client: TestClient, store: Store) -> None:
    fill_group(store)
    for path in ("/", f"/runs/{run_id(1)}", f"/runs/{run_id(1)}/cases/11"):
        page = read_page(client, path)
        assert PAGE in links_of(page), path
    case = read_page(client, f"/runs/{run_id(1)}/cases/11")
    assert "The same case by other targets: gpt ✓ passed , mini ✕ failed · all targets" in words(
        case
    )
    assert f"/runs/{run_id(0)}/cases/11" in links_of(case)


def test_a_group_in_progress_says_how_far_each_run_is(client: TestClient, store: Store) -> None:
    fill_group(store, {"a": "PF"})
    store.begin(replace(make_run(run_id(1)), target="<b>", group=GROUP))
    page = read_page(client, PAGE)
    read = words(page)
    assert "Running: 1 of 2 runs ended" in read
    assert "<b>" in unescape(read)
    assert '<meta http-equiv="refresh" content="5">' in page
    assert re.findall(r'data-run="([^"]*)"', page) == [run_id(1)]
    for link in set(links_of(page)):
        read_page(client, link)
    data = client.get(API).json()["data"]
    assert (data["comparison"], data["exitCode"]) == (None, None)
    assert [run["status"] for run in data["runs"]] == ["finished", "running"]


def test_the_data_of_a_group(client: TestClient, store: Store) -> None:
    fill_group(store)
    data = client.get(API).json()["data"]
    assert data["groupId"] == GROUP
    assert [run["target"] for run in data["runs"]] == list(TARGETS)
    assert {run["group"] for run in data["runs"]} == {GROUP}
    assert (data["exitCode"], data["count"], data["total"]) == (1, 11, 11)
    found = kept_comparison(group_with(GROUP, store), store)
    assert data["comparison"] == found.to_dict()
    part = client.get(f"{API}?skip=9&limit=5").json()["data"]
    assert (part["count"], part["total"]) == (2, 11)
    assert part["comparison"]["differing"] == found.to_dict()["differing"][9:]
    refused(client.get(f"{API}?limit=0"), 400, "INVALID_INPUT")


def test_a_group_is_compared_once(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_group(store)
    first = read_page(client, PAGE)
    client.get(API)

    def scanned(*_: object) -> None:
        raise AssertionError("the trials are read again")

    monkeypatch.setattr(type(store), "facts", scanned)
    assert read_page(client, PAGE) == first
    assert kept_comparison(group_with(GROUP, store), store).group_id == GROUP


def test_a_group_that_changed_is_compared_again(client: TestClient, store: Store) -> None:
    fill_group(store)
    assert "Best: gpt and claude" in words(read_page(client, PAGE))
    store.delete(run_id(1))
    assert "Best: gpt, significantly better than mini" in words(read_page(client, PAGE))


def test_a_large_group_is_compared_before_its_page_is_opened(
    project: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_group(store)
    monkeypatch.setattr(preparing, "LARGE", 0)
    app = create_app(project, store)
    with TestClient(app, ADDRESS) as client:
        asyncio.run(Preparer(app.state.assay).prepare_newest())
        monkeypatch.setattr(groups, "compare_group", None)
        assert "Best: gpt and claude" in words(read_page(client, PAGE))
