"""JSON Schema 2020-12 of the eval files, generated from the shapes that the loaders use."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from assay.errors import UnknownName
from assay.model.evaluator import EvaluatorSpec, NegatableSpec
from assay.model.suite import INPUT_KEYS, CaseFile, OneCaseFile, SuiteFile
from assay.model.tiers import TIERS, TierFile
from assay.registry import evaluators

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES = ("eval", *TIERS)


def schema(name: str) -> dict[str, Any]:
    """The schema of one kind of file: eval, golden, labeled, regression or rubric."""
    if name == "eval":
        return _eval_schema()
    if name not in TIERS:
        raise UnknownName("schema", name, NAMES)
    return _tier_schema(name)


def _eval_schema() -> dict[str, Any]:
    classes = {type_name: evaluators.get(type_name) for type_name in evaluators}
    shapes: list[type[Any]] = [SuiteFile, CaseFile, OneCaseFile, *classes.values()]
    refs, definitions = models_json_schema(
        [(shape, "validation") for shape in shapes], ref_template="#/$defs/{model}"
    )
    defs = definitions["$defs"]
    names = {shape: ref["$ref"].rpartition("/")[2] for (shape, _), ref in refs.items()}
    defs["Evaluator"] = _evaluator(classes, names, defs)
    suite = defs[names[SuiteFile]]
    spellings = ("cases", *(a for a, c in SuiteFile.spelling.aliases.items() if c == "cases"))
    for key in spellings:
        suite["properties"][key] = {**suite["properties"][key], "minItems": 1}
    case, root = ({"$ref": f"#/$defs/{names[shape]}"} for shape in (CaseFile, OneCaseFile))
    identified = {"required": ["id"], "properties": {"id": {"type": "string"}}}
    defs["ListedCase"] = {"allOf": [case, identified]}
    for shape in (CaseFile, OneCaseFile):
        for key in ("expected_messages", "expected_output"):
            defs[names[shape]]["properties"][key] |= _expected_messages()
    for key in spellings:
        suite["properties"][key]["items"] = {"$ref": "#/$defs/ListedCase"}
    return {
        "$schema": DIALECT,
        "title": "Assay eval suite",
        "if": {"type": "array"},
        "then": {"items": {"$ref": "#/$defs/ListedCase"}, "minItems": 1},
        "else": {
            "if": {"type": "object", "anyOf": [{"required": [key]} for key in spellings]},
            "then": {"$ref": f"#/$defs/{names[SuiteFile]}"},
            "else": {"allOf": [root, {"anyOf": [{"required": [key]} for key in INPUT_KEYS]}]},
        },
        "$defs": defs,
    }


def _expected_messages() -> dict[str, Any]:
    """Messages when something in it is one; any JSON value otherwise."""
    ours = {"properties": {"role": {"enum": ["system", "user", "assistant", "tool"]}}}
    message = {
        "type": "object",
        "required": ["role"],
        "anyOf": [ours, {"required": ["content"]}, {"required": ["tool_calls"]}],
    }
    written = {"$ref": "#/$defs/Message"}
    return {
        "if": {"type": "array", "contains": message},
        "then": {"items": written},
        "else": {"if": message, "then": written},
    }


def _evaluator(
    classes: dict[str, type[EvaluatorSpec]], names: dict[Any, str], defs: dict[str, Any]
) -> dict[str, Any]:
    """One entry of an `evaluators` list: its `type` decides which keys it may have."""
    rules = []
    known: list[str] = []
    for type_name, cls in classes.items():
        if type_name == "python":
            matches: dict[str, Any] = {"pattern": "^python:"}
        else:
            spelled = spellings_of(type_name, cls)
            known += spelled
            matches = {"enum": spelled}
        condition = {"properties": {"type": matches}, "required": ["type"]}
        rules.append({"if": condition, "then": {"$ref": f"#/$defs/{names[cls]}"}})
        defs[names[cls]]["properties"]["type"].setdefault("type", "string")
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"anyOf": [{"enum": sorted(known)}, {"pattern": "^python:"}]}},
        "allOf": rules,
    }


def spellings_of(type_name: str, cls: type[EvaluatorSpec]) -> list[str]:
    """All the ways to write an evaluator's type."""
    spelled = {type_name, type_name.replace("_", "-")}
    if issubclass(cls, NegatableSpec):
        spelled |= {f"not_{type_name}", f"not-{type_name.replace('_', '-')}"}
    return sorted(spelled)


def _tier_schema(name: str) -> dict[str, Any]:
    shapes: list[type[Any]] = [TierFile, TIERS[name]]
    refs, definitions = models_json_schema(
        [(shape, "validation") for shape in shapes], ref_template="#/$defs/{model}"
    )
    defs = definitions["$defs"]
    names = {shape: ref["$ref"].rpartition("/")[2] for (shape, _), ref in refs.items()}
    envelope = names[TierFile]
    cases: dict[str, Any] = {"type": "array", "items": {"$ref": f"#/$defs/{names[TIERS[name]]}"}}
    if name != "regression":
        cases["minItems"] = 1
    defs[envelope]["properties"]["cases"] = cases
    return {
        "$schema": DIALECT,
        "title": f"Assay {name} cases",
        "if": {"type": "array"},
        "then": cases,
        "else": {"$ref": f"#/$defs/{envelope}"},
        "$defs": defs,
    }
