"""JSON Schema 2020-12 of eval files, configuration and results, made from their shapes."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import product
from operator import add
from typing import Any

from pydantic.json_schema import models_json_schema

from assay.errors import UnknownName
from assay.model.evaluator import CRITERION, TYPE_ALIASES, EvaluatorSpec, NegatableSpec
from assay.model.expect import ASSERTED, Expect
from assay.model.message import MESSAGE
from assay.model.parameters import NAME_ALONE
from assay.model.suite import CaseExecution, CaseFile, OneCaseFile, SuiteExecution, SuiteFile
from assay.model.tiers import TIERS, TierFile, TierMetadata
from assay.registry import evaluators, targets
from assay.results.schema import result_schema
from assay.settings import Config, JudgeEntry, TargetEntry
from assay.wire.key_names import without_aliases

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES = ("eval", *TIERS, "config", "result")
#: The shapes in which no names are replaced by `vars`.
_AS_WRITTEN = (SuiteFile, SuiteExecution, CaseFile, OneCaseFile)
_COMPARING = {"contains": {"$ref": "#/$defs/Comparing"}}


def schema(name: str) -> dict[str, Any]:
    """The schema of one kind of file: one of NAMES."""
    if name in TIERS:
        return _tier_schema(name)
    if name == "eval":
        return _eval_schema()
    if name == "config":
        return _config_schema()
    if name == "result":
        return result_schema(DIALECT)
    raise UnknownName("schema", name, NAMES)


def _definitions(*shapes: type[Any]) -> tuple[dict[str, Any], dict[type[Any], str]]:
    """The `$defs` of shapes and of all that they contain, and the name of each shape in it."""
    refs, definitions = models_json_schema(
        [(shape, "validation") for shape in shapes], ref_template="#/$defs/{model}"
    )
    names = {shape: ref["$ref"].rpartition("/")[2] for (shape, _), ref in refs.items()}
    return definitions["$defs"], names


def _config_schema() -> dict[str, Any]:
    """The schema of assay.yaml; a target's provider determines its settings."""
    classes = targets.usable()
    defs, names = _definitions(Config, *dict.fromkeys(classes.values()))
    for cls in classes.values():
        properties = defs[names[cls]]["properties"]
        if model := properties.get("model"):  # a list makes a target for each model
            properties["model"] = {"anyOf": [model, {"type": "array", "items": model}]}
    rules = [
        {
            "if": {"properties": {"provider": {"const": provider}}, "required": ["provider"]},
            "then": {"$ref": f"#/$defs/{names[cls]}"},
        }
        for provider, cls in classes.items()
    ]
    for entry in (TargetEntry, JudgeEntry):
        shape = defs[entry.__name__]
        shape["properties"]["provider"] = {"enum": sorted(classes)}
        shape["allOf"] = rules
    return {
        "$schema": DIALECT,
        "title": "Assay configuration",
        "$ref": f"#/$defs/{names[Config]}",
        "$defs": defs,
    }


def _eval_schema() -> dict[str, Any]:
    classes = evaluators.usable()
    defs, names = _definitions(SuiteFile, CaseFile, OneCaseFile, *classes.values())
    defs["Evaluator"] = _evaluator(classes, names, defs)
    as_written = {shape.__name__ for shape in _AS_WRITTEN}
    defs = {name: part if name in as_written else _with_names(part) for name, part in defs.items()}
    defs["NameOfVars"] = {"type": "string", "pattern": NAME_ALONE}
    case, root = ({"$ref": f"#/$defs/{names[shape]}"} for shape in (CaseFile, OneCaseFile))
    identified = {"required": ["id"], "properties": {"id": {"type": "string"}}}
    defs["ListedCase"] = {"allOf": [case, identified]}
    defs |= {
        "AssertingExpect": ASSERTED.schema(Expect),
        "Comparing": _comparing(classes),
        "AssertingCase": _case_that_asserts(inherited=False),
        "CaseOfSuiteWithEvaluators": _case_that_asserts(inherited=True),
        "CaseOfSuiteThatCompares": _case_to_compare_with(inherited=True),
    }
    asserting = {"$ref": "#/$defs/AssertingCase"}
    return {
        "$schema": DIALECT,
        "title": "Assay eval suite",
        "if": {"type": "array"},
        "then": {"items": {"allOf": [{"$ref": "#/$defs/ListedCase"}, asserting]}, "minItems": 1},
        "else": {
            "if": {"type": "object", **SuiteFile.key_names.written("cases")},
            "then": {"allOf": [{"$ref": f"#/$defs/{names[SuiteFile]}"}, _suite_that_asserts()]},
            "else": {"allOf": [root, CaseFile.key_names.written("input_messages"), asserting]},
        },
        "$defs": defs,
    }


def _with_names(part: Any) -> Any:
    """The schema in which `{{name}}` may stand for each number and boolean, as `vars` replaces it.

    That the name must be declared is more than a schema can say.
    """
    if isinstance(part, list):
        return [_with_names(item) for item in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") in ("number", "integer", "boolean"):
        about = {key: part[key] for key in ("default", "description") if key in part}
        value = {key: rule for key, rule in part.items() if key not in about}
        return {"anyOf": [value, {"$ref": "#/$defs/NameOfVars"}], **about}
    kept = ("if", "not", "default", "enum", "const")
    return {key: rule if key in kept else _with_names(rule) for key, rule in part.items()}


def _case_that_asserts(*, inherited: bool) -> dict[str, Any]:
    """A case with something that could fail, unless it is skipped.

    `inherited` says whether the suite has evaluators for cases without any.
    """
    own = _evaluators_of_case({"minItems": 1}, inherited)
    expect = _within("expect", {"$ref": "#/$defs/AssertingExpect"})
    asserts = [CaseFile.given("skip"), CaseFile.given("rubrics"), expect, own]
    asserts += _default_evaluators()
    return {"anyOf": asserts, **_case_to_compare_with(inherited=False)}


def _case_to_compare_with(*, inherited: bool) -> dict[str, Any]:
    """A case with an expected output, if an evaluator compares with it."""
    said = {"properties": {"content": {"not": {"type": "null"}}}, "required": ["content"]}
    return {"if": _evaluators_of_case(_COMPARING, inherited), "then": _expected(said)}


def _evaluators_of_case(named: dict[str, Any], unless_named: bool) -> dict[str, Any]:
    """`named` for the list of evaluators of a case, or `unless_named` if it has none."""
    within = CaseExecution.key_names.value_of("evaluators", named)
    return {
        "if": CaseFile.given("evaluators"),
        "then": CaseFile.key_names.value_of("evaluators", named),
        "else": {
            "if": _within("execution", CaseExecution.given("evaluators")),
            "then": _within("execution", within),
            "else": unless_named,
        },
    }


def _default_evaluators() -> list[dict[str, Any]]:
    """The keys that give a case a default evaluator."""
    return [CaseFile.given("expected_outcome"), _expected({})]


def _expected(said: dict[str, Any]) -> dict[str, Any]:
    """A case that expects an answer; if that is written as messages, one must match `said`."""
    assistant = {"properties": {"role": {"const": "assistant"}}, "required": ["role"]}
    answer = {"allOf": [assistant, said]}
    answers = {
        "if": {"type": "array", "contains": MESSAGE},
        "then": {"contains": answer},
        "else": {"if": MESSAGE, "then": answer},
    }
    given = CaseFile.given("expected_messages")
    return {"allOf": [given, CaseFile.key_names.value_of("expected_messages", answers)]}


def _comparing(classes: dict[str, type[EvaluatorSpec]]) -> dict[str, Any]:
    """An evaluator that compares with the case's expected output, or has such a member."""
    kinds = []
    for type_name, cls in classes.items():
        kind = {"properties": {"type": {"enum": spellings_of(type_name, cls)}}}
        if cls.compares_with_expected:
            own = [cls.given(key) for key in ("value", "values") if key in cls.model_fields]
            kinds.append({"allOf": [kind, {"not": {"anyOf": own}} if own else {}]})
        elif "evaluators" in cls.model_fields:
            members = cls.key_names.value_of("evaluators", _COMPARING)
            kinds.append({"allOf": [kind, cls.key_names.written("evaluators"), members]})
    return {"type": "object", "required": ["type"], "anyOf": kinds}


def _suite_that_asserts() -> dict[str, Any]:
    """A suite whose cases assert something, maybe with the evaluators of the suite."""

    def each(case: str) -> dict[str, Any]:
        return SuiteFile.key_names.value_of("cases", {"items": {"$ref": f"#/$defs/{case}"}})

    def inherits(named: dict[str, Any]) -> dict[str, Any]:
        fits = SuiteExecution.key_names.value_of("evaluators", named)
        root = SuiteFile.key_names.value_of("evaluators", named)
        return {
            "if": _within("execution", SuiteExecution.given("evaluators")),
            "then": _within("execution", fits),
            "else": {"allOf": [SuiteFile.given("evaluators"), root]},
        }

    asserts = {
        "if": inherits({"minItems": 1}),
        "then": each("CaseOfSuiteWithEvaluators"),
        "else": each("AssertingCase"),
    }
    compares = {"if": inherits(_COMPARING), "then": each("CaseOfSuiteThatCompares")}
    return {"allOf": [asserts, compares]}


def _within(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": [key], "properties": {key: {"type": "object", **schema}}}


def _evaluator(
    classes: dict[str, type[EvaluatorSpec]], names: dict[type[Any], str], defs: dict[str, Any]
) -> dict[str, Any]:
    """An entry of an `evaluators` list; its `type` determines its keys."""
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
        "if": {"type": "string"},
        "then": CRITERION,
        "else": {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"anyOf": [{"enum": sorted(known)}, {"pattern": "^python:"}]}},
            "allOf": rules,
        },
    }


def evaluator_shapes(types: Collection[str], at: str) -> dict[str, Any]:
    """The schemas of evaluators, with canonical keys only, and of what they contain, by name.

    `Evaluator` matches any of them. `at` is the prefix of references, such as `#/$defs/`.
    """
    classes = {name: cls for name, cls in evaluators.usable().items() if name in types}
    with without_aliases():
        defs, names = _definitions(*classes.values())
    for type_name, cls in classes.items():
        shape = defs[names[cls]]
        shape["properties"]["type"] = {"type": "string", "enum": spellings_of(type_name, cls)}
        shape["required"] = sorted({*shape.get("required", ()), "type"})
    defs["Evaluator"] = {"anyOf": [{"$ref": f"#/$defs/{names[cls]}"} for cls in classes.values()]}
    moved: dict[str, Any] = json.loads(json.dumps(defs).replace("#/$defs/", at))
    return moved


def spellings_of(type_name: str, cls: type[EvaluatorSpec]) -> list[str]:
    """All spellings of an evaluator's type and its aliases, with any mixture of `_` and `-`."""
    names = [type_name, *(alias for alias, name in TYPE_ALIASES.items() if name == type_name)]
    if issubclass(cls, NegatableSpec):
        names += [f"not_{name}" for name in names]
    parts = [name.split("_") for name in names]
    return sorted(
        words[0] + "".join(map(add, marks, words[1:]))
        for words in parts
        for marks in product("_-", repeat=len(words) - 1)
    )


def _tier_schema(name: str) -> dict[str, Any]:
    defs, names = _definitions(TierFile, TierMetadata, TIERS[name])
    envelope = names[TierFile]
    cases: dict[str, Any] = {"type": "array", "items": {"$ref": f"#/$defs/{names[TIERS[name]]}"}}
    if name != "regression":
        cases["minItems"] = 1
    defs[envelope]["properties"]["cases"] = cases
    defs[names[TierMetadata]]["properties"]["tier"]["anyOf"] = [{"const": name}, {"type": "null"}]
    if "expect" in TIERS[name].model_fields:
        asserts = [TIERS[name].given("skip"), _within("expect", ASSERTED.schema(Expect))]
        defs[names[TIERS[name]]].setdefault("allOf", []).append({"anyOf": asserts})
    return {
        "$schema": DIALECT,
        "title": f"Assay {name} cases",
        "if": {"type": "array"},
        "then": cases,
        "else": {"$ref": f"#/$defs/{envelope}"},
        "$defs": defs,
    }
