"""Addresses of servers: what is one, and how messages show it."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_address(value: str) -> bool:
    """Whether it is an http or https address with a host."""
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a host or a port that is none
        return False


def shown_url(url: str) -> str:
    """The address without a user's name, password and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
