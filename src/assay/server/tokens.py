"""The tokens in the server's configuration, and what each of them permits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest

import msgspec

from assay.errors import UsageError

#: The accepted tokens, separated by commas or spaces: `read:TOKEN`, `write:TOKEN` or `TOKEN`.
TOKENS_VARIABLE = "ASSAY_API_TOKENS"
_SCOPED = re.compile(r"(?:(read|write):)?(.*)", re.DOTALL)


class Token(msgspec.Struct, frozen=True):
    """A token; its holder can read and, unless it is a read token, write."""

    secret: str
    may_write: bool = True


def tokens_of(value: str) -> tuple[Token, ...]:
    """The tokens in the environment variable; raises UsageError without repeating a token."""
    found: dict[str, Token] = {}
    for number, word in enumerate(value.replace(",", " ").split(), 1):
        match = _SCOPED.fullmatch(word)
        assert match is not None
        token = Token(match[2], match[1] != "read")
        if not token.secret:
            raise UsageError(f"{TOKENS_VARIABLE}: entry {number} is {word!r}, without a token")
        if found.setdefault(token.secret, token) != token:
            problem = f"the token of entry {number} is listed as read and as write token"
            raise UsageError(f"{TOKENS_VARIABLE}: {problem}; keep one of them")
    return tuple(found.values())


def find_token(tokens: Iterable[Token], given: bytes) -> Token | None:
    """The token that was sent, in UTF-8; takes the same time whether and where it is found."""
    digest = sha256(given).digest()
    found = None
    for token in tokens:
        if compare_digest(sha256(token.secret.encode()).digest(), digest):
            found = token
    return found
