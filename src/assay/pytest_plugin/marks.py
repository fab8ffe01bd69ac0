"""Tags of cases as marks, so that `-m` selects by them."""

from __future__ import annotations

import re
from collections.abc import Collection

import pytest

#: Other tags cannot be registered, or named after `-m`.
_MARK = re.compile(r"[^\W_][\w.+/-]*")


class TagMarks:
    """Registers tags as marks when they are first used, so that `--strict-markers` knows them.

    A mark that pytest or a plugin has registered, such as `skip`, would do something to the test:
    such a tag is a keyword for `-k` only, unless the project itself has registered it (`own`).
    """

    def __init__(self, config: pytest.Config, own: Collection[str]) -> None:
        self._config, self._known = config, set(map(_name, own))
        lines = config.getini("markers")
        self._taken = frozenset(_name(line) for line in lines if line not in own)

    def add(self, tag: str, item: pytest.Item) -> None:
        """Mark an item with a tag, or give it the tag as a keyword."""
        if tag in self._taken or _MARK.fullmatch(tag) is None:
            item.extra_keyword_matches.add(tag)
            return
        if tag not in self._known:
            self._config.addinivalue_line("markers", f"{tag}: a tag of eval cases")
            self._known.add(tag)
        item.add_marker(tag)


def _name(line: str) -> str:
    """The name of a mark in the line that registers it, read as pytest does."""
    return line.split(":")[0].split("(")[0].strip()
