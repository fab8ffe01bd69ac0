"""`assay schema config`: what is written fits it, and what is wrong does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from assay.service.schema import schema

EXAMPLES = Path(__file__).parents[2] / "examples"


def faults(name: str, data: Any) -> list[str]:
    validator = Draft202012Validator(schema(name))
    return [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(data)]


@pytest.mark.parametrize("name", ["config", "result"])
def test_the_command_prints_a_schema_of_the_dialect(place: Any, name: str) -> None:
    printed = place.json("schema", name)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(printed)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/assay.yaml")), ids=lambda f: f.parent.name)
def test_the_configuration_of_an_example_fits(file: Path) -> None:
    assert faults("config", yaml.safe_load(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "config",
    [
        {"targets": [{"name": "a", "provider": "openai", "model": "m", "temperature": 0}]},
        {"targets": [{"name": "a", "provider": "cli", "command_template": "agent {PROMPT}"}]},
        {
            "allow_tools_over_rest": True,
            "targets": [
                {
                    "name": "a",
                    "provider": "anthropic",
                    "model": "m",
                    "tools": ["python:os.path:join", {"name": "b"}],
                    "tool_timeout_seconds": 5,
                }
            ],
        },
        {"judge": "openai:gpt-6-sol", "store": "sqlite:x.db", "tools": "tools.json"},
        {"judge": {"provider": "anthropic", "model": "m"}},
        {"defaults": {"workers": 3, "timeout": 5, "tag": "slow", "tier": ["golden"]}},
        {"defaults": {"evaluators": ["contains", {"type": "regex", "pattern": "x"}]}},
    ],
)
def test_a_right_configuration_fits_and_loads(place: Any, config: dict[str, Any]) -> None:
    assert faults("config", config) == []
    place.write("assay.yaml", json.dumps(config))
    place.assay("validate", "evals")


@pytest.mark.parametrize(
    "config",
    [
        {"targtes": []},
        {"targets": [{"name": "a"}]},
        {"targets": [{"provider": "echo"}]},
        {"targets": [{"name": "a", "provider": "opnai"}]},
        {"targets": [{"name": "a", "provider": "openai"}]},
        {"targets": [{"name": "a", "provider": "openai", "model": "m", "temprature": 0}]},
        {"targets": [{"name": "a", "provider": "openai", "model": "m", "tools": ["os.path:join"]}]},
        {"judge": {"provider": "anthropic", "modle": "m"}},
        {"defaults": {"wrokers": 3}},
        {"defaults": {"workers": 0}},
        {"plugins": ["not a module"]},
    ],
)
def test_a_wrong_configuration_does_not_fit(config: dict[str, Any]) -> None:
    assert faults("config", config)


def test_init_writes_a_configuration_that_editors_can_check(place: Any) -> None:
    place.assay("init", "new")
    text = (place.root / "new" / "assay.yaml").read_text(encoding="utf-8")
    first = text.splitlines()[0]
    assert first == "# yaml-language-server: $schema=assay.schema.json"
    written = json.loads((place.root / "new" / "assay.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(written).validate(yaml.safe_load(text))
    lines = [line for line in text.splitlines() if not line.startswith("# yaml-")]
    out = ("# judge:", "# defaults:", "#   ")  # the rest are remarks
    settings = [line[2:] if line.startswith(out) else line for line in lines]
    sample = "\n".join(line for line in settings if ": " in line or line.endswith(":"))
    assert "judge:" in sample, "what is commented out is named"
    Draft202012Validator(written).validate(yaml.safe_load(sample))
