"""The JSON Schema 2020-12 of result files, from the structs that write and read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from assay.model.suite_result import ResultFile


def result_schema(dialect: str) -> dict[str, Any]:
    """The schema of a result file."""
    (root,), definitions = components([ResultFile], "#/$defs/")
    return {"$schema": dialect, "title": "Assay result file", **root, "$defs": definitions}


def components(shapes: Iterable[Any], at: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The schemas of structs, and those of all their parts by name; `at` precedes references."""
    roots, definitions = msgspec.json.schema_components(shapes, ref_template=at + "{name}")
    for definition in definitions.values():
        for key, value in definition["properties"].items():
            if value.get("default", ...) is None:
                definition["properties"][key] = _never_null(value)
    return roots, msgspec.json.decode(msgspec.json.encode(definitions))


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a key that is not written when it is null."""
    (written,) = (option for option in schema["anyOf"] if option != {"type": "null"})
    return dict(written)
