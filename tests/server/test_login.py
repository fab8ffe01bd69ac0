"""The log-in page, sessions, and attempts to get in without them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.ports import Store
from assay.server.app import create_app
from assay.server.security import Access
from assay.server.throttle import MAX_FAILURES, MAX_FAILURES_IN_ALL
from assay.server.tokens import tokens_of
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from assay.stores.postgres_store import PostgresStore
from assay.stores.sqlite import SqliteStore
from contract.postgres import Server
from server.conftest import ADDRESS, Clock
from server.test_pages import addresses, read_page
from server.test_test_cases import PARIS, URL, refused

TOKENS = "read:looker,write:writer"
COOKIE = "assay-session"
OWN = {"origin": ADDRESS}
NAVIGATION = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        yield SqliteStore(tmp_path / "store.db")
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.new_database()
    yield PostgresStore(url)
    server.give_back(url)


class Site:
    """A server in the process, and the browsers that use it."""

    def __init__(self, settings: Settings, store: Store, clock: Clock) -> None:
        self.settings, self.store, self.clock = settings, store, clock

    def browser(self, tokens: str = TOKENS, public_url: str | None = None) -> TestClient:
        """A browser at a new server of the store, without cookies."""
        access = Access.of("127.0.0.1", tokens_of(tokens), (), public_url)
        app = create_app(self.settings, self.store, access, now=self.clock)
        return TestClient(app, ADDRESS, follow_redirects=False)


@pytest.fixture
def site(settings: Settings, store: Store, clock: Clock) -> Site:
    return Site(settings, store, clock)


@pytest.fixture
def lasting_site(settings: Settings, lasting: Store, clock: Clock) -> Site:
    return Site(settings, lasting, clock)


def log_in(browser: TestClient, token: str, **more: Any) -> Any:
    return browser.post("/login", data={"token": token}, headers=OWN, **more)


def logged_in(site: Site, token: str = "writer") -> TestClient:
    browser = site.browser()
    assert log_in(browser, token).status_code == 303
    return browser


def is_in(browser: TestClient) -> bool:
    status: int = browser.get(URL).status_code
    assert status in (200, 401)
    return status == 200


def test_a_token_is_exchanged_for_a_session(lasting_site: Site) -> None:
    browser = lasting_site.browser()
    assert not is_in(browser)
    response = log_in(browser, "writer")
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    pattern = rf"{COOKIE}=[\w-]{{43}}; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"
    assert re.fullmatch(pattern, cookie)
    assert browser.get("/docs").status_code == 200
    assert browser.post(URL, json=PARIS, headers=OWN).status_code == 201


def test_a_session_holds_at_every_server_of_the_store(lasting_site: Site) -> None:
    first, second = logged_in(lasting_site), lasting_site.browser()
    second.cookies = first.cookies
    assert is_in(second)
    second.post("/logout", headers=OWN)
    assert not is_in(first)


def test_a_session_ends_after_seven_days(lasting_site: Site) -> None:
    browser = logged_in(lasting_site)
    lasting_site.clock.move(days=6, hours=23, minutes=59)
    assert is_in(browser)
    lasting_site.clock.move(minutes=1)
    assert not is_in(browser)


def test_log_out_ends_the_session_at_the_server(lasting_site: Site) -> None:
    browser = logged_in(lasting_site)
    stolen = browser.cookies[COOKIE]
    response = browser.post("/logout", headers=OWN)
    assert (response.status_code, response.headers["location"]) == (303, "/login")
    assert response.headers["set-cookie"].startswith(f"{COOKIE}=; Path=/; Max-Age=0;")
    assert not browser.cookies
    browser.cookies.set(COOKIE, stolen)
    assert not is_in(browser)
    assert browser.post("/logout", headers=OWN).status_code == 303


def test_a_session_ends_with_its_token(lasting_site: Site) -> None:
    looker, writer = logged_in(lasting_site, "looker"), logged_in(lasting_site, "writer")
    restarted = lasting_site.browser("read:looker,write:other")
    for browser, holds in ((looker, True), (writer, False)):
        restarted.cookies = browser.cookies
        assert is_in(restarted) is holds


def test_a_session_may_do_what_its_token_may_do_now(site: Site) -> None:
    browser = logged_in(site, "writer")
    demoted = site.browser("read:writer")
    demoted.cookies = browser.cookies
    refused(demoted.post(URL, json=PARIS, headers=OWN), 403, "FORBIDDEN")
    assert is_in(demoted)


def test_a_session_of_a_read_token_only_reads_and_can_log_out(site: Site) -> None:
    browser = logged_in(site, "looker")
    message = refused(browser.post(URL, json=PARIS, headers=OWN), 403, "FORBIDDEN")
    assert "can only read" in message
    assert browser.get(URL).json()["data"]["total"] == 0
    browser.post("/logout", headers=OWN)
    assert not is_in(browser)


def test_the_store_has_nothing_to_log_in_with(
    settings: Settings, tmp_path: Path, clock: Clock
) -> None:
    store = SqliteStore(tmp_path / "store.db")
    browser = logged_in(Site(settings, store, clock))
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("store.db*"))
    assert b"login_session" in kept
    assert browser.cookies[COOKIE].encode() not in kept
    assert b"writer" not in kept


@pytest.mark.parametrize("forged", ["", "x", "writer", "0" * 64, "a" * 43, "é", "%00", '"'])
def test_a_forged_cookie_is_no_session(site: Site, forged: str) -> None:
    logged_in(site)
    cookie = f"{COOKIE}={forged}".encode()
    response = site.browser().get(URL, headers={b"cookie": cookie})
    refused(response, 401, "UNAUTHORIZED")


def test_the_hash_in_the_store_is_no_session_id(site: Site) -> None:
    session = logged_in(site).cookies[COOKIE]
    thief = site.browser()
    thief.cookies.set(COOKIE, sha256(session.encode()).hexdigest())
    assert not is_in(thief)


def test_a_planted_session_id_is_not_adopted(site: Site) -> None:
    victim, planted = site.browser(), "p" * 43
    victim.cookies.set(COOKIE, planted)
    made = log_in(victim, "writer").headers["set-cookie"]
    assert planted not in made
    attacker = site.browser()
    attacker.cookies.set(COOKIE, planted)
    assert not is_in(attacker)


def test_a_second_log_in_ends_the_session_before(site: Site) -> None:
    browser = logged_in(site, "looker")
    before = browser.cookies[COOKIE]
    log_in(browser, "writer")
    assert browser.cookies[COOKIE] != before
    assert is_in(browser)
    old = site.browser()
    old.cookies.set(COOKIE, before)
    assert not is_in(old)


def test_a_second_cookie_of_the_name_is_not_trusted(site: Site) -> None:
    """Another server on the same machine can set one: browsers ignore ports of cookies."""
    mine, attackers = (logged_in(site).cookies[COOKIE] for _ in range(2))
    for pair in ((mine, attackers), (attackers, mine)):
        cookie = "; ".join(f"{COOKIE}={value}" for value in pair)
        refused(site.browser().get(URL, headers={"cookie": cookie}), 401, "UNAUTHORIZED")
    cookie = f"other=1; {COOKIE}={mine};last=2"
    assert site.browser().get(URL, headers={"cookie": cookie}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:3000", None])
def test_a_session_writes_nothing_for_another_website(site: Site, origin: str | None) -> None:
    browser = logged_in(site)
    headers = {} if origin is None else {"origin": origin}
    for path, body in ((URL, PARIS), ("/api/runs", {"suites": ["evals"]})):
        refused(browser.post(path, json=body, headers=headers), 403, "FORBIDDEN")
    refused(browser.delete("/api/baselines/main", headers=headers), 403, "FORBIDDEN")
    refused(browser.post("/logout", headers=headers), 403, "FORBIDDEN")
    assert browser.get(URL).json()["data"]["total"] == 0


def test_a_copy_of_the_form_on_another_website_logs_nobody_in(site: Site) -> None:
    """Else an attacker could have others work in a session of the attacker's."""
    browser = site.browser()
    fields = {"token": "writer", "next": "/"}
    for headers in ({}, {"origin": "null"}, {"origin": "https://evil.example"}):
        response = browser.post("/login", data=fields, headers=headers)
        refused(response, 403, "FORBIDDEN")
        assert "set-cookie" not in response.headers


def test_a_wrong_bearer_token_is_not_saved_by_a_session(site: Site) -> None:
    browser = logged_in(site)
    response = browser.get(URL, headers={"authorization": "Bearer wrong"})
    refused(response, 401, "UNAUTHORIZED")


def test_guessing_is_throttled(site: Site) -> None:
    browser = site.browser()
    for guess in range(MAX_FAILURES):
        response = log_in(browser, f"guess-{guess}")
        assert response.status_code == 401
        assert "This token is not valid." in response.text
        assert "guess" not in response.text
        assert "set-cookie" not in response.headers
    site.clock.move(seconds=15)
    response = log_in(browser, "writer")  # even the right one, or guessing would go on
    assert (response.status_code, response.headers["retry-after"]) == (429, "45")
    assert "Too many failed attempts" in response.text
    assert "set-cookie" not in response.headers
    bearer = {"authorization": "Bearer writer"}
    assert browser.get(URL, headers=bearer).status_code == 200
    site.clock.move(seconds=45)
    assert log_in(browser, "writer").status_code == 303


def test_behind_a_proxy_each_client_is_throttled_by_itself(site: Site) -> None:
    url = "https://evals.example"
    proxied, direct = site.browser(public_url=url), site.browser()

    def status(browser: TestClient, origin: str, client: str) -> int:
        headers = {"origin": origin, "x-forwarded-for": client}
        return browser.post("/login", data={"token": "no"}, headers=headers).status_code

    for _ in range(MAX_FAILURES):
        assert status(proxied, url, "10.0.0.1, 192.0.2.1") == 401
        assert status(direct, ADDRESS, "192.0.2.1") == 401
    assert status(proxied, url, "10.0.0.2, 192.0.2.1") == 429
    assert status(proxied, url, "192.0.2.2") == 401
    assert status(direct, ADDRESS, "192.0.2.2") == 429  # nobody vouches for that header
    for number in range(MAX_FAILURES_IN_ALL - MAX_FAILURES - 1):
        assert status(proxied, url, f"198.51.100.{number}") == 401
    assert status(proxied, url, "203.0.113.1") == 429


def test_https_makes_the_cookie_secure(site: Site) -> None:
    url = "https://evals.example"
    browser = site.browser(public_url=url)
    response = browser.post("/login", data={"token": "writer"}, headers={"origin": url})
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-assay-session=")
    assert cookie.endswith("; HttpOnly; SameSite=Lax; Secure")
    session = cookie.partition(";")[0]
    assert browser.get(URL, headers={"cookie": session}).status_code == 200
    plain = session.removeprefix("__Host-")
    assert browser.get(URL, headers={"cookie": plain}).status_code == 401


def test_a_page_leads_to_the_log_in_and_back(site: Site) -> None:
    browser = site.browser()
    response = browser.get("/docs?a=1&b=%20", headers=NAVIGATION)
    assert response.status_code == 303
    assert response.headers["location"] == "/login?next=/docs%3Fa%3D1%26b%3D%2520"
    page = browser.get(response.headers["location"], headers=NAVIGATION)
    (back,) = re.findall(r'name="next" value="([^"]*)"', page.text)
    assert back == "/docs?a=1&amp;b=%20"
    fields = {"token": "writer", "next": back.replace("&amp;", "&")}
    response = browser.post("/login", data=fields, headers=OWN)
    assert response.headers["location"] == "/docs?a=1&b=%20"
    refused(site.browser().get(URL, headers=NAVIGATION), 401, "UNAUTHORIZED")


@pytest.mark.parametrize(
    "page",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "/a\\b",
        "evil.example",
        "javascript:alert(1)",
        "/a\r\nset-cookie: x=y",
        "/ä",
        "",
    ],
)
def test_a_log_in_leads_to_no_other_website(site: Site, page: str) -> None:
    browser = site.browser()
    response = browser.post("/login", data={"token": "writer", "next": page}, headers=OWN)
    assert response.headers["location"] == "/"
    shown = browser.get("/login", params={"next": page})
    assert 'name="next" value="/"' in shown.text


def test_a_stranger_gets_the_form_and_its_style_but_no_name(site: Site) -> None:
    page = read_page(site.browser(), "/login?next=%2F%22%3E%3Cscript%3E")
    assert site.settings.root.name not in page
    style, icon = addresses(page, "link")
    assert {site.browser().get(path).status_code for path in (style, icon)} == {200}


def test_our_forms_are_sent_with_their_origin(site: Site) -> None:
    """With the referrer policy of the API, browsers would send `Origin: null`."""
    page = site.browser().get("/login")
    assert page.headers.get_list("referrer-policy") == ["same-origin"]
    assert site.browser().get(URL).headers.get_list("referrer-policy") == ["no-referrer"]


def test_only_a_session_can_be_logged_out(site: Site) -> None:
    assert "/logout" in logged_in(site).get("/login").text
    assert "/logout" not in site.browser().get("/login").text


def test_log_in_and_out_are_posts(site: Site) -> None:
    browser = logged_in(site)
    refused(browser.get("/logout"), 405, "METHOD_NOT_ALLOWED")
    refused(browser.put("/login", headers=OWN), 405, "METHOD_NOT_ALLOWED")
    assert is_in(browser)


def test_a_server_without_tokens_needs_no_log_in(site: Site) -> None:
    browser = site.browser("")
    assert browser.get("/login").headers["location"] == "/"
    response = log_in(browser, "anything")
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert "set-cookie" not in response.headers
    assert is_in(browser)


def test_a_store_that_fails_lets_nobody_in(
    settings: Settings, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    browser = logged_in(Site(settings, store, clock))
    store.close()
    refused(browser.get(URL), 500, "INTERNAL_ERROR")
    assert browser.cookies[COOKIE] not in caplog.text
