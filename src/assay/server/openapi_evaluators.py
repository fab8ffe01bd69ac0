"""What evaluators of a request may have, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from assay import registry
from assay.server.openapi_operation import Schema, bounded, ref
from assay.server.run_requests import SAFE
from assay.service.schema import evaluator_shapes, spellings_of

#: What does not look like the name of a file at its end.
_NO_FILE = r"^(?![\s\S]*\.[A-Za-z0-9]+\s*$)"
#: What names no provider.
_NO_PROVIDER = "^[^:]*$"


def schemas() -> dict[str, Schema]:
    """The shapes of the evaluators that a request may have, and `GivenEvaluator`, one of a list."""
    shapes: dict[str, Schema] = bounded(evaluator_shapes(SAFE, ref("")["$ref"]))
    for shape in shapes.values():
        for name, pattern in (("prompt", _NO_FILE), ("model", _NO_PROVIDER)):
            if name in shape.get("properties", ()):
                shape["properties"][name]["anyOf"][0]["pattern"] = pattern
    _without_programs(shapes["Aggregator"])
    shapes["GivenEvaluator"] = {"anyOf": [{"enum": _alone()}, ref("Evaluator")]}
    return shapes


def _without_programs(aggregator: Schema) -> None:
    """An aggregator of a request runs nothing."""
    del aggregator["properties"]["script"]
    for spelled in aggregator["properties"]["type"]["anyOf"]:
        spelled["enum"] = [kind for kind in spelled["enum"] if "code" not in kind]
    aggregator["allOf"] = [rule for rule in aggregator["allOf"] if "script" not in str(rule)]


def _alone() -> list[str]:
    """The types that need no keys, in all their spellings."""
    found: list[str] = []
    for name, cls in registry.evaluators.usable().items():
        if name in SAFE and _needs_nothing(cls, name):
            found += spellings_of(name, cls)
    return sorted(found)


def _needs_nothing(cls: type[Any], name: str) -> bool:
    try:
        cls.model_validate({"type": name})
    except ValidationError:
        return False
    return True
