"""Which values of a project are hidden."""

from __future__ import annotations

from typing import Any

import pytest

from assay.redaction import MARK, Redactor
from assay.service.secrets import secrets_of, secrets_of_target
from assay.settings import Settings
from assay.targets.pool.target_pool import TargetPool
from unit.conftest import Project, invoke

CONFIG = """
targets:
  - name: agent
    provider: http
    url: https://agent.example/${{ AGENT_PATH }}
    headers: {Authorization: 'Bearer ${{ AGENT_TOKEN }}', X-Plain: written-in-the-file}
  - {name: gpt, provider: openai, model: '${{ MODEL_NAME }}', api_key: sk-from-the-file}
  - {name: local, provider: command, command: ./agent, env: [AGENT_PASSWORD]}
  - {name: wrong, provider: openai, api_key: sk-of-a-wrong-entry, modle: x}
  - {name: none, provider: nobody, setting: '{{ env.NOBODYS_KEY }}'}
judge: {provider: anthropic, model: claude, headers: {x: '${{ JUDGE_HEADER }}'}}
store: postgresql://me:store%20pa55word@host/db
snapshot: {command: [./capture], env: [CAPTURE_TOKEN]}
"""
VARIABLES = {
    "AGENT_PATH": "path-of-the-agent",
    "AGENT_TOKEN": "token-of-the-agent",
    "MODEL_NAME": "gpt-6-luna",
    "AGENT_PASSWORD": "password-of-the-agent",
    "NOBODYS_KEY": "key-of-nobody",
    "JUDGE_HEADER": "header-of-the-judge",
    "CAPTURE_TOKEN": "token-of-the-capture",
    "OPENAI_API_KEY": "key-of-openai",
    "ASSAY_API_TOKENS": "read:first-token,second-token, short, half;half",
    "UNRELATED": "value-of-another-program",
}


@pytest.fixture
def settings(project: Project, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    project.write("assay.yaml", CONFIG)
    return Settings.find(project.root)


def test_everything_that_targets_judge_store_and_server_name_is_secret(settings: Settings) -> None:
    found = secrets_of(settings)
    assert found >= {
        "path-of-the-agent",
        "token-of-the-agent",
        "Bearer token-of-the-agent",
        "written-in-the-file",
        "sk-from-the-file",
        "password-of-the-agent",
        "key-of-nobody",
        "header-of-the-judge",
        "token-of-the-capture",
        "key-of-openai",
        "first-token",
        "second-token",
        "half;half",
        "store pa55word",
    }
    assert found.isdisjoint({"gpt-6-luna", "value-of-another-program", "short", "Bearer"})


def test_a_wrong_entry_keeps_its_secret_and_those_of_others(settings: Settings) -> None:
    assert "sk-of-a-wrong-entry" in secrets_of(settings)
    assert "AGENT_TOKEN" not in secrets_of(settings)
    text = "said token-of-the-agent and key-of-nobody"
    assert Redactor(secrets_of(settings)).text(text) == f"said {MARK} and {MARK}"


def test_variables_of_agentv_are_secret(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_KEY", "key-of-azure")
    project.write(
        ".agentv/targets.yaml",
        """
        targets:
          - {name: a, provider: azure, resource: x, deployment: y, api_key: '${{ AZURE_KEY }}'}
          - {name: b, provider: cli, command_template: './run {PROMPT}'}
        """,
    )
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "token-of-a-service")
    monkeypatch.setenv("SOME_SETTING", "setting-of-a-service")
    found = secrets_of(Settings.find(project.root))
    assert {"key-of-azure", "token-of-a-service"} <= found
    assert "setting-of-a-service" not in found


def test_a_broken_agentv_file_is_ignored(project: Project) -> None:
    project.write(".agentv/targets.yaml", "targets: 3\n")
    assert secrets_of(Settings.find(project.root)) == secrets_of(Settings(project.root))


def test_the_secrets_of_a_target_are_found(settings: Settings) -> None:
    specs: dict[str, Any] = {spec.name: spec for spec in TargetPool(settings).specs()}
    assert set(specs) == {"agent", "gpt", "local", ""}  # the judge needs no name
    assert specs["gpt"].secrets == {"sk-from-the-file"}
    assert specs["local"].secrets == set()
    assert secrets_of_target(specs["local"]) == {"password-of-the-agent"}
    assert "token-of-the-agent" in specs["agent"].secrets


def test_an_invalid_store_url_is_ignored(project: Project) -> None:
    project.write("assay.yaml", "store: 'postgresql://[::1/db'\n")
    assert "postgresql" not in str(secrets_of(Settings.find(project.root)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("url: '${{ AGENT_PATH }}'", f"'{MARK}' is not an address"),
        ("url: 'http://x/', headers: the-secret-alone", f"'headers' is '{MARK}'"),
        ("url: 'http://x/', headers: {a: '${{ UNSET_TOKEN }}'}", "'UNSET_TOKEN' is not set"),
    ],
)
def test_a_message_about_a_wrong_setting_shows_no_secret(
    project: Project, monkeypatch: pytest.MonkeyPatch, settings: str, words: str
) -> None:
    monkeypatch.setenv("AGENT_PATH", "path-of-the-agent")
    project.write("assay.yaml", f"targets: [{{name: a, provider: http, {settings}}}]\n")
    project.write("one.eval.yaml", "cases: [{id: a, input: x, expected_output: x}]\n")
    done = invoke("run", ".", "--target", "a")
    assert done.exit_code == 2
    assert words in done.stderr


def test_an_invalid_configuration_is_still_reported(project: Project) -> None:
    project.write("assay.yaml", "tragets: [sk-0123456789abcdef01]\n")
    done = invoke("run", ".")
    assert (done.exit_code, "the key 'tragets'" in done.stderr) == (2, True)
