"""The registry of tools, and what it says about old cases."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ConfigError, ToolRegistryError
from assay.model.case import EvalSuite
from assay.model.run import SuiteMetadata
from assay.model.tool import ToolEntry
from assay.settings import Settings
from assay.suites import staleness
from assay.suites.staleness import ToolRegistry, load_registry, suite_metadata
from unit.conftest import Project

DESCRIPTION = "Tells the weather — of any city."
HASH = hashlib.sha256(DESCRIPTION.encode()).hexdigest()[:12]
TOOLS: list[dict[str, Any]] = [
    {"name": "get_weather", "version": "2.1.0", "description": DESCRIPTION, "inputSchema": {}},
    {"name": "old", "deprecated": True},
]


def registry(*tools: dict[str, Any]) -> ToolRegistry:
    return ToolRegistry({tool["name"]: ToolEntry(**tool) for tool in tools})


def suite(tool: str = "get_weather", tier: Any = "golden", **recorded: Any) -> EvalSuite:
    return EvalSuite(f"{tool}.{tier}", (), tier=tier, tool_name=tool, metadata=recorded)


def warned(what: EvalSuite, *tools: dict[str, Any]) -> list[str]:
    return staleness.warnings(what, registry(*(tools or TOOLS)))


def test_an_unchanged_tool_gives_no_warning() -> None:
    assert warned(suite()) == []
    recorded: dict[str, Any] = {"toolVersion": "2.9", "descriptionHash": HASH, "registrySize": 2}
    assert warned(suite(**recorded)) == []


@pytest.mark.parametrize("length", [12, 16, 64])
def test_a_longer_hash_is_accepted(length: int) -> None:
    whole = hashlib.sha256(DESCRIPTION.encode()).hexdigest().upper()
    assert warned(suite(descriptionHash=whole[:length])) == []


@pytest.mark.parametrize("recorded", ["0" * 12, HASH[:6], HASH + "0"])
def test_a_changed_description_gives_a_warning(recorded: str) -> None:
    (warning,) = warned(suite(descriptionHash=recorded))
    assert warning == (
        f"the description of 'get_weather' changed: its hash was {recorded!r} and is {HASH!r}"
    )


def test_a_recorded_description_replaces_its_hash() -> None:
    assert warned(suite(description=DESCRIPTION)) == []
    assert len(warned(suite(description="another"))) == 1


@pytest.mark.parametrize(
    ("before", "now", "warns"),
    [
        ("1.9.9", "2.0.0", True),
        ("2.0.0", "2.9.9", False),
        ("v2", "2.1", False),
        ("02.1", "2.1", False),
        ("1", "10", True),
        ("", "2.0", False),
        ("latest", "latest", False),
        ("latest", "3.0", True),
    ],
)
def test_a_changed_major_version_gives_a_warning(before: str, now: str, warns: bool) -> None:
    found = warned(suite(toolVersion=before), {"name": "get_weather", "version": now})
    assert found == (
        [f"the major version of 'get_weather' changed from {before!r} to {now!r}"] if warns else []
    )


@pytest.mark.parametrize(("before", "warns"), [(2, True), (3, False), (0, False), (4, False)])
def test_a_larger_registry_gives_a_warning(before: int, warns: bool) -> None:
    tools = [{"name": name} for name in ("get_weather", "b", "c", "d")]
    found = warned(suite(registrySize=before), *tools)
    assert found == ([f"the registry grew from {before} to 4 tools"] if warns else [])


def test_a_removed_or_deprecated_tool_gives_a_warning() -> None:
    gone = ["the tool 'get_wether' is not in the registry (did you mean 'get_weather'?)"]
    assert warned(suite("get_wether")) == gone
    assert warned(suite("old")) == ["the tool 'old' is deprecated"]
    assert staleness.warnings(suite("x"), registry()) == ["the tool 'x' is not in the registry"]


def test_a_rubric_file_need_not_be_named_after_a_tool() -> None:
    assert warned(suite("trip", "rubric")) == []
    assert len(warned(suite("trip", "rubric", toolName="trip"))) == 1


def test_without_a_registry_or_a_tier_nothing_is_stale() -> None:
    assert staleness.warnings(suite(descriptionHash="0" * 12), None) == []
    assert warned(suite("trip", "suite")) == []


def test_metadata_are_the_current_values() -> None:
    assert suite_metadata(suite(toolVersion="1.0"), registry(*TOOLS)) == SuiteMetadata(
        tool_version="2.1.0", description_hash=HASH, registry_size=2, eval_file_hash=""
    )
    unknown = SuiteMetadata("", "", 0, "")
    assert suite_metadata(suite(toolVersion="1.0"), None) == unknown
    assert suite_metadata(suite("gone"), registry()) == unknown
    assert suite_metadata(suite("old"), registry(*TOOLS)).description_hash == ""


def test_hashes_are_the_first_twelve_digits(project: Project) -> None:
    project.write("a.golden.json", "[]")
    hashed = {
        name: staleness.eval_file_hash(Path(name), Settings.find(project.root))
        for name in ("a.golden.json", "nowhere.json")
    }
    assert hashed == {
        "a.golden.json": hashlib.sha256(b"[]").hexdigest()[:12],
        "nowhere.json": "",
    }


# Where the registry comes from


def loaded(project: Project, config: str) -> ToolRegistry | None:
    project.write("assay.yaml", config)
    return load_registry(Settings.find(project.root))


def names(found: ToolRegistry | None) -> list[str]:
    assert found is not None
    return list(found.tools)


def test_no_registry_is_none(project: Project) -> None:
    assert loaded(project, "{}\n") is None


def test_a_file_lists_the_tools(project: Project) -> None:
    project.write("data/tools.json", json.dumps(TOOLS))
    assert names(loaded(project, "tools: data/tools.json\n")) == ["get_weather", "old"]
    assert names(loaded(project, "tools: {file: data/tools.json}\n")) == ["get_weather", "old"]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_lists_the_tools(
    project: Project, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = f"registry_{kind.partition(' ')[0]}"
    project.write(f"{module}.py", f"{kind} tools():\n    return {TOOLS!r}\n")
    assert names(loaded(project, f"tools: python:{module}:tools\n")) == ["get_weather", "old"]


def test_a_program_lists_the_tools(project: Project) -> None:
    project.write("tools.json", json.dumps(TOOLS))
    assert names(loaded(project, "tools: command:cat tools.json | cat\n")) == ["get_weather", "old"]
    config = "tools: {command: [cat, ../tools.json], cwd: sub}\n"
    project.write("sub/x")
    assert names(loaded(project, config)) == ["get_weather", "old"]


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ("[", "tools.json:1:2: error[json-syntax]"),
        ('{"tools": []}', "tools.json:1:1: error[wrong-type]: the registry is a mapping"),
        ('[\n {"version": "1"}]', "tools.json:2:2: error[missing-key]: the key 'name' is missing"),
        ('[{"name": ""}]', "tools.json:1:11: error[wrong-value]"),
        ('[{"name": "a", "version": 2}]', "tools.json:1:27: error[wrong-type]"),
        ('[{"name": "a", "deprecated": "no"}]', "it must be true or false"),
        ('["a"]', "must be a mapping"),
        ('[{"name": "a"},\n{"name": "a"}]', "tools.json:2:10: error[wrong-value]: the tool 'a' is"),
        ('[{"name": "a", "name": "b"}]', "duplicate-key"),
        ("[" * 500 + "]" * 500, "too-deep"),
    ],
)
def test_a_broken_file_is_reported_with_its_position(
    project: Project, text: str, warns: str
) -> None:
    project.write("tools.json", text)
    with pytest.raises(ConfigError) as caught:
        loaded(project, "tools: tools.json\n")
    assert warns in str(caught.value)


def test_a_file_that_is_missing_is_named(project: Project) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json: error\[not-found\]"):
        loaded(project, "tools: nowhere.json\n")


def test_an_invalid_registry_is_reported_with_its_source(project: Project) -> None:
    with pytest.raises(ToolRegistryError) as caught:
        loaded(project, "tools: command:echo '[{}]'\n")
    assert str(caught.value) == (
        "command \"echo '[{}]'\" did not return a valid registry of tools:\n"
        "  command \"echo '[{}]'\":1:2: the key 'name' is missing"
    )
    assert (caught.value.exit_code, caught.value.slug) == (2, "tool-registry")
