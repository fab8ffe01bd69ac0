"""`.agentv/targets.yaml`: targets of AgentV, found by name and asked as ours."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ConfigError, UnknownName
from assay.settings import Settings
from assay.targets.pool.target_pool import TargetPool
from unit.conftest import Project
from unit.target_calls import answer, in_file, request

ECHO = f"{sys.executable} -c 'import sys; print(sys.argv[1])' {{PROMPT}}"


def pool(project: Project, agentv: str, config: str = "{}\n") -> TargetPool:
    project.write("assay.yaml", config)
    project.write(".agentv/targets.yaml", agentv)
    return TargetPool(Settings.find(project.root))


def entries(*targets: dict[str, Any]) -> str:
    return json.dumps({"targets": targets})


def settings(project: Project, **entry: Any) -> dict[str, Any]:
    """The settings of the target that an entry stands for."""
    known = pool(project, entries({"name": "mine", **entry}))
    return known.spec("mine").model_dump(exclude_unset=True)


def refused(project: Project, agentv: str, name: str = "mine") -> str:
    with pytest.raises(ConfigError) as caught:
        pool(project, agentv).target(name)
    return str(caught.value)


def test_an_address_that_is_not_text_is_reported(project: Project) -> None:
    wrong = entries({"name": "mine", "provider": "azure", "endpoint": ["https://x"]})
    assert "'base_url'" in refused(project, wrong)


def test_a_cli_target_is_a_command(project: Project) -> None:
    known = pool(project, entries({"name": "mine", "provider": "cli", "command_template": ECHO}))
    target = known.target("mine")
    assert (answer(target, request("a b")).response, target.name) == ("a b", "mine")


def test_a_cli_target_runs_in_the_folder_of_the_eval_file_with_all_variables(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "set")
    project.write(
        "evals/agent.py", "import os, sys; open(sys.argv[1], 'w').write(os.environ['MY_KEY'])"
    )
    command = f"{sys.executable} agent.py {{OUTPUT_FILE}}"
    known = pool(project, entries({"name": "mine", "provider": "cli", "command_template": command}))
    asked = request(locate=in_file(Path("evals/suite.yaml")))
    assert answer(known.target("mine"), asked).response == "set"


def test_the_settings_of_a_cli_target_are_known(project: Project) -> None:
    found = settings(
        project,
        provider="cli",
        commandTemplate="agent {PROMPT} {FILES}",
        attachmentsFormat="--file {path}",
        cwd="bin",
        timeoutSeconds=3.5,
        healthcheck={"type": "http", "url": "http://localhost:1/health", "timeout_seconds": 2},
        workers=3,
        judge_target="judge",
        verbose=True,
        keepTempFiles=True,
        providerBatching=False,
    )
    assert found == {
        "name": "mine",
        "provider": "command",
        "command": ["agent", "{PROMPT}", "{FILES}"],
        "files_format": "--file {path}",
        "cwd": "{EVAL_DIR}/bin",
        "env": ["*"],
        "timeout_seconds": 3.5,
        "healthcheck": ["http://localhost:1/health"],
        "workers": 3,
    }


def test_a_healthcheck_may_be_a_command_and_the_folder_absolute(project: Project) -> None:
    found = settings(
        project,
        provider="cli",
        command_template="agent",
        commandTemplate="not this",
        cwd=str(project.root),
        healthcheck={"type": "command", "command_template": "agent --version"},
    )
    assert found["command"] == ["agent"]
    assert found["cwd"] == str(project.root)
    assert found["healthcheck"] == ["agent", "--version"]


def test_a_mock_gives_its_response_or_says_the_question_back(project: Project) -> None:
    mocks = entries(
        {"name": "fixed", "provider": "mock", "response": "Hello", "delayMs": 5},
        {"name": "plain", "provider": "mock"},
    )
    known = pool(project, mocks)
    assert answer(known.target("fixed"), request("Hi")).response == "Hello"
    assert answer(known.target("plain"), request("Hi")).response == "Hi"


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        (
            {"provider": "azure", "endpoint": "https://x.example/", "deployment": "gpt-6-sol"},
            {"provider": "openai", "base_url": "https://x.example/openai/v1", "model": "gpt-6-sol"},
        ),
        (
            {"provider": "azure-openai", "resource": "us", "model": "m", "version": "2024-10-01"},
            {"base_url": "https://us.openai.azure.com/openai/v1", "model": "m"},
        ),
        ({"provider": "openai", "model": "m", "max_output_tokens": 9}, {"max_tokens": 9}),
        ({"provider": "anthropic", "model": "m", "maxOutputTokens": 9}, {"max_tokens": 9}),
        ({"provider": "gemini"}, {"provider": "openai", "model": "gemini-3.5-flash-lite"}),
        ({"provider": "google", "model": "g"}, {"model": "g"}),
        (
            {"provider": "openrouter", "model": "m"},
            {"provider": "openai", "base_url": "https://openrouter.ai/api/v1"},
        ),
    ],
)
def test_models_are_called_through_the_matching_provider(
    project: Project, entry: dict[str, Any], wanted: dict[str, Any]
) -> None:
    found = settings(project, api_key="sk-1", max_retries=2, **entry)
    assert found["api_key"].get_secret_value() == "sk-1"
    assert {key: found[key] for key in wanted} == wanted


def test_variables_are_replaced_by_their_values(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_MODEL", "${{ NOT_AGAIN }}")
    found = settings(project, provider="openai", model="${{ MY_MODEL }}")
    assert found["model"] == "${{ NOT_AGAIN }}"
    unset = entries({"name": "mine", "provider": "cli", "command_template": "${{ NOBODY_SET }}"})
    said = refused(project, unset)
    assert ".agentv/targets.yaml:1:" in said
    assert "'NOBODY_SET' is not set" in said


def test_an_unsupported_provider_is_reported_when_it_is_selected(project: Project) -> None:
    agentv = """
    targets:
      - name: mine
        provider: vscode
      - {name: good, provider: mock, response: Hello}
    """
    said = refused(project, agentv)
    assert said.startswith(".agentv/targets.yaml:3:15: error[unknown-name]: ")
    assert "no target provider is called 'vscode'" in said
    assert answer(pool(project, agentv).target("good"), request()).response == "Hello"


@pytest.mark.parametrize(
    ("agentv", "words"),
    [
        ("targets: [{name: mine}]", "the key 'provider' is missing"),
        ("targets: 5", "'targets' is 5; it must be a list"),
        ("other: 5", "the key 'targets' is missing"),
        ("[1]", "must be a mapping"),
        ("targets: [", "error[yaml-syntax]"),
        ("targets: [{name: mine, provider: cli}]", "'command' (or 'command_template') is missing"),
        (
            "targets: [{name: mine, provider: cli, command_template: 'a {PROMT}'}]",
            "targets.yaml:1:57: error[wrong-value]: 'command_template': the placeholder {PROMT}",
        ),
        (
            "targets: [{name: mine, provider: cli, command_template: a, provider_batching: true}]",
            "targets.yaml:1:60: error[unknown-key]: the key 'provider_batching'",
        ),
        (
            "targets: [{name: mine, provider: cli, command_template: a, healthcheck: {type: x}}]",
            "'healthcheck' is a mapping, neither a list of arguments nor text",
        ),
    ],
)
def test_an_invalid_file_is_reported_with_its_place(
    project: Project, agentv: str, words: str
) -> None:
    assert words in refused(project, agentv)


def test_the_configuration_wins(project: Project) -> None:
    config = "targets: [{name: mine, provider: scripted, replies: [ours]}]\n"
    agentv = entries({"name": "mine", "provider": "mock", "response": "theirs"})
    target = pool(project, agentv, config).target("mine")
    assert answer(target, request()).response == "ours"


def test_a_broken_file_does_not_affect_other_targets(project: Project) -> None:
    assert answer(pool(project, "targets: [").target("echo:"), request("Hi")).response == "Hi"


def test_a_name_in_neither_file_offers_the_nearest(project: Project) -> None:
    agentv = entries({"name": "production", "provider": "mock"})
    with pytest.raises(UnknownName, match="did you mean 'production'"):
        pool(project, agentv).target("prodction")


def test_the_other_suffix_is_found_too(project: Project) -> None:
    project.write("assay.yaml", "{}\n")
    project.write(".agentv/targets.yml", entries({"name": "mine", "provider": "mock"}))
    known = TargetPool(Settings.find(project.root))
    assert answer(known.target("mine"), request("Hi")).response == "Hi"


def test_a_built_in_provider_may_be_used(project: Project) -> None:
    found = settings(project, provider="http", url="http://localhost:1/ask")
    assert found["url"] == "http://localhost:1/ask"
