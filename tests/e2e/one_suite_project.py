"""A project of one suite, and the command run in it without a new process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from assay.cli.app import app
from assay.model.suite_result import ResultFile
from assay.service.schema import schema

SUITE = """\
cases:
  - id: warm
    input: How warm is it?
    expect: {response_contains: ["21"], tools_called: [get_weather]}
  - id: cold
    input: How cold is it?
    expect: {response_contains: ["-4"]}
  - id: later
    input: And tomorrow?
    skip: not yet
    expect: {response_contains: ["18"]}
"""
CALL = {"name": "get_weather", "params": {"city": "Oslo"}, "result": 21, "success": True}
SEEN = [
    {"id": "warm", "response": "It is 21.", "toolCalls": [CALL], "durationMs": 12.5},
    {"id": "cold", "response": "No idea.", "toolCalls": [], "usage": {"inputTokens": 3}},
]


class OneSuiteProject:
    """The folder that the test stands in."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, content: str | list[Any]) -> Path:
        """A text, or a list as lines of JSON."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(line) + "\n" for line in content)
        file.write_text(content, encoding="utf-8")
        return file

    def assay(self, *arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, arguments, prog_name="assay")
        crash = result.exception
        if crash is not None and not isinstance(crash, SystemExit):
            raise crash
        assert result.exit_code == code, result.output
        return result

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.assay(*arguments, code=code).stdout)

    def run(self, *arguments: str, code: int = 1) -> Any:
        """The JSON document of a run of the sample suite on recorded answers."""
        options = ("--target", "replay:seen.jsonl", "--json", *arguments)
        return self.json("run", "evals", *options, code=code)


def checked_result(data: bytes | str) -> dict[str, Any]:
    """The document of a result file, which must fit its schema and be read as it was written."""
    document: dict[str, Any] = msgspec.json.decode(data)
    faults = Draft202012Validator(schema("result")).iter_errors(document)
    assert [f"{list(fault.path)}: {fault.message}" for fault in faults] == []
    result = msgspec.json.decode(data, type=ResultFile)
    again = msgspec.json.encode(result)
    assert msgspec.json.decode(again) == document  # every key is declared
    assert msgspec.json.decode(again, type=ResultFile) == result
    return document


def outcomes(document: Any) -> dict[str, str]:
    """The outcome of every case of a run's document, by suite and id."""
    return {
        f"{suite['file']}:{case['id']}": case["details"]["outcome"]
        for suite in document["suites"]
        for case in suite["cases"]
    }
