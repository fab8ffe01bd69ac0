"""The keys of every evaluator: what each accepts, and what it refuses and where."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.evaluators.composite import CompositeEvaluator
from assay.registry import evaluators as registered

if TYPE_CHECKING:
    from unit.conftest import Project

Entry = dict[str, Any]


def suite_of(*entries: str) -> str:
    """A case whose evaluators are these flow mappings, the first on line 5, from column 7."""
    lines = "".join(f"    - {entry}\n" for entry in entries)
    return f"- id: a\n  input: Hello\n  expected_output: Hi\n  evaluators:\n{lines}"


def load_one(project: Project, entry: Entry) -> assay.EvaluatorSpec:
    (spec,) = project.case(suite_of(json.dumps(entry))).evaluators
    return spec


def refuse(project: Project, entry: str, slug: str) -> str:
    """The message about an entry, which must be the only one and at the position of `@`."""
    before, _, after = entry.partition("@")
    place, message = project.refused(suite_of(before + after))
    assert place == f"5:{len('    - ' + before) + 1} {slug}"
    return message


def test_a_prompt_with_an_unknown_variable_is_refused(project: Project) -> None:
    inline = refuse(
        project, "{type: llm_judge, prompt: @'Is {{candidat_answer}} right?'}", "wrong-value"
    )
    assert "did you mean 'candidate_answer'?" in inline
    (project.root / "judge.md").write_text("Is {{ansewr}} right?")
    assert "{{ansewr}}" in refuse(project, "{type: llm_judge, prompt: @judge.md}", "wrong-value")
    (project.root / "judge.md").write_text("")
    assert "empty" in refuse(project, "{type: llm_judge, prompt: @judge.md}", "wrong-value")


# Every type and its keys

CASE_KEYS = {"name": "mine", "weight": 2.5, "required": 0.5}

ARGS = {"a": 1, "b": {"c": 2}}
ACCEPTED: list[Entry] = [
    {"type": "expect", "toolsCalled": ["t"]},
    {
        "type": "expect",
        "toolsAcceptable": [["t"], []],
        "toolsNotCalled": ["u"],
        "toolParams": [{"tool": "t", "paramName": "p", "assertion": "exists"}],
        "toolsCalledMode": "multiset",
        "noToolErrors": True,
        "responseNonEmpty": True,
        "responseContains": ["a"],
        "responseContainsAny": [["a", "b"]],
        "responseNotContains": ["c"],
        "responseMatches": ["^a"],
        "maxLatencyMs": 5,
        "maxTokens": 5,
        "maxCostUsd": 0.1,
        "minToolCalls": 1,
        "maxToolCalls": 2,
        "jsonValid": True,
        "jsonSchema": {"type": "object"},
        "minLength": 1,
        "maxLength": 2,
    },
    {"type": "equals"},
    {"type": "equals", "value": "a", "negate": True},
    {"type": "equals", "value": {"deep": [1, None]}},
    {"type": "equals", "value": 0},
    {"type": "equals", "value": False},
    *[
        {"type": kind, **keys}
        for kind in ("contains", "icontains", "starts_with", "ends_with", "regex")
        for keys in ({"value": "a", "negate": True}, {"values": ["a", "b"], "negate": False})
    ],
    {"type": "regex", "value": r"(?<!x)\d+$"},
    {"type": "contains_any", "values": ["a", "b"], "negate": True},
    {"type": "icontains_any", "values": ["a", "b"], "negate": True},
    {"type": "contains_all", "values": ["a", "b"], "negate": True},
    {"type": "is_json", "negate": True},
    {"type": "json_schema", "value": {"type": "object"}, "negate": True},
    {"type": "json_schema", "value": True},
    {"type": "similarity"},
    {"type": "similarity", "value": "a", "negate": True},
    *[
        {"type": "tool_trajectory", "mode": mode, "expected": [{"tool": "t"}]}
        for mode in ("any_order", "in_order", "exact", "superset", "subset")
    ],
    {
        "type": "tool_trajectory",
        "minimums": {"t": 1},
        "maximums": {"t": 1, "u": 0},
        "ignore": ["v"],
        "forbidden": ["w"],
    },
    {"type": "tool_trajectory", "expected": []},
    {"type": "tool_trajectory", "forbidden": ["w"]},
    {"type": "tool_trajectory", "maximums": {"t": 0}},
    {
        "type": "tool_trajectory",
        "expected": [
            {
                "tool": "t",
                "args": {"q": 1},
                "output": {"r": [1]},
                "args_match": "exact",
                "max_duration_ms": 12.5,
                "optional": True,
            },
            {"any_of": [{"tool": "t", "args": 1}, {"tool": "u"}], "optional": True},
            {"tool": "t", "args": "any"},
        ],
    },
    *[
        {"type": "tool_trajectory", "expected": [{"tool": "t", "args": ARGS, "args_match": match}]}
        for match in ("exact", "superset", "subset", "ignore", ["a", "b.c"])
    ],
    *[
        {"type": "tool_trajectory", "expected": [{"tool": "t", "args": {"deep": [predicate]}}]}
        for predicate in (
            {"regex": "^a"},
            {"one_of": [1, "a", None]},
            {"gte": 1, "lte": 2.5},
            {"approx": 1, "tolerance": 0.5},
            {"approx": 1},
            {"contains": "a"},
            {"exists": True},
            {"exists": False},
            *({"type": name} for name in ("string", "number", "integer", "boolean")),
            *({"type": name} for name in ("object", "array", "null")),
            {"equals": {"regex": "("}},
            {"type": "no predicate", "other": 1},
        )
    ],
    {"type": "llm_judge"},
    {"type": "llm_judge", "prompt": "Is it kind?", "model": "m", "target": "t", "samples": 3},
    {
        "type": "code_judge",
        "script": ["python", "judge.py"],
        "timeout_seconds": 1.5,
        "env": ["API_URL"],
        "max_memory_mb": 100,
        "max_cpu_seconds": 2,
        "config": {"any": ["thing"]},
    },
    {"type": "latency", "threshold": 1500.5},
    {"type": "latency", "threshold": 0},
    {"type": "cost", "budget": 0.25},
    {"type": "token_usage", "max_total": 3, "max_input": 2, "max_output": 1},
    {"type": "token_usage", "max_output": 0},
    {
        "type": "execution_metrics",
        "max_tool_calls": 0,
        "max_llm_calls": 1,
        "max_tokens": 2,
        "max_cost_usd": 0.5,
        "max_duration_ms": 10.5,
    },
    {
        "type": "field_accuracy",
        "fields": [
            {"path": "name"},
            {"path": "items[1].price", "match": "exact", "required": False, "weight": 2},
            {"path": "[0].n", "match": "numeric_tolerance", "tolerance": 0.5, "relative": True},
            {"path": "when", "match": "date", "formats": ["%d.%m.%Y"]},
        ],
        "aggregation": "all_or_nothing",
    },
    {"type": "field_accuracy", "fields": [{"path": "a"}], "aggregation": "weighted_average"},
    {"type": "python:package.module:function", "limit": 3, "deep": {"any": [1]}},
    {"type": "python:module:Class.method"},
]


def written(value: Any) -> Any:
    """Numbers compare by value and tuples as lists, so that a dump compares with its entry."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("entry", ACCEPTED, ids=lambda entry: str(entry["type"]))
def test_keys_are_accepted_and_kept(project: Project, entry: Entry) -> None:
    given = {**entry, **CASE_KEYS}
    spec = load_one(project, given)
    assert written(spec.model_dump(exclude_unset=True)) == given


def test_every_type_is_in_the_table() -> None:
    tested = {entry["type"].split(":")[0] for entry in ACCEPTED}
    assert tested | {"rubric", "composite"} == set(registered)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in ACCEPTED if not entry["type"].startswith("python:")],
    ids=lambda entry: str(entry["type"]),
)
def test_an_unknown_key_is_refused_with_the_nearest(project: Project, entry: Entry) -> None:
    text = json.dumps({**entry, "wieght": 1}).replace('"wieght"', '@"wieght"')
    assert "'weight'" in refuse(project, text, "unknown-key")


@pytest.mark.parametrize(
    "kind", [kind for kind in registered if kind != "python"] + ["not_contains", "not_is_json"]
)
def test_kebab_case_means_the_same(project: Project, kind: str) -> None:
    entries = {entry["type"]: entry for entry in [*ACCEPTED, RUBRIC, COMPOSITE]}
    entry = entries[kind.removeprefix("not_")]
    snake = load_one(project, {**entry, "type": kind})
    kebab = load_one(project, {**entry, "type": kind.replace("_", "-")})
    assert snake == kebab
    assert (kebab.type, kebab.name) == (kind.removeprefix("not_"), kind)


def test_a_kebab_case_type_keeps_the_positions_of_its_keys(project: Project) -> None:
    refuse(project, "{type: contains-any, values: [a], @valeus: [b]}", "unknown-key")
    refuse(project, "{type: contains-any, values: [a, @5]}", "wrong-type")


# Common keys


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("@hello", "wrong-type", "not a mapping with a 'type'"),
        ("@hello", "wrong-type", "for a criterion in words"),
        ("@not-contains", "wrong-type", "write {type: not-contains}"),
        ("@5", "wrong-type", "is 5"),
        ("@[type, is_json]", "wrong-type", "a list"),
        ("@null", "wrong-type", "null"),
        ("@{name: x}", "missing-key", "'type' is missing"),
        ("@{name: x}", "missing-key", "for example 'type: contains'"),
        ("@{not-contains: x}", "missing-key", "write 'type: not-contains'"),
        ("{type: @5}", "wrong-type", "'type' is 5"),
        ("{type: @null}", "wrong-type", "'type' is null"),
        ("{type: @''}", "unknown-evaluator", "''"),
        ("{type: is_json, name: @5}", "wrong-type", "text"),
        ("{type: is_json, name: @''}", "wrong-value", "empty"),
        ("{type: is_json, weight: @-0.1}", "wrong-value", ">= 0"),
        ("{type: is_json, weight: @'1'}", "wrong-type", "number"),
        ("{type: is_json, weight: @true}", "wrong-type", "number"),
        ("{type: is_json, weight: @null}", "wrong-type", "number"),
        ("{type: is_json, weight: @.inf}", "bad-number", "'weight' is .inf; it must be a finite"),
        ("{type: is_json, weight: @.nan}", "bad-number", "'weight' is .nan; it must be a finite"),
        ("{type: is_json, required: @'yes'}", "wrong-value", "'yes'"),
        ("{type: is_json, required: @1.01}", "wrong-value", "0 to 1"),
        ("{type: is_json, required: @-0.5}", "wrong-value", "0 to 1"),
        ("{type: is_json, required: @null}", "wrong-value", "null"),
        ("{type: is_json, required: @[]}", "wrong-value", "empty list"),
        ("{type: is_json, negate: @'true'}", "wrong-type", "true or false"),
        ("{type: is_json, negate: @1}", "wrong-type", "true or false"),
    ],
)
def test_wrong_common_keys(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


@pytest.mark.parametrize("required", [True, False, 0.5, 0.0, 1.0])
def test_required_is_a_bool_or_a_score(project: Project, required: bool | float) -> None:
    spec = load_one(project, {"type": "is_json", "required": required})
    assert (spec.required, type(spec.required)) == (required, type(required))


@pytest.mark.parametrize("score", [0, 1])
def test_a_whole_number_is_a_score_not_a_bool(project: Project, score: int) -> None:
    spec = load_one(project, {"type": "is_json", "required": score})
    assert (spec.required, type(spec.required)) == (score, float)


def test_defaults(project: Project) -> None:
    spec = load_one(project, {"type": "is_json"})
    assert (spec.name, spec.weight, spec.required) == ("is_json", 1.0, False)


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        (["{type: is_json}", "{type: is_json}"], ["is_json", "is_json_2"]),
        (
            ["{type: is_json}", "{type: is-json}", "{type: is_json}"],
            ["is_json", "is_json_2", "is_json_3"],
        ),
        (["{type: is_json}", "{type: cost, budget: 1}"], ["is_json", "cost"]),
        (["{type: is_json, name: is_json}", "{type: is_json}"], ["is_json", "is_json_2"]),
        (["{type: is_json}", "{type: cost, budget: 1, name: is_json}"], ["is_json_2", "is_json"]),
        (
            ["{type: is_json}", "{type: is_json, name: is_json_2}", "{type: is_json}"],
            ["is_json", "is_json_2", "is_json_3"],
        ),
        (["{type: not_is_json}", "{type: is_json}"], ["not_is_json", "is_json"]),
        (["{type: not_is_json}", "{type: not-is-json}"], ["not_is_json", "not_is_json_2"]),
        (
            ["{type: not_is_json}", "{type: cost, budget: 1, name: not_is_json}"],
            ["not_is_json_2", "not_is_json"],
        ),
        (["{type: 'python:m:f'}", "{type: 'python:m:f'}"], ["python:m:f", "python:m:f_2"]),
    ],
)
def test_names_are_numbered_when_they_repeat(
    project: Project, entries: list[str], names: list[str]
) -> None:
    assert [spec.name for spec in project.case(suite_of(*entries)).evaluators] == names


def test_two_given_names_may_not_repeat(project: Project) -> None:
    text = suite_of("{type: is_json, name: x}", "{type: cost, budget: 1, name: x}")
    place, message = project.refused(text)
    assert place == "6:37 wrong-value"
    assert "two evaluators have the name 'x'" in message


def test_only_names_that_are_written_may_not_repeat(project: Project) -> None:
    negated = "{type: not_contains, value: x}"
    text = suite_of(negated, negated, "{type: is_json, name: x}", "{type: is_json, name: x}")
    assert project.refusals(text) == ["8:29 wrong-value"]


def test_repeated_names_are_reported_together_with_wrong_entries(project: Project) -> None:
    text = suite_of(
        "{type: is_json, name: x}",
        "{type: is_json, name: x, weight: -1}",
        "{type: is_json, name: [x]}",
        "5",
        "{type: is_json, name: x}",
    )
    assert project.refusals(text) == [
        "6:29 wrong-value",
        "6:40 wrong-value",
        "7:29 wrong-type",
        "8:7 wrong-type",
        "9:29 wrong-value",
    ]


# Which evaluator


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ("{type: @contians, value: x}", "did you mean 'contains'?"),
        ("{type: @llm-juge}", "did you mean 'llm_judge'?"),
        ("{type: @LLM_Judge}", "did you mean 'llm_judge'?"),
        ("{type: @not_contians, value: x}", "did you mean 'contains'?"),
        ("{type: @zzz}", "known: code_judge, composite"),
        ("{type: @llm-critic}", "no evaluator is called 'llm-critic'"),
        ("{type: @not-llm-critic}", "no evaluator is called 'llm_critic'"),
        ("{type: @not-llm-rubric}", "'llm_judge' cannot be negated"),
        ("{type: @'python:'}", "python:package.module:function"),
        ("{type: @'python:module'}", "python:package.module:function"),
        ("{type: @'python:module:'}", "python:package.module:function"),
        ("{type: @'python:a b:c'}", "python:package.module:function"),
        ("{type: @'python:1module:f'}", "python:package.module:function"),
        ("{type: @python}", "python:package.module:function"),
    ],
)
def test_an_unknown_evaluator_is_refused_with_the_nearest(
    project: Project, entry: str, word: str
) -> None:
    message = refuse(project, entry, "unknown-evaluator")
    assert word in message


TEXT_KINDS = [
    "equals",
    "contains",
    "contains_any",
    "contains_all",
    "icontains",
    "icontains_any",
    "starts_with",
    "ends_with",
    "regex",
    "is_json",
    "json_schema",
    "similarity",
]


@pytest.mark.parametrize("kind", TEXT_KINDS)
@pytest.mark.parametrize("prefix", ["not_", "not-"])
def test_a_not_prefix_negates(project: Project, kind: str, prefix: str) -> None:
    keys = next(entry for entry in ACCEPTED if entry["type"] == kind)
    keys = {key: value for key, value in keys.items() if key not in ("type", "negate")}
    spec = load_one(project, {"type": prefix + kind, **keys})
    assert (spec.type, spec.name) == (kind, f"not_{kind}")
    assert spec.model_dump()["negate"] is True
    assert load_one(project, {"type": kind, **keys}).model_dump()["negate"] is False


@pytest.mark.parametrize("negate", ["@5", "@'no'", "@null"])
def test_a_not_prefix_does_not_hide_a_wrong_negate(project: Project, negate: str) -> None:
    refuse(project, f"{{type: not_is_json, negate: {negate}}}", "wrong-type")


@pytest.mark.parametrize(
    "kind",
    [kind for kind in registered if kind not in TEXT_KINDS and kind != "python"],
)
def test_the_others_cannot_be_negated(project: Project, kind: str) -> None:
    keys = next(e for e in [*ACCEPTED, RUBRIC, COMPOSITE] if e["type"] == kind)
    text = json.dumps({**keys, "type": f"not_{kind}"}).replace('"not_', '@"not_')
    assert f"{kind!r} cannot be negated" in refuse(project, text, "unknown-evaluator")
    text = json.dumps({"negate": True, **keys}).replace('"negate"', '@"negate"')
    if kind != "code_judge":
        refuse(project, text, "unknown-key")


# Text


@pytest.mark.parametrize("kind", ["contains", "icontains", "starts_with", "ends_with", "regex"])
@pytest.mark.parametrize(
    ("keys", "slug"),
    [
        ("", "missing-key"),
        ("value: x, values: @[y]", "conflicting-keys"),
        ("value: @5", "wrong-type"),
        ("value: @true", "wrong-type"),
        ("value: @[x]", "wrong-type"),
        ("value: @''", "wrong-value"),
        ("values: @x", "wrong-type"),
        ("values: @[]", "wrong-value"),
        ("values: [x, @5]", "wrong-type"),
        ("values: [x, @'']", "wrong-value"),
    ],
)
def test_wrong_text_keys(project: Project, kind: str, keys: str, slug: str) -> None:
    refuse(project, ("" if "@" in keys else "@") + f"{{type: {kind}, {keys}}}", slug)


@pytest.mark.parametrize("kind", ["contains_any", "contains_all"])
@pytest.mark.parametrize(
    ("keys", "slug"),
    [
        ("", "missing-key"),
        ("values: @5", "wrong-type"),
        ("values: @[]", "wrong-value"),
        ("values: [x, @5]", "wrong-type"),
        ("values: [x, @'']", "wrong-value"),
    ],
)
def test_wrong_lists_of_texts(project: Project, kind: str, keys: str, slug: str) -> None:
    refuse(project, ("" if "@" in keys else "@") + f"{{type: {kind}, {keys}}}", slug)


@pytest.mark.parametrize("kind", ["contains_any", "contains_all"])
@pytest.mark.parametrize("value", ["a", ["a"]])
def test_one_value_is_a_list_of_one(project: Project, kind: str, value: object) -> None:
    assert load_one(project, {"type": kind, "value": value}).model_dump()["values"] == ["a"]


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("{type: regex, value: @'('}", "bad-regex", "does not compile"),
        ("{type: regex, values: [a, @'[a-']}", "bad-regex", "does not compile"),
        ("{type: not-regex, value: @'*'}", "bad-regex", "does not compile"),
        ("{type: is_json, @value: x}", "unknown-key", "'value'"),
        ("@{type: json_schema}", "missing-key", "'value'"),
        ("{type: json_schema, value: @text}", "wrong-type", "JSON Schema"),
        ("{type: json_schema, value: @5}", "wrong-type", "JSON Schema"),
        ("{type: similarity, value: @5}", "wrong-type", "text"),
        ("{type: similarity, value: @''}", "wrong-value", "empty"),
        ("{type: contains, value: @5}", "wrong-type", "put it in quotes"),
        ("{type: contains_any, values: @5}", "wrong-type", "put it in quotes"),
    ],
)
def test_wrong_text_evaluators(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


# tool_trajectory


def steps(text: str) -> str:
    return f"{{type: tool_trajectory, expected: [{text}]}}"


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("@{type: tool_trajectory}", "asserts-nothing", "'expected'"),
        ("@{type: tool_trajectory, mode: exact, ignore: [t]}", "asserts-nothing", "'minimums'"),
        ("@{type: tool_trajectory, minimums: {}}", "asserts-nothing", "'forbidden'"),
        ("{type: tool_trajectory, mode: @strict, expected: []}", "wrong-value", "any_order"),
        ("{type: tool_trajectory, mode: @any-ordr, expected: []}", "wrong-value", "'any_order'"),
        ("{type: tool_trajectory, expected: @{tool: t}}", "wrong-type", "list"),
        ("{type: tool_trajectory, minimums: @[t]}", "wrong-type", "mapping"),
        ("{type: tool_trajectory, minimums: {t: @-1}}", "wrong-value", ">= 0"),
        ("{type: tool_trajectory, minimums: {t: @1.5}}", "wrong-type", "whole"),
        ("{type: tool_trajectory, minimums: {t: @'1'}}", "wrong-type", "whole"),
        ("{type: tool_trajectory, maximums: {t: @true}}", "wrong-type", "whole"),
        ("{type: tool_trajectory, minimums: {t: @3}, maximums: {t: 2}}", "conflicting-keys", "'t'"),
        ("{type: tool_trajectory, ignore: @t, expected: []}", "wrong-type", "list"),
        ("{type: tool_trajectory, forbidden: [@5]}", "wrong-type", "text"),
        ("{type: tool_trajectory, forbidden: [@'']}", "wrong-value", "empty"),
        (
            "{type: tool_trajectory, ignore: [b, a], forbidden: [c, @a]}",
            "conflicting-keys",
            "'a' is in 'ignore' too",
        ),
        (steps("@t"), "wrong-type", "mapping"),
        (steps("@{args: 1}"), "missing-key", "'any_of'"),
        (steps("{tool: t, any_of: @[{tool: u}]}"), "conflicting-keys", "exclude"),
        (steps("{any_of: [{tool: u}], args: @1}"), "conflicting-keys", "inside 'any_of'"),
        (steps("{any_of: @[]}"), "wrong-value", "at least 1"),
        (steps("{any_of: [@{args: 1}]}"), "missing-key", "'tool'"),
        (steps("{any_of: [{tool: t, @optional: true}]}"), "unknown-key", "'optional'"),
        (steps("{tool: @5}"), "wrong-type", "text"),
        (steps("{tool: @''}"), "wrong-value", "empty"),
        (steps("{tool: t, @arguments: 1}"), "unknown-key", "'arguments'"),
        (steps("{tool: t, optional: @1}"), "wrong-type", "true or false"),
        (steps("{tool: t, max_duration_ms: @0}"), "wrong-value", "> 0"),
        (steps("{tool: t, max_duration_ms: @fast}"), "wrong-type", "number"),
        (steps("{tool: t, args_match: @exat}"), "wrong-value", "did you mean 'exact'?"),
        (steps("{tool: t, args_match: @[]}"), "wrong-value", "list of paths"),
        (steps("{tool: t, args_match: @[5]}"), "wrong-value", "list of paths"),
        (steps("{tool: t, args_match: @null}"), "wrong-value", "null"),
        (steps("{tool: t, args: {n: 1}, args_match: [n, @m]}"), "wrong-value", "'m' is not in"),
        (steps("{tool: t, args_match: [@n]}"), "wrong-value", "'n' is not in 'args'"),
        (steps("{any_of: [{tool: t, args: {}, args_match: [@n]}]}"), "wrong-value", "'n' is not"),
        (steps("{tool: t, args: {q: {regex: @'('}}}"), "bad-regex", "does not compile"),
        (steps("{tool: t, output: {regex: @'('}}"), "bad-regex", "does not compile"),
        (steps("{tool: t, args: {q: {type: @text}}}"), "wrong-value", "string, number"),
        (steps("{tool: t, args: {q: {one_of: @x}}}"), "wrong-type", "list"),
        (steps("{tool: t, args: {q: {one_of: @[]}}}"), "wrong-value", "at least 1"),
        (steps("{tool: t, args: {q: {exists: @'yes'}}}"), "wrong-type", "true or false"),
        (steps("{tool: t, args: {q: {gte: @'5'}}}"), "wrong-type", "number"),
        (steps("{tool: t, args: {q: {lte: @true}}}"), "wrong-type", "number"),
        (steps("{tool: t, args: {q: {approx: @[1]}}}"), "wrong-type", "number"),
        (steps("{tool: t, args: {q: {approx: 1, tolerance: @-1}}}"), "wrong-value", ">= 0"),
    ],
)
def test_wrong_trajectories(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


@pytest.mark.parametrize(
    ("args", "slug"),
    [
        ("{q: {regex: @'('}}", "bad-regex"),
        ("{q: [1, {deep: {type: @text}}]}", "wrong-value"),
        ("[{tolerance: @1}]", "missing-key"),
        ("[[{a: {one_of: [1], gte: @many}}]]", "wrong-type"),
    ],
)
@pytest.mark.parametrize("key", ["args", "input", "output"])
def test_wrong_predicates_deep_inside(project: Project, key: str, args: str, slug: str) -> None:
    refuse(project, steps(f"{{tool: t, {key}: {args}}}"), slug)


def test_all_wrong_predicates_are_reported(project: Project) -> None:
    call = "{tool: t, args: {q: {regex: '(', gte: x}, r: [{exists: 1}]}, output: {lte: y}}"
    assert project.refusals(suite_of(steps(call))) == [
        "5:70 bad-regex",
        "5:80 wrong-type",
        "5:97 wrong-type",
        "5:117 wrong-type",
    ]


def test_all_keys_that_belong_inside_any_of_are_reported(project: Project) -> None:
    text = suite_of(steps("{tool: t, args: 1, any_of: [{tool: u}], output: 2}"))
    assert project.refusals(text) == [
        "5:58 conflicting-keys",
        "5:69 conflicting-keys",
        "5:90 conflicting-keys",
    ]


@pytest.mark.parametrize("condition", ["{tolerance: @1}", "{approx: null, tolerance: @1}"])
def test_a_tolerance_needs_approx(project: Project, condition: str) -> None:
    message = refuse(project, steps(f"{{tool: t, args: {{q: {condition}}}}}"), "missing-key")
    assert "'tolerance' is only allowed together with 'approx'" in message


def test_all_minimums_above_their_maximums_are_reported(project: Project) -> None:
    text = "{type: tool_trajectory, minimums: {t: 3, u: 4}, maximums: {t: 2, u: 1}}"
    assert project.refusals(suite_of(text)) == ["5:45 conflicting-keys", "5:51 conflicting-keys"]


def test_input_is_an_alias_of_args(project: Project) -> None:
    entry = {"type": "tool_trajectory", "expected": [{"tool": "t", "input": {"q": 1}}]}
    spec = load_one(project, entry)
    assert spec.model_dump(exclude_unset=True)["expected"] == [{"tool": "t", "args": {"q": 1}}]
    text = suite_of(steps("{tool: t, input: 1, args: 2}"), "{type: equals}")
    assert project.warned(text) == ["5:52 ignored-alias"]


def test_trajectory_defaults(project: Project) -> None:
    dump = load_one(project, {"type": "tool_trajectory", "expected": [{"tool": "t"}]}).model_dump()
    assert dump["mode"] == "in_order"
    assert dump["expected"][0]["args_match"] == "superset"
    assert dump["expected"][0]["optional"] is False


# rubric

RUBRIC: Entry = {"type": "rubric", "rubrics": ["Is kind"], "model": "gpt-4", "target": "judge"}


def rubrics(project: Project, *items: object) -> list[Entry]:
    spec = load_one(project, {"type": "rubric", "rubrics": list(items)})
    assert isinstance(spec, assay.RubricEvaluator)
    return [{**item.model_dump(exclude_unset=True), "id": item.id} for item in spec.rubrics]


def test_rubric_keys(project: Project) -> None:
    spec = load_one(project, {**RUBRIC, **CASE_KEYS})
    assert isinstance(spec, assay.RubricEvaluator)
    assert (spec.model, spec.target, spec.name) == ("gpt-4", "judge", "mine")


def test_rubric_texts_are_required_and_numbered(project: Project) -> None:
    assert rubrics(project, "Is kind", {"description": "Is short"}, "Is right") == [
        {"id": "rubric-1", "description": "Is kind", "required": True},
        {"id": "rubric-2", "description": "Is short"},
        {"id": "rubric-3", "description": "Is right", "required": True},
    ]


@pytest.mark.parametrize("key", ["description", "outcome", "expected_outcome"])
def test_rubric_spellings_of_description(project: Project, key: str) -> None:
    assert rubrics(project, {"id": "x", key: "Is kind"}) == [{"id": "x", "description": "Is kind"}]


def test_rubric_item_keys(project: Project) -> None:
    item = {
        "id": "depth",
        "description": "How deep",
        "weight": 2,
        "required": True,
        "required_min_score": 3,
        "score_ranges": [
            {"score_range": [0, 2], "expected_outcome": "shallow"},
            {"score_range": [3, 5], "expected_outcome": "deep"},
        ],
    }
    assert rubrics(project, item) == [item]


def test_rubric_dimensions(project: Project) -> None:
    spec = load_one(
        project,
        {
            "type": "rubric",
            "rubrics": [
                {"dimension": "safety", "maxScore": 1, "criteria": "1: safe"},
                {"dimension": "depth", "maxScore": 4, "criteria": "4: deep"},
            ],
        },
    )
    assert isinstance(spec, assay.RubricEvaluator)
    assert [(r.id, r.description, r.max_score, r.required) for r in spec.rubrics] == [
        ("safety", "1: safe", 1, True),
        ("depth", "4: deep", 4, False),
    ]


def items(text: str) -> str:
    return f"{{type: rubric, rubrics: [{text}]}}"


def ranges(text: str) -> str:
    return items(f"{{description: x, score_ranges: {text}}}")


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("@{type: rubric}", "missing-key", "'rubrics'"),
        ("{type: rubric, rubrics: @Is kind}", "wrong-type", "list"),
        ("{type: rubric, rubrics: @[]}", "wrong-value", "at least 1"),
        ("{type: rubric, rubrics: [x], model: @5}", "wrong-type", "text"),
        ("{type: rubric, rubrics: [x], target: @''}", "wrong-value", "empty"),
        (
            "{type: rubric, rubrics: [{id: a, outcome: x}, {id: @a, outcome: y}]}",
            "wrong-value",
            "'a'",
        ),
        ("{type: rubric, rubrics: [x, {id: @rubric-1, outcome: y}]}", "wrong-value", "'rubric-1'"),
        (items("@5"), "wrong-type", "neither text nor a mapping"),
        (items("@''"), "wrong-value", "empty"),
        (items("@{id: a}"), "missing-key", "'description'"),
        (items("{description: @5}"), "wrong-type", "text"),
        (items("{description: x, weight: @-1}"), "wrong-value", ">= 0"),
        (items("{description: x, weight: @heavy}"), "wrong-type", "number"),
        (items("{description: x, required: @1}"), "wrong-type", "true or false"),
        (items("{description: x, required_min_score: @-1}"), "wrong-value", ">= 0"),
        (items("{description: x, @requird: true}"), "unknown-key", "'required'"),
        (items("{dimension: d, criteria: c, maxScore: @0}"), "wrong-value", "> 0"),
        (items("@{dimension: d, criteria: c}"), "missing-key", "'maxScore'"),
        (items("{dimension: d, maxScore: 1, criteria: c, @weight: 2}"), "unknown-key", "'weight'"),
        (ranges("@[]"), "wrong-value", "at least 1"),
        (ranges("[{score_range: @[0], outcome: x}]"), "wrong-value", "at least 2"),
        (ranges("[{score_range: @[0, 1, 2], outcome: x}]"), "wrong-value", "at most 2"),
        (ranges("[{score_range: [0, @high], outcome: x}]"), "wrong-type", "whole"),
        (ranges("[@{score_range: [0, 1]}]"), "missing-key", "'expected_outcome'"),
        (ranges("[{score_range: @[2, 0], outcome: x}]"), "wrong-value", "backwards"),
    ],
)
def test_wrong_rubrics(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


@pytest.mark.parametrize(
    ("spans", "word"),
    [
        (["[0, 2]", "@[4, 5]"], "gap"),
        (["@[4, 5]", "[0, 2]"], "gap"),
        (["@[1, 5]"], "gap"),
        (["[0, 3]", "@[3, 5]"], "overlap"),
    ],
)
def test_score_ranges_cover_every_score_once(project: Project, spans: list[str], word: str) -> None:
    text = ", ".join(f"{{score_range: {span}, outcome: x}}" for span in spans)
    assert word in refuse(project, ranges(f"[{text}]"), "wrong-value")


def test_required_min_score_is_within_the_ranges(project: Project) -> None:
    text = "required_min_score: 6, score_ranges: [{score_range: [0, 5], outcome: x}]"
    (problem,) = project.problems(suite_of(items(f"{{description: x, {text}}}")))
    assert (problem.line, problem.code) == (5, "wrong-value")
    assert "required_min_score" in problem.message


# Judges


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("{type: llm_judge, prompt: @''}", "wrong-value", "empty"),
        ("{type: llm_judge, prompt: @5}", "wrong-type", "text"),
        ("{type: llm_judge, prompt: @judge.md}", "file-not-found", "'judge.md'"),
        ("{type: llm_judge, model: @5}", "wrong-type", "text"),
        ("{type: llm_judge, model: @''}", "wrong-value", "empty"),
        ("{type: llm_judge, target: @[]}", "wrong-type", "text"),
        ("{type: llm_judge, samples: @0}", "wrong-value", ">= 1"),
        ("{type: llm_judge, samples: @101}", "wrong-value", "<= 100"),
        ("{type: llm_judge, samples: @1.5}", "wrong-type", "whole"),
        ("{type: llm_judge, samples: @'3'}", "wrong-type", "whole"),
        ("{type: llm_judge, @promt: x}", "unknown-key", "did you mean 'prompt'?"),
    ],
)
def test_wrong_llm_judges(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


@pytest.mark.parametrize(
    "prompt", ["Is it kind?", "Rate {{candidate_answer}}\nfrom 0 to 1", "See {{question}}.md"]
)
def test_an_inline_prompt_stays(project: Project, prompt: str) -> None:
    assert (
        load_one(project, {"type": "llm_judge", "prompt": prompt}).model_dump()["prompt"] == prompt
    )


def test_a_prompt_file_is_found(project: Project) -> None:
    file = project.write("prompts/judge.md", "Is it kind?")
    spec = load_one(project, {"type": "llm_judge", "prompt": "prompts/judge.md"})
    assert spec.model_dump()["prompt"] == str(file.resolve())


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("@{type: code_judge}", "missing-key", "the key 'script' is missing"),
        ("{type: code_judge, script: @''}", "wrong-value", "empty"),
        ("{type: code_judge, script: @'  '}", "wrong-value", "empty"),
        ("{type: code_judge, script: @[]}", "wrong-value", "at least 1"),
        ("{type: code_judge, script: [python, @5]}", "wrong-type", "text"),
        ("{type: code_judge, script: [@'']}", "wrong-value", "empty"),
        ("{type: code_judge, script: @5}", "wrong-type", "list of arguments"),
        ("{type: code_judge, script: @{run: x}}", "wrong-type", "list of arguments"),
        ("{type: code_judge, script: x, cwd: @gone}", "file-not-found", "'gone'"),
        ("{type: code_judge, script: x, cwd: @5}", "wrong-type", "text"),
        ("{type: code_judge, script: x, timeout_seconds: @0}", "wrong-value", "> 0"),
        ("{type: code_judge, script: x, timeout_seconds: @slow}", "wrong-type", "number"),
        ("{type: code_judge, script: x, env: @PATH}", "wrong-type", "list"),
        ("{type: code_judge, script: x, env: [@5]}", "wrong-type", "text"),
        ("{type: code_judge, script: x, max_memory_mb: @0}", "wrong-value", "> 0"),
        ("{type: code_judge, script: x, max_cpu_seconds: @-1}", "wrong-value", "> 0"),
        ("{type: code_judge, script: x, config: @5}", "wrong-type", "mapping"),
    ],
)
def test_wrong_code_judges(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("scripts", "script"),
        ("Script", "script"),
        ("scirpt", "script"),
        ("timeout-seconds", "timeout_seconds"),
        ("timeout_second", "timeout_seconds"),
        ("timeoutSeconds", "timeout_seconds"),
        ("wieght", "weight"),
        ("weights", "weight"),
        ("requried", "required"),
        ("envs", "env"),
        ("environment", "env"),
        ("enviroment", "env"),
        ("nmae", "name"),
        ("timeout", "timeout_seconds"),
    ],
)
def test_a_near_miss_of_a_code_judge_key_is_an_error(project: Project, key: str, near: str) -> None:
    message = refuse(project, f"{{type: code-judge, script: x, @{key}: 1}}", "unknown-key")
    assert repr(key) in message
    assert repr(near) in message


def test_other_keys_of_a_code_judge_go_to_its_config(project: Project) -> None:
    spec = load_one(
        project,
        {
            "type": "code_judge",
            "script": "x",
            "colour": "red",
            "limits": {"a": [1]},
            "config": {"b": 2},
        },
    )
    assert spec.model_dump()["config"] == {"colour": "red", "limits": {"a": [1]}, "b": 2}


@pytest.mark.parametrize("key", ["threshold", "model", "language", "max_words", "path", "strict"])
def test_an_ordinary_key_of_a_code_judge_is_not_a_near_miss(project: Project, key: str) -> None:
    spec = load_one(project, {"type": "code_judge", "script": "x", key: 1})
    assert spec.model_dump()["config"] == {key: 1}


def test_code_judge_defaults(project: Project) -> None:
    dump = load_one(project, {"type": "code_judge", "script": ["x"]}).model_dump()
    assert (dump["timeout_seconds"], dump["env"], dump["config"]) == (60, [], {})


def test_the_folder_of_a_code_judge_is_found(project: Project) -> None:
    project.write("judges/check.py")
    spec = load_one(project, {"type": "code_judge", "script": "x", "cwd": "judges"})
    assert spec.model_dump()["cwd"] == str((project.root / "judges").resolve())


# composite

COMPOSITE: Entry = {
    "type": "composite",
    "evaluators": [
        {"type": "contains", "value": "a", "weight": 2},
        {"type": "not-contains", "value": "b"},
        {"type": "llm_judge", "name": "kind", "prompt": "Is it kind?"},
        {"type": "rubric", "rubrics": ["Is short"]},
    ],
}


def test_composite_members_keep_their_keys(project: Project) -> None:
    members = load_one(project, COMPOSITE).members
    assert [(m.name, m.type, m.weight) for m in members] == [
        ("contains", "contains", 2),
        ("not_contains", "contains", 1),
        ("kind", "llm_judge", 1),
        ("rubric", "rubric", 1),
    ]
    assert members[2].model_dump()["prompt"] == "Is it kind?"
    assert isinstance(members[3], assay.RubricEvaluator)


@pytest.mark.parametrize("key", ["evaluators", "assert", "assertions"])
def test_composite_spellings_of_evaluators(project: Project, key: str) -> None:
    assert len(load_one(project, {"type": "composite", key: [{"type": "is_json"}]}).members) == 1


@pytest.mark.parametrize(
    "aggregator",
    [
        {"type": "weighted_average"},
        {"type": "weighted_average", "weights": {"contains": 3, "kind": 0}},
        {"weights": {"contains": 0.5}},
        {"type": "min"},
        {"type": "all"},
        {"type": "any"},
        {"type": "threshold", "threshold": 0.5},
        {"type": "code_judge", "script": ["python", "sum.py"]},
        {"type": "llm_judge", "prompt": "Sum up"},
    ],
)
def test_composite_aggregators(project: Project, aggregator: Entry) -> None:
    spec = load_one(project, {**COMPOSITE, "aggregator": aggregator})
    assert isinstance(spec, CompositeEvaluator)
    assert spec.aggregator.model_dump(exclude_unset=True) == aggregator


def test_composite_defaults_to_the_weighted_average(project: Project) -> None:
    spec = load_one(project, COMPOSITE)
    assert isinstance(spec, CompositeEvaluator)
    assert spec.aggregator.type == "weighted_average"


def test_a_dumped_composite_keeps_the_keys_of_its_members(project: Project) -> None:
    members = load_one(project, COMPOSITE).model_dump(mode="json")["evaluators"]
    assert members[0]["value"] == "a"
    assert members[2]["prompt"] == "Is it kind?"
    assert members[3]["rubrics"][0]["description"] == "Is short"


def test_composites_nest(project: Project) -> None:
    spec = load_one(project, {"type": "composite", "evaluators": [COMPOSITE, {"type": "is_json"}]})
    assert [m.name for m in spec.members] == ["composite", "is_json"]
    assert len(spec.members[0].members) == 4


def joined(aggregator: str) -> str:
    return f"{{type: composite, evaluators: [{{type: is_json}}], aggregator: {aggregator}}}"


def of(members: str) -> str:
    return f"{{type: composite, evaluators: {members}}}"


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("@{type: composite}", "missing-key", "'evaluators'"),
        (of("@[]"), "wrong-value", "at least 1"),
        (of("@is_json"), "wrong-type", "list"),
        (of("[@is_json]"), "wrong-type", "mapping"),
        (of("[{type: @is_jsn}]"), "unknown-evaluator", "'is_json'"),
        (of("[{type: is_json}, {type: contains, value: @5}]"), "wrong-type", "text"),
        (of("[{type: is_json, @wieght: 1}]"), "unknown-key", "'weight'"),
        (of("[{type: is_json, name: x}, {type: is_json, name: @x}]"), "wrong-value", "'x'"),
        (joined("@min"), "wrong-type", "mapping"),
        (joined("{type: @median}"), "wrong-value", "weighted_average, min, all, any, threshold"),
        (joined("@{type: threshold}"), "missing-key", "needs 'threshold'"),
        (joined("@{type: code_judge}"), "missing-key", "needs 'script'"),
        (joined("@{type: llm_judge}"), "missing-key", "needs 'prompt'"),
        (joined("{type: threshold, threshold: @2}"), "wrong-value", "<= 1"),
        (joined("{type: threshold, threshold: @half}"), "wrong-type", "number"),
        (joined("{weights: @[1]}"), "wrong-type", "mapping"),
        (joined("{weights: {is_json: @-1}}"), "wrong-value", ">= 0"),
        (joined("{weights: {is_json: @'1'}}"), "wrong-type", "number"),
        (joined("{type: min, @weigths: {is_json: 1}}"), "unknown-key", "'weights'"),
        (joined("{type: code_judge, script: @[]}"), "wrong-value", "at least 1"),
    ],
)
def test_wrong_composites(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


def test_all_broken_rules_of_a_block_are_reported(project: Project) -> None:
    text = joined("{type: code_judge, threshold: 1, prompt: x}")
    assert project.refusals(suite_of(text)) == [
        "5:68 missing-key",
        "5:98 conflicting-keys",
        "5:109 conflicting-keys",
    ]


def test_composite_weights_name_members(project: Project) -> None:
    problems = project.problems(suite_of(joined("{weights: {is_jsn: 1, is_json: 1, x: 1}}")))
    assert [project.place(problem) for problem in problems] == [
        "5:87 wrong-value",
        "5:105 wrong-value",
    ]
    assert "'is_jsn' is not the name of a member; members: is_json" in problems[0].message


def test_a_member_that_needs_an_expected_output(project: Project) -> None:
    text = suite_of(of("[{type: is_json}, {type: equals}]"))
    assert len(project.suite(text)) == 1
    (problem,) = project.problems(text.replace("  expected_output: Hi\n", ""))
    assert (problem.line, problem.code) == (4, "needs-expected")


# field_accuracy


def fields(text: str) -> str:
    return f"{{type: field_accuracy, fields: [{text}]}}"


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("@{type: field_accuracy}", "missing-key", "'fields'"),
        ("{type: field_accuracy, fields: @[]}", "wrong-value", "at least 1"),
        ("{type: field_accuracy, fields: @{path: a}}", "wrong-type", "list"),
        (
            "{type: field_accuracy, fields: [{path: a}], aggregation: @min}",
            "wrong-value",
            "all_or_nothing",
        ),
        (fields("@a"), "wrong-type", "mapping"),
        (fields("@{match: exact}"), "missing-key", "'path'"),
        (fields("{path: @''}"), "wrong-value", "empty"),
        (fields("{path: @5}"), "wrong-type", "text"),
        (fields("{path: @a..b}"), "wrong-value", "is not a path"),
        (fields("{path: @'a[x]'}"), "wrong-value", "is not a path"),
        (fields("{path: @'a[1'}"), "wrong-value", "is not a path"),
        (fields("{path: @.a}"), "wrong-value", "is not a path"),
        (fields("{path: a, match: @fuzzy}"), "wrong-value", "exact, numeric_tolerance, date"),
        (fields("{path: a, match: numeric_tolerance, tolerance: @-1}"), "wrong-value", ">= 0"),
        (fields("{path: a, match: numeric_tolerance, tolerance: @'1'}"), "wrong-type", "number"),
        (
            fields("{path: a, match: numeric_tolerance, relative: @1}"),
            "wrong-type",
            "true or false",
        ),
        (fields("{path: a, match: date, formats: @x}"), "wrong-type", "list"),
        (fields("{path: a, match: date, formats: [@5]}"), "wrong-type", "text"),
        (fields("{path: a, required: @1}"), "wrong-type", "true or false"),
        (fields("{path: a, weight: @-1}"), "wrong-value", ">= 0"),
        (fields("{path: a, @wieght: 1}"), "unknown-key", "'weight'"),
        (fields("{path: a, tolerance: @1}"), "conflicting-keys", "numeric_tolerance"),
        (
            fields("{path: a, match: date, relative: @true}"),
            "conflicting-keys",
            "numeric_tolerance",
        ),
        (fields("{path: a, formats: @[DD]}"), "conflicting-keys", "date"),
        (
            fields("{path: a, match: date, formats: [@x]}"),
            "wrong-value",
            "'x' is not a letter code for a part of a date",
        ),
        (fields("{path: a, match: date, formats: [@'1.1']}"), "wrong-value", "no day, month or"),
        (fields("{path: a, match: date, formats: [@'HH:mm']}"), "wrong-value", "no day, month or"),
        (fields("{path: a, match: date, formats: [@'%H:%M']}"), "wrong-value", "no day, month or"),
        (fields("{path: a, match: date, formats: [@'%d %Q']}"), "wrong-value", "bad directive"),
        (fields("{path: a, match: date, formats: [@'%d MMM']}"), "wrong-value", "both 'MMM' and"),
        (fields("{path: a, match: date, formats: [@'YYYY YYYY']}"), "wrong-value", "redefinition"),
        (
            fields("{path: a, match: date, formats: [@YYY]}"),
            "wrong-value",
            "for example 'DD-MMM-YYYY'",
        ),
    ],
)
def test_wrong_field_accuracy(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


def test_field_accuracy_defaults(project: Project) -> None:
    dump = load_one(project, {"type": "field_accuracy", "fields": [{"path": "a"}]}).model_dump()
    (rule,) = dump["fields"]
    assert (rule["match"], rule["required"], rule["weight"]) == ("exact", True, 1)
    assert dump["aggregation"] == "weighted_average"


def test_field_accuracy_needs_an_expected_output(project: Project) -> None:
    text = suite_of(fields("{path: a}")).replace("  expected_output: Hi\n", "")
    place, message = project.refused(text)
    assert place == "4:7 needs-expected"
    assert "'field_accuracy'" in message


# Budgets


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("@{type: latency}", "missing-key", "'threshold'"),
        ("{type: latency, threshold: @-1}", "wrong-value", ">= 0"),
        ("{type: latency, threshold: @'100'}", "wrong-type", "number"),
        ("{type: latency, threshold: @true}", "wrong-type", "number"),
        ("@{type: cost}", "missing-key", "'budget'"),
        ("{type: cost, budget: @-0.1}", "wrong-value", ">= 0"),
        ("{type: cost, budget: @cheap}", "wrong-type", "number"),
        ("@{type: token_usage}", "missing-key", "max_total, max_input, max_output"),
        ("@{type: execution_metrics}", "missing-key", "max_tool_calls"),
        *[
            (f"{{type: token_usage, {key}: @{value}}}", slug, word)
            for key in ("max_total", "max_input", "max_output")
            for value, slug, word in (
                ("-1", "wrong-value", ">= 0"),
                ("1.5", "wrong-type", "whole"),
                ("many", "wrong-type", "whole"),
            )
        ],
        *[
            (f"{{type: execution_metrics, {key}: @{value}}}", slug, word)
            for key in ("max_tool_calls", "max_llm_calls", "max_tokens")
            for value, slug, word in (
                ("-1", "wrong-value", ">= 0"),
                ("1.5", "wrong-type", "whole"),
            )
        ],
        *[
            (f"{{type: execution_metrics, {key}: @{value}}}", slug, word)
            for key in ("max_cost_usd", "max_duration_ms")
            for value, slug, word in (
                ("-1", "wrong-value", ">= 0"),
                ("'1'", "wrong-type", "number"),
            )
        ],
    ],
)
def test_wrong_budgets(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


# expect


@pytest.mark.parametrize(
    ("entry", "slug", "word"),
    [
        ("@{type: expect}", "asserts-nothing", "asserts nothing"),
        ("@{type: expect, noToolErrors: false}", "asserts-nothing", "asserts nothing"),
        ("@{type: expect, toolsCalledMode: set}", "asserts-nothing", "asserts nothing"),
        ("{type: expect, jsonValid: true, @toolsCaled: [t]}", "unknown-key", "'toolsCalled'"),
        ("{type: expect, tools_called: @t}", "wrong-type", "list"),
        (
            "{type: expect, toolsCalled: [t], toolsAcceptable: @[[t]]}",
            "conflicting-keys",
            "exclude",
        ),
        ("{type: expect, responseMatches: [@'(']}", "bad-regex", "does not compile"),
        ("{type: expect, responseContains: [@'{{sed:x}}']}", "bad-token", "'seed'"),
    ],
)
def test_wrong_expect_evaluators(project: Project, entry: str, slug: str, word: str) -> None:
    assert word in refuse(project, entry, slug)


def test_expect_keys_in_snake_case(project: Project) -> None:
    spec = load_one(project, {"type": "expect", "tools_called": ["t"], "max_tokens": 5})
    dump = spec.model_dump(exclude_unset=True)
    assert (dump["toolsCalled"], dump["maxTokens"]) == (["t"], 5)


# An entry of a type that an earlier case had takes a shorter way: it must end in the same place.

EARLIER = """\
- id: earlier
  input: Hello
  evaluators:
    - {type: contains, value: Hi}
    - {type: regex, value: Hi}
    - {type: tool_trajectory, expected: [{tool: search}]}
    - {type: composite, evaluators: [{type: contains, value: Hi}]}
"""


@pytest.mark.parametrize(
    "entries",
    [
        ["{type: contains}"],
        ["{type: contains, value: 1}"],
        ["{type: contains, value: Hi, vaule: Hi}"],
        ["{type: contains, value: Hi, x-own: 1}", "{type: contains, value: Hi, values: [a]}"],
        ["{type: contains, value: Hi, weigth: 1}", "{type: regex, value: '('}"],
        ["{type: not-contains, value: Hi}", "{type: contains, value: Hi, wieght: 1}"],
        ["{type: contains, value: Hi}", "{type: nothing}", "{type: [contains]}", "contains", "{}"],
        ["{type: contains, name: a, value: Hi}", "{type: regex, name: a, value: Hi}"],
        ["{type: contains, name: a, value: 1}", "{type: regex, name: a, value: Hi}"],
        ["{type: tool_trajectory, expected: [{tool: a, any_of: [{tool: b}], x: 1}]}"],
        ["{type: composite, evaluators: [{type: contains, values: []}, {type: regex, a: 1}]}"],
        ["{type: composite, evaluators: []}"],
    ],
)
def test_the_fast_path_gives_the_same_message(project: Project, entries: list[str]) -> None:
    here = suite_of(*entries)
    lines = EARLIER.count("\n")
    first = [(p.line, p.column, p.code, p.message, p.hint) for p in project.problems(here)]
    later = [(p.line - lines, *rest(p)) for p in project.problems(EARLIER + here)]
    assert later == first


def rest(problem: assay.Problem) -> tuple[int, str, str, str]:
    return problem.column, problem.code, problem.message, problem.hint


def test_entries_of_known_types_are_named(project: Project) -> None:
    entries = [
        "{type: contains, value: a}",
        "{type: contains, value: b}",
        "{type: regex, value: c}",
    ]
    _, second = project.suite(EARLIER + suite_of(*entries)).cases
    assert [spec.name for spec in second.evaluators] == ["contains", "contains_2", "regex"]
