"""The pages of test cases, as a browser without JavaScript uses them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.model.test_case import NewTestCase
from assay.ports import Store
from assay.server.app import create_app
from assay.server.pages.test_case_form import LABELS, TestCaseForm, merged
from assay.server.security import Access
from assay.server.tokens import tokens_of
from assay.settings import Settings
from server.conftest import ADDRESS, Clock
from server.test_pages import read_page
from server.test_test_cases import PARIS, URL, create, refused
from strict_html import assert_strict

OWN = {"origin": ADDRESS}
PAGE = "/test-cases"
HOSTILE = "</textarea></pre><script>alert(1)</script>\" onfocus='x' {{ 101 * 809 }} \u202e\x1b[31m"


def send(client: TestClient, path: str, fields: dict[str, Any], status: int = 303) -> Any:
    """Send a form as browsers do, with CRLF."""
    data = {name: str(value).replace("\n", "\r\n") for name, value in fields.items()}
    response = client.post(path, data=data, headers=OWN, follow_redirects=False)
    assert response.status_code == status, response.text
    if status != 303:
        assert_strict(response.text)
        return response.text
    return response.headers["location"]


def form_of(page: str) -> dict[str, str]:
    """The fields of the editor on a page, as a browser reads them."""
    areas = re.findall(r'<textarea id="\w+" name="(\w+)"[^>]*>\n(.*?)</textarea>', page, re.S)
    hidden = re.findall(r'<input type="hidden" name="(version)" value="(\d+)">', page)
    return {name: unescape(text) for name, text in [*areas, *hidden]}


def opened(client: TestClient, case_id: str) -> dict[str, str]:
    return form_of(read_page(client, f"{PAGE}/{case_id}"))


def test_a_test_case_is_added_edited_and_deleted(client: TestClient) -> None:
    fields = form_of(read_page(client, f"{PAGE}/new"))
    assert fields == dict.fromkeys(LABELS, "")
    fields |= PARIS | {"tags": " geography\n\nbasic \ngeography"}
    address = send(client, f"{PAGE}/new", fields)
    assert "Saved as version 1." in read_page(client, address)
    (made,) = client.get(URL).json()["data"]["test_cases"]
    assert (made["tags"], made["description"]) == (["geography", "basic"], None)
    fields = opened(client, made["id"])
    address = send(client, f"{PAGE}/{made['id']}", fields | {"description": "Two\nlines"})
    assert "Saved as version 2." in read_page(client, address)
    assert client.get(f"{URL}/{made['id']}").json()["data"]["description"] == "Two\nlines"
    address = send(client, f"{PAGE}/{made['id']}/delete", {})
    assert "The test case was deleted." in read_page(client, address)
    assert "This test case was deleted" in read_page(client, f"{PAGE}/{made['id']}", 404)


WRONG = [
    ("input", "", "It is empty; 1 to 10,000 characters are expected."),
    ("expected_output", "x" * 10_001, "It has 10,001 characters, and at most 10,000 are allowed."),
    ("description", "x" * 501, "It has 501 characters, and at most 500 are allowed."),
    ("description", "a\0b", "It has a NUL character, which cannot be stored: remove it."),
    ("tags", "\n".join(map(str, range(11))), "There are 11 tags, and at most 10 are allowed."),
    ("tags", "ok\n" + "x" * 51, "has 51 characters, and at most 50 are allowed."),
]


@pytest.mark.parametrize(("name", "text", "problem"), WRONG)
def test_a_problem_is_shown_at_its_field_and_nothing_is_lost(
    client: TestClient, name: str, text: str, problem: str
) -> None:
    fields = dict.fromkeys(LABELS, "") | PARIS | {"description": "kept"} | {name: text}
    page = send(client, f"{PAGE}/new", fields, 400)
    shown = re.search(rf'<span class="problem" id="{name}-problem">(.*?)</span>', page)
    assert shown is not None
    assert problem in unescape(shown[1])
    assert page.count('aria-invalid="true"') == 1
    assert client.get(URL).json()["data"]["total"] == 0
    if "\0" not in text:  # which HTML cannot hold
        assert form_of(page) == fields
    made = create(client)
    page = send(client, f"{PAGE}/{made['id']}", fields | {"version": 1}, 400)
    assert form_of(page)["version"] == "1"
    assert problem in unescape(page)


def test_limits_are_shown_and_counted_in_code_points(client: TestClient) -> None:
    page = read_page(client, f"{PAGE}/new")
    for limit in ("1 to 10,000 characters", "up to 500", "at most 10, each up to 50"):
        assert limit in page
    send(client, f"{PAGE}/new", PARIS | {"input": "🏳" * 10_000, "tags": "é" * 50})


@pytest.mark.parametrize("text", ["a\r\nb", "a\rb", "\n leading", HOSTILE, " ", "&amp; &lt;"])
def test_saving_an_untouched_form_changes_nothing(client: TestClient, text: str) -> None:
    tags = ["a\nb", " x "]
    made = create(client, input=text, expected_output=text, description=text, tags=tags)
    fields = opened(client, made["id"])
    address = send(client, f"{PAGE}/{made['id']}", fields)
    assert "There was nothing to save." in read_page(client, address)
    send(client, f"{PAGE}/{made['id']}", fields | {"description": "new"})
    found = client.get(f"{URL}/{made['id']}").json()["data"]
    assert (found["input"], found["expected_output"], found["tags"]) == (text, text, tags)
    assert found["description"] == "new"


def test_of_two_edits_none_is_lost(client: TestClient, clock: Clock) -> None:
    made = create(client, tags=["geography"])
    mine, spain = opened(client, made["id"]), "What is the capital of Spain?"
    client.put(f"{URL}/{made['id']}", json={"input": spain, "description": "theirs"})
    mine |= {"input": "What is the capital of Italy?", "tags": "geography\nmine"}
    page = send(client, f"{PAGE}/{made['id']}", mine, 409)
    assert "this test case was changed since you opened it" in page
    assert "They changed the input and the description; you changed the input and the tags." in page
    assert "<del>Spain</del>" in page
    assert "<ins>Italy</ins>" in page
    merged_fields = form_of(page)
    expected = mine | {"description": "theirs", "version": "2"}
    assert merged_fields == expected
    assert client.get(f"{URL}/{made['id']}").json()["data"]["input"] == spain
    send(client, f"{PAGE}/{made['id']}", merged_fields)
    found = client.get(f"{URL}/{made['id']}").json()["data"]
    assert (found["input"], found["description"]) == (mine["input"], "theirs")


def test_edits_of_different_fields_are_both_in_the_form(client: TestClient) -> None:
    made = create(client)
    mine = opened(client, made["id"]) | {"tags": "mine"}
    client.put(f"{URL}/{made['id']}", json={"input": "Theirs?"})
    page = send(client, f"{PAGE}/{made['id']}", mine, 409)
    assert "The form has both changes." in page
    assert "<del>" not in page
    assert (form_of(page)["input"], form_of(page)["tags"]) == ("Theirs?", "mine")


def test_text_is_not_lost_when_the_test_case_was_deleted(client: TestClient) -> None:
    made = create(client)
    mine = opened(client, made["id"]) | {"input": "Mine?"}
    client.delete(f"{URL}/{made['id']}")
    page = send(client, f"{PAGE}/{made['id']}", mine, 404)
    assert "was deleted while you edited it" in page
    assert 'action="/test-cases/new"' in page
    send(client, f"{PAGE}/new", form_of(page))
    (again,) = client.get(URL).json()["data"]["test_cases"]
    assert (again["input"], again["id"] == made["id"]) == ("Mine?", False)


def test_versions_are_compared_word_by_word(client: TestClient) -> None:
    made = create(client)
    address = f"{PAGE}/{made['id']}/versions"
    assert "Version 1" in read_page(client, address)
    client.put(f"{URL}/{made['id']}", json={"input": "What is the capital of Spain?"})
    client.put(f"{URL}/{made['id']}", json={"expected_output": "Madrid", "tags": ["x"]})
    page = read_page(client, address)
    assert "From version 2 to 3" in page
    assert "<del>Paris</del><ins>Madrid</ins>" in page
    assert "expected output, tags" in page
    page = read_page(client, f"{address}?old=1&new=2")
    assert "<del>France</del><ins>Spain</ins>" in page
    old = form_of(read_page(client, f"{PAGE}/{made['id']}?version=1"))
    assert (old["input"], old["version"]) == (PARIS["input"], "3")
    for wrong in ("old=9", "new=x", "old=" + "9" * 400):
        assert "no such version" in read_page(client, f"{address}?{wrong}", 404)


def test_a_deleted_test_case_can_be_made_anew(client: TestClient) -> None:
    made = create(client, tags=["geography"])
    client.delete(f"{URL}/{made['id']}")
    page = read_page(client, f"{PAGE}/{made['id']}/versions")
    (link,) = re.findall(r'href="([^"]+)">Make a new test case', page)
    fields = form_of(read_page(client, unescape(link)))
    assert (fields["input"], fields["tags"]) == (PARIS["input"], "geography")


def test_the_list_shows_tags_with_counts_and_pages(client: TestClient, store: Store) -> None:
    assert "There is none yet." in read_page(client, PAGE)
    for number in range(55):
        create(client, input=f"question {number}", tags=["Even"] if number % 2 == 0 else ["odd"])
    page = read_page(client, PAGE)
    assert "1 to 50 of 55" in page
    assert page.count('type="checkbox"') == 50
    assert re.search(r'href="/test-cases\?tag=even">even <b>28</b>', page)
    last = read_page(client, f"{PAGE}?skip=50")
    assert "51 to 55 of 55" in last
    assert "question 54" in last
    odd = read_page(client, f"{PAGE}?tag=OD")
    assert "27 of 55" in odd
    assert "question 2<" not in odd
    assert "No test case has such a tag." in read_page(client, f"{PAGE}?tag=%3Cb%3E")
    assert "unknown" not in read_page(client, f"{PAGE}?skip=x&tag=")


def test_ticked_test_cases_are_run_with_a_target(running: TestClient) -> None:
    made = [create(running, input=text, tags=["geo"]) for text in ("France?", "Spain?", "Italy?")]
    page = read_page(running, PAGE)
    assert re.findall(r"<option[^>]*>(\w+)</option>", page) == ["agent", "other"]
    ticked = {f"case-{made[0]['id']}": "on", f"case-{made[2]['id']}": "on"}
    fields = {"target": "other", "repeat": "2", "which": "ticked", "tag": ""}
    address = send(running, f"{PAGE}/run", fields | ticked)
    run_id = address.removeprefix("/runs/")
    running.get(f"/api/runs/{run_id}/events")
    results = running.get(f"/api/runs/{run_id}/results").json()["data"]
    assert [found["id"] for found in results["results"]] == [made[0]["id"], made[2]["id"]]
    run = running.get(f"/api/runs/{run_id}").json()["data"]
    case = running.get(f"/api/runs/{run_id}/cases/0").json()["data"]
    assert (run["target"], len(case["trials"])) == ("other", 2)


def test_a_test_case_that_is_ticked_twice_is_run_once(running: TestClient) -> None:
    made = create(running)["id"]
    address = send(running, f"{PAGE}/run", {f"case-{made}": "on", f"case-{made.upper()}": "on"})
    run_id = address.removeprefix("/runs/")
    running.get(f"/api/runs/{run_id}/events")
    assert len(running.get(f"/api/runs/{run_id}/results").json()["data"]["results"]) == 1


def test_all_of_a_tag_are_run(running: TestClient) -> None:
    made = [create(running, input=f"{number}?", tags=[f"t{number % 2}"]) for number in range(4)]
    address = send(running, f"{PAGE}/run", {"which": "all", "tag": "t1", "repeat": ""})
    run_id = address.removeprefix("/runs/")
    running.get(f"/api/runs/{run_id}/events")
    results = running.get(f"/api/runs/{run_id}/results").json()["data"]["results"]
    assert {found["id"] for found in results} == {made[1]["id"], made[3]["id"]}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"which": "ticked"}, "Tick the test cases to run first"),
        ({"which": "ticked", "case-5": "on"}, "A form can run up to"),
        ({"which": "ticked", f"case-{'0' * 8}-{'0000-' * 3}{'0' * 12}": "on"}, "is not a test"),
        ({"which": "all", "target": "nobody"}, "nobody"),
        ({"which": "all", "target": "python:os:system"}, "python:os:system"),
        ({"which": "all", "target": "x" * 5000}, "cannot be one"),
        ({"which": "all", "target": "agent\0"}, "cannot be one"),
        ({"which": "all", "repeat": "1001"}, "at most 1000 is allowed here"),
    ],
)
def test_a_run_that_cannot_start_is_explained_on_the_list(
    running: TestClient, fields: dict[str, str], problem: str
) -> None:
    create(running)
    page = send(running, f"{PAGE}/run", fields, 400)
    alert = re.search(r'role="alert">(.*?)</p>', page)
    assert alert is not None
    assert problem in unescape(alert[1])
    assert running.get("/api/runs").json()["data"]["runs"] == []


def test_no_field_of_a_test_case_leaves_its_place(client: TestClient, store: Store) -> None:
    case = NewTestCase(HOSTILE, HOSTILE, HOSTILE, (HOSTILE[:50], HOSTILE[20:60]))
    made = store.test_cases.add(case, Clock()()).result()
    client.put(f"{URL}/{made.id}", json={"input": HOSTILE * 2})
    for path in (PAGE, f"{PAGE}/{made.id}", f"{PAGE}/{made.id}/versions", f"{PAGE}?tag=%3Cscript"):
        page = read_page(client, path)
        assert "<script>alert" not in page
        assert "</textarea></pre>" not in page
        assert "81709" not in page
    page = send(client, f"{PAGE}/{made.id}", {"version": "1", "input": HOSTILE + "mine"}, 400)
    assert "<script>alert" not in page


@pytest.mark.parametrize("path", ["new", "run", "{id}", "{id}/delete"])
def test_another_website_can_send_no_form(client: TestClient, path: str) -> None:
    made = create(client)
    path = f"{PAGE}/{path.format(id=made['id'])}"
    for origin in ("https://evil.example", "null", None):
        headers = {} if origin is None else {"origin": origin}
        response = client.post(path, data=PARIS | {"version": "1"}, headers=headers)
        refused(response, 403, "FORBIDDEN")
    assert client.get(URL).json()["data"]["test_cases"] == [made]


def test_who_can_only_read_gets_no_form_that_writes(settings: Settings, store: Store) -> None:
    made = store.test_cases.add(NewTestCase("q", "a"), Clock()()).result()
    access = Access.of("127.0.0.1", tokens_of("read:looker"))
    browser = TestClient(create_app(settings, store, access), ADDRESS)
    browser.post("/login", data={"token": "looker"}, headers=OWN)
    for path in (PAGE, f"{PAGE}/{made.id}", f"{PAGE}/{made.id}/versions"):
        page = read_page(browser, path)
        assert re.findall(r'method="post" action="([^"]+)"', page) == ["/logout"]
        assert page.count("<textarea") == page.count(" readonly")
        assert 'type="checkbox"' not in page
    response = browser.post(f"{PAGE}/{made.id}/delete", headers=OWN)
    refused(response, 403, "FORBIDDEN")


def test_unknown_test_cases_are_not_found(client: TestClient) -> None:
    for name in ("x", "00000000-0000-4000-8000-000000000000"):
        assert "Test case not found" in read_page(client, f"{PAGE}/{name}", 404)
        assert "Test case not found" in read_page(client, f"{PAGE}/{name}/versions", 404)


def test_merging_takes_each_field_from_who_changed_it() -> None:
    base = TestCaseForm("q", "a", "d", "t")
    conflict = merged(base, TestCaseForm("q2", "a", "d2", "t"), TestCaseForm("q", "a3", "d3", "t"))
    assert conflict.fields == TestCaseForm("q2", "a3", "d2", "t")
    assert (conflict.mine, conflict.theirs) == (
        {"input", "description"},
        {"expected_output", "description"},
    )
    assert conflict.both == {"description"}
    same = merged(base, TestCaseForm("q2", "a", "d", "t"), TestCaseForm("q2", "a", "d", "t"))
    assert same.both == set()
