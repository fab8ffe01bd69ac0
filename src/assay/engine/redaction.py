"""Keeps secrets from judges and from the cache."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from assay.ports import Cache, Request
from assay.redaction import Redactor
from assay.targets.pool.retries import RetryingTarget


class RedactedJudge:
    """A judge whose requests are redacted."""

    def __init__(self, judge: RetryingTarget, redactor: Redactor) -> None:
        self.name, self.identity = judge.name, judge.identity
        self._judge, self._redactor = judge, redactor

    async def ask(self, request: Request) -> Any:
        messages = tuple(
            message.replace(content=self._redactor.json(message.content))
            for message in request.messages
        )
        return await self._judge.ask(replace(request, messages=messages))

    async def close(self) -> None:
        """Does nothing: the pool closes the judge."""


class SecretFreeCache:
    """A cache that does not store replies that contain a secret.

    They are not redacted instead: a redacted reply might be graded differently from the original.
    """

    def __init__(self, cache: Cache, redactor: Redactor) -> None:
        self._cache, self._redactor = cache, redactor

    def get(self, key: str) -> dict[str, Any] | None:
        return self._cache.get(key)

    def put(self, key: str, value: dict[str, Any]) -> None:
        encoded = msgspec.json.encode(value)
        if self._redactor.encoded(encoded) == encoded:
            self._cache.put(key, value)
