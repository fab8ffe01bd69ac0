"""The OpenAPI schemas of the evaluators that a request for a run may contain."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from assay import registry
from assay.server.openapi_operation import Schema, bounded, ref
from assay.server.run_requests import allowed_evaluators
from assay.service.schema import evaluator_shapes, spellings_of

#: Matches text that does not end like a file name.
_NO_FILE = r"^(?![\s\S]*\.[A-Za-z0-9]+\s*$)"
#: Matches the name of a model without a provider.
_NO_PROVIDER = "^[^:]*$"


def schemas() -> dict[str, Schema]:
    """A schema for each evaluator, and `GivenEvaluator` for an entry of the list."""
    shapes: dict[str, Schema] = bounded(evaluator_shapes(allowed_evaluators(), ref("")["$ref"]))
    for shape in shapes.values():
        for name, pattern in (("prompt", _NO_FILE), ("model", _NO_PROVIDER)):
            if name in shape.get("properties", ()):
                shape["properties"][name]["anyOf"][0]["pattern"] = pattern
    _remove_programs(shapes["Aggregator"])
    shapes["GivenEvaluator"] = {"anyOf": [{"enum": _types_without_keys()}, ref("Evaluator")]}
    return shapes


def _remove_programs(aggregator: Schema) -> None:
    """Remove what would run a program: a request may not."""
    del aggregator["properties"]["script"]
    for spelled in aggregator["properties"]["type"]["anyOf"]:
        spelled["enum"] = [kind for kind in spelled["enum"] if "code" not in kind]
    aggregator["allOf"] = [rule for rule in aggregator["allOf"] if "script" not in str(rule)]


def _types_without_keys() -> list[str]:
    """The types that need no keys, in all their spellings: such an entry may be just its type."""
    found: list[str] = []
    for name, cls in registry.evaluators.usable().items():
        if cls.allowed_in_requests and _needs_no_keys(cls, name):
            found += spellings_of(name, cls)
    return sorted(found)


def _needs_no_keys(cls: type[Any], name: str) -> bool:
    try:
        cls.model_validate({"type": name})
    except ValidationError:
        return False
    return True
