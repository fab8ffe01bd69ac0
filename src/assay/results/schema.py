"""The JSON Schema 2020-12 of result files, from the structs that write and read them."""

from __future__ import annotations

from typing import Any

import msgspec

from assay.model.result import CaseResult
from assay.model.suite_result import ResultFile


def result_schema(dialect: str) -> dict[str, Any]:
    """The schema of a result file."""
    root, definitions = _components(ResultFile, "#/$defs/{name}")
    return {"$schema": dialect, "title": "Assay result file", **root, "$defs": definitions}


def case_shapes(ref_template: str) -> dict[str, Any]:
    """The schemas of the result of a case, `CaseResult`, and of its parts, by name."""
    return _components(CaseResult, ref_template)[1]


def _components(shape: type[Any], ref_template: str) -> tuple[dict[str, Any], dict[str, Any]]:
    (root,), definitions = msgspec.json.schema_components([shape], ref_template=ref_template)
    for definition in definitions.values():
        for key, value in definition["properties"].items():
            if value.get("default", ...) is None:
                definition["properties"][key] = _never_null(value)
    return root, msgspec.json.decode(msgspec.json.encode(definitions))


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a key that is not written when it is null."""
    (written,) = (option for option in schema["anyOf"] if option != {"type": "null"})
    return dict(written)
