"""Tokens that may read, and tokens that may write."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from assay.errors import UsageError
from assay.server.app import create_app
from assay.server.security import Access
from assay.server.tokens import Token, find_token, tokens_of
from assay.settings import Settings
from assay.stores.memory import MemoryStore
from server.conftest import ADDRESS
from server.test_test_cases import PARIS, URL, refused


def test_tokens_are_separated_by_commas_or_spaces() -> None:
    assert tokens_of(" a, b\nc,,d ") == tuple(map(Token, "abcd"))
    assert tokens_of(" , ") == ()


def test_a_token_may_write_unless_it_is_a_read_token() -> None:
    expected = (Token("a", False), Token("b"), Token("c"), Token("x:d"), Token("read:e", False))
    assert tokens_of("read:a,write:b,c,x:d,read:read:e") == expected
    assert tokens_of("write:a,a") == (Token("a"),)


def test_an_entry_without_a_token_is_refused() -> None:
    for value in ("read:", "a,write:"):
        with pytest.raises(UsageError, match="without a token"):
            tokens_of(value)


def test_a_token_is_listed_with_one_permission_and_not_shown() -> None:
    with pytest.raises(UsageError, match="entry 2 is listed as read and as write") as caught:
        tokens_of("geheim,read:geheim")
    assert "geheim" not in str(caught.value)


def test_a_token_is_found_whole_or_not_at_all() -> None:
    tokens = tokens_of("read:one,two")
    assert find_token(tokens, b"one") == tokens[0]
    assert find_token(tokens, b"two") == tokens[1]
    for given in (b"", b"on", b"onee", b"read:one", b"One", b"one,two"):
        assert find_token(tokens, given) is None


@pytest.fixture
def guarded(settings: Settings) -> Iterator[TestClient]:
    access = Access(tokens=tokens_of("read:looker,write:writer,bare"))
    with TestClient(create_app(settings, MemoryStore(), access), ADDRESS) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("token", ["writer", "bare"])
def test_a_write_token_writes(guarded: TestClient, token: str) -> None:
    assert guarded.post(URL, json=PARIS, headers=bearer(token)).status_code == 201


def test_a_read_token_only_reads(guarded: TestClient) -> None:
    made = guarded.post(URL, json=PARIS, headers=bearer("writer")).json()["data"]
    one, headers = f"{URL}/{made['id']}", bearer("looker")
    for path in (URL, one, "/openapi.json", "/docs", "/api/runs"):
        assert guarded.get(path, headers=headers).status_code == 200
    for method, path in (
        ("POST", URL),
        ("PUT", one),
        ("DELETE", one),
        ("POST", "/api/runs"),
        ("POST", f"/api/runs/{made['id']}/cancel"),
        ("PUT", "/api/baselines/main"),
        ("DELETE", "/api/baselines/main"),
        ("PATCH", "/nowhere"),
    ):
        response = guarded.request(method, path, headers=headers | {"origin": ADDRESS})
        message = refused(response, 403, "FORBIDDEN")
        assert message == "This token can only read; a write token is required"
    assert guarded.get(one, headers=headers).json()["data"] == made


def test_two_authorization_headers_are_refused(guarded: TestClient) -> None:
    both = [("authorization", "Bearer looker"), ("authorization", "Bearer writer")]
    refused(guarded.get(URL, headers=both), 401, "UNAUTHORIZED")
