"""What holds for every page: strict HTML, the content policy, links that lead somewhere."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

import strict_html
from assay.web.environment import static_url
from server.test_test_cases import refused

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
BROWSER = {"accept": "text/html,application/xhtml+xml"}


def read_page(client: TestClient, path: str, status: int = 200) -> strict_html.HtmlPage:
    """A page as a browser gets it: its headers are right, and so is its HTML."""
    response = client.get(path, headers=BROWSER)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers.get_list("content-security-policy") == [POLICY]
    assert response.headers["referrer-policy"] == "same-origin"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    return strict_html.read(response.text)


def test_pages_link_to_files_and_pages_that_exist(client: TestClient) -> None:
    page = read_page(client, "/docs")
    loaded = [e.attributes for e in page.elements if e.tag in ("link", "script")]
    for attributes in loaded:
        assert client.get(attributes.get("href") or attributes["src"]).status_code == 200
    for link in page.links():
        assert client.get(link, headers=BROWSER).status_code == 200, link


def test_static_files_are_kept_by_browsers_until_they_change(client: TestClient) -> None:
    for name, kind in (("assay.css", "text/css"), ("assay.js", "text/javascript")):
        response = client.get(static_url(name))
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["content-type"] == f"{kind}; charset=utf-8"
    old = client.get("/static/000000000000/assay.css")
    assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")
    refused(client.get(static_url("base.html")), 404, "NOT_FOUND")


def test_errors_are_pages_for_browsers_and_json_for_programs(client: TestClient) -> None:
    page = read_page(client, "/nothing", 404)
    assert "There is no route /nothing" in page.text
    refused(client.get("/nothing"), 404, "NOT_FOUND")
    refused(client.get("/api/nothing", headers=BROWSER), 404, "NOT_FOUND")


def test_an_address_in_an_error_is_escaped(client: TestClient) -> None:
    page = read_page(client, "/%3Cscript%3Ealert(1)%3C/script%3E", 404)
    assert "<script>alert(1)</script>" in page.text


@pytest.mark.parametrize("fault", ["<p><div></div></p>", '<p style="x">', "<b>", "<i></b>"])
def test_the_strict_reader_finds_faults(fault: str) -> None:
    page = '<!doctype html>\n<html lang="en"><head><title>x</title></head><body><h1>x</h1>'
    strict_html.read(page + "</body></html>")
    with pytest.raises(AssertionError):
        strict_html.read(page + fault + "</body></html>")
