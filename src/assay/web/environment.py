"""HTML from Jinja2 templates, and the style sheet and modules that all pages and reports share.

`templates/base.html` is the page around every page, `templates/macros.html` has its parts: verdict
box, facts, panels, badges, chips, calls, pagers. `static/` has one style sheet and ES modules.
`server/pages/rendering.py` says how to add a page. Jinja2 is imported only when HTML is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from assay.model.run import short_id
from assay.redaction import cut
from assay.text import count, duration, money, percent
from assay.web.content import visible

if TYPE_CHECKING:
    from jinja2 import Environment

#: The sign of each outcome and change: colour is never the only difference.
SIGNS = {
    "passed": "✓",
    "failed": "✕",
    "errored": "!",
    "skipped": "-",
    "flaky": "~",
    "regressed": "✕",
    "fixed": "✓",
    "inconclusive": "~",
    "running": "…",
}


def draw(template: str, values: Mapping[str, Any]) -> str:
    """The HTML of a template; all values are escaped unless they are `Markup`."""
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """The environment of all templates. An undefined name in a template is an error."""
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("assay.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = {"count": count, "percent": percent, "duration": duration, "money": money}
    found.filters |= shown | {"number": "{:,}".format, "moment": moment}
    found.filters |= {"capitalize_first": capitalize_first, "shorten": cut, "short_id": short_id}
    found.globals |= {"SIGNS": SIGNS, "static": static_url}
    return found


def capitalize_first(text: str) -> str:
    """The text as a sentence begins; the rest keeps its case."""
    return text[:1].upper() + text[1:]


def _finalize(value: Any) -> Any:
    """What templates show for a value: control characters in text are written out."""
    return visible(value) if type(value) is str else value


def moment(timestamp: str) -> str:
    """`18 Nov 2026, 09:12 UTC`; a time of another form as it is."""
    try:
        return datetime.fromisoformat(timestamp).strftime("%-d %b %Y, %H:%M UTC")
    except ValueError:
        return timestamp


@cache
def static_files() -> dict[str, bytes]:
    """The style sheet and the modules, by name."""
    folder = files("assay.web").joinpath("static")
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@cache
def static_version() -> str:
    """Changes with the content of any static file."""
    found = sha256()
    for name, content in sorted(static_files().items()):
        found.update(name.encode() + b"\0" + content)
    return found.hexdigest()[:12]


def static_url(name: str) -> str:
    """Where the server has a static file. Modules import each other from the same folder."""
    return f"/static/{static_version()}/{name}"
