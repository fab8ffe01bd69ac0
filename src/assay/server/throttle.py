"""Limits how often tokens can be guessed."""

from __future__ import annotations

import ipaddress
from collections import deque
from datetime import datetime, timedelta

from assay.server.run_manager import Clock

WINDOW = timedelta(minutes=1)
#: How many attempts may fail within a window, from one client and in all.
MAX_FAILURES = 5
MAX_FAILURES_IN_ALL = 100


class Throttle:
    """Counts failed attempts of the last minute; the limit for all clients bounds its memory."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._failures: deque[tuple[datetime, str]] = deque(maxlen=MAX_FAILURES_IN_ALL)

    def wait_seconds(self, client: str) -> int:
        """How long this client must wait before its next attempt; 0 if it need not wait."""
        now, network = self._now(), _network(client)
        while self._failures and self._failures[0][0] + WINDOW <= now:
            self._failures.popleft()
        own = [when for when, failed in self._failures if failed == network]
        if len(own) >= MAX_FAILURES:
            first = own[-MAX_FAILURES]
        elif len(self._failures) >= MAX_FAILURES_IN_ALL:
            first = self._failures[0][0]
        else:
            return 0
        return max(1, round((first + WINDOW - now).total_seconds()))

    def note_failure(self, client: str) -> None:
        self._failures.append((self._now(), _network(client)))


def _network(client: str) -> str:
    """The client's address; for IPv6 its /64 network, which usually belongs to one client."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))
    return str(address)
