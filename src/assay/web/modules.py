"""The style sheets and modules in one piece, for files that stand alone."""

from __future__ import annotations

import re
from functools import cache

from assay.web.environment import static_files

_STYLES = ("assay.css", "report.css")
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
#: What would end the element that the text stands in, or begin a comment there.
_ENDS = re.compile(r"</(?:script|style)|<!--", re.IGNORECASE)


@cache
def style() -> str:
    """The style sheets of a report."""
    return _checked("".join(_text(name) for name in _STYLES))


@cache
def bundle(name: str) -> str:
    """A module with all that it imports, as a script that runs as soon as it is read.

    The modules share one scope, so no two of them may declare the same name.
    """
    found: dict[str, str] = {}
    _add(name, found)
    return _checked('"use strict";\n(() => {\n' + "".join(found.values()) + "})();\n")


def _add(name: str, found: dict[str, str]) -> None:
    """Add a module after those that it imports; modules may not import each other in a circle."""
    text = _text(name)
    for needed in _IMPORT.findall(text):
        if needed not in found:
            _add(needed, found)
    found[name] = _EXPORT.sub("", _IMPORT.sub("", text))


def _text(name: str) -> str:
    return static_files()[name].decode()


def _checked(text: str) -> str:
    assert not _ENDS.search(text), "the text would end its element"
    return text
