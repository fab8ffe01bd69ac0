"""The OpenAPI schemas of the evaluators that a request for a run may contain."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from assay import registry
from assay.server.run_requests import allowed_evaluators
from assay.service.schema import evaluator_shapes, spellings_of

Schema = dict[str, Any]
#: Matches text that does not end like a file name.
_NO_FILE = r"^(?![\s\S]*\.[A-Za-z0-9]+\s*$)"
_CONFIGURED = "The name of a target in the server's configuration; others are refused."
#: Matches the name of a model without a provider.
_NO_PROVIDER = "^[^:]*$"


def evaluator_schemas(ref: str) -> dict[str, Schema]:
    """A schema for each evaluator, and `GivenEvaluator` for an entry of the list."""
    shapes: dict[str, Schema] = bounded(evaluator_shapes(allowed_evaluators(), ref))
    for shape in shapes.values():
        for name, pattern in (("prompt", _NO_FILE), ("model", _NO_PROVIDER)):
            if name in shape.get("properties", ()):
                shape["properties"][name]["anyOf"][0]["pattern"] = pattern
        if "target" in shape.get("properties", ()):
            shape["properties"]["target"]["description"] = _CONFIGURED
    _remove_programs(shapes["Aggregator"])
    shapes["GivenEvaluator"] = {
        "anyOf": [{"enum": _types_without_keys()}, {"$ref": f"{ref}Evaluator"}]
    }
    return shapes


def bounded(schema: Any) -> Any:
    """The schema with integers limited to 64 bits, as in the model."""
    if isinstance(schema, list):
        return [bounded(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    limit = {"maximum": 2**64 - 1} if schema.get("type") == "integer" else {}
    return limit | {key: bounded(part) for key, part in schema.items()}


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
