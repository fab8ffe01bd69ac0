"""The pictures in the documentation: all are used, and none is large."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())
#: The largest picture, in bytes.
MAX_SIZE = 150_000


@pytest.mark.parametrize("picture", PICTURES, ids=lambda file: file.name)
def test_a_picture_is_a_small_png(picture: Path) -> None:
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    assert len(content) <= MAX_SIZE


def test_every_picture_is_shown_with_a_description() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        (page.parent / address).resolve(): text
        for page in pages
        for text, address in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text("utf-8"))
    }
    assert set(shown) == {picture.resolve() for picture in PICTURES}
    assert all(len(text) > 20 for text in shown.values())
