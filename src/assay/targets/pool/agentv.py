"""`.agentv/targets.yaml`: the targets of AgentV, translated into ours."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from assay.errors import ConfigError
from assay.settings import TargetEntry, read_yaml
from assay.wire.document import Document
from assay.wire.shape import Shape
from assay.wire.text_files import is_absent
from assay.wire.validation import check
from assay.wire.validation_context import ValidationContext

FILES = (".agentv/targets.yaml", ".agentv/targets.yml")
#: Settings of AgentV itself, not of the target.
_IGNORED = frozenset(
    {
        *("judge_target", "verbose", "version"),
        *("keep_temp_files", "keep_output_files", "log_dir", "log_format", "retry"),
        *("max_retries", "retry_initial_delay_ms", "retry_max_delay_ms"),
        *("retry_backoff_factor", "retry_status_codes"),
        *("delay_ms", "delay_min_ms", "delay_max_ms"),
    }
)

Values = dict[str, Any]


class _TargetsFile(Shape):
    model_config = ConfigDict(extra="allow")

    targets: list[TargetEntry]


def targets_file(root: Path) -> tuple[Document | None, list[TargetEntry]]:
    """The file of a project and its targets; raises ConfigError when it is invalid."""
    for name in FILES:
        file = root / name
        document = None if is_absent(file) else read_yaml(file)
        if document is not None:
            context = ValidationContext()
            found, problems = check(_TargetsFile, document, (), document.data, context)
            problems = [p for p in (*document.problems, *problems) if p.severity == "error"]
            if found is None or problems:
                raise ConfigError(problems)
            return document, found.targets
    return None, []


def translated(raw: Values) -> Values:
    """The settings of an entry with the keys of our providers; ours may be named too."""
    values = {_snake(key): value for key, value in raw.items()}
    # A key in snake case wins over the same one in camel case.
    values |= {key: value for key, value in raw.items() if key == _snake(key)}
    kept = {key: value for key, value in values.items() if key not in _IGNORED}
    if kept.get("provider_batching") is False:
        del kept["provider_batching"]  # true is left, and reported as an unknown key
    translate = _PROVIDERS.get(str(raw["provider"]))
    return translate(kept) if translate else kept


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: f"_{match[0]}", key).lower()


def _command(values: Values) -> Values:
    """As in AgentV, a program gets the whole environment and runs in the eval file's folder."""
    folder, health = values.get("cwd"), values.get("healthcheck")
    if not (isinstance(folder, str) and os.path.isabs(folder)):
        folder = "{EVAL_DIR}" + (f"/{folder}" if folder else "")
    if isinstance(health, dict):
        health = health.get("url") or health.get("command_template") or health
    checked = {"healthcheck": health} if health is not None else {}
    return {**values, "provider": "command", "cwd": folder, "env": ["*"], **checked}


def _mock(values: Values) -> Values:
    response = values.pop("response", None)
    if response is None:
        return {**values, "provider": "echo"}
    return {**values, "provider": "scripted", "replies": [response]}


def _openai_at(base_url: str, **defaults: Any) -> Callable[[Values], Values]:
    def translate(values: Values) -> Values:
        return {"base_url": base_url, **defaults, **_chat(values), "provider": "openai"}

    return translate


def _azure(values: Values) -> Values:
    """Azure's OpenAI-compatible API, where the deployment is the model."""
    endpoint = values.pop("endpoint", None) or values.pop("resource", "")
    deployment = values.pop("deployment", None)
    model = {"model": deployment} if deployment else {}
    base_url = endpoint
    if isinstance(endpoint, str):  # any other type is reported when the settings are validated
        host = endpoint if "://" in endpoint else f"https://{endpoint}.openai.azure.com"
        base_url = f"{host.rstrip('/')}/openai/v1"
    return {**_chat(values), **model, "base_url": base_url, "provider": "openai"}


def _chat(values: Values) -> Values:
    limit = values.pop("max_output_tokens", None)
    return values if limit is None else {**values, "max_tokens": limit}


_GEMINI = _openai_at(
    "https://generativelanguage.googleapis.com/v1beta/openai", model="gemini-3.5-flash-lite"
)
_PROVIDERS: dict[str, Callable[[Values], Values]] = {
    "cli": _command,
    "mock": _mock,
    "azure": _azure,
    "azure-openai": _azure,
    "openai": _chat,
    "anthropic": _chat,
    "openrouter": _openai_at("https://openrouter.ai/api/v1"),
    "gemini": _GEMINI,
    "google": _GEMINI,
    "google-gemini": _GEMINI,
}
