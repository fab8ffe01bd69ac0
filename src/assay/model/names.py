"""Names that people type: the same however their accents are encoded.

`é` is one character on most systems (NFC) and two in file names of macOS (NFD).
"""

from __future__ import annotations

import unicodedata


def normal_name(name: str) -> str:
    """The name in NFC, by which names are compared."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def same_name(one: str | None, other: str | None) -> bool:
    """Are both the same name?"""
    if one is None or other is None:
        return one is other
    return one == other or normal_name(one) == normal_name(other)
