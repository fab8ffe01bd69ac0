"""Plain data as YAML that `wire.yaml` reads back unchanged."""

from __future__ import annotations

from typing import Any

import yaml

#: Line breaks to YAML, which only a quoted text keeps, as escapes.
_LINE_BREAKS = {"\x85", "\u2028", "\u2029"}


class _Dumper(yaml.SafeDumper):
    """Quotes every text that is not surely text, and writes long texts as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # YAML 1.2 reads `1e5` and `0o7` as numbers, which PyYAML would not quote.
    plain = text[:1].isascii() and text[:1].isalpha() and _LINE_BREAKS.isdisjoint(text)
    style = "|" if "\n" in text and plain else None if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump(data: Any) -> str:
    """The text of a YAML file; texts on one line are not folded."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31 - 1
    )
    return text
