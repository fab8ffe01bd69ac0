"""The case interfaces of the tiers, and what is checked when a tier file is loaded."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ValidationError

import assay
from assay.model.expect import Expect, ExpectBase, snake, texts_in

if TYPE_CHECKING:
    from unit.conftest import Project

Raw = dict[str, Any]

CASES: dict[str, Raw] = {
    "golden": {
        "id": "gs-get_weather-001",
        "description": "Asks for the weather of one city",
        "input": {"message": "What is the weather in Paris?"},
        "expect": {
            "toolsCalled": ["get_weather"],
            "noToolErrors": True,
            "responseNonEmpty": True,
        },
    },
    "labeled": {
        "id": "ls-get_weather-001",
        "description": "Could be today or tomorrow",
        "difficulty": "ambiguous",
        "input": {"message": "Paris?"},
        "expect": {"responseNonEmpty": True},
    },
    "regression": {
        "id": "rg-get_weather-001",
        "description": "regression — the unit was lost",
        "difficulty": "regression",
        "createdAt": "2026-01-15T10:30:00Z",
        "bugRef": "#123",
        "input": {"message": "Weather in Paris in Celsius?"},
        "expect": {"responseContains": ["°C"]},
    },
    "rubric": {
        "id": "weather-summary",
        "description": "Combines three tools",
        "input": {"message": "Plan my day in Paris"},
        "rubric": [{"dimension": "accuracy", "maxScore": 1, "criteria": "1: agrees with the data"}],
    },
}
EXPECT_TIERS = ("golden", "labeled", "regression")
FORMATS: dict[str, type[BaseModel]] = {
    "golden": assay.GoldenEvalCase,
    "labeled": assay.LabeledEvalCase,
    "regression": assay.RegressionEvalCase,
    "rubric": assay.RubricEvalCase,
}


def made(tier: str, **changes: Any) -> Raw:
    """A right case of the tier with other keys."""
    return {**deepcopy(CASES[tier]), **changes}


def expecting(tier: str, **changes: Any) -> Raw:
    """A right case of the tier with other keys in its `expect` block."""
    return made(tier, expect={**CASES[tier]["expect"], **changes})


def without(raw: Raw, *path: str) -> Raw:
    raw = deepcopy(raw)
    parent = raw
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return raw


def text_of(*cases: Any) -> str:
    """A tier file with one case a line; the first is on line 2, from column 3."""
    return "[\n" + ",\n".join("  " + json.dumps(raw, ensure_ascii=False) for raw in cases) + "\n]\n"


def spot(text: str, part: str, slug: str) -> str:
    """The position of a part of the text, in the form of `Project.refused`."""
    before = text[: text.index(part)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))} {slug}"


def load_one(project: Project, tier: str, raw: Raw) -> assay.EvalCase:
    return project.case(text_of(raw), f"get_weather.{tier}.json")


def block_of(project: Project, tier: str, raw: Raw) -> ExpectBase:
    (block,) = load_one(project, tier, raw).evaluators
    assert isinstance(block, ExpectBase)
    return block


def refuse(project: Project, tier: str, raw: Any, part: str, slug: str) -> str:
    """The message about the case, which must be the only one and at `part` of the file."""
    text = text_of(raw)
    place, message = project.refused(text, f"get_weather.{tier}.json")
    assert place == spot(text, part, slug)
    return message


# All tiers


@pytest.mark.parametrize("tier", CASES)
def test_a_right_case_loads(project: Project, tier: str) -> None:
    suite = project.suite(text_of(CASES[tier]), f"get_weather.{tier}.json")
    (case,) = suite
    assert (suite.tier, suite.tool_name, case.tier) == (tier, "get_weather", tier)
    assert (case.id, case.description) == (CASES[tier]["id"], CASES[tier]["description"])
    assert [message.to_dict() for message in case.input_messages] == [
        {"role": "user", "content": CASES[tier]["input"]["message"]}
    ]
    assert case.origin == (f"get_weather.{tier}.json", 2, 3)
    assert [spec.type for spec in case.evaluators] == ["rubric" if tier == "rubric" else "expect"]


@pytest.mark.parametrize("tier", CASES)
def test_the_evaluator_is_named_after_its_type(project: Project, tier: str) -> None:
    (spec,) = load_one(project, tier, CASES[tier]).evaluators
    assert spec.name == spec.type


@pytest.mark.parametrize("tier", EXPECT_TIERS)
def test_the_expect_block_is_a_gate(project: Project, tier: str) -> None:
    (spec,) = load_one(project, tier, CASES[tier]).evaluators
    assert spec.required is True


@pytest.mark.parametrize("tier", CASES)
def test_a_default_part_has_the_position_of_its_case(project: Project, tier: str) -> None:
    case = load_one(project, tier, CASES[tier])
    origin = case.origin_of("evaluators.0")
    assert (origin.file, origin.line) == (f"get_weather.{tier}.json", 2)


@pytest.mark.parametrize(
    ("tier", "good"),
    [
        ("golden", "gs-get_weather-001"),
        ("golden", "gs-get-weather-v2-1000"),
        ("golden", "gs-other_tool-001"),
        ("labeled", "ls-get_weather-042"),
        ("regression", "rg-get_weather-999"),
        ("rubric", "any name will do"),
    ],
)
def test_id_format(project: Project, tier: str, good: str) -> None:
    assert load_one(project, tier, made(tier, id=good)).id == good


@pytest.mark.parametrize(
    ("tier", "bad"),
    [
        ("golden", "gs-get_weather-01"),
        ("golden", "ls-get_weather-001"),
        ("golden", "GS-get_weather-001"),
        ("golden", "gs-001"),
        ("golden", "gs--001"),
        ("golden", "gs-get weather-001"),
        ("golden", "gs-get_weather-001a"),
        ("golden", "gs-get_weather-١٢٣"),
        ("golden", " gs-get_weather-001"),
        ("golden", "gs-get_weather-001\n"),
        ("golden", ""),
        ("labeled", "gs-get_weather-001"),
        ("labeled", "ls-get_weather-1"),
        ("regression", "ls-get_weather-001"),
        ("regression", "rg-get_weather"),
    ],
)
def test_id_format_refused(project: Project, tier: str, bad: str) -> None:
    shown = json.dumps(bad, ensure_ascii=False)
    message = refuse(project, tier, made(tier, id=bad), shown, "bad-id")
    prefix = {"golden": "gs", "labeled": "ls", "regression": "rg"}[tier]
    assert f"{prefix}-<toolname>-NNN" in message


def test_rubric_id_is_not_empty(project: Project) -> None:
    refuse(project, "rubric", made("rubric", id=""), '""', "wrong-value")


@pytest.mark.parametrize(
    ("tier", "path"),
    [
        *[(tier, (key,)) for tier in CASES for key in ("id", "description", "input")],
        *[(tier, ("input", "message")) for tier in CASES],
        *[(tier, ("expect",)) for tier in EXPECT_TIERS],
        *[("golden", ("expect", key)) for key in CASES["golden"]["expect"]],
        ("labeled", ("difficulty",)),
        ("regression", ("difficulty",)),
        ("regression", ("createdAt",)),
        ("regression", ("bugRef",)),
        ("rubric", ("rubric",)),
    ],
)
def test_keys_the_seed_requires(project: Project, tier: str, path: tuple[str, ...]) -> None:
    raw = without(CASES[tier], *path)
    text = text_of(raw)
    place, message = project.refused(text, f"get_weather.{tier}.json")
    holder: Any = raw
    for key in path[:-1]:
        holder = holder[key]
    assert place == spot(text, json.dumps(holder, ensure_ascii=False), "missing-key")
    assert f"the key {path[-1]!r}" in message
    assert "is missing" in message


@pytest.mark.parametrize("tier", CASES)
def test_a_missing_key_suggests_only_spellings_of_its_tier(project: Project, tier: str) -> None:
    _, message = project.refused(
        text_of(without(CASES[tier], "description")), f"get_weather.{tier}.json"
    )
    assert "outcome" not in message


@pytest.mark.parametrize("tier", CASES)
@pytest.mark.parametrize(
    ("key", "value", "slug"),
    [
        ("id", 7, "wrong-type"),
        ("description", 7, "wrong-type"),
        ("description", None, "wrong-type"),
        ("input", "text", "wrong-type"),
        ("tags", "one", "wrong-type"),
        ("metadata", [], "wrong-type"),
        ("critical", "yes", "wrong-type"),
        ("cluster", 1, "wrong-type"),
        ("skip", True, "wrong-type"),
        ("skip", "", "wrong-value"),
        ("stubs", [], "wrong-type"),
        ("maxTurns", 0, "wrong-value"),
        ("maxTurns", 1.5, "wrong-type"),
    ],
)
def test_wrong_types_and_values(
    project: Project, tier: str, key: str, value: object, slug: str
) -> None:
    raw = {key: value, **without(made(tier, **{key: value}), key)}
    text = text_of(raw)
    place, message = project.refused(text, f"get_weather.{tier}.json")
    assert place == f"2:{len('  {' + json.dumps(key) + ': ') + 1} {slug}"
    assert f"{key!r} is " in message


@pytest.mark.parametrize("tier", CASES)
def test_input_message_is_not_empty(project: Project, tier: str) -> None:
    message = refuse(project, tier, made(tier, input={"message": ""}), '""', "wrong-value")
    assert "'message' is ''; it must not be empty" in message


@pytest.mark.parametrize("tier", CASES)
def test_no_unknown_key(project: Project, tier: str) -> None:
    message = refuse(project, tier, made(tier, descripton="x"), '"descripton"', "unknown-key")
    assert "did you mean 'description'?" in message


@pytest.mark.parametrize("tier", CASES)
def test_no_unknown_key_in_input(project: Project, tier: str) -> None:
    raw = made(tier, input={"message": "hi", "mesage": "hi"})
    assert "'message'" in refuse(project, tier, raw, '"mesage"', "unknown-key")


@pytest.mark.parametrize("tier", EXPECT_TIERS)
def test_no_unknown_key_in_expect(project: Project, tier: str) -> None:
    raw = expecting(tier, responseContain=["x"])
    assert "'responseContains'" in refuse(project, tier, raw, '"responseContain"', "unknown-key")


@pytest.mark.parametrize(
    ("tier", "key"),
    [
        ("golden", "difficulty"),
        ("golden", "bugRef"),
        ("golden", "rubric"),
        ("labeled", "createdAt"),
        ("labeled", "referenceData"),
        ("regression", "rubric"),
        ("rubric", "expect"),
        ("rubric", "difficulty"),
    ],
)
def test_no_key_of_another_tier(project: Project, tier: str, key: str) -> None:
    value = {"difficulty": "edge", "expect": {"responseNonEmpty": True}}.get(key, "x")
    refuse(project, tier, made(tier, **{key: value}), json.dumps(key), "unknown-key")


@pytest.mark.parametrize("tier", CASES)
def test_own_keys_start_with_x(project: Project, tier: str) -> None:
    assert load_one(project, tier, {**CASES[tier], "x-owner": "me"}).id == CASES[tier]["id"]


@pytest.mark.parametrize("tier", CASES)
def test_cases_may_also_carry(project: Project, tier: str) -> None:
    carried = {
        "tags": ["a", "b"],
        "metadata": {"owner": {"team": 1}},
        "critical": False,
        "cluster": "paris",
        "skip": "the tool is down",
        "stubs": {"get_weather": {"temp": 20}, "other": None},
        "maxTurns": 2,
    }
    case = load_one(project, tier, made(tier, **carried))
    assert case.tags == ("a", "b")
    assert case.metadata == {"owner": {"team": 1}}
    assert case.critical is False
    assert (case.cluster, case.skip, case.max_turns) == ("paris", "the tool is down", 2)
    assert case.stubs == {"get_weather": {"temp": 20}, "other": None}


@pytest.mark.parametrize("tier", CASES)
def test_max_turns_defaults_to_5(project: Project, tier: str) -> None:
    assert load_one(project, tier, CASES[tier]).max_turns == 5


@pytest.mark.parametrize("tier", CASES)
def test_a_case_is_a_mapping(project: Project, tier: str) -> None:
    text = text_of(CASES[tier], "hello")
    place, message = project.refused(text, f"get_weather.{tier}.json")
    assert place == "3:3 wrong-type"
    assert "a mapping" in message


def test_all_faults_of_all_cases_are_reported_in_file_order(project: Project) -> None:
    text = text_of(
        made("labeled", id="ls-x-1", difficulty="hard"), expecting("labeled", maxTokens=-17)
    )
    assert project.refusals(text, "x.labeled.json") == [
        spot(text, '"ls-x-1"', "bad-id"),
        spot(text, '"hard"', "wrong-value"),
        spot(text, "-17", "wrong-value"),
    ]


# The file


def test_root_is_a_bare_array_or_an_envelope(project: Project) -> None:
    envelope = {
        "metadata": {
            "toolName": "get_forecast",
            "toolVersion": "1.2.0",
            "descriptionHash": "0123456789ab",
            "description": "Forecasts",
            "registrySize": 12,
            "generatedAt": "2026-01-15",
            "tier": "golden",
            "author": {"kept": True},
        },
        "cases": [CASES["golden"]],
    }
    suite = project.suite(json.dumps(envelope), "get_weather.golden.json")
    assert suite.metadata == envelope["metadata"]
    assert suite.tool_name == "get_forecast"
    assert suite.cases[0].id == "gs-get_weather-001"


def test_envelope_without_metadata(project: Project) -> None:
    suite = project.suite(json.dumps({"cases": [CASES["golden"]]}), "get_weather.golden.json")
    assert (len(suite), suite.tool_name) == (1, "get_weather")


@pytest.mark.parametrize(
    ("root", "part", "slug"),
    [
        ({"case": [], "cases": [CASES["golden"]]}, '"case"', "unknown-key"),
        ({"metadata": {"tier": "labeled"}, "cases": [CASES["golden"]]}, '"labeled"', "wrong-value"),
        ({"metadata": {"tier": "gold"}, "cases": [CASES["golden"]]}, '"gold"', "wrong-value"),
        ({"metadata": {"registrySize": "12"}, "cases": [CASES["golden"]]}, '"12"', "wrong-type"),
        ({"metadata": {"registrySize": -1}, "cases": [CASES["golden"]]}, "-1", "wrong-value"),
        ({"metadata": {"toolName": 1}, "cases": [CASES["golden"]]}, "1", "wrong-type"),
        ({"metadata": [], "cases": [CASES["golden"]]}, "[]", "wrong-type"),
        ({"metadata": {}}, "{", "missing-key"),
        ({"cases": {}}, "{}", "wrong-type"),
        ({"cases": []}, "[]", "no-cases"),
        ([], "[]", "no-cases"),
        (None, "null", "wrong-type"),
        ("text", '"text"', "wrong-type"),
        (7, "7", "wrong-type"),
    ],
)
def test_wrong_roots(project: Project, root: object, part: str, slug: str) -> None:
    text = json.dumps(root)
    place, _ = project.refused(text, "get_weather.golden.json")
    assert place == spot(text, part, slug)


def test_ids_are_unique_in_a_file(project: Project) -> None:
    text = text_of(CASES["golden"], made("golden", description="other"))
    place, message = project.refused(text, "get_weather.golden.json")
    assert place == "3:10 duplicate-id"
    assert "'gs-get_weather-001' is taken by the case on line 2" in message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[{"id": 1,}]', "1:11 json-syntax"),
        ("[{'id': 1}]", "1:3 json-syntax"),
        ('[{"id": 1}] // no', "1:13 json-syntax"),
        ('[{"id": "a", "id": "b"}]', "1:14 duplicate-key"),
        ('[{"maxTurns": NaN}]', "1:15 bad-number"),
        ('[{"maxTurns": 1e999}]', "1:15 bad-number"),
    ],
)
def test_a_tier_file_is_strict_json(project: Project, text: str, place: str) -> None:
    assert place in project.refusals(text, "get_weather.golden.json")


# GoldenEvalCase


def test_golden_tools_called_exactly(project: Project) -> None:
    block = block_of(project, "golden", expecting("golden", toolsCalled=["a", "b"]))
    assert block.model_dump(exclude_unset=True) == {
        "type": "expect",
        "toolsCalled": ["a", "b"],
        "noToolErrors": True,
        "responseNonEmpty": True,
    }


def test_golden_takes_every_optional_key_of_the_seed(project: Project) -> None:
    optional = {
        "responseContains": ["$178.50"],
        "responseContainsAny": [["sunny", "clear"], ["warm"]],
        "responseNotContains": ["I don't know", "API_KEY"],
        "maxLatencyMs": 5000,
    }
    block = block_of(project, "golden", expecting("golden", **optional))
    given = block.model_dump(exclude_unset=True)
    assert {key: given[key] for key in optional} == optional


def test_golden_takes_no_tools_acceptable(project: Project) -> None:
    raw = without(expecting("golden", toolsAcceptable=[["a"]]), "expect", "toolsCalled")
    text = text_of(raw)
    assert project.refusals(text, "x.golden.json") == [
        spot(text, json.dumps(raw["expect"]), "missing-key"),
        spot(text, '"toolsAcceptable"', "unknown-key"),
    ]


def test_golden_no_tool_is_an_empty_list(project: Project) -> None:
    block = block_of(project, "golden", expecting("golden", toolsCalled=[]))
    assert sorted(block.asserted()) == ["noToolErrors", "responseNonEmpty", "toolsCalled"]


# LabeledEvalCase


@pytest.mark.parametrize("difficulty", ["straightforward", "ambiguous", "edge"])
def test_labeled_difficulty(project: Project, difficulty: str) -> None:
    case = load_one(project, "labeled", made("labeled", difficulty=difficulty))
    assert case.difficulty == difficulty


@pytest.mark.parametrize("difficulty", ["hard", "Edge", "regression", "", None, 1])
def test_labeled_difficulty_refused(project: Project, difficulty: object) -> None:
    raw = {"difficulty": difficulty, **without(CASES["labeled"], "difficulty")}
    message = refuse(project, "labeled", raw, json.dumps(difficulty), "wrong-value")
    assert "straightforward, ambiguous, edge" in message


def test_labeled_takes_every_key_of_the_seed(project: Project) -> None:
    keys = {
        "toolsAcceptable": [["get_weather"], ["get_weather", "get_forecast"]],
        "toolsNotCalled": ["delete_all"],
        "noToolErrors": True,
        "responseNonEmpty": True,
        "responseContains": ["a"],
        "responseContainsAny": [["a", "b"]],
        "responseNotContains": ["c"],
        "responseMatches": [r"\d+ °C"],
        "maxLatencyMs": 1.5,
        "maxTokens": 200,
    }
    block = block_of(project, "labeled", made("labeled", expect=keys))
    given = block.model_dump(exclude_unset=True)
    assert {key: given[key] for key in keys} == keys


# RegressionEvalCase


def test_regression_difficulty(project: Project) -> None:
    assert load_one(project, "regression", CASES["regression"]).difficulty == "regression"


@pytest.mark.parametrize("difficulty", ["edge", "regresion", None])
def test_regression_difficulty_refused(project: Project, difficulty: object) -> None:
    raw = {"difficulty": difficulty, **without(CASES["regression"], "difficulty")}
    message = refuse(project, "regression", raw, json.dumps(difficulty), "wrong-value")
    assert "it must be one of regression" in message


@pytest.mark.parametrize(
    "created",
    [
        "2026-01-15",
        "2026-01-15T10:30:00Z",
        "2026-01-15T10:30:00+02:00",
        "2026-01-15T10:30:00.123Z",
        "20260115T103000Z",
    ],
)
def test_regression_created_at_is_iso_8601(project: Project, created: str) -> None:
    case = load_one(project, "regression", made("regression", createdAt=created))
    assert case.created_at == created


@pytest.mark.parametrize(
    "created",
    [
        "15.01.2026",
        "01/15/2026",
        "yesterday",
        "2026-13-01",
        "2026-02-30",
        "2026-1-5",
        "2026-01-15x10:30:00",
        "2026-01-15T25:00:00Z",
        "",
    ],
)
def test_regression_created_at_refused(project: Project, created: str) -> None:
    raw = made("regression", createdAt=created)
    message = refuse(project, "regression", raw, json.dumps(created), "bad-date")
    assert "ISO 8601" in message


def test_regression_created_at_is_text(project: Project) -> None:
    refuse(project, "regression", made("regression", createdAt=20260115), "20260115", "wrong-type")


@pytest.mark.parametrize("reference", ["#123", "0a1b2c3"])
def test_regression_bug_ref(project: Project, reference: str) -> None:
    case = load_one(project, "regression", made("regression", bugRef=reference))
    assert case.bug_ref == reference


@pytest.mark.parametrize(("reference", "slug"), [("", "wrong-value"), (123, "wrong-type")])
def test_regression_bug_ref_refused(project: Project, reference: object, slug: str) -> None:
    raw = {"bugRef": reference, **without(CASES["regression"], "bugRef")}
    refuse(project, "regression", raw, json.dumps(reference), slug)


def test_regression_takes_all_expect_keys(project: Project) -> None:
    keys = {
        "toolsAcceptable": [["get_weather"]],
        "toolsNotCalled": ["x"],
        "responseMatches": ["a+"],
        "maxTokens": 5,
        "jsonValid": True,
    }
    block = block_of(project, "regression", made("regression", expect=keys))
    given = block.model_dump(exclude_unset=True)
    assert {key: given[key] for key in keys} == keys


def test_regression_description_and_tool_are_free(project: Project) -> None:
    raw = made("regression", description="the unit was lost", id="rg-other-001")
    assert load_one(project, "regression", raw).description == "the unit was lost"


SNAPSHOTS = [
    {"responseContains": ["ok", "costs {{snapshot:price}}"]},
    {"responseContainsAny": [["a", "{{ snapshot:items[0].name }}"]]},
    {"responseNotContains": ["{{snapshot:secret}}"]},
    {
        "toolParams": [
            {"tool": "t", "paramName": "p", "assertion": "equals", "value": "{{snapshot:x}}"}
        ]
    },
    {
        "toolParams": [
            {"tool": "t", "paramName": "p", "assertion": "oneOf", "value": ["{{snapshot:x}}"]}
        ]
    },
    {
        "toolParams": [
            {"tool": "t", "paramName": "p", "assertion": "equals", "value": {"a": "{{snapshot:x}}"}}
        ]
    },
]


def test_a_wrong_tier_is_reported_together_with_other_faults_of_the_metadata(
    project: Project,
) -> None:
    text = json.dumps({"metadata": {"tier": "labeled", "toolName": 5}, "cases": [CASES["golden"]]})
    assert project.refusals(text, "x.golden.json") == [
        spot(text, '"labeled"', "wrong-value"),
        spot(text, "5}", "wrong-type"),
    ]


@pytest.mark.parametrize("expect", SNAPSHOTS)
def test_regression_takes_no_snapshot_token(project: Project, expect: Raw) -> None:
    (token,) = [text for _, text in texts_in(expect) if "snapshot" in text]
    raw = made("regression", expect=expect)
    message = refuse(project, "regression", raw, json.dumps(token), "snapshot-token")
    assert "{{" in message
    assert "snapshot:" in message


def test_regression_takes_no_snapshot_token_anywhere(project: Project) -> None:
    raw = made(
        "regression", input={"message": "What is {{snapshot:a}}?"}, stubs={"t": "{{snapshot:b}}"}
    )
    slugs = [problem.code for problem in project.problems(text_of(raw), "x.regression.json")]
    assert slugs == ["bad-token", "snapshot-token", "snapshot-token"]


@pytest.mark.parametrize(
    "block",
    [
        {"responseMatches": ["{{seed:a}}"]},
        {"toolsCalled": ["{{snapshot:a}}"]},
        {"toolsNotCalled": ["{{ seed:a }}"]},
        {"toolsAcceptable": [["{{seed:a}}"]]},
    ],
)
def test_a_token_in_the_wrong_place_is_an_error(project: Project, block: Raw) -> None:
    text = text_of(made("labeled", expect=block))
    assert project.refusals(text, "x.labeled.json") == [spot(text, '"{{', "bad-token")]


@pytest.mark.parametrize(
    "token",
    ["{{seed}}", "{{ seed.x }}", "{{seed:a{b}}}", "{{seed:x}", "{{:x}}", "a {{snapshot}} b"],
)
def test_a_malformed_token_is_an_error(project: Project, token: str) -> None:
    text = text_of(made("labeled", expect={"responseContains": [token]}))
    assert project.refusals(text, "x.labeled.json") == [spot(text, json.dumps(token), "bad-token")]


@pytest.mark.parametrize("words", ["{{seedling}}", "{{ name }}", "{{seed-data}}", "{seed:x}"])
def test_other_braces_are_text(project: Project, words: str) -> None:
    block = {"responseContains": [words]}
    assert block_of(project, "labeled", expecting("labeled", **block)).responseContains == [words]


def test_snapshot_tokens_are_reported_together_with_other_faults(project: Project) -> None:
    block = {
        "minLength": 3,
        "maxLength": 2,
        "response_contains": ["{{snapshot:a}}", 5, "{{snapshot:b}}"],
        "toolParams": [{"tool": "{{snapshot:c}}", "value": ["{{snapshot:d}}"]}, "x"],
    }
    text = text_of(made("regression", expect=block))
    assert project.refusals(text, "x.regression.json") == [
        spot(text, '"{{snapshot:a', "snapshot-token"),
        spot(text, "5, ", "wrong-type"),
        spot(text, '"{{snapshot:b', "snapshot-token"),
        spot(text, '{"tool"', "missing-key"),
        spot(text, '{"tool"', "missing-key"),
        spot(text, '"{{snapshot:c', "bad-token"),
        spot(text, '"{{snapshot:c', "snapshot-token"),
        spot(text, '"{{snapshot:d', "snapshot-token"),
        spot(text, '"x"', "wrong-type"),
    ]


def test_a_snapshot_token_is_reported_together_with_a_conflict(project: Project) -> None:
    block = {"minLength": 3, "maxLength": 2, "responseContains": ["{{snapshot:a}}"]}
    text = text_of(made("regression", expect=block))
    assert project.refusals(text, "x.regression.json") == [
        spot(text, "3, ", "conflicting-keys"),
        spot(text, '"{{snapshot:a', "snapshot-token"),
    ]


@pytest.mark.parametrize("block", [5, None, [], "x"])
def test_a_regression_block_that_is_not_a_mapping(project: Project, block: object) -> None:
    raw = made("regression", expect=block)
    place = project.refusals(text_of(raw), "x.regression.json")
    assert [entry.split()[1] for entry in place] == ["wrong-type"]


@pytest.mark.parametrize("tier", ["golden", "labeled"])
@pytest.mark.parametrize("expect", SNAPSHOTS)
def test_other_tiers_take_snapshot_tokens(project: Project, tier: str, expect: Raw) -> None:
    assert block_of(project, tier, expecting(tier, **expect)).model_fields_set >= set(expect)


def test_regression_takes_seed_tokens(project: Project) -> None:
    project.write("evals/seed-manifest.json", '{"price": 12}')
    raw = expecting("regression", responseContains=["costs {{seed:price}}"])
    suite = project.suite(text_of(raw), "x.regression.json")
    assert [warning.code for warning in suite.warnings] == ["unlocked-regression"]


@pytest.mark.parametrize("tier", EXPECT_TIERS)
def test_an_unresolved_seed_token_is_a_warning_at_its_position(project: Project, tier: str) -> None:
    text = text_of(expecting(tier, responseContains=["fine", "costs {{seed:price}}"]))
    warnings = project.suite(text, f"x.{tier}.json").warnings
    (warning,) = [w for w in warnings if w.code == "unresolved-seed"]
    assert project.place(warning) == spot(text, '"costs', "unresolved-seed")
    assert "evals/seed-manifest.json" in warning.message


# RubricEvalCase


def test_rubric_dimensions(project: Project) -> None:
    dimensions = [
        {"dimension": "accuracy", "maxScore": 1, "criteria": "1: right"},
        {"dimension": "depth", "maxScore": 5, "criteria": "5: complete"},
    ]
    case = load_one(project, "rubric", made("rubric", rubric=dimensions))
    (evaluator,) = case.evaluators
    assert isinstance(evaluator, assay.RubricEvaluator)
    assert [
        (item.id, item.description, item.max_score, item.required) for item in evaluator.rubrics
    ] == [("accuracy", "1: right", 1, True), ("depth", "5: complete", 5, False)]


def test_rubric_reference_data(project: Project) -> None:
    truth = {"get_weather": {"temp": [20, None]}}
    case = load_one(project, "rubric", made("rubric", referenceData=truth))
    assert case.reference_data == truth
    assert load_one(project, "rubric", CASES["rubric"]).reference_data is None


def test_rubric_reference_data_is_a_record(project: Project) -> None:
    refuse(project, "rubric", made("rubric", referenceData=[1]), "[1]", "wrong-type")


@pytest.mark.parametrize(
    ("rubric", "part", "slug"),
    [
        ([], "[]", "wrong-value"),
        ("accuracy", '"accuracy"', "wrong-type"),
        ({"dimension": "a"}, '{"dimension"', "wrong-type"),
        (["be right"], '"be right"', "wrong-type"),
        ([{"maxScore": 1, "criteria": "c"}], '{"maxScore"', "missing-key"),
        ([{"dimension": "a", "criteria": "c"}], '{"dimension"', "missing-key"),
        ([{"dimension": "a", "maxScore": 1}], '{"dimension"', "missing-key"),
        ([{"dimension": "", "maxScore": 1, "criteria": "c"}], '""', "wrong-value"),
        ([{"dimension": "a", "maxScore": 1, "criteria": ""}], '""', "wrong-value"),
        ([{"dimension": "a", "maxScore": 0, "criteria": "c"}], "0,", "wrong-value"),
        ([{"dimension": "a", "maxScore": -1, "criteria": "c"}], "-1", "wrong-value"),
        ([{"dimension": "a", "maxScore": "5", "criteria": "c"}], '"5"', "wrong-type"),
        ([{"dimension": "a", "maxScore": True, "criteria": "c"}], "true", "wrong-type"),
        (
            [{"dimension": "a", "maxScore": 1, "criteria": "c", "max_score": 1}],
            '"max_score"',
            "unknown-key",
        ),
    ],
)
def test_rubric_refused(project: Project, rubric: object, part: str, slug: str) -> None:
    refuse(project, "rubric", {"rubric": rubric, **without(CASES["rubric"], "rubric")}, part, slug)


def test_rubric_dimensions_are_unique(project: Project) -> None:
    twice = CASES["rubric"]["rubric"] * 2
    twice = [twice[0], {**twice[-1], "dimension": twice[0]["dimension"], "maxScore": 0}]
    text = text_of(made("rubric", rubric=twice))
    first, second = project.problems(text, "x.rubric.json")
    column = text.splitlines()[1].rindex('"accuracy"') + 1
    assert project.place(first) == f"2:{column} wrong-value"
    assert "the dimension 'accuracy' appears twice" in first.message
    assert second.column > first.column


# The expect block, in every tier that has one


@pytest.mark.parametrize("tier", ["labeled", "regression"])
def test_at_most_one_of_tools_called_and_tools_acceptable(project: Project, tier: str) -> None:
    block = {"toolsCalled": ["a"], "toolsAcceptable": [["a"]]}
    message = refuse(project, tier, made(tier, expect=block), '[["a"]]', "conflicting-keys")
    assert "'toolsCalled' and 'toolsAcceptable' exclude each other" in message


@pytest.mark.parametrize("tier", ["labeled", "regression"])
@pytest.mark.parametrize(
    "block",
    [
        {"toolsCalled": ["a"]},
        {"toolsAcceptable": [["a"], ["a", "b"]]},
        {"responseNonEmpty": True},
    ],
)
def test_one_or_neither_is_fine(project: Project, tier: str, block: Raw) -> None:
    assert block_of(project, tier, made(tier, expect=block)).asserted() == list(block)


@pytest.mark.parametrize("sets", [[["__none__"]], [[]], [["__none__"], ["a"]], [["a"], []]])
def test_no_tool_at_all(project: Project, sets: list[list[str]]) -> None:
    block = block_of(project, "labeled", made("labeled", expect={"toolsAcceptable": sets}))
    assert block.model_dump(exclude_unset=True)["toolsAcceptable"] == sets


@pytest.mark.parametrize("tools", [["__none__", "a"], ["a", "__none__"]])
def test_none_is_alone_in_its_set(project: Project, tools: list[str]) -> None:
    raw = made("labeled", expect={"toolsAcceptable": [["b"], tools]})
    message = refuse(project, "labeled", raw, '"__none__"', "wrong-value")
    assert "'__none__' means no tool and must be the only item" in message


@pytest.mark.parametrize("tier", EXPECT_TIERS)
def test_none_is_not_allowed_in_tools_called(project: Project, tier: str) -> None:
    raw = expecting(tier, toolsCalled=["__none__"])
    place, message = project.refused(text_of(raw), f"x.{tier}.json")
    assert place.startswith("2:")
    assert place.endswith(" wrong-value")
    assert "toolsCalled: []" in message


def test_tools_acceptable_is_not_empty(project: Project) -> None:
    raw = made("labeled", expect={"toolsAcceptable": []})
    assert "at least 1" in refuse(project, "labeled", raw, "[]", "wrong-value")


@pytest.mark.parametrize("tier", ["labeled", "regression"])
@pytest.mark.parametrize(
    "block",
    [
        {},
        {"noToolErrors": False},
        {"responseNonEmpty": False, "responseContains": []},
        {"toolsCalledMode": "sequence"},
    ],
)
def test_a_case_asserts_something(project: Project, tier: str, block: Raw) -> None:
    raw = made(tier, expect=block)
    message = refuse(project, tier, raw, json.dumps(block), "asserts-nothing")
    assert raw["id"] in message


def test_a_skipped_case_may_assert_nothing(project: Project) -> None:
    assert load_one(project, "labeled", made("labeled", expect={}, skip="later")).skip == "later"


@pytest.mark.parametrize(
    "pattern",
    [r"^\d+$", "(?i)paris", r"(?<!not )sunny", r"(a)\1", "°C"],
)
def test_valid_regexes(project: Project, pattern: str) -> None:
    block = block_of(project, "labeled", expecting("labeled", responseMatches=[pattern]))
    assert block.responseMatches == [pattern]


@pytest.mark.parametrize("pattern", ["(", "[a-", "*", r"\1", "(?P<n>a)(?P<n>b)(", "a{2,1}"])
def test_invalid_regexes(project: Project, pattern: str) -> None:
    raw = expecting("labeled", responseMatches=["fine", pattern])
    message = refuse(project, "labeled", raw, json.dumps(pattern), "bad-regex")
    assert repr(pattern) in message
    assert "does not compile" in message


@pytest.mark.parametrize("tier", EXPECT_TIERS)
@pytest.mark.parametrize("key", ["maxLatencyMs", "maxTokens", "maxCostUsd"])
@pytest.mark.parametrize(
    ("value", "slug"),
    [(0, "wrong-value"), (-5, "wrong-value"), ("100", "wrong-type"), (True, "wrong-type")],
)
def test_budgets_are_above_zero(
    project: Project, tier: str, key: str, value: object, slug: str
) -> None:
    raw = made(tier, expect={key: value, **CASES[tier]["expect"]})
    text = text_of(raw)
    place, message = project.refused(text, f"x.{tier}.json")
    column = text.splitlines()[1].index(json.dumps(key)) + len(json.dumps(key)) + 3
    assert place == f"2:{column} {slug}"
    assert f"'{key}' is" in message


@pytest.mark.parametrize("key", ["maxLatencyMs", "maxTokens", "maxCostUsd"])
@pytest.mark.parametrize("value", [1, 0.001, 10_000])
def test_budgets(project: Project, key: str, value: float) -> None:
    block = block_of(project, "labeled", expecting("labeled", **{key: value}))
    assert getattr(block, key) == value


@pytest.mark.parametrize("tier", EXPECT_TIERS)
def test_no_empty_synonym_group(project: Project, tier: str) -> None:
    raw = expecting(tier, responseContainsAny=[["a", "b"], []])
    assert "responseContainsAny[1]" in refuse(project, tier, raw, "[]", "wrong-value")


@pytest.mark.parametrize("tier", EXPECT_TIERS)
@pytest.mark.parametrize("key", ["responseContains", "responseNotContains", "toolsNotCalled"])
def test_no_empty_text(project: Project, tier: str, key: str) -> None:
    raw = expecting(tier, **{key: ["a", ""]})
    assert f"{key}[1]" in refuse(project, tier, raw, '""', "wrong-value")


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("toolsCalled", "get_weather", '"get_weather"'),
        ("toolsCalled", [17], "17"),
        ("toolsAcceptable", ["get_weather"], '"get_weather"'),
        ("toolsNotCalled", {"a": 1}, '{"a"'),
        ("noToolErrors", "yes", '"yes"'),
        ("responseNonEmpty", 1, "1}"),
        ("responseContains", "x", '"x"'),
        ("responseContains", [17], "17"),
        ("responseContainsAny", ["x"], '"x"'),
        ("responseContainsAny", [[17]], "17"),
        ("responseNotContains", None, "null"),
        ("responseMatches", "x", '"x"'),
        ("responseMatches", [17], "17"),
        ("toolParams", {}, "{}"),
        ("toolParams", ["x"], '"x"'),
        ("jsonValid", "x", '"x"'),
        ("jsonSchema", "x", '"x"'),
        ("minToolCalls", 1.5, "1.5"),
        ("minLength", "x", '"x"'),
    ],
)
def test_expect_keys_have_types(project: Project, key: str, value: object, part: str) -> None:
    refuse(project, "labeled", made("labeled", expect={key: value}), part, "wrong-type")


@pytest.mark.parametrize("mode", ["set", "multiset", "sequence"])
def test_tools_called_mode(project: Project, mode: str) -> None:
    raw = expecting("golden", toolsCalledMode=mode)
    assert block_of(project, "golden", raw).toolsCalledMode == mode


def test_tools_called_mode_refused(project: Project) -> None:
    message = refuse(
        project, "golden", expecting("golden", toolsCalledMode="list"), '"list"', "wrong-value"
    )
    assert "set, multiset, sequence" in message


def test_also_keys(project: Project) -> None:
    also = {
        "maxCostUsd": 0.5,
        "minToolCalls": 0,
        "maxToolCalls": 0,
        "jsonValid": True,
        "jsonSchema": {"type": "object"},
        "minLength": 1,
        "maxLength": 1,
    }
    given = block_of(project, "golden", expecting("golden", **also)).model_dump(exclude_unset=True)
    assert {key: given[key] for key in also} == also


@pytest.mark.parametrize(
    ("low", "high"), [("minToolCalls", "maxToolCalls"), ("minLength", "maxLength")]
)
def test_a_minimum_is_not_above_its_maximum(project: Project, low: str, high: str) -> None:
    block = {low: 3, high: 2}
    raw = made("labeled", expect=block)
    message = refuse(project, "labeled", raw, "3, ", "conflicting-keys")
    assert f"{low!r} is 3, above {high} 2" in message


def test_all_conflicts_of_a_block_are_reported(project: Project) -> None:
    block = {
        "minToolCalls": 3,
        "maxToolCalls": 2,
        "min_length": 5,
        "maxLength": 4,
        "toolsCalled": ["__none__"],
        "toolsAcceptable": [["t"]],
    }
    text = text_of(made("labeled", expect=block))
    assert project.refusals(text, "x.labeled.json") == [
        spot(text, "3, ", "conflicting-keys"),
        spot(text, "5, ", "conflicting-keys"),
        spot(text, '"__none__"', "wrong-value"),
        spot(text, '[["t"]]', "conflicting-keys"),
    ]


def test_a_misplaced_none_is_reported_once(project: Project) -> None:
    raw = made("labeled", expect={"toolsCalled": ["a", "__none__"]})
    message = refuse(project, "labeled", raw, '"__none__"', "wrong-value")
    assert "belongs in 'toolsAcceptable'" in message


PARAM = {"tool": "get_weather", "paramName": "place.city"}


@pytest.mark.parametrize(
    "rest",
    [
        {"assertion": "equals", "value": "Paris"},
        {"assertion": "equals", "value": None},
        {"assertion": "equals", "value": {"deep": [1]}},
        {"assertion": "contains", "value": "Par"},
        {"assertion": "oneOf", "value": ["Paris", 1]},
        {"assertion": "exists"},
        {"assertion": "notExists"},
        {"assertion": "matches", "value": "^P"},
        {"assertion": "exists", "call": 2},
    ],
)
def test_tool_params(project: Project, rest: Raw) -> None:
    raw = expecting("golden", toolParams=[{**PARAM, **rest}])
    given = block_of(project, "golden", raw).model_dump(exclude_unset=True)["toolParams"]
    assert given == [{**PARAM, **rest}]


@pytest.mark.parametrize(
    ("param", "part", "slug"),
    [
        ({"paramName": "p", "assertion": "exists"}, '{"paramName"', "missing-key"),
        ({"tool": "t", "assertion": "exists"}, '{"tool"', "missing-key"),
        ({"tool": "t", "paramName": "p"}, '{"tool"', "missing-key"),
        ({**PARAM, "assertion": "equal", "value": 1}, '"equal"', "wrong-value"),
        ({**PARAM, "assertion": "equals"}, '{"tool"', "missing-key"),
        ({**PARAM, "assertion": "contains"}, '{"tool"', "missing-key"),
        ({**PARAM, "assertion": "matches"}, '{"tool"', "missing-key"),
        ({**PARAM, "assertion": "oneOf"}, '{"tool"', "missing-key"),
        ({**PARAM, "assertion": "oneOf", "value": "a"}, '"a"', "wrong-type"),
        ({**PARAM, "assertion": "oneOf", "value": []}, "[]}", "wrong-type"),
        ({**PARAM, "assertion": "matches", "value": 5}, "5}", "wrong-type"),
        ({**PARAM, "assertion": "matches", "value": "("}, '"("', "bad-regex"),
        ({**PARAM, "assertion": "exists", "value": 1}, "1}", "conflicting-keys"),
        ({**PARAM, "assertion": "notExists", "value": 1}, "1}", "conflicting-keys"),
        ({**PARAM, "assertion": "exists", "call": 0}, "0}", "wrong-value"),
        ({**PARAM, "assertion": "exists", "calls": 1}, '"calls"', "unknown-key"),
    ],
)
def test_tool_params_refused(project: Project, param: Raw, part: str, slug: str) -> None:
    refuse(project, "labeled", made("labeled", expect={"toolParams": [param]}), part, slug)


@pytest.mark.parametrize(
    ("block", "hint"),
    [
        ({"responseContains": ["{{sed:x}}"]}, "did you mean 'seed'?"),
        ({"responseContainsAny": [["a", "is {{snapshoot:x}}"]]}, "did you mean 'snapshot'?"),
        ({"responseNotContains": ["{{ENV:HOME}}"]}, "'ENV' is not a source"),
        ({"responseContains": ["{{seed:}}"]}, "is not a path"),
        ({"responseContains": ["{{seed:a[x]}}"]}, "is not a path"),
        ({"toolParams": [{**PARAM, "assertion": "equals", "value": "{{sed:x}}"}]}, "'seed'"),
        ({"toolParams": [{**PARAM, "assertion": "oneOf", "value": ["{{sed:x}}"]}]}, "'seed'"),
        ({"toolParams": [{**PARAM, "assertion": "equals", "value": {"a": "{{sed:x}}"}}]}, "'seed'"),
    ],
)
def test_an_unknown_token_source_is_an_error(project: Project, block: Raw, hint: str) -> None:
    (text,) = [text for _, text in texts_in(block) if "{{" in text]
    raw = made("labeled", expect=block)
    assert hint in refuse(project, "labeled", raw, json.dumps(text), "bad-token")


def test_the_position_of_a_bad_token(project: Project) -> None:
    raw = expecting("labeled", responseContains=["fine", "costs {{sed:x}}"])
    refuse(project, "labeled", raw, '"costs', "bad-token")


def test_snake_case_keys_mean_the_same(project: Project) -> None:
    raw = made("labeled", expect={"tools_called": ["a"], "max_latency_ms": 5})
    block = block_of(project, "labeled", raw)
    assert block.model_dump(exclude_unset=True) == {
        "type": "expect",
        "toolsCalled": ["a"],
        "maxLatencyMs": 5,
    }


def test_positions_of_parts(project: Project) -> None:
    text = text_of(expecting("golden", responseContains=["one", "two"]))
    case = project.case(text, "x.golden.json")
    for path, part in [
        ("id", '"gs-'),
        ("input", '{"message"'),
        ("input.message", '"What'),
        ("expect", '{"toolsCalled"'),
        ("expect.responseContains.1", '"two"'),
    ]:
        origin = case.origin_of(path)
        assert f"{origin.line}:{origin.column} {path}" == spot(text, part, path)


# The wire shapes themselves


@pytest.mark.parametrize("tier", CASES)
def test_a_wire_shape_validates_a_case(tier: str) -> None:
    shape = FORMATS[tier].model_validate(CASES[tier])
    assert shape.model_dump(exclude_unset=True, mode="json") == CASES[tier]


@pytest.mark.parametrize(
    ("tier", "changes", "place"),
    [
        ("golden", {"id": "ls-x-001"}, ("id",)),
        ("golden", {"expect": {"toolsCalled": [], "noToolErrors": True}}, ("expect",)),
        ("labeled", {"difficulty": "hard"}, ("difficulty",)),
        ("labeled", {"expect": {"toolsCalled": [], "toolsAcceptable": [[]]}}, ("expect",)),
        ("regression", {"createdAt": "now"}, ("createdAt",)),
        ("regression", {"bugRef": ""}, ("bugRef",)),
        ("regression", {"expect": {"responseContains": ["{{snapshot:x}}"]}}, ()),
        ("rubric", {"rubric": []}, ("rubric",)),
        ("rubric", {"input": {}}, ("input",)),
        ("golden", {"surprise": 1}, ("surprise",)),
    ],
)
def test_a_wire_shape_refuses_a_case(tier: str, changes: Raw, place: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as refused:
        FORMATS[tier].model_validate(made(tier, **changes))
    (fault,) = refused.value.errors()
    assert fault["loc"][: len(place)] == place


@pytest.mark.parametrize("tier", CASES)
def test_a_wire_shape_is_frozen(tier: str) -> None:
    shape = FORMATS[tier].model_validate(CASES[tier])
    with pytest.raises(ValidationError, match="frozen"):
        shape.id = "other"  # type: ignore[attr-defined]


# A key set to false asserts nothing

OFF = [key for key in Expect.model_fields if key != "toolsCalledMode"]


@pytest.mark.parametrize("key", OFF)
def test_a_key_set_to_false_asserts_nothing(project: Project, key: str) -> None:
    for spelling in {key, snake(key)}:
        alone = f"id: a\ninput: x\nexpect: {{{spelling}: false}}\n"
        assert [p.code for p in project.problems(alone)] == ["asserts-nothing"]
        beside = f"id: a\ninput: x\nexpect: {{{spelling}: false, minLength: 1}}\n"
        if key != "minLength":
            block: Any = project.case(beside).evaluators[0]
            assert block.asserted() == ["minLength"]
