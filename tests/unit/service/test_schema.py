"""The JSON Schemas are valid, and say what the loaders say, both ways."""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

import assay
from assay.errors import UnknownName
from assay.problems import SLUGS
from assay.service.eval_files import load_all
from assay.service.schema import DIALECT, evaluator_shapes, schema
from assay.service.schema import NAMES as ALL_NAMES
from unit.sample_eval_files import SUITE, TIERS

#: The schemas of eval files; those of the configuration and of results have tests of their own.
NAMES = tuple(name for name in ALL_NAMES if name not in ("config", "result"))

#: Faults that depend on more than the shape: on other values, files, patterns, the calendar.
ONLY_THE_LOADER = frozenset(
    {
        "bad-date",
        "bad-regex",
        "bad-token",
        "duplicate-id",
        "file-not-found",
        "outside-root",
        "snapshot-token",
    }
)
#: Single rules of that kind whose slugs the schema otherwise knows.
ONLY_THE_LOADER_SAYS = re.compile(
    "|".join(
        (
            # comparisons of numbers
            r"is \d+, above (its maximum|maxToolCalls|maxLength) \d+",
            "it must fit 64 bits",
            "the range .* runs backwards",
            "score_ranges (overlap|leave a gap)",
            "is above the highest score of the item",
            # what stands inside a text
            "the prompt's variable .* is unknown",
            "is not a valid JSON Schema",
            # names among others
            "is not the name of a member",
            "the path .* is not in 'args'",
            "two evaluators have the name",
            "two rubric items",
            "the dimension .* appears twice",
            "looks like a typo",
        )
    )
)


def ends_absolutely(pattern: str) -> str:
    """JSON Schema's `$` is the very end; Python's also stands before a last line break."""
    return re.sub(r"(?<!\\)\$", r"\\Z", pattern)


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not re.search(ends_absolutely(pattern), instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


Validator: Any = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]


@cache
def validator(name: str) -> Any:
    return Validator(schema(name))


def faults(name: str, data: Any) -> list[str]:
    """What the schema has against the data."""
    found = sorted(validator(name).iter_errors(data), key=lambda e: [str(p) for p in e.path])
    return [f"{error.json_path}: {error.message}" for error in found]


# The schemas themselves


@pytest.mark.parametrize("name", ALL_NAMES)
def test_the_schema_is_valid(name: str) -> None:
    described = schema(name)
    assert described["$schema"] == DIALECT == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(described)
    assert json.loads(json.dumps(described)) == described


#: The words of JSON Schema 2020-12 that the schemas may use; an unknown word asserts nothing.
KEYWORDS = frozenset(
    {
        *(
            "$defs",
            "$ref",
            "$schema",
            "additionalProperties",
            "allOf",
            "anyOf",
            "const",
            "contains",
        ),
        *("default", "dependentRequired", "deprecated", "description", "else", "enum", "format"),
        *("exclusiveMaximum", "exclusiveMinimum", "if", "items", "maxContains", "maxItems"),
        *("maxLength", "maximum", "minContains", "minItems", "minLength", "minProperties"),
        *("minimum", "not", "oneOf", "pattern", "patternProperties", "properties"),
        *("propertyNames", "required", "then", "title", "type", "uniqueItems", "writeOnly"),
    }
)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_the_schema_has_only_words_of_json_schema(name: str) -> None:
    unknown = {word for part in subschemas(schema(name)) for word in part} - KEYWORDS
    assert unknown == set()


def subschemas(part: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema."""
    if not isinstance(part, dict):
        return
    yield part
    for word in ("properties", "patternProperties", "$defs"):
        for inner in part.get(word, {}).values():
            yield from subschemas(inner)
    for word in ("allOf", "anyOf", "oneOf"):
        for inner in part.get(word, []):
            yield from subschemas(inner)
    for word in ("items", "additionalProperties", "propertyNames", "if", "then", "else", "not"):
        yield from subschemas(part.get(word))


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_reference_leads_somewhere(name: str) -> None:
    described = schema(name)
    used = {part["$ref"] for part in subschemas(described) if "$ref" in part}
    assert used <= {f"#/$defs/{key}" for key in described["$defs"]}


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_pattern_compiles(name: str) -> None:
    for part in subschemas(schema(name)):
        for pattern in (*part.get("patternProperties", ()), part.get("pattern", "^")):
            re.compile(ends_absolutely(pattern))


def test_an_unknown_schema() -> None:
    with pytest.raises(UnknownName, match="did you mean 'golden'"):
        schema("goldn")


def test_the_schema_is_the_same_every_time() -> None:
    for name in NAMES:
        assert json.dumps(schema(name)) == json.dumps(schema(name))


def test_every_evaluator_is_described_in_all_its_spellings() -> None:
    mapping = validator("eval").schema["$defs"]["Evaluator"]["else"]
    kinds = mapping["properties"]["type"]["anyOf"][0]["enum"]
    for kind in ("contains", "not_contains", "not-contains", "tool-trajectory", "llm_judge"):
        assert kind in kinds
    assert "not_llm_judge" not in kinds


# Both say the same


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schema")


def problems_of(folder: Path, name: str, data: Any) -> list[assay.Problem]:
    """What the loader says about a file of the kind that holds the data."""
    file = folder / ("file.eval.yaml" if name == "eval" else f"t.{name}.json")
    file.write_text(json.dumps(data, ensure_ascii=name != "eval"), encoding="utf-8")
    return list(load_all(file).problems)


def loader_errors(folder: Path, name: str, data: Any) -> list[assay.Problem]:
    return [p for p in problems_of(folder, name, data) if p.severity == "error"]


def assert_agree(folder: Path, name: str, data: Any) -> None:
    errors, fits = loader_errors(folder, name, data), validator(name).is_valid(data)
    shown = f"\n{json.dumps(data)[:3000]}"
    if not errors:
        assert fits, f"the loader accepts what the schema refuses: {shown}"
    elif fits:
        unsaid = [error for error in errors if not excused(error)]
        assert unsaid == [], f"the schema accepts what the loader refuses: {shown}"


def excused(error: assay.Problem) -> bool:
    return bool(error.code in ONLY_THE_LOADER or ONLY_THE_LOADER_SAYS.search(error.message))


def small(name: str) -> list[Any]:
    """Valid files of one case, each with few keys, so that a change in one hits something."""
    if name != "eval":
        listed = TIERS[name] if isinstance(TIERS[name], list) else TIERS[name]["cases"]
        whole = {"metadata": {"toolName": "t", "registrySize": 1}, "cases": listed[:1]}
        return [whole, *([case] for case in listed)]
    base = {"id": "a", "input": "x"}
    files: list[Any] = [SUITE, *([case] for case in SUITE["cases"]), *SUITE["cases"]]
    for spec in SUITE["cases"][3]["evaluators"]:
        case = {**base, "expected_output": "y", "evaluators": [spec]}
        files += [case, [case]]
        files.append(
            {"execution": {"evaluators": [spec]}, "cases": [{**base, "expected_output": "y"}]}
        )
    for rubric in SUITE["cases"][2]["rubrics"]:
        files.append({**base, "rubrics": [rubric]})
    for key, value in SUITE["cases"][4]["expect"].items():
        files.append([{**base, "expect": {key: value, "jsonValid": True}}])
    return files


FILES = {name: small(name) for name in NAMES}


@pytest.mark.parametrize(
    "part",
    [
        {"evaluators": [{"type": "latency", "threshold": "{{n}}"}]},
        {"evaluators": [{"type": "contains", "value": "x", "weight": "{{ n }}"}]},
        {"evaluators": [{"type": "token_usage", "max_total": "{{n}}"}]},
        {"evaluators": [{"type": "is_json", "negate": "{{yes}}"}]},
        {"expect": {"maxLatencyMs": "{{n}}"}, "execution": {"threshold": "{{part}}"}},
        {"rubrics": [{"id": "r", "outcome": "good", "weight": "{{n}}"}]},
    ],
    ids=json.dumps,
)
def test_names_may_stand_for_numbers_and_booleans(folder: Path, part: Any) -> None:
    known = {"n": 5, "yes": False, "part": 0.5}
    row = {name: known[name] for name in re.findall(r"{{ ?(\w+) ?}}", json.dumps(part))}
    case = {"id": "a", "input": "x", "expected_outcome": "y", "vars": [row], **part}
    assert loader_errors(folder, "eval", [case]) == []
    assert validator("eval").is_valid([case])


@pytest.mark.parametrize("text", ["5", "{{n}} ms", "{{n", "{{{{n}}", "{{1}}"])
def test_no_other_text_may(folder: Path, text: str) -> None:
    case = {"id": "a", "input": "x", "vars": [{"n": 5}]}
    case["evaluators"] = [{"type": "latency", "threshold": text}]
    assert loader_errors(folder, "eval", [case])
    assert not validator("eval").is_valid([case])


@pytest.mark.parametrize("key", ["repeat", "threshold", "critical"])
def test_no_name_may_be_where_none_is_replaced(folder: Path, key: str) -> None:
    case = {"id": "a", "input": "x", "expected_output": "{{n}}", "vars": [{"n": 1}], key: "{{n}}"}
    assert_agree(folder, "eval", [case])
    assert not validator("eval").is_valid([case])


@pytest.mark.parametrize("name", NAMES)
def test_the_samples_are_valid_for_both(folder: Path, name: str) -> None:
    for data in FILES[name]:
        assert loader_errors(folder, name, data) == []
        assert faults(name, data) == []


ALIASES = {
    "input_messages": "input",
    "expected_messages": "expected_output",
    "expected_outcome": "criteria",
    "evaluators": "assertions",
    "cases": "tests",
    "args": "input",
    "description": "outcome",
    "values": "value",
    "responseContains": "response_contains",
    "toolsCalled": "tools_called",
}
NEW_KEYS = (
    *("id", "x-own", "$schema", "unknown", "typ", "type", "value", "values", "skip", "evaluators"),
    *(
        "expect",
        "rubrics",
        "toolsAcceptable",
        "toolsCalled",
        "any_of",
        "tool",
        "cases",
        "execution",
    ),
)
KINDS = (
    *(
        "contains",
        "equals",
        "rubric",
        "tool_trajectory",
        "tool-trajectory",
        "composite",
        "python:a:b",
    ),
    *("python:", "python:a", "not_contains", "not_rubric", "expect", "latency", "Contains", "x"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.5, 1.0, 1.5, -0.5, 3.0, 1e9, "", " ", "x", "5", "text"),
    *("two\nlines", " x", [], {}, [[]], [""], ["x"], [{}], [None], {"": 1}, {"x": "y"}, [["x"]]),
    *([{"role": "user", "content": "x"}], [{"role": "x"}], [{"role": "user"}], {"role": "user"}),
    *([{"type": "text", "value": "x"}], [{"type": "file", "value": "x"}], ["__none__"], "a/b.md"),
    *([{"tool": "t"}], [{"type": "is_json"}], {"type": "min"}, "2026-13-01", "gs-t-001", "rg-t-1"),
    *("gs-t-001\n", "ls-a b-001", "rg-t-0001", "python:a.b:c\n", [0, 1], [1, 0], ["exists"]),
)


def places_of(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(data, (dict, list)):
        for step, value in data.items() if isinstance(data, dict) else enumerate(data):
            found += places_of(value, (*path, step))
    return found


@st.composite
def changed(draw: st.DrawFn, name: str, most: int) -> Any:
    """A valid file with a few of its parts dropped, renamed, doubled or of another type."""
    data = {"root": copy.deepcopy(draw(st.sampled_from(FILES[name])))}
    for _ in range(draw(st.integers(1, most))):
        path = draw(st.sampled_from(places_of(data)[1:]))
        parent: Any = data
        for step in path[:-1]:
            parent = parent[step]
        change(draw, parent, path[-1])
        if "root" not in data:
            data["root"] = None
    return data["root"]


def change(draw: st.DrawFn, parent: Any, step: Any) -> None:
    value = parent[step]
    action = draw(
        st.sampled_from(["set", "set", "drop", "rename", "add", "alias", "retag", "wrap"])
    )
    if action == "set":
        parent[step] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    elif action == "drop":
        del parent[step]
    elif action == "wrap":
        parent[step] = draw(st.sampled_from([[value], {"x": value}, str(value)]))
    elif action == "retag" and isinstance(value, dict):
        value["type"] = draw(st.sampled_from(KINDS))
    elif isinstance(parent, dict) and step != "root":
        if action == "rename":
            parent[draw(st.sampled_from(NEW_KEYS))] = parent.pop(step)
        elif action == "alias" and step in ALIASES:
            parent[ALIASES[step]] = copy.deepcopy(value)
        elif action == "add":
            key = draw(st.sampled_from(NEW_KEYS))
            parent.setdefault(key, copy.deepcopy(draw(st.sampled_from(VALUES))))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_schema_and_loader_agree_on_one_change(
    folder: Path, name: str, data: st.DataObject
) -> None:
    assert_agree(folder, name, data.draw(changed(name, 1)))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_schema_and_loader_agree_on_several_changes(
    folder: Path, name: str, data: st.DataObject
) -> None:
    assert_agree(folder, name, data.draw(changed(name, 3)))


def one_by_one(data: Any) -> Iterator[Any]:
    """The file with each of its parts, one at a time, dropped or set to each of the values."""
    for path in places_of(data)[1:]:
        for action in range(len(VALUES) + 1):
            copied = copy.deepcopy(data)
            parent = copied
            for step in path[:-1]:
                parent = parent[step]
            if action == len(VALUES):
                del parent[path[-1]]
            else:
                parent[path[-1]] = copy.deepcopy(VALUES[action])
            yield copied


SMALL_FILES = [
    pytest.param(name, file, id=f"{name}-{number}")
    for name in NAMES
    for number, file in enumerate(FILES[name])
    if len(places_of(file)) < 60
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "file"), SMALL_FILES)
def test_schema_and_loader_agree_on_every_single_change(folder: Path, name: str, file: Any) -> None:
    for data in one_by_one(file):
        assert_agree(folder, name, data)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("eval", ("repeat",), 0),
        ("eval", ("repeat",), 1.5),
        ("eval", ("id",), None),
        ("eval", ("id",), " a"),
        ("eval", ("id",), "a\nb"),
        ("eval", ("input",), []),
        ("eval", ("input",), {"role": "user", "content": "x"}),
        ("eval", ("expected_output",), []),
        ("eval", ("expected_output",), [{"role": "nobody", "content": "x"}]),
        ("eval", ("expected_output",), 5),
        ("eval", ("expected_output",), False),
        ("eval", ("expected_output",), [1, "x", None]),
        ("eval", ("expected_output",), {"riskLevel": "High"}),
        ("eval", ("evaluators",), [{"type": "python:x"}]),
        ("eval", ("evaluators",), [{"type": "python:a.b:c"}]),
        ("eval", ("evaluators",), [{"type": "token_usage", "max_total": -1}]),
        ("eval", ("evaluators",), [{"type": "code_judge", "script": " "}]),
        ("eval", ("evaluators",), [{"type": "code_judge", "script": "x", "own": 1}]),
        ("eval", ("evaluators",), [{"type": "tool_trajectory", "minimums": {"t": -1}}]),
        ("eval", ("evaluators",), [{"type": "field_accuracy", "fields": [{"path": "a..b"}]}]),
        ("eval", ("evaluators",), [{"type": "composite", "evaluators": []}]),
        ("eval", ("evaluators",), [{"type": "json_schema", "value": 5}]),
        ("eval", ("evaluators",), [{"type": "regex", "values": []}]),
        ("eval", ("evaluators",), [{"type": "llm_judge", "samples": 0}]),
        ("eval", ("evaluators",), ["Is polite"]),
        ("eval", ("rubrics",), [{"description": "x", "required": "yes"}]),
        ("eval", ("rubrics",), [{"dimension": "x", "maxScore": 0, "criteria": "c"}]),
        ("eval", ("rubrics",), [{"dimension": "x", "description": "d"}]),
        ("eval", ("expect",), {"maxLatencyMs": 0}),
        ("eval", ("expect",), {"min_length": -1}),
        ("eval", ("expect",), {"toolsAcceptable": []}),
        ("eval", ("expect",), {"responseContainsAny": [[]]}),
        ("eval", ("skip",), ""),
        ("golden", ("expect", "toolsAcceptable"), [["t"]]),
        ("golden", ("expect", "noToolErrors"), None),
        ("golden", ("maxTurns",), 0),
        ("golden", ("id",), "gs-t-001\n"),
        ("golden", ("id",), "gs-a b-001"),
        ("labeled", ("difficulty",), "hard"),
        ("labeled", ("expect", "maxTokens"), 0),
        ("regression", ("bugRef",), ""),
        ("regression", ("createdAt",), 5),
        ("rubric", ("rubric",), []),
        ("rubric", ("referenceData",), []),
        ("rubric", ("expect",), {"jsonValid": True}),
        ("rubric", ("id",), "a\nb"),
    ],
)
def test_schema_and_loader_agree_on_known_traps(
    folder: Path, name: str, path: Any, value: Any
) -> None:
    case: dict[str, Any] = {"id": "a", "input": "x", "expected_outcome": "y"}
    if name != "eval":
        listed = TIERS[name] if isinstance(TIERS[name], list) else TIERS[name]["cases"]
        case = copy.deepcopy(listed[0])
    parent = case
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    assert_agree(folder, name, [case])


def one_step(**keys: Any) -> dict[str, Any]:
    return {"evaluators": [{"type": "tool_trajectory", "expected": [{"tool": "t", **keys}]}]}


#: Parts of a case that break a rule between keys: what is refused, then what is near and fine.
BROKEN: tuple[Any, ...] = (
    {"evaluators": [{"type": "contains"}]},
    {"evaluators": [{"type": "contains", "value": None}]},
    {"evaluators": [{"type": "not-regex", "value": "x", "values": ["x"]}]},
    {"evaluators": [{"type": "equals", "value": None, "values": [1]}]},
    {"evaluators": [{"type": "similarity", "value": "x", "values": ["x"]}]},
    {"evaluators": [{"type": "tool_trajectory"}]},
    {"evaluators": [{"type": "tool_trajectory", "minimums": {}, "forbidden": []}]},
    {"evaluators": [{"type": "tool_trajectory", "expected": [{}]}]},
    {"evaluators": [{"type": "tool_trajectory", "expected": [{"tool": None}]}]},
    {
        "evaluators": [
            {"type": "tool_trajectory", "expected": [{"tool": "t", "any_of": [{"tool": "t"}]}]}
        ]
    },
    {
        "evaluators": [
            {"type": "tool_trajectory", "expected": [{"input": None, "any_of": [{"tool": "t"}]}]}
        ]
    },
    one_step(args={"n": {"gte": "x"}}),
    one_step(args={"n": {"tolerance": 1}}),
    one_step(input=[{"deep": {"type": "text"}}]),
    one_step(output={"one_of": []}),
    one_step(output={"deep": [{"exists": 1}]}),
    {"evaluators": [{"type": "token_usage"}]},
    {"evaluators": [{"type": "token_usage", "max_total": None}]},
    {"evaluators": [{"type": "execution_metrics", "name": "n"}]},
    *(
        {
            "evaluators": [
                {"type": "composite", "evaluators": [{"type": "is_json"}], "aggregator": made}
            ]
        }
        for made in (
            {"type": "threshold"},
            {"type": "code_judge"},
            {"type": "code-judge", "path": None},
            {"type": "llm-judge", "threshold": 0.5},
            {"type": "min", "threshold": 0.5},
            {"path": "x"},
        )
    ),
    {"evaluators": [{"type": "field_accuracy", "fields": [{"path": "a", "tolerance": 1}]}]},
    {
        "evaluators": [
            {"type": "field_accuracy", "fields": [{"path": "a", "match": "date", "relative": True}]}
        ]
    },
    {"evaluators": [{"type": "field_accuracy", "fields": [{"path": "a", "formats": ["%Y"]}]}]},
    {"evaluators": [{"type": "expect"}]},
    {"evaluators": [{"type": "expect", "jsonValid": False, "response_contains": []}]},
    {"evaluators": [{"type": "expect", "toolsCalled": None, "tools_called": ["t"]}]},
    {"expect": {"tools_called": ["t"], "toolsAcceptable": [["t"]]}},
    {"expect": {"tools_called": ["__none__"]}},
    {"expect": {"tools_acceptable": [["__none__", "t"]]}},
    *(
        {"expect": {"toolParams": [{"tool": "t", "paramName": "p", **made}]}}
        for made in (
            {"assertion": "equals"},
            {"assertion": "exists", "value": None},
            {"assertion": "notExists", "value": 1},
            {"assertion": "oneOf", "value": []},
            {"assertion": "oneOf", "value": "x"},
            {"assertion": "matches", "value": 1},
        )
    ),
    {"rubrics": [{"description": "d", "required_min_score": 2}]},
    {"rubrics": [{"description": "d", "required_min_score": 2, "score_ranges": None}]},
)
FINE: tuple[Any, ...] = (
    {"evaluators": [{"type": "not_contains-any", "value": "x"}]},
    {"evaluators": [{"type": "not-starts_with", "value": "x"}]},
    {"evaluators": [{"type": "contains", "value": None, "values": ["x"]}]},
    {"evaluators": [{"type": "contains_any", "value": 5, "values": ["x"]}]},
    {"evaluators": [{"type": "equals", "value": None}]},
    {"evaluators": [{"type": "similarity", "value": None, "values": ["x"]}]},
    {"evaluators": [{"type": "tool_trajectory", "expected": []}]},
    {
        "evaluators": [
            {"type": "tool_trajectory", "expected": [{"tool": None, "any_of": [{"tool": "t"}]}]}
        ]
    },
    one_step(args={"gte": "x", "type": "text"}),
    one_step(args={"n": {"equals": {"gte": "x"}}}),
    one_step(args={"n": {"gte": "x", "other": 1}}),
    one_step(args={"n": {}}, output=None),
    one_step(output={"approx": 1, "tolerance": None}),
    {"evaluators": [{"type": "token_usage", "max_total": None, "max_input": 0}]},
    *(
        {
            "evaluators": [
                {"type": "composite", "evaluators": [{"type": "is_json"}], "aggregator": made}
            ]
        }
        for made in (
            {"type": "code-judge", "path": "x"},
            {"type": "code_judge", "script": "x", "path": 5},
            {"type": "min", "threshold": None},
            {},
        )
    ),
    {"evaluators": [{"type": "expect", "minLength": 0}]},
    {"evaluators": [{"type": "expect", "toolsCalled": [], "tools_called": 5}]},
    {"expect": {"toolsCalled": ["t"], "tools_acceptable": None}},
    {
        "expect": {
            "toolParams": [{"tool": "t", "paramName": "p", "assertion": "equals", "value": 0}]
        }
    },
    {"input": 5, "input_messages": "x"},
    {"expected_outcome": "x", "criteria": 5, "outcome": 5},
    {"outcome": "x", "criteria": 5},
    {"criteria": 5, "outcome": "x"},
    {"rubrics": [{"description": "d", "outcome": 5}]},
)


@pytest.mark.parametrize("part", BROKEN, ids=json.dumps)
def test_the_schema_has_the_rules_between_keys(folder: Path, part: Any) -> None:
    case = {"id": "a", "input": "x", "expected_output": "y", **part}
    assert loader_errors(folder, "eval", [case])
    assert faults("eval", [case])


@pytest.mark.parametrize("part", FINE, ids=json.dumps)
def test_the_schema_accepts_what_the_rules_allow(folder: Path, part: Any) -> None:
    case = {"id": "a", "input": "x", "expected_output": "y", **part}
    assert loader_errors(folder, "eval", [case]) == []
    assert faults("eval", [case]) == []


#: Cases by themselves, and whether they have something that could fail.
ASSERTING: tuple[tuple[bool, Any], ...] = (
    (False, {}),
    (True, {"skip": "later"}),
    (False, {"skip": None}),
    (True, {"criteria": "x"}),
    (False, {"expected_outcome": None, "criteria": "x"}),
    (True, {"expected_output": []}),
    (True, {"expected_output": False}),
    (False, {"expected_output": None}),
    (False, {"expected_output": [{"role": "user", "content": "x"}]}),
    (False, {"expected_output": {"role": "tool", "content": "x"}}),
    (True, {"expected_output": [{"role": "assistant", "tool_calls": [{"tool": "t"}]}]}),
    (True, {"expected_output": {"role": "assistant", "content": "x"}}),
    (True, {"rubrics": ["x"]}),
    (False, {"expect": {}}),
    (False, {"expect": {"jsonValid": False, "responseContains": []}}),
    (True, {"expect": {"tools_called": []}}),
    (True, {"assert": [{"type": "is_json"}]}),
    (True, {"evaluators": [], "outcome": "x"}),
    (True, {"evaluators": [], "rubrics": ["x"]}),
    (False, {"evaluators": None}),
    (True, {"execution": {"evaluators": [{"type": "is_json"}]}}),
    (True, {"execution": {"assertions": []}, "outcome": "x"}),
    (False, {"evaluators": [], "execution": {"evaluators": [{"type": "is_json"}]}}),
)


@pytest.mark.parametrize(("asserts", "part"), ASSERTING, ids=json.dumps)
def test_a_case_asserts_something_for_both(folder: Path, asserts: bool, part: Any) -> None:
    case = {"id": "a", "input": "x", **part}
    for data in (case, [case], {"cases": [case]}, {"execution": {}, "tests": [case]}):
        assert (loader_errors(folder, "eval", data) == []) == asserts
        assert (faults("eval", data) == []) == asserts


@pytest.mark.parametrize("inherited", [None, [], [{"type": "is_json"}]], ids=json.dumps)
@pytest.mark.parametrize("part", [part for _, part in ASSERTING], ids=json.dumps)
def test_evaluators_of_the_suite_count_for_both(folder: Path, inherited: Any, part: Any) -> None:
    suite = {"execution": {"evaluators": inherited}, "cases": [{"id": "a", "input": "x", **part}]}
    assert (loader_errors(folder, "eval", suite) == []) == (faults("eval", suite) == [])


#: What compares with an expected output, and what only looks like it.
COMPARING: tuple[Any, ...] = (
    {"type": "equals"},
    {"type": "not-equals", "value": None},
    {"type": "similarity", "value": None},
    {"type": "similarity", "values": ["x"]},
    {"type": "field-accuracy", "fields": [{"path": "a"}]},
    {"type": "composite", "assert": [{"type": "composite", "evaluators": [{"type": "equals"}]}]},
    {"type": "composite", "evaluators": [{"type": "is_json"}], "assert": [{"type": "equals"}]},
)
ANSWERS: tuple[Any, ...] = (
    {},
    {"expected_output": None, "expected_outcome": "x"},
    {"expected_output": "x"},
    {"expected_messages": None, "expected_output": "x"},
    {"expected_output": [{"role": "assistant", "tool_calls": [{"tool": "t"}]}]},
    {"expected_output": {"role": "assistant", "content": "x"}},
    {"expected_output": [{"role": "user", "content": "x"}]},
    {"skip": "later"},
)


@pytest.mark.parametrize("spec", COMPARING, ids=json.dumps)
@pytest.mark.parametrize("answer", ANSWERS, ids=json.dumps)
def test_schema_and_loader_agree_on_expected_outputs(folder: Path, spec: Any, answer: Any) -> None:
    case = {"id": "a", "input": "x", **answer}
    own = {"evaluators": [{"type": "is_json"}]}
    for data in (
        [{**case, "evaluators": [spec]}],
        [{**case, "execution": {"assertions": [spec]}}],
        {"execution": {"evaluators": [{"type": "is_json"}, spec]}, "tests": [case]},
        {"execution": {"evaluators": [spec]}, "cases": [{**case, **own}]},
    ):
        assert (loader_errors(folder, "eval", data) == []) == (faults("eval", data) == [])


@pytest.mark.parametrize("name", ["labeled", "regression"])
@pytest.mark.parametrize("skip", [None, "later"])
@pytest.mark.parametrize("block", [{}, {"jsonValid": False}, {"toolsCalledMode": "set"}])
def test_a_tier_case_asserts_something_for_both(
    folder: Path, name: str, skip: str | None, block: Any
) -> None:
    case = {**SEED_004[name][0], "skip": skip, "expect": block}
    assert (loader_errors(folder, name, [case]) == []) == (skip is not None)
    assert (faults(name, [case]) == []) == (skip is not None)


@pytest.mark.parametrize("tier", ["golden", "labeled", None])
def test_the_tier_in_the_metadata_is_the_file_s_for_both(folder: Path, tier: str | None) -> None:
    data = {"metadata": {"tier": tier}, "cases": SEED_004["golden"]}
    assert (loader_errors(folder, "golden", data) == []) == (tier != "labeled")
    assert (faults("golden", data) == []) == (tier != "labeled")


ROOTS: tuple[Any, ...] = (None, [], {}, "x", 5, [[]], {"cases": []})


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((name, root) for name in NAMES for root in ROOTS),
        ("eval", {"cases": None}),
        ("eval", {"description": "x"}),
        ("eval", {"skip": "x"}),
        ("eval", {"cases": [{"id": "a", "input": "x", "outcome": "y"}], "input": "x"}),
        ("eval", {"input": "x", "outcome": "y", "dataset": "z"}),
        ("eval", {"input": "x", "outcome": "y", "$schema": "eval.schema.json"}),
        ("eval", {"tests": [{"id": "a", "input": "x", "outcome": "y"}], "$schema": "x"}),
        ("golden", {"metadata": {"tier": "labeled"}, "cases": FILES["golden"][1]}),
        ("golden", {"metadata": {"registrySize": -1}, "cases": FILES["golden"][1]}),
        ("golden", {"$schema": "x", "cases": FILES["golden"][1]}),
        *((name, {"$schema": 5, "cases": FILES[name][1]}) for name in NAMES if name != "eval"),
        ("eval", {"$schema": 5, "cases": [{"id": "a", "input": "x", "outcome": "y"}]}),
        ("eval", {"$schema": None, "input": "x", "outcome": "y"}),
        ("golden", {"metadata": None, "cases": FILES["golden"][1]}),
        ("regression", {"metadata": {}, "cases": []}),
    ],
)
def test_schema_and_loader_agree_on_roots(folder: Path, name: str, data: Any) -> None:
    assert_agree(folder, name, data)


def test_every_exempted_slug_exists() -> None:
    """A slug that the loader no longer has would hide a fault of the schema."""
    assert set(SLUGS) >= ONLY_THE_LOADER


# The examples of the specifications

SEED_001 = """\
- expected_outcome: Goal
- outcome: Goal
- rubrics:
    - "Must be polite"
- evaluators:
    - type: rubric
      rubrics: ["Must be polite"]
      model: "gpt-4"
- expected_messages:
    - role: user
      content: "Research branch deactivation"
    - role: assistant
      tool_calls:
        - tool: knowledgeSearch
          input: { query: "branch deactivation process" }
          output: "Found documentation..."  # Optional
      content: "Let me search for that information..."
    - role: assistant
      content: "Based on the search results..."
- expected_messages:
    - role: assistant
      tool_calls:
        - tool: knowledgeSearch
- evaluators:
    - name: minimum_search_calls
      type: tool_trajectory
      mode: any_order
      minimums:
        knowledgeSearch: 3
- evaluators:
    - name: expected_search_pattern
      type: tool_trajectory
      mode: in_order
      expected:
        - tool: knowledgeSearch
        - tool: knowledgeSearch
        - tool: knowledgeSearch
- evaluators:
    - name: safety
      type: llm_judge
      weight: 3
- evaluators:
    - name: my_code_check
      type: code_judge
      script: ["bun", "run", "validate_risk_output.ts"]
- evaluators:
    - name: my_code_check
      type: code_judge
      script: bun run validate_risk_output.ts
- input:
    - role: system
      content: "You are a calculator"
    - role: user
      content: "What is 2+2?"
  outcome: "4"
- input: "Alias query"
  input_messages:
    - role: user
      content: "Canonical query"
  outcome: Goal
- expected_output: "The answer is 4"
- expected_output:
    riskLevel: High
    reasoning: "Explanation"
- expected_output:
    - role: assistant
      tool_calls:
        - tool: Read
          input: { file_path: "config.json" }
    - role: assistant
      content: { status: "done" }
- expected_output: { riskLevel: High }
  expected_messages:
    - role: assistant
      content: "Canonical answer"
"""
SEED_001_REFUSED = """\
- evaluators: [{type: tool_trajectory, mode: sometimes, expected: [{tool: knowledgeSearch}]}]
- evaluators: [{name: safety, type: llm_judge, weight: -1}]
- evaluators: [{name: safety, type: llm_judge, weight: high}]
"""
WEATHER: dict[str, Any] = {
    "id": "gs-get_weather-001",
    "description": "What this case tests",
    "input": {"message": "What is the weather in Paris?"},
    "expect": {
        "toolsCalled": ["get_weather"],
        "noToolErrors": True,
        "responseNonEmpty": True,
        "responseContains": ["18"],
        "responseContainsAny": [["sunny", "clear"]],
        "responseNotContains": ["I don't know", "fetchedAt", "API_KEY"],
        "maxLatencyMs": 5000,
    },
}
SEED_004: dict[str, list[dict[str, Any]]] = {
    "golden": [WEATHER],
    "labeled": [
        {
            **WEATHER,
            "id": "ls-get_weather-001",
            "difficulty": "straightforward",
            "expect": {"toolsCalled": ["get_weather", "get_forecast"], "maxTokens": 200},
        },
        {
            **WEATHER,
            "id": "ls-get_weather-002",
            "difficulty": "ambiguous",
            "expect": {"toolsAcceptable": [["get_weather"], ["get_weather", "get_forecast"]]},
        },
        {
            **WEATHER,
            "id": "ls-get_weather-003",
            "difficulty": "edge",
            "expect": {"toolsAcceptable": [["__none__"]], "responseMatches": ["^Sorry"]},
        },
    ],
    "regression": [
        {
            **WEATHER,
            "id": "rg-get_weather-001",
            "description": "regression — asked twice",
            "difficulty": "regression",
            "createdAt": "2026-01-15T10:30:00Z",
            "bugRef": "#42",
        }
    ],
    "rubric": [
        {
            "id": "synthesis-1",
            "description": "Combines three tools",
            "input": {"message": "Plan my day"},
            "referenceData": {"get_weather": {"celsius": 18}},
            "rubric": [
                {"dimension": "accuracy", "maxScore": 1, "criteria": "All numbers are right"},
                {"dimension": "completeness", "maxScore": 5, "criteria": "1: poor ... 5: all"},
            ],
        }
    ],
}


@pytest.mark.parametrize("index", range(len(yaml.safe_load(SEED_001))))
def test_examples_of_seed_001(folder: Path, index: int) -> None:
    case = {"id": "a", "input": "x", **yaml.safe_load(SEED_001)[index]}
    if "input_messages" in case and case["input"] == "x":
        del case["input"]
    for data in (case, [case], {"cases": [case]}, {"evalcases": [case]}):
        assert loader_errors(folder, "eval", data) == []
        assert faults("eval", data) == []


@pytest.mark.parametrize("index", range(len(yaml.safe_load(SEED_001_REFUSED))))
def test_seed_001_is_enforced(folder: Path, index: int) -> None:
    case = {"id": "a", "input": "x", **yaml.safe_load(SEED_001_REFUSED)[index]}
    assert loader_errors(folder, "eval", [case])
    assert faults("eval", [case])


@pytest.mark.parametrize("name", SEED_004)
def test_examples_of_seed_004(folder: Path, name: str) -> None:
    metadata = {"toolName": "get_weather", "toolVersion": "1.0", "descriptionHash": "0123456789ab"}
    envelope = {"metadata": {**metadata, "registrySize": 3}, "cases": SEED_004[name]}
    for data in (SEED_004[name], envelope):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert loader_errors(folder, name, data) == []
            assert faults(name, data) == []


@pytest.mark.parametrize("name", SEED_004)
def test_a_case_of_one_tier_is_none_of_another(folder: Path, name: str) -> None:
    for other in set(SEED_004) - {name}:
        assert loader_errors(folder, other, SEED_004[name])
        assert faults(other, SEED_004[name])


def test_shapes_of_evaluators_have_canonical_keys_only() -> None:
    shapes = evaluator_shapes(["contains_any", "composite"], "#/here/")
    assert {*shapes} >= {"Evaluator", "ContainsAnyEvaluator", "CompositeEvaluator", "Aggregator"}
    any_of = Draft202012Validator({**shapes["Evaluator"], "here": shapes})
    found = {"type": "contains-any", "values": ["a"]}
    assert any_of.is_valid(found)
    assert any_of.is_valid({"type": "composite", "evaluators": [found]})
    assert not any_of.is_valid({"type": "contains-any", "value": ["a"]})
    assert not any_of.is_valid({"type": "composite", "assert": [found]})
    assert not any_of.is_valid({"values": ["a"]})
    assert not any_of.is_valid({"type": "equals"})
    assert "deprecated" not in json.dumps(shapes)
    assert "deprecated" in json.dumps(schema("eval")), "other schemas tell of all spellings"
