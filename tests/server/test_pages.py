"""What holds for every page: strict HTML, the content policy, links that lead somewhere."""

from __future__ import annotations

import re
from html import unescape

from starlette.testclient import TestClient

from assay.web.environment import static_url
from server.test_test_cases import refused
from strict_html import assert_strict

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
BROWSER = {"accept": "text/html,application/xhtml+xml"}


def read_page(client: TestClient, path: str, status: int = 200) -> str:
    """A page as a browser gets it: its headers are right, and so is its HTML."""
    response = client.get(path, headers=BROWSER)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers.get_list("content-security-policy") == [POLICY]
    assert response.headers["referrer-policy"] == "same-origin"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert_strict(response.text)
    return response.text


def addresses(page: str, element: str, attribute: str = "href") -> list[str]:
    """The addresses in an attribute of these elements, without those within the page."""
    found = re.findall(rf'<{element} [^>]*?\b{attribute}="([^"#][^"#]*)', page)
    return [unescape(address) for address in found]


def test_pages_link_to_files_and_pages_that_exist(client: TestClient) -> None:
    page = read_page(client, "/docs")
    loaded = [*addresses(page, "link"), *addresses(page, "script", "src")]
    assert len(loaded) == 3
    assert {client.get(path).status_code for path in loaded} == {200}
    for link in addresses(page, "a"):
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
    assert "There is no route /nothing" in page
    refused(client.get("/nothing"), 404, "NOT_FOUND")
    refused(client.get("/api/nothing", headers=BROWSER), 404, "NOT_FOUND")


def test_an_address_in_an_error_is_escaped(client: TestClient) -> None:
    page = read_page(client, "/%3Cscript%3Ealert(1)%3C/script%3E", 404)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
