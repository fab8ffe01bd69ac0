"""The page of the Python API, and a file that uses every public name with its types."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import api

import assay


def test_the_page_is_fresh_and_complete() -> None:
    text = api.FILE.read_text(encoding="utf-8")
    assert text == api.page(), "run `make docs`"
    names = [name for name in assay.__all__ if name != "__version__"]
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == names


def test_every_public_function_and_class_has_a_docstring() -> None:
    lacking = [
        name
        for name in assay.__all__
        if name != "__version__" and not (getattr(assay, name).__doc__ or "").strip()
    ]
    assert lacking == []


def test_the_typed_file_uses_every_public_name() -> None:
    # Importing it would register its evaluator for all tests of this process.
    source = Path(__file__).with_name("every_public_name.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "assay"
    }
    assert used >= set(assay.__all__)
