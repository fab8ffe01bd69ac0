"""Sessions of people who logged in: a random id in a cookie, and its hash in the store."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

from starlette.datastructures import Headers

from assay.model.login import LoginSession
from assay.model.run import timestamp
from assay.ports import Store
from assay.server.run_manager import Clock
from assay.server.tokens import Token

LIFETIME = timedelta(days=7)


class Sessions:
    """The sessions in the store of a server; other servers of the store have the same ones.

    A session is valid only while the token that it was made with is configured. The store has
    nothing that could be used to log in: a hash of the id, and a hash of the token whose key is
    the id itself.
    """

    def __init__(
        self, store: Store, tokens: Sequence[Token], now: Clock, *, secure: bool = False
    ) -> None:
        self._store, self._tokens, self._now = store, tokens, now
        self._secure = secure
        # Browsers accept the prefix only from this very host, over https.
        self.cookie = "__Host-assay-session" if secure else "assay-session"

    async def create(self, token: Token) -> str:
        """Make a session for the holder of a token, and return its id."""
        session_id, now = secrets.token_urlsafe(32), self._now()
        times = timestamp(now), timestamp(now + LIFETIME)
        made = LoginSession(_hash(session_id), _binding(session_id, token), *times)
        await asyncio.to_thread(self._store.login_sessions.add, made)
        return session_id

    async def find(self, headers: Headers) -> Token | None:
        """The token whose holder logged in; None if the cookie has no valid session."""
        session_id = self._sent_id(headers)
        if session_id is None:
            return None
        stored = self._store.login_sessions
        session = await asyncio.to_thread(stored.get, _hash(session_id), self._now())
        if session is None:
            return None
        found = None
        for token in self._tokens:
            if hmac.compare_digest(_binding(session_id, token), session.token_hash):
                found = token
        return found

    async def end(self, headers: Headers) -> None:
        """End the session in the cookie, if there is one."""
        session_id = self._sent_id(headers)
        if session_id is not None:
            await asyncio.to_thread(self._store.login_sessions.remove, _hash(session_id))

    def set_cookie(self, session_id: str) -> str:
        """The Set-Cookie header for a session."""
        return self._header(session_id, int(LIFETIME.total_seconds()))

    def clear_cookie(self) -> str:
        """The Set-Cookie header that removes the cookie."""
        return self._header("", 0)

    def _header(self, value: str, max_age: int) -> str:
        secure = "; Secure" if self._secure else ""
        flags = f"Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}"
        return f"{self.cookie}={value}; {flags}"

    def _sent_id(self, headers: Headers) -> str | None:
        """The id in the cookie; None with several, as one of them was not set by this server."""
        parts = ";".join(headers.getlist("cookie")).split(";")
        pairs = (part.strip().partition("=") for part in parts)
        found = [value for name, _, value in pairs if name == self.cookie]
        return found[0] if len(found) == 1 and found[0] else None


def _hash(session_id: str) -> str:
    return sha256(session_id.encode()).hexdigest()


def _binding(session_id: str, token: Token) -> str:
    """A hash that binds a session to its token; not even a weak token can be guessed from it."""
    return hmac.new(session_id.encode(), token.secret.encode(), sha256).hexdigest()
