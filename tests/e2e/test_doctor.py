"""`assay doctor`: every part of a project is looked at, and what is wrong says what to do."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from assay.service import doctor

KEY = "sk-never-to-be-shown-12345"


@pytest.fixture
def port() -> Iterator[int]:
    """A port where something listens and is never asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
    return found


def states(document: Any, area: str) -> dict[str, str]:
    """The worst state of each name of an area."""
    order = ("ok", "warning", "problem")
    found: dict[str, str] = {}
    for check in document["checks"]:
        if check["area"] == area:
            found[check["name"]] = max(
                found.get(check["name"], "ok"), check["state"], key=order.index
            )
    return found


def said(document: Any, area: str, name: str) -> str:
    return " ".join(
        f"{check['message']} {check['fix']}"
        for check in document["checks"]
        if (check["area"], check["name"]) == (area, name)
    )


def test_all_is_well(place: Any, port: int) -> None:
    place.write("mine.py", "def answer(question):\n    return 'x'\n")
    place.write(
        "assay.yaml",
        f"""\
targets:
  - {{name: web, provider: http, url: "http://127.0.0.1:{port}/ask"}}
  - {{name: recorded, provider: replay, file: seen.jsonl}}
  - {{name: own, provider: openai, model: m, base_url: "http://127.0.0.1:{port}"}}
  - {{name: program, provider: command, command: ["{sys.executable}", "-c", "1"]}}
judge: own
""",
    )
    document = place.json("doctor", "--json", code=0)
    assert document["exitCode"] == 0
    assert states(document, "target") == dict.fromkeys(("web", "recorded", "own", "program"), "ok")
    assert states(document, "judge") == {"own": "ok"}
    assert states(document, "store") == {"disk": "ok", "sqlite": "ok"}
    assert "the first run creates .assay/assay.db" in said(document, "store", "sqlite")
    assert not (place.root / ".assay").exists(), "looking makes nothing"


def test_every_line_has_its_state_and_what_to_do(place: Any) -> None:
    lines = place.assay("doctor").stdout.splitlines()
    assert all(line.startswith(("ok  ", "warning  ", "problem  ", "   ")) for line in lines)
    index = next(i for i, line in enumerate(lines) if "no target is configured" in line)
    assert "list some under 'targets'" in lines[index + 1]


def test_every_problem_of_the_configuration_is_told(place: Any) -> None:
    place.write("assay.yaml", "targtes: []\nstore: nowhere\n")
    document = place.json("doctor", "--json", code=2)
    messages = [check["message"] for check in document["checks"]]
    assert any("assay.yaml:1:1" in message and "targtes" in message for message in messages)
    assert any("assay.yaml:2" in message for message in messages)
    assert any("did you mean 'targets'?" in check["fix"] for check in document["checks"])


def test_what_is_wrong_with_each_target_is_told(place: Any) -> None:
    place.write(
        "assay.yaml",
        """\
targets:
  - {name: unknown, provider: opnai}
  - {name: incomplete, provider: openai}
  - {name: keyless, provider: anthropic, model: m}
  - {name: gone, provider: python, callable: "nowhere_at_all:answer"}
  - {name: program, provider: command, command: [no-such-program]}
  - {name: file, provider: replay, file: nothing.jsonl}
  - {name: variable, provider: openai, model: "${{ NOT_SET_AT_ALL }}"}
""",
    )
    document = place.json("doctor", "--json", code=2)
    assert set(states(document, "target").values()) == {"problem"}
    assert "openai" in said(document, "target", "unknown")
    assert "model" in said(document, "target", "incomplete")
    assert "environment variable ANTHROPIC_API_KEY" in said(document, "target", "keyless")
    assert "nowhere_at_all" in said(document, "target", "gone")
    assert "no program 'no-such-program'" in said(document, "target", "program")
    assert "nothing.jsonl" in said(document, "target", "file")
    assert "NOT_SET_AT_ALL" in said(document, "target", "variable")


def test_what_cannot_be_reached_is_exit_code_3(place: Any) -> None:
    place.write(
        "assay.yaml",
        f"""\
targets:
  - {{name: down, provider: http, url: "http://127.0.0.1:{closed_port()}/ask"}}
""",
    )
    document = place.json("doctor", "--json", code=3)
    assert "cannot be reached" in said(document, "target", "down")
    assert "start the server" in said(document, "target", "down")


def test_one_target_is_checked_in_place_of_all(place: Any, port: int) -> None:
    place.write("assay.yaml", "targets: [{name: broken, provider: opnai}]")
    document = place.json("doctor", "--json", "--target", f"http://127.0.0.1:{port}/", code=0)
    assert list(states(document, "target").values()) == ["ok"]
    document = place.json("doctor", "--json", "--target", "brokn", code=2)
    assert "did you mean 'broken'?" in said(document, "target", "brokn")


def test_keys_are_never_shown(place: Any, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    place.write(
        "assay.yaml",
        f"""\
targets:
  - {{name: env, provider: openai, model: m, base_url: "http://127.0.0.1:{port}"}}
  - {{name: written, provider: openai, model: m, api_key: {KEY}, base_url: "ftp://{KEY}"}}
  - {{name: web, provider: http, url: "http://127.0.0.1:{port}/{KEY}", headers: {{A: {KEY}}}}}
""",
    )
    result = place.assay("doctor", code=2)
    assert KEY not in result.output
    assert "target env: it has an API key" in result.stdout


def test_targets_of_agentv_only_warn(place: Any) -> None:
    place.write(".agentv/targets.yaml", "targets:\n  - {name: vs, provider: vscode}\n")
    document = place.json("doctor", "--json", code=0)
    assert states(document, "target") == {"vs": "warning"}


def test_a_store_is_opened_and_written(place: Any) -> None:
    place.run()
    document = place.json("doctor", "--json", code=0)
    assert "it can be read and written, schema" in said(document, "store", "sqlite")


def test_another_store_is_looked_at(place: Any) -> None:
    document = place.json("doctor", "--store", "sqlite:other.db", "--json", code=0)
    assert "the first run creates other.db" in said(document, "store", "sqlite")
    place.json("doctor", "--store", "nosuch:x", "--json", code=2)
    assert not list(place.root.glob("*.db"))


def test_a_store_of_another_program_is_exit_code_3(place: Any) -> None:
    place.write("notes.db", "this is no database, and it is longer than the head of one " * 20)
    place.write("assay.yaml", "store: sqlite:notes.db")
    document = place.json("doctor", "--json", code=3)
    assert states(document, "store")["sqlite"] == "problem"


def test_a_full_disk_is_reported(place: Any) -> None:
    def free(space: int) -> list[doctor.Finding]:
        return doctor.examine(probe=doctor.Probe(free=lambda folder: space))

    assert doctor.exit_code(free(10 << 30)) == 0
    little = [f for f in free(500 << 20) if f.name == "disk"]
    assert [(f.state, f.message) for f in little] == [("warning", "only 500 MiB free")]
    assert doctor.exit_code(free(1 << 20)) == 3


def test_the_seed_manifest_and_the_tools_are_read(place: Any) -> None:
    place.write("assay.yaml", "seed_manifest: evals/seeds.json\ntools: tools.json\n")
    place.write("tools.json", json.dumps([{"name": "get_weather"}]))
    document = place.json("doctor", "--json", code=0)
    assert states(document, "seed manifest") == {"evals/seeds.json": "warning"}
    assert "1 tool " in said(document, "tools", "registry")
    place.write("evals/seeds.json", "{")
    place.write("tools.json", json.dumps([{"nmae": "x"}]))
    document = place.json("doctor", "--json", code=2)
    assert "evals/seeds.json:1" in said(document, "seed manifest", "evals/seeds.json")
    assert "tools.json:1" in said(document, "tools", "registry")


def test_a_plugin_that_cannot_be_imported_is_told(place: Any) -> None:
    place.write("assay.yaml", "plugins: [no_such_module_at_all]")
    document = place.json("doctor", "--json", code=2)
    assert "no_such_module_at_all" in said(document, "plugins", "no_such_module_at_all")


def test_git_is_looked_at(place: Any) -> None:
    assert states(place.json("doctor", "--json", code=0), "git") == {"revision": "warning"}
    identity = "-c user.name=a -c user.email=a@example.com"
    commit = f"git init -q . && git {identity} commit -q --allow-empty -m x"
    subprocess.run(commit, shell=True, check=True)
    document = place.json("doctor", "--json", code=0)
    assert states(document, "git") == {"revision": "ok"}
    assert states(document, "project") == {"root": "ok", "configuration": "ok"}
