"""Addresses of servers: validation, and how messages show them."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_address(value: str) -> bool:
    """Is it an http or https URL with a host?"""
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid host or port
        return False


def shown_url(url: str) -> str:
    """The address without user name, password and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
