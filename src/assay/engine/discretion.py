"""Discretion: neither a judge nor the cache gets to see a secret."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from assay.ports import Cache, Request
from assay.redaction import Redactor
from assay.roster.retries import Retrying


class DiscreetJudge:
    """A judge that is not shown secrets."""

    def __init__(self, judge: Retrying, redactor: Redactor) -> None:
        self.name, self.identity = judge.name, judge.identity
        self._judge, self._redactor = judge, redactor

    async def ask(self, request: Request) -> Any:
        messages = tuple(
            message.replace(content=self._redactor.json(message.content))
            for message in request.messages
        )
        return await self._judge.ask(replace(request, messages=messages))

    async def close(self) -> None:
        """The roster closes it."""


class DiscreetCache:
    """A cache that keeps no reply with a secret in it.

    Without the secret it would be another reply, and be judged otherwise than the first time.
    """

    def __init__(self, cache: Cache, redactor: Redactor) -> None:
        self._cache, self._redactor = cache, redactor

    def get(self, key: str) -> dict[str, Any] | None:
        return self._cache.get(key)

    def put(self, key: str, value: dict[str, Any]) -> None:
        encoded = msgspec.json.encode(value)
        if self._redactor.encoded(encoded) == encoded:
            self._cache.put(key, value)
