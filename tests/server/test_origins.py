"""Other websites cannot make a browser write, with or without tokens."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from assay.errors import UsageError
from assay.server.app import create_app
from assay.server.callers import caller_of
from assay.server.forms import FORM, read_form
from assay.server.origins import origin_of
from assay.server.security import Access
from assay.server.tokens import tokens_of
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS, Agent
from server.test_test_cases import PARIS, URL, refused

FOREIGN = [
    "https://evil.example",
    "null",
    "",
    "http://127.0.0.1",
    "http://127.0.0.1:3000",
    "https://127.0.0.1:8321",
    "http://localhost:8321",
    "http://127.0.0.1:8321.evil.example",
    "http://127.0.0.1:8321/",
    "HTTP://127.0.0.1:8321",
]
RUN = {"suites": ["evals"]}


async def echo(request: Request) -> Response:
    """A form as later pages have them."""
    return JSONResponse(await read_form(request) | {"via": caller_of(request).via})


def served(settings: Settings, access: Access | None = None) -> TestClient:
    app = create_app(settings, MemoryStore(), access)
    app.router.routes.append(Route("/form", echo, methods=["POST"]))
    return TestClient(app, ADDRESS)


@pytest.mark.parametrize("origin", FOREIGN)
def test_another_website_starts_no_run(running: TestClient, agent: Agent, origin: str) -> None:
    for kind in ("application/json", "text/plain", FORM):
        headers = {"origin": origin, "content-type": kind}
        response = running.post("/api/runs", content=b'{"suites": ["evals"]}', headers=headers)
        assert "Origin header" in refused(response, 403, "FORBIDDEN")
    assert running.get("/api/runs").json()["data"]["count"] == 0
    assert agent.asked == []


def test_a_simple_request_without_an_origin_starts_no_run(running: TestClient) -> None:
    """As of browsers that send no Origin header: the body has to be JSON by its type."""
    for kind in ("text/plain", FORM, "multipart/form-data; boundary=x", ""):
        headers = {"content-type": kind} if kind else {}
        response = running.post("/api/runs", content=b'{"suites": ["evals"]}', headers=headers)
        refused(response, 415, "UNSUPPORTED_MEDIA_TYPE")
    assert running.get("/api/runs").json()["data"]["count"] == 0


def test_a_rebound_name_is_no_origin_of_ours(running: TestClient) -> None:
    headers = {"host": "evil.example:8321", "origin": "http://evil.example:8321"}
    refused(running.post("/api/runs", json=RUN, headers=headers), 400, "INVALID_INPUT")


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:8321", "LOCALHOST", "[::1]:8321"])
def test_our_own_pages_may_write(settings: Settings, host: str) -> None:
    headers = {"host": host, "origin": f"http://{host.lower()}"}
    with served(settings) as client:
        assert client.post(URL, json=PARIS, headers=headers).status_code == 201
        assert client.post("/form", data={"a": "b"}, headers=headers).json()["a"] == "b"


@pytest.mark.parametrize("origin", [*FOREIGN, None])
def test_a_form_needs_our_origin(settings: Settings, origin: str | None) -> None:
    headers = {} if origin is None else {"origin": origin}
    with served(settings) as client:
        for path in ("/form", "/login", "/logout"):
            response = client.post(path, data={"token": "x"}, headers=headers)
            message = refused(response, 403, "FORBIDDEN")
            assert "--public-url" in message


def test_a_form_with_two_origins_is_refused(settings: Settings) -> None:
    both = [("origin", ADDRESS), ("origin", "https://evil.example"), ("content-type", FORM)]
    with served(settings) as client:
        refused(client.post("/form", content=b"a=b", headers=both), 403, "FORBIDDEN")


def test_json_with_a_bearer_token_is_exempt_and_a_form_is_not(settings: Settings) -> None:
    headers = {"authorization": "Bearer secret", "origin": "https://app.example"}
    with served(settings, Access(tokens=tokens_of("secret"))) as client:
        assert client.post(URL, json=PARIS, headers=headers).status_code == 201
        refused(client.post("/form", data={"a": "b"}, headers=headers), 403, "FORBIDDEN")
        del headers["origin"]
        assert client.post(URL, json=PARIS, headers=headers).status_code == 201
        refused(client.post("/form", data={"a": "b"}, headers=headers), 403, "FORBIDDEN")
        own = headers | {"origin": ADDRESS}
        assert client.post("/form", data={"a": "b"}, headers=own).json()["via"] == "token"


def test_behind_a_proxy_the_origin_is_that_of_the_public_url(settings: Settings) -> None:
    access = Access.of("127.0.0.1", (), (), "https://Evals.example:443/")
    with served(settings, access) as client:
        for host in ("evals.example", "127.0.0.1:8321"):
            own = {"host": host, "origin": "https://evals.example"}
            assert client.post("/form", data={"a": "b"}, headers=own).status_code == 200
            for other in (f"http://{host}", "http://evals.example", "https://evals.example:8443"):
                response = client.post("/form", data={"a": "b"}, headers=own | {"origin": other})
                assert "'https://evals.example'" in refused(response, 403, "FORBIDDEN")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://evals.example", "https://evals.example"),
        ("http://evals.example:80/", "http://evals.example"),
        ("https://evals.example:80", "https://evals.example:80"),
        ("HTTP://[2001:DB8::1]:8321", "http://[2001:db8::1]:8321"),
    ],
)
def test_a_public_url_is_written_as_browsers_do(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "",
        "evals.example",
        "ftp://evals.example",
        "https://evals.example/assay",
        "https://",
        "https://a@b",
    ],
)
def test_what_is_no_public_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--public-url"):
        Access.of("127.0.0.1", (), (), url)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"a=%C3%A4&b=", FORM, 200),
        (b"a=b", f"{FORM}; charset=UTF-8", 200),
        (b"a=1&a=2", FORM, 400),
        (b"a=%ff", FORM, 400),
        (b"a=\xc3\xa4", FORM, 400),
        (b"&".join([b"a=b"] * 1001), FORM, 400),
        (b"a=b", "text/plain", 415),
        (b"{}", "application/json", 415),
        (b"a" * (1024 * 1024 + 1), FORM, 413),
    ],
)
def test_a_form_is_read_within_limits(
    settings: Settings, body: bytes, kind: str, status: int
) -> None:
    headers = {"origin": ADDRESS, "content-type": kind}
    with served(settings) as client:
        assert client.post("/form", content=body, headers=headers).status_code == status
