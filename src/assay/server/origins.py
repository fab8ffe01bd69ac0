"""The origin of a write: another website must not be able to make a browser send one."""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from assay.errors import UsageError
from assay.server.envelope import ApiError

_PUBLIC_URL = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]+))?/?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}


def origin_of(public_url: str) -> str:
    """The origin of `--public-url`, as browsers write it; raises UsageError."""
    match = _PUBLIC_URL.fullmatch(public_url.strip().lower())
    if match is None:
        example = "such as https://evals.example, without a path"
        raise UsageError(f"--public-url: {public_url!r} is not the address of a server, {example}")
    scheme, host, port = match.groups()
    return f"{scheme}://{host}" + (f":{port}" if port and port != _DEFAULT_PORTS[scheme] else "")


def check_origin(headers: Headers, own: str = "") -> None:
    """Refuse a request whose Origin header is not the server's own origin.

    Browsers set the header on every POST. `own` is the origin of `--public-url`; without it, the
    one that the Host header names, which was checked before.
    """
    given = headers.getlist("origin")
    expected = own or f"http://{headers['host'].lower()}"
    if given == [expected]:
        return
    found = f"is {', '.join(given)[:100]!r}" if given else "is missing"
    hint = "" if own else "; behind a proxy, set `assay serve --public-url`"
    message = f"The Origin header {found}; only pages of {expected!r} can send this{hint}"
    raise ApiError("FORBIDDEN", message)
