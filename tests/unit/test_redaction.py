"""Secrets are hidden wherever they stand, and nothing else is."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.observations.records import broken
from assay.redaction import (
    LONGEST_SECRET,
    MARK,
    SHORTEST_SECRET,
    Redactor,
    cut,
    cut_to_end,
    redacting,
)
from assay.registry import raised

PLAIN = Redactor()
SECRET = "correct-horse-42"

KEYS = {
    "openai": "sk-proj-aB3dE5fG7hJ9kL1mN3pQ",
    "anthropic": "sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ_x-y",
    "stripe": "sk_live_aB3dE5fG7hJ9kL1mN3",
    "github": "ghp_aB3dE5fG7hJ9kL1mN3pQaB3dE5fG7hJ9kL1m",
    "github of an app": "gho_aB3dE5fG7hJ9kL1mN3pQaB3dE5fG7hJ9kL1m",
    "github of a server": "ghs_aB3dE5fG7hJ9kL1mN3pQaB3dE5fG7hJ9kL1m",
    "github, fine": "github_pat_11ABCDEFG0aB3dE5fG7hJ9_kL1mN3pQ",
    "gitlab": "glpat-aB3dE5fG7hJ9kL1mN3pQ",
    "amazon": "AKIAIOSFODNN7EXAMPLE",
    "amazon, for a while": "ASIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "slack": "xoxb-123456789012-abcdefGHIJKL",
    "hugging face": "hf_" + "aB3dE5fG7hJ9kL1mN3pQ" * 2,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----",
    "openssh": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n-----END OPENSSH PRIVATE KEY-----",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("around", ["{}", "use {} now", "key={}", "«{}»", "\\n{}\\n", "a\n{}\n"])
def test_keys_are_known_by_their_pattern(key: str, around: str) -> None:
    assert PLAIN.text(around.format(key)) == around.format(MARK)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Authorization: Bearer abc.def-123", f"Authorization: Bearer {MARK}"),
        ("authorization=bearer abcdefgh1", f"authorization=bearer {MARK}"),
        ("'Authorization': 'Basic dXNlcjpwYXNzd29yZA=='", f"'Authorization': 'Basic {MARK}'"),
        ("send Bearer abc123def to it", f"send Bearer {MARK} to it"),
        ("api_key=abcdefgh12345678&x=1", f"api_key={MARK}&x=1"),
        ('{"apiKey": "abcdefgh12345678"}', f'{{"apiKey": "{MARK}"}}'),
        (r"{\"apiKey\": \"abcdefgh12345678\"}", rf"{{\"apiKey\": \"{MARK}\"}}"),
        ("OPENAI_API_KEY: 'qwertyuiop12'", f"OPENAI_API_KEY: '{MARK}'"),
        ("Password: hunter2hunter2", f"Password: {MARK}"),
        ("client_secret = abcdefghijklmnopqrst", f"client_secret = {MARK}"),
        ("x-api-key: abc12345", f"x-api-key: {MARK}"),
        ("postgresql://me:pa55@host/db", f"postgresql://me:{MARK}@host/db"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEow (cut)", f"{MARK}(cut)"),
    ],
)
def test_given_secrets_are_redacted(text: str, hidden: str) -> None:
    assert PLAIN.text(text) == hidden
    assert PLAIN.text(hidden) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The weather in Lisbon: 23.5 degrees.",
        "a risk-adjusted-return-profile on the disk-based-storage-layer",
        "Bearer authentication is required, the bearer certificates too",
        "password: required, and the secret: none",
        "api_key=${{ NAME }} and password: <yours>",
        "https://host:8080/a@b and mail me@host",
        "the public key -----BEGIN PUBLIC KEY----- AAAA",
        "eyJwYWdlIjoxMjM0NTY3ODkwMTIzNH0 is a cursor",
        "é" * 40,
    ],
)
def test_other_text_is_unchanged(text: str) -> None:
    assert PLAIN.text(text) == text
    data = json.dumps([text], ensure_ascii=False).encode()
    assert PLAIN.encoded(data) == data


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in JSON": lambda s: json.dumps({"k": s}),
    "in JSON with its own letters": lambda s: json.dumps({"k": s}, ensure_ascii=False),
    "in JSON in JSON": lambda s: json.dumps(json.dumps({"k": s})),
    "in a URL": lambda s: f"https://h/?k={quote(s, safe='')}&z",
    "in a path": lambda s: f"https://h/{quote(s)}/z",
    "in a form": lambda s: f"k={quote_plus(s)}&z",
    "in base64": lambda s: base64.b64encode(s.encode()).decode(),
    "in base64 after one byte": lambda s: base64.b64encode(b"x" + s.encode() + b"y").decode(),
    "in base64 after two": lambda s: base64.urlsafe_b64encode(b"xx" + s.encode() + b"y").decode(),
    "in base64 after three": lambda s: base64.b64encode(b"xxx" + s.encode() + b"y").decode(),
}


@pytest.mark.parametrize(
    "secret", [SECRET, 'pa"ss\\wörd/1', "line one\nline two", "🔑🔑🔑🔑🔑🔑🔑🔑"]
)
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_hidden_in_every_form_it_travels_in(secret: str, form: str) -> None:
    written = FORMS[form](secret)
    hidden = Redactor([secret]).text(written)
    assert MARK in hidden
    inner = written.strip("=") if "base64" in form else json.dumps(secret)[1:-1]
    assert inner[4:-4] not in hidden


def test_the_line_break_at_the_end_of_a_secret_does_not_count() -> None:
    assert Redactor([f"{SECRET}\n"]).text(f"<{SECRET}>") == f"<{MARK}>"


def test_short_values_are_not_redacted() -> None:
    short = "x" * (SHORTEST_SECRET - 1)
    assert Redactor([short, ""]).text(f"a {short} b") == f"a {short} b"


def test_overlapping_secrets_leave_nothing_of_each_other() -> None:
    redactor = Redactor(["abcdefgh", "efghijkl", "abcdefghijkl-mnop"])
    assert redactor.text("<abcdefghijkl>") == f"<{MARK}>"
    assert redactor.text("<abcdefghijkl-mnop>") == f"<{MARK}>"
    assert Redactor(["a" * 8]).text("a" * 50) == MARK


def test_matches_created_by_a_replacement_are_redacted() -> None:
    """The key follows a letter, and so is none until the letter is gone."""
    assert Redactor(["abcdefgh"]).text(f"abcdefgh{KEYS['amazon']}") == MARK + MARK


def test_keys_and_texts_of_a_value_are_hidden() -> None:
    value = {"a": [1.5, None, True, f"x {SECRET}"], SECRET: {"b": (SECRET,)}}
    kept = {"a": [1.5, None, True, f"x {MARK}"], MARK: {"b": [MARK]}}
    assert Redactor([SECRET]).json(value) == kept
    assert value["a"][3] == f"x {SECRET}"  # type: ignore[index]


def test_two_hidden_keys_stay_two() -> None:
    value = {KEYS["openai"]: 1, KEYS["github"]: 2, "other": 3}
    kept = {MARK: 1, f"{MARK} (2)": 2, "other": 3}
    assert PLAIN.json(value) == kept
    assert json.loads(PLAIN.encoded(json.dumps(value).encode())) == kept


def test_a_value_under_a_telling_key_is_hidden() -> None:
    value = {"password": "hunter2hunter2", "token": "hunter2hunter2", "secret": 12345678}
    value |= {"apiKey": "correct horse battery staple", "db_password": "${{ DB_PASSWORD_HERE }}"}
    kept = value | {"password": MARK, "apiKey": MARK}
    assert PLAIN.json(value) == kept
    for indent in (None, 2):
        data = json.dumps(value, indent=indent).encode()
        assert json.loads(PLAIN.encoded(data)) == kept
    nested = {"password": {"rule": "eight letters 1"}, "list": ["password", "hunter2hunter2"]}
    assert PLAIN.json(nested) == nested
    assert json.loads(PLAIN.encoded(json.dumps(nested).encode())) == nested


def test_stored_bytes_keep_all_that_is_not_hidden() -> None:
    data = f'{{ "n":1.50e3,"a" : "x{SECRET}","big":{"9" * 5000}, "é":"\\u00e9" }}'.encode()
    assert Redactor([SECRET]).encoded(data) == data.replace(SECRET.encode(), MARK.encode())


@pytest.mark.parametrize("secret", ['pa"ss\\wörd/1', SECRET])
def test_no_spelling_of_json_hides_a_secret_from_us(secret: str) -> None:
    everything = "".join(f"\\u{ord(c):04X}" for c in secret)
    slashes = json.dumps(secret).replace("/", "\\/")
    for text in (f'["{everything}"]', f"[{slashes}]", json.dumps([json.dumps([secret])])):
        hidden = json.loads(Redactor([secret]).encoded(text.encode()))
        assert hidden in ([MARK], [json.dumps([MARK])])


def test_half_a_surrogate_pair_does_not_shield_a_secret() -> None:
    redactor = Redactor([SECRET])
    assert redactor.text(f"\ud800{SECRET}é") == f"\ud800{MARK}é"
    data = f'["\\ud800{SECRET}"]'.encode()
    assert json.loads(redactor.encoded(data)) == [f"\ud800{MARK}"]


def test_bytes_that_are_not_json_or_not_utf8_are_redacted_as_text() -> None:
    redactor = Redactor([SECRET])
    assert redactor.encoded(f'"{SECRET}'.encode()) == f'"{MARK}'.encode()
    assert (
        redactor.encoded(b'["\xff' + SECRET.encode() + b'"]') == b'["\xff' + MARK.encode() + b'"]'
    )


def test_a_deep_value_is_redacted() -> None:
    deep: Any = SECRET
    for _ in range(20_000):
        deep = [deep]
    hidden = Redactor([SECRET]).json(deep)
    while isinstance(hidden, list):
        (hidden,) = hidden
    assert hidden == MARK
    data = b"[" * 20_000 + json.dumps(SECRET).encode() + b"]" * 20_000
    assert MARK.encode() in Redactor([SECRET]).encoded(data)


@pytest.mark.parametrize("secret", ["redacted", "[redacted", "acted]xyz1", "a[redacted]b"])
def test_a_secret_that_resembles_the_mark_ends(secret: str) -> None:
    redactor = Redactor([secret, "12345678"])
    once = redactor.text(f"{secret} 12345678xyz1 a12345678b [redacted][redacted]")
    assert "12345678" not in once
    assert redactor.text(once) == once


@pytest.mark.parametrize(
    "unit",
    [
        "eyJ-AKIAABCDEFGHIJKLMNOP-",
        "password:",
        "-----BEGIN PRIVATE KEY-----(",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "Bearer ",
        "eyJhbGci.",
        "sk-",
        "password\\",
        '\\"',
        "a" * 8,
    ],
)
def test_hostile_texts_take_time_in_proportion(unit: str) -> None:
    """Quadratic time would be hours."""
    redactor = Redactor(["a" * 8, SECRET])
    text = unit * (1_000_000 // len(unit)) + SECRET
    assert SECRET not in redactor.text(text)
    assert SECRET.encode() not in redactor.encoded(json.dumps([text]).encode())


# Properties

secrets = st.lists(
    st.text(
        st.characters(codec="utf-8", exclude_characters=MARK), min_size=SHORTEST_SECRET, max_size=40
    ).filter(lambda text: len(text.strip()) >= SHORTEST_SECRET),
    min_size=1,
    max_size=4,
)
texts = st.text(st.characters(codec="utf-8"), max_size=60)
# Without letters or colons a text neither looks like a secret nor names one.
harmless_texts = st.text(
    st.characters(codec="utf-8", exclude_characters=string.ascii_letters + ":"), max_size=60
)


def json_values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=12,
    )


@given(secrets, st.data())
def test_no_secret_survives_and_hiding_again_changes_nothing(
    known: list[str], data: st.DataObject
) -> None:
    pieces = texts | st.sampled_from(known) | st.sampled_from([json.dumps(s) for s in known])
    text = "".join(data.draw(st.lists(pieces | st.sampled_from(list(KEYS.values())), max_size=6)))
    redactor = Redactor(known)
    once = redactor.text(text)
    for secret in known:
        assert secret not in once
    assert redactor.text(once) == once


@given(secrets, json_values(texts), st.data(), st.booleans())
def test_json_stays_valid_and_both_ways_agree(
    known: list[str], value: Any, data: st.DataObject, ascii_only: bool
) -> None:
    redactor = Redactor(known)
    secret = data.draw(st.sampled_from(known))
    whole = {"a": value, f"k{secret}": secret, "b": [json.dumps({"c": secret})]}
    stored = redactor.encoded(json.dumps(whole, ensure_ascii=ascii_only).encode())
    hidden = json.loads(stored)
    assert hidden == redactor.json(whole)
    assert secret not in str(list(_texts(hidden)))
    assert redactor.encoded(stored) == stored


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


@given(json_values(harmless_texts))
def test_text_without_secrets_is_unchanged(value: Any) -> None:
    redactor = Redactor(["never-in-such-a-value-1"])
    assert redactor.json(value) == value
    data = json.dumps(value).encode()
    assert redactor.encoded(data) == data


#: Of no filler, so that any four characters in a row of it are a leak.
LONG_SECRET = "Zq7Wx9Kv2Jp4Yt6Hn8Bm3Gf5Dc1Ls0R"


def leaks(shown: str, secret: str = LONG_SECRET) -> list[str]:
    parts = (secret[start : start + 4] for start in range(len(secret) - 3))
    return [part for part in parts if part in shown]


@pytest.mark.parametrize("limit", [40, 80])
@pytest.mark.parametrize("secrets", [(LONG_SECRET,), ()], ids=["known", "by pattern"])
def test_no_cut_leaves_part_of_a_secret(limit: int, secrets: tuple[str, ...]) -> None:
    written = LONG_SECRET if secrets else f"sk-{LONG_SECRET}"
    redactor = Redactor(secrets)
    with redacting(lambda: redactor):
        for length in (limit, 3 * limit, 3 * LONGEST_SECRET):
            for offset in range(2 * limit):
                for before in (offset, length - offset):
                    text = " " * before + written + " " * (length - before)
                    shown = cut(text, limit), cut(text, limit, keep="both"), cut_to_end(text, limit)
                    assert not leaks("".join(shown)), (length, before, shown)
                    assert max(map(len, shown)) <= limit


def test_part_of_a_secret_at_the_start_is_not_shown() -> None:
    redactor = Redactor([LONG_SECRET])
    with redacting(lambda: redactor):
        for gone in range(len(LONG_SECRET)):
            for more in ("the end", LONG_SECRET * 2000 + "the end", "x" * 60_000 + "the end"):
                text = f"{LONG_SECRET[gone:]} {more}"
                shown = cut_to_end(text, 100, start_missing=True)
                assert not leaks(shown)
                assert shown.endswith("the end") or len(text) < LONGEST_SECRET


@given(st.text(max_size=60), st.integers(1, 80), st.integers(0, 60))
def test_a_cut_text_is_the_start_of_the_redacted_text(text: str, limit: int, place: int) -> None:
    whole = text[:place] + LONG_SECRET + text[place:]
    redactor = Redactor([LONG_SECRET])
    assert redactor.start(whole, limit) == redactor.text(whole)[:limit]
    assert redactor.end(whole, limit) == redactor.text(whole)[-limit:]


def test_a_text_with_many_secrets_is_read_until_the_excerpt_is_full() -> None:
    redactor = Redactor([LONG_SECRET])
    text = (LONG_SECRET + " ") * 5000 + "x"
    with redacting(lambda: redactor):
        assert cut(text, 100) == (f"{MARK} " * 20)[:97] + "..."
        assert cut_to_end(text, 100) == (f"{MARK} " * 20 + "x")[-100:]


def test_cut_reads_only_what_it_needs() -> None:
    class Counting(Redactor):
        read = 0

        def text(self, text: str) -> str:
            self.read += len(text)
            return super().text(text)

    redactor = Counting([LONG_SECRET])
    with redacting(lambda: redactor):
        assert len(cut("x" * 10_000_000, 80)) == 80
        assert cut("short", 80) == "short"
    assert redactor.read < 2 * LONGEST_SECRET


def test_a_secret_quoted_by_python_is_known() -> None:
    secret = """it's a "secret" 42"""
    assert Redactor([secret]).text(f"found {secret!r}") == f"found '{MARK}'"


@pytest.mark.parametrize("message", [raised, partial(broken, "key")])
def test_a_long_error_keeps_its_last_words(message: Callable[[Any], object]) -> None:
    fault = "x" * 10_000 + ": connection refused"
    shown = str(message(ValueError(fault) if message is raised else fault))
    assert shown.endswith(": connection refused")
    assert " ... " in shown
    assert len(shown) < 5000
