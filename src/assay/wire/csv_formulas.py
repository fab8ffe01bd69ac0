"""Cells of CSV files that a spreadsheet would take for a formula, and run."""

from __future__ import annotations

import unicodedata

_SIGNS = "=+-@"
_MARK = "'"


def neutralised(text: str) -> str:
    """The text, with an apostrophe before it if a spreadsheet would take it for a formula."""
    return _MARK + text if _is_formula(text.lstrip(_MARK)) else text


def restored(cell: str) -> str:
    """The inverse of `neutralised`."""
    return cell[1:] if cell.startswith(_MARK) and _is_formula(cell.lstrip(_MARK)) else cell


def _is_formula(text: str) -> bool:
    """Does it begin with a sign, perhaps after spaces, or with a character that ends a cell?

    A full-width sign counts too: some spreadsheets convert it.
    """
    if text.startswith(("\t", "\r", "\n")):
        return True
    sign = next((char for char in text if not _is_ignored(char)), "")
    return sign != "" and unicodedata.normalize("NFKC", sign) in _SIGNS


def _is_ignored(char: str) -> bool:
    """Spaces, control characters, and what is invisible, such as a byte order mark."""
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf")
