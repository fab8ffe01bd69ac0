"""The form on the page of a failed case that makes it a regression case."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server.app import create_app
from assay.server.pages.regression import MAX_FIELD
from assay.server.security import Access
from assay.server.tokens import tokens_of
from assay.settings import Settings
from server.conftest import ADDRESS
from server.test_pages import BROWSER, read_page
from server.test_run_pages import text_of
from server.test_runs import SUITES, finished
from strict_html import assert_strict

OWN = {"origin": ADDRESS}
SPAIN = {"bug": "GEO-7", "must_contain": "Madrid", "tool": "capitals"}


@pytest.fixture
def failed(running: TestClient, project: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of a failed case, on a server in its project."""
    monkeypatch.chdir(project.root)
    return f"/runs/{finished(running, SUITES)['runId']}/cases/1"


def files(project: Settings) -> list[str]:
    return sorted(file.name for file in (project.root / "evals").glob("*.regression*"))


def test_a_failed_case_becomes_a_locked_regression_case(
    running: TestClient, project: Settings, failed: str
) -> None:
    assert f'action="{failed}/regression#work"' in read_page(running, failed)
    answer = running.post(f"{failed}/regression", data=SPAIN, headers=OWN | BROWSER)
    assert answer.status_code == 200
    assert_strict(answer.text)
    assert "Added and locked rg-capitals-001" in text_of(answer.text)
    (case,) = json.loads((project.root / "evals/capitals.regression.json").read_text())
    assert case["bugRef"] == "GEO-7"
    assert case["input"] == {"message": "capital of Spain?"}
    assert "Madrid" in case["expect"]["responseContains"]
    assert files(project) == ["capitals.regression.json", "capitals.regression.lock.json"]
    again = running.post(f"{failed}/regression", data=SPAIN, headers=OWN | BROWSER)
    assert again.status_code == 400
    assert "has rg-capitals-001 already" in text_of(again.text)


def test_a_mistake_is_shown_in_the_form_with_what_was_typed(
    running: TestClient, project: Settings, failed: str
) -> None:
    typed = {"bug": '"><script>alert(1)</script>', "must_contain": "no idea", "tool": "../x"}
    answer = running.post(f"{failed}/regression", data=typed, headers=OWN | BROWSER)
    assert answer.status_code == 400
    assert_strict(answer.text)
    assert "'../x' is not a valid tool name" in text_of(answer.text)
    assert "<script>alert" not in answer.text
    assert 'value="../x"' in unescape(answer.text)
    without = running.post(f"{failed}/regression", data={"bug": " "}, headers=OWN | BROWSER)
    assert "the bug reference is empty" in text_of(without.text)
    assert files(project) == []


def test_the_form_takes_only_its_own_short_fields(
    running: TestClient, project: Settings, failed: str
) -> None:
    for wrong in ({"file": "x"}, {"bug": "x" * (MAX_FIELD + 1)}, {"bug": "a\nb"}):
        answer = running.post(f"{failed}/regression", data=wrong, headers=OWN)
        assert answer.status_code == 400
    assert files(project) == []


def test_another_website_and_a_token_that_can_only_read_add_nothing(
    running: TestClient, project: Settings, failed: str, store: Store
) -> None:
    foreign = {"origin": "https://evil.example"}
    for headers in (foreign, {}):
        answer = running.post(f"{failed}/regression", data=SPAIN, headers=headers)
        assert answer.status_code == 403
    access = Access(tokens=tokens_of("read:reader-reader-reader-1"))
    with TestClient(create_app(project, store, access), ADDRESS) as client:
        token = {"authorization": "Bearer reader-reader-reader-1"}
        page = client.get(failed, headers=BROWSER | token)
        assert "/regression" not in page.text.replace("copy-regression", "")
        assert "assay regression add --from" in text_of(page.text)
        answer = client.post(f"{failed}/regression", data=SPAIN, headers=OWN | token)
        assert answer.status_code == 403
    assert files(project) == []


def test_only_a_failed_case_of_a_file_in_the_root_can_be_added(
    running: TestClient, project: Settings, failed: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    passed = failed.replace("cases/1", "cases/0")
    assert "Make it a regression case" not in read_page(running, passed)
    answer = running.post(f"{passed}/regression", data=SPAIN, headers=OWN | BROWSER)
    assert "only a failed result shows a bug" in text_of(answer.text)
    for missing in ("cases/9", "cases/x"):
        wrong = failed.replace("cases/1", missing)
        assert running.post(f"{wrong}/regression", data=SPAIN, headers=OWN).status_code == 404
    outside: Path = tmp_path_factory.mktemp("outside")
    (project.root / "evals").rename(outside / "evals")
    (project.root / "evals").symlink_to(outside / "evals")
    answer = running.post(f"{failed}/regression", data=SPAIN, headers=OWN | BROWSER)
    assert "leads out of the served root" in text_of(answer.text)
    assert not list((outside / "evals").glob("*.regression*"))
