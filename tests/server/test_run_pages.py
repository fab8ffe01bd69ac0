"""The pages of runs and cases: complete without JavaScript, and nothing of theirs is markup."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape

import pytest
from starlette.testclient import TestClient

from assay.model.case_filter import CaseFilter
from assay.ports import Store
from assay.reporters import failure_groups
from assay.server.app import create_app
from assay.server.pages import runs
from assay.server.pages.kept_overviews import Overviews
from assay.server.pages.overviews import MAX_RATES
from assay.server.security import Access
from assay.settings import Settings
from server.conftest import ADDRESS, Agent
from server.test_pages import BROWSER, addresses, read_page
from server.test_runs import SUITES, events, finished

OWN = {"origin": ADDRESS}
MARK = "<script>alert(1)</script>\"'"
HOSTILE = {
    "name": f"suite {MARK}",
    "cases": [
        {
            "id": f"id {MARK}",
            "description": f"description {MARK}",
            "input": f"input {MARK}",
            "expected_output": f"expected {MARK}",
            "tags": [f"tag {MARK}"],
            "evaluators": [{"type": "contains", "value": f"value {MARK}", "name": f"check {MARK}"}],
        }
    ],
}


def text_of(page: str) -> str:
    """The text of a page as a reader sees it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_the_list_of_runs_says_how_each_ended(running: TestClient) -> None:
    assert "assay run evals/" in read_page(running, "/")
    run = finished(running, SUITES)
    page = read_page(running, "/")
    shown = text_of(page)
    assert "✕ failed" in shown
    assert "1 case failed" in shown
    assert "50 % (9.5 to 90.5) 1 of 2" in shown
    assert f"/runs/{run['runId']}" in addresses(page, "a")


def test_runs_are_filtered_by_target_suite_and_branch(running: TestClient) -> None:
    run = finished(running, SUITES)
    address = f"/runs/{run['runId']}"
    for query in ("target=agent", "suite=capitals", "suite=evals/capitals.eval.yaml"):
        assert address in addresses(read_page(running, f"/?{query}"), "a")
    for query in ("target=other", "suite=none", "branch=main"):
        page = read_page(running, f"/?{query}")
        assert address not in addresses(page, "a")
        assert "matches" in page
    assert "Query parameter" in read_page(running, "/?traget=x", 400)


def test_what_is_kept_of_a_run_does_not_grow_with_its_tags(
    project: Settings, store: Store, agent: Agent
) -> None:
    tags = [f"tag-{number}" for number in range(MAX_RATES + 5)]
    suite = {"cases": [{"id": "a", "input": "France?", "expected_output": "Paris", "tags": tags}]}
    (project.root / "evals" / "capitals.eval.yaml").write_text(json.dumps(suite))
    with TestClient(create_app(project, store), ADDRESS) as client:
        record = store.run(finished(client, SUITES)["runId"])
        shown = text_of(read_page(client, f"/runs/{record.id}"))
    assert f"The lowest {MAX_RATES} of {len(tags)}" in shown
    kept = Overviews()
    assert len(kept.of(record, store, project).tags) == MAX_RATES
    facets = kept.facets(store, record, CaseFilter())
    assert (facets.total, facets.tag) == (1, {})


def test_a_group_of_failures_leads_to_its_cases(
    project: Settings, store: Store, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its reason has line breaks or is cut, or if it is the rest of all reasons."""
    monkeypatch.setattr(failure_groups, "MAX_GROUPS", 2)
    checks = (
        {"type": "contains", "name": "spaces", "value": "two   spaces\nand lines"},
        {"type": "contains", "name": "long", "value": "long " * 100 + "to  the end"},
        {"type": "equals", "value": "Rome"},
        {"type": "is_json"},
    )
    cases = [{"id": f"c{n}", "input": "?", "evaluators": [one]} for n, one in enumerate(checks)]
    path = project.root / "evals" / "capitals.eval.yaml"
    path.write_text(json.dumps({"cases": cases}))
    with TestClient(create_app(project, store), ADDRESS) as client:
        page = read_page(client, f"/runs/{finished(client, SUITES)['runId']}")
        links = re.findall(r'<div class="item">.*?href="([^"#]+)', page, re.DOTALL)
        totals = [
            re.findall(r"<h2>Cases <small>(\d+) case", read_page(client, unescape(link)))
            for link in links
        ]
    assert totals == [["4"], ["1"], ["1"]]


def test_pages_of_filtered_runs_keep_the_filter(
    running: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ROWS", 1)
    finished(running, SUITES)
    finished(running, SUITES)
    (older,) = (a for a in addresses(read_page(running, "/?target=agent"), "a") if "before=" in a)
    assert "/?target=agent" in addresses(read_page(running, older), "a")


def test_a_search_for_runs_that_was_cut_off_can_go_on(
    running: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MAX_SEARCHED", 1)
    wanted = finished(running, SUITES | {"target": "other"})["runId"]
    finished(running, SUITES)
    page = read_page(running, "/?target=other")
    assert "None of 1 runs matches" in text_of(page)
    (older,) = {address for address in addresses(page, "a") if "before=" in address}
    assert f"/runs/{wanted}" in addresses(read_page(running, older), "a")


def test_a_run_page_says_the_verdict_in_the_words_of_the_report(running: TestClient) -> None:
    run = finished(running, SUITES)
    shown = text_of(read_page(running, f"/runs/{run['runId']}"))
    assert "Failed: 1 case failed" in shown
    assert "1 of 2 judged cases passed." in shown
    assert "50 % (95 % interval 9.5 % to 90.5 %, wilson)" in shown
    assert "100 % (2 of 2 cases judged)" in shown
    assert "Why cases did not pass 1 case" in shown
    assert "1 to 2 of 2" in shown


def test_a_run_is_listed_with_what_regressed_and_what_was_fixed(
    running: TestClient, agent: Agent
) -> None:
    running.put("/api/baselines/main", json={"run": finished(running, SUITES)["runId"]})
    agent.known = {"Spain": "Madrid"}
    finished(running, SUITES | {"options": {"baseline": "main"}})
    assert "against main: 1 regressed, 1 fixed" in text_of(read_page(running, "/"))


def test_a_run_is_compared_with_its_baseline_by_name_as_long_as_that_means_the_same_run(
    running: TestClient,
) -> None:
    base = finished(running, SUITES)["runId"]
    running.put("/api/baselines/main", json={"run": base})
    run = finished(running, SUITES | {"options": {"baseline": "main"}})["runId"]
    page = read_page(running, f"/runs/{run}")
    assert f"/compare?base=main&candidate={run}" in addresses(page, "a")
    assert f"against main ({base[:13]}): none lost" in text_of(page)
    running.put("/api/baselines/main", json={"run": run, "accept": True})
    page = read_page(running, f"/runs/{run}")
    assert f"/compare?base={base}&candidate={run}" in addresses(page, "a")


def test_requests_to_copy_name_the_public_url(project: Settings, store: Store) -> None:
    access = Access.of("127.0.0.1", [], public_url="https://evals.example")
    with TestClient(create_app(project, store, access), ADDRESS) as client:
        run = finished(client, SUITES)["runId"]
        page = unescape(read_page(client, f"/runs/{run}/cases/0"))
    assert "curl https://evals.example/api/runs" in page


def test_all_links_of_run_and_case_pages_lead_somewhere(running: TestClient) -> None:
    running.put("/api/baselines/main", json={"run": finished(running, SUITES)["runId"]})
    run = finished(running, SUITES | {"options": {"baseline": "main"}})
    todo, seen = {f"/runs/{run['runId']}"}, set[str]()
    while todo:
        path = todo.pop()
        seen.add(path)
        if "/cases." in path:
            assert running.get(path, headers=BROWSER).status_code == 200
            continue
        page = read_page(running, path)
        found = (address.partition("#")[0] for address in addresses(page, "a"))
        todo |= {path for path in found if path.startswith("/runs/")} - seen
    assert len(seen) > 10


def test_cases_are_filtered_and_sorted_by_links_and_a_form(running: TestClient) -> None:
    path = f"/runs/{finished(running, SUITES)['runId']}"
    assert text_of(read_page(running, path)).index("spain") < 10_000
    failed = read_page(running, f"{path}?filter=outcome%3Afailed")
    assert "1 case match" in text_of(failed)
    assert ">france</a>" not in failed
    assert 'value="outcome:failed"' in failed
    by_id = read_page(running, f"{path}?sort=-id")
    assert by_id.index(">spain</a>") < by_id.index(">france</a>")
    assert 'aria-sort="descending"' in by_id
    assert "No case matches" in read_page(running, f"{path}?filter=nothing")


def test_a_mistake_in_a_filter_is_shown_beside_it(running: TestClient) -> None:
    path = f"/runs/{finished(running, SUITES)['runId']}"
    page = read_page(running, f"{path}?filter=outcome%3Afaild+%22%3Cscript%3E")
    assert "did you mean 'failed'" in unescape(page)
    assert 'value="outcome:faild &#34;&lt;script&gt;"' in page
    assert "<script>" not in page.partition("</head>")[2]
    assert "cannot be sorted by" in read_page(running, f"{path}?sort=x", 400)
    assert "is not a cursor" in read_page(running, f"{path}?after=x", 400)
    assert "is not the number of a row" in read_page(running, f"{path}?at=x", 400)


def test_long_lists_have_pages(project: Settings, store: Store) -> None:
    lines = [
        json.dumps({"id": f"case-{n}", "input": "x", "expected_output": "x"}) for n in range(120)
    ]
    (project.root / "evals" / "many.eval.jsonl").write_text("\n".join(lines))
    with TestClient(create_app(project, store), ADDRESS) as client:
        run = finished(client, {"suites": ["evals/many.eval.jsonl"], "target": "other"})
        path, found = f"/runs/{run['runId']}", list[str]()
        while path:
            page = read_page(client, path)
            found += re.findall(r"data-row[^>]*>([^<]+)</a>", page)
            path = next(iter(re.findall(r'href="([^"]+)" rel="next"', page)), "")
            path = unescape(path)
    assert found == [f"case-{n}" for n in range(120)]


def test_a_case_page_shows_question_answer_and_checks(running: TestClient) -> None:
    path = f"/runs/{finished(running, SUITES)['runId']}/cases/1"
    shown = text_of(read_page(running, path))
    assert "Failed: spain" in shown
    assert "Iberia" in shown
    assert "user capital of Spain?" in shown
    assert "answer no idea" in shown
    assert "evals/capitals.eval.yaml:4" in shown
    assert "assay run evals/capitals.eval.yaml --select id:spain" in shown
    assert '"suites": ["evals/capitals.eval.yaml"]' in shown
    assert '"options": {"select": "id:spain"}' in shown
    assert "assay regression add --from" in shown
    assert read_page(running, path.replace("cases/1", "cases/0"))
    for wrong in ("cases/2", "cases/x", "cases/-1"):
        assert "not found" in read_page(running, path.replace("cases/1", wrong), 404)


def test_a_case_is_shown_beside_the_answer_of_the_baseline(
    running: TestClient, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.put(
        "/api/baselines/main", json={"run": finished(running, SUITES)["runId"], "accept": True}
    )
    answers = {"capital of Spain?": "It is Madrid"}
    monkeypatch.setattr("agent_of_the_server_tests.answer", lambda m: answers.get(m, "no"))
    run = finished(running, SUITES | {"options": {"baseline": "main"}})
    page = read_page(running, f"/runs/{run['runId']}")
    assert "See 1 regression" in page
    shown = text_of(read_page(running, f"/runs/{run['runId']}/cases/0"))
    assert "Regressed: france" in shown
    assert "It passed in main and fails now." in shown
    assert "main: passed Paris This run: failed no" in shown


def test_j_and_k_follow_the_filter_of_the_list(running: TestClient) -> None:
    path = f"/runs/{finished(running, SUITES)['runId']}"
    listed = read_page(running, f"{path}?filter=id%3A*&sort=-id")
    spain, france = (a for a in addresses(listed, "a") if "/cases/" in a)
    page = read_page(running, spain)
    assert re.findall(r'rel="next" data-key="j"', page)
    assert addresses(page, "a").count(france) == 1
    assert "1 of 2" in text_of(page)
    moved = read_page(running, spain.replace("at=0", "at=7"))
    assert "1 of 2" not in text_of(moved)


def test_the_filtered_cases_can_be_downloaded(running: TestClient) -> None:
    path = f"/runs/{finished(running, SUITES)['runId']}"
    found = running.get(f"{path}/cases.jsonl?filter=outcome%3Afailed")
    assert found.headers["content-disposition"].startswith('attachment; filename="')
    assert [json.loads(line)["id"] for line in found.text.splitlines()] == ["spain"]
    rows = list(csv.DictReader(io.StringIO(running.get(f"{path}/cases.csv").text)))
    assert [row["id"] for row in rows] == ["france", "spain"]
    assert (
        "unknown field" in running.get(f"{path}/cases.csv?filter=x%3Ay").json()["error"]["message"]
    )


def test_formulas_in_a_download_are_neutralised(project: Settings, store: Store) -> None:
    case = {"id": "=1+1", "input": "x", "expected_output": "y"}
    (project.root / "evals" / "sums.eval.jsonl").write_text(json.dumps(case))
    with TestClient(create_app(project, store), ADDRESS) as client:
        run = finished(client, {"suites": ["evals/sums.eval.jsonl"], "target": "other"})
        text = client.get(f"/runs/{run['runId']}/cases.csv").text
    assert [row["id"] for row in csv.DictReader(io.StringIO(text))] == ["'=1+1"]


def test_nothing_that_others_write_is_markup(
    project: Settings, store: Store, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [{"name": f"tool {MARK}", "params": {MARK: MARK}, "result": MARK, "error": MARK}]
    said = {"response": f"answer {MARK}", "toolCalls": calls}
    monkeypatch.setattr("agent_of_the_server_tests.answer", lambda message: said)
    file = project.root / "evals" / "hostile.eval.json"
    file.with_suffix(".yaml").write_text(json.dumps(HOSTILE))
    with TestClient(create_app(project, store), ADDRESS) as client:
        run = finished(client, {"suites": ["evals/hostile.eval.yaml"]})
        for path in ("/", f"/runs/{run['runId']}", f"/runs/{run['runId']}/cases/0"):
            page = read_page(client, path)
            assert "<script>" not in page
            shown = text_of(page)
        for part in ("id", "description", "input", "answer", "tag", "check", "tool"):
            assert f"{part} {MARK}" in shown, part
        assert "value <script>alert(1)</script>" in shown


def test_a_run_is_started_by_a_form(running: TestClient) -> None:
    page = read_page(running, "/runs/new?target=agent")
    assert "<option selected>agent</option>" in page
    form = {"suite": "evals/capitals.eval.yaml", "target": "agent", "baseline": ""}
    response = running.post("/runs", data=form, headers=OWN, follow_redirects=False)
    assert response.status_code == 303
    events(running, response.headers["location"].removeprefix("/runs/"))
    assert "spain" in read_page(running, response.headers["location"])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"suite": "../secret.yaml"}, "The eval file is not one of the served root"),
        ({"target": "python:os:system"}, "The target is not one of the configured ones"),
        ({"baseline": "none"}, "There is no such baseline"),
    ],
)
def test_the_form_takes_only_what_it_offers(
    running: TestClient, form: dict[str, str], message: str
) -> None:
    response = running.post("/runs", data=form, headers=OWN)
    assert response.status_code == 400
    assert message in response.text
    assert running.get("/api/runs").json()["data"]["count"] == 0


def test_another_website_starts_no_run(running: TestClient) -> None:
    for headers in ({}, {"origin": "null"}, {"origin": "https://evil.example"}):
        assert running.post("/runs", data={}, headers=headers).status_code == 403
    assert running.get("/api/runs").json()["data"]["count"] == 0
