"""Forms of our pages, as browsers send them. Their Origin was checked before: see `callers`."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from assay.server.envelope import ApiError, invalid
from assay.server.requests import read_body

FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 1000


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; raises ApiError if it is malformed."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise ApiError("UNSUPPORTED_MEDIA_TYPE", f"Content-Type must be {FORM}")
    body = await read_body(request)
    try:
        text = body.decode("ascii")  # other characters are percent-encoded
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise invalid("The form is malformed, or not UTF-8") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise invalid("A field of the form is given twice")
    return fields
