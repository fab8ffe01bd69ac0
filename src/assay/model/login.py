"""LoginSession: a person who is logged in to the pages of the server."""

from __future__ import annotations

import msgspec


class LoginSession(msgspec.Struct, frozen=True):
    """A log-in. Neither the id in the cookie nor the token can be computed from their hashes.

    It ends at `expires_at`, or when the token is no longer configured. Times are ISO 8601 texts of
    `assay.model.run.timestamp`.
    """

    id_hash: str
    token_hash: str
    created_at: str
    expires_at: str
