"""Secrets that an agent gives away are in nothing that a run leaves behind."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from aiohttp import web

from e2e.projects import Agent, Project, outcomes

#: In a variable that a header names, in a setting of the judge, in a variable that a program sees.
IN_HEADER = 'Zk3y-"quoted"/plus+and&more-Qw9x7Header'
IN_SETTING = "plain-secret-of-the-judge-Qw9x7Setting"
IN_VARIABLE = "pa55 word-of-the-program-Qw9x7Variable"
SECRETS = (IN_HEADER, IN_SETTING, IN_VARIABLE)
#: No text of ours has it, so any trace of it is a leak.
TRACE = "Qw9x7"


def forms(secret: str) -> Iterator[str]:
    yield from (secret, quote(secret, safe=""), quote_plus(secret))
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode()


def basic(secret: str) -> str:
    """As in the header of a user who has no name; the same bytes look otherwise then."""
    return base64.b64encode(f":{secret}".encode()).decode()


def leaks(data: bytes) -> list[str]:
    known = [form for secret in SECRETS for form in (*forms(secret), basic(secret)[4:-4])]
    return [form for form in (*known, TRACE) if form.encode() in data]


def everything(text: str) -> str:
    """What an agent may say that has a secret in it."""
    return " | ".join((*forms(text), basic(text)))


SEES = """
def sees(context):
    '''Only a function within the process is shown what was really said.'''
    return {here!r} in context.observation.response
"""
PROGRAM = """
import json, os, sys
key = os.environ["PROGRAM_KEY"]
if sys.argv[1] == "fails":
    sys.exit("denied to " + key)
call = {"tool": key, "input": {key: [key]}, "output": key}
message = {"role": "assistant", "content": key, "tool_calls": [call]}
print(json.dumps({"text": key, "output_messages": [message]}))
"""


@pytest.fixture
def project(home: Project, agent: Agent) -> Project:
    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if "model" in body:
            return web.json_response(judged(f"because of {IN_SETTING}"))
        key = request.headers["X-Key"]
        said = everything(key)
        if body["message"] == "refused":
            return web.json_response({"error": {"message": f"bad key {said}"}}, status=400)
        if body["message"] == "hidden in an error" and len(agent.seen) % 2:
            return web.json_response({"error": {"message": said}}, status=500)
        call = {"name": f"tool {key}", "params": {key: said}, "result": {"k": [said]}}
        failed = {**call, "success": False, "error": said}
        return web.json_response({"response": said, "toolCalls": [call, failed]})

    agent.answer = answer
    http = {
        "name": "http",
        "provider": "http",
        "url": f"{agent.url}/ask?token={quote(IN_SETTING)}",
        "headers": {"X-Key": "${{ AGENT_KEY }}"},
    }
    script = home.write("program.py", PROGRAM)
    program = {
        "name": "program",
        "provider": "command",
        "command": [sys.executable, str(script), "{PROMPT}"],
        "env": ["PROGRAM_KEY"],
    }
    judge = {
        "provider": "openai",
        "model": "j",
        "base_url": f"{agent.url}/v1",
        "api_key": IN_SETTING,
    }
    home.write("assay.yaml", {"targets": [http, program], "judge": judge})
    home.write("looks.py", SEES.format(here=IN_HEADER))
    return home


def judged(reasoning: str) -> dict[str, Any]:
    reply = {"score": 0.2, "reasoning": reasoning, "hits": [], "misses": [reasoning]}
    message = {"role": "assistant", "content": json.dumps(reply)}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def case(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name.replace(" ", "-"), "input": name, **more}


KEYS = {"AGENT_KEY": IN_HEADER, "PROGRAM_KEY": IN_VARIABLE}


def left_behind(project: Project) -> dict[str, bytes]:
    """All files but those that were there before."""
    own = {"assay.yaml", "looks.py", "program.py", "one.eval.yaml"}
    files = [file for file in project.root.rglob("*") if file.is_file() and file.name not in own]
    return {str(f.relative_to(project.root)): f.read_bytes() for f in files if f.suffix != ".pyc"}


def check(files: dict[str, bytes], *more: str) -> None:
    found = {name: leaks(data) for name, data in files.items()}
    found |= {text[:40]: leaks(text.encode()) for text in more}
    assert not {name: bad for name, bad in found.items() if bad}


def test_no_form_of_a_secret_is_in_anything_that_a_run_leaves_behind(
    project: Project, agent: Agent
) -> None:
    seen_by = [{"type": "python:looks:sees"}]
    cases = [
        case("told", evaluators=seen_by),
        case("judged", expected_outcome="no secret is told"),
        case("compared", expected_output="something else"),
        case("refused", evaluators=seen_by),
        case("hidden in an error", evaluators=seen_by),
    ]
    project.write("one.eval.yaml", {"cases": cases})
    during: dict[str, bytes] = {}
    agent.arrived = lambda number: during.update(
        {f"{number} {name}": data for name, data in left_behind(project).items()}
    )
    (project.root / "tmp").mkdir()
    outputs = [f"report.{suffix}" for suffix in ("json", "jsonl", "csv", "xml", "md")]
    options = [word for name in outputs for word in ("-o", name)]
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(project.root / "summary.md")}
    env = {**KEYS, **github, "TMPDIR": str(project.root / "tmp")}
    common = ("run", ".", "--target", "http", "--workers", "1", "--cache")
    done = project.run(*common, *options, "--max-retries", "1", code=1, env=env)
    files = left_behind(project)
    assert {*outputs, "summary.md", ".assay/assay.db"} <= files.keys()
    assert any(name.endswith("-wal") for name in during)
    check(files | during, done.stdout, done.stderr)
    assert "[redacted]" in files["report.json"].decode()
    found = outcomes(files["report.json"].decode())
    assert found["told"] == "passed", "evaluators within our process see what was said"
    assert found["refused"] == "errored"
    assert done.stderr.count("Warning") == 0
    [judge] = [json.dumps(body) for body in agent.seen if "model" in body]
    check({}, judge)
    assert "[redacted]" in judge
    shown = project.run("runs", "show", "latest", env=KEYS)
    exported = project.run("export", "latest", "--format", "observations", env=KEYS)
    check({}, shown.stdout, exported.stdout)


def test_an_answer_with_a_secret_is_not_cached_and_so_not_judged_otherwise(
    project: Project, agent: Agent
) -> None:
    project.write(
        "one.eval.yaml",
        {"cases": [case("told", evaluators=[{"type": "python:looks:sees"}])]},
    )
    for asked in (1, 2):
        done = project.run("run", ".", "--target", "http", "--cache", "--json", env=KEYS)
        assert outcomes(done.stdout) == {"told": "passed"}
        assert len(agent.seen) == asked
    check(left_behind(project))


def test_secrets_of_programs_are_hidden_too(project: Project) -> None:
    compared = [{"type": "contains", "value": "nothing"}]
    cases = [case("told", evaluators=compared), case("fails", evaluators=compared)]
    project.write("one.eval.yaml", {"cases": cases})
    done = project.run("run", ".", "--target", "program", "-o", "report.md", code=1, env=KEYS)
    check(left_behind(project), done.stdout, done.stderr)
    assert "denied to [redacted]" in done.stdout


def test_a_secret_in_an_inline_target_is_not_stored_and_has_to_be_given_again(
    home: Project, agent: Agent
) -> None:
    home.write("one.eval.yaml", {"cases": [case("x", expected_output="x")]})
    target = f"{agent.url}/ask?api_key=sk-{TRACE}abcdefghijklmnopqrstuvwxyz0123456789"
    process = home.start("run", ".", "--target", target)
    agent.arrived = lambda number: process.kill()
    process.communicate()
    agent.arrived = lambda number: None
    check(left_behind(home))
    [(run_id, _)] = home.runs()
    refused = home.call("run", "--resume", run_id, code=2)
    assert f"the target of the run {run_id} held a secret" in refused.stderr
    done = home.call("run", "--resume", run_id, "--target", target, "--json")
    check(left_behind(home), done.stdout, done.stderr)


def test_no_secret_is_in_the_document_of_a_shard_nor_in_a_merged_run(project: Project) -> None:
    cases = [case("told", evaluators=[{"type": "python:looks:sees"}]), case("refused")]
    cases[1]["evaluators"] = cases[0]["evaluators"]
    project.write("one.eval.yaml", {"cases": cases})
    run = ("run", ".", "--target", "http", "--shard", "1/1", "-o", "shard.json")
    project.run(*run, "--max-retries", "0", code=3, env=KEYS)
    merged = project.run("runs", "merge", "shard.json", env=KEYS)
    files = left_behind(project)
    check(files, merged.stdout, merged.stderr)
    assert b"[redacted]" in files["shard.json"]
