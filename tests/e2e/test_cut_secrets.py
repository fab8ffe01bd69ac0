"""No sink shows part of a secret, wherever the secret stands in a text that is truncated."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from e2e.projects import Project, ended

#: Of no filler and no text of ours, so that any five characters in a row of them are a leak.
KNOWN = "Zq7Wx9Kv2Jp4Yt6Hn8Bm3Gf5Dc1Ls0R"
BY_PATTERN = "sk-Uj3Ew8Oy5Ti1Ra6Pd9Sm2Fk4Gh7Vb0Xn"
PARTS = [secret[i : i + 5] for secret in (KNOWN, BY_PATTERN) for i in range(3, len(secret) - 4)]
REPORTS = ("json", "jsonl", "csv", "xml", "md")
#: Before, amid and after every limit of a quoted value, a reason, a message and a report.
OFFSETS = (*range(0, 130, 2), *range(440, 505, 5), *range(940, 1005, 5), *range(7940, 8010, 9))
if os.environ.get("ASSAY_TEST_PROFILE") != "full":
    OFFSETS = OFFSETS[::3]  # a secret is cut at several places all the same

AGENT = """
import sys
secrets = {secrets!r}

def placed(offset, filler="."):
    return "".join(filler * offset + secret + filler * (offset + 1100) for secret in secrets)

def answer(case):
    offset = case.metadata["offset"]
    text = placed(offset)
    call = {{"tool": text, "input": {{"q": text, text: [text]}}, "output": text, "error": text}}
    if "large" in case.tags:  # checked by a worker process
        return {{"response": text + "." * 100_000}}
    if "unknown" in case.tags:
        block = {{"type": placed(offset % 60), "x": 1}}
        nameless = {{placed(offset % 60): 1}}
        call = {{"function": {{"name": "f", placed(offset): {{}}}}}}
        last = {{"role": "assistant", "content": [block, nameless], "tool_calls": [call]}}
        return {{"messages": [{{"role": "assistant", placed(offset % 60): 1}}, last]}}
    if "raises" in case.tags:
        raise ValueError(text)
    if "broken" in case.tags:
        return {{"response": "x", "toolCalls": [{{"name": text, "params": {{}}, "success": text}}]}}
    return {{"response": text, "toolCalls": [call]}}

def judge(messages):
    prompt = str(messages)
    return placed(int(prompt.partition("offset=")[2].partition(";")[0]))

def fails(context):
    raise ValueError(placed(context.case.metadata["offset"]))
"""
FAILS = """
import sys
_, where, offset = sys.argv
text = "".join({filler!r} * n + s + {filler!r} * (9000 if where == "start" else n)
               for s in {secrets!r} for n in [int(offset)])
print(text)
sys.exit(text)
"""


def leaks(text: str) -> list[str]:
    return [part for part in PARTS if part in text]


def write_project(home: Project) -> None:
    home.write("agent.py", AGENT.format(secrets=[KNOWN, BY_PATTERN]))
    home.write("fails.py", FAILS.format(secrets=[KNOWN, BY_PATTERN], filler="."))
    command = [sys.executable, "-S", "fails.py", "end", "{PROMPT}"]
    program = {"name": "program", "provider": "command", "command": command, "env": ["KEY"]}
    targets = [program, {"name": "echo", "provider": "echo"}]
    judge = {"provider": "python", "callable": "agent:judge"}
    home.write("assay.yaml", {"targets": targets, "judge": judge})


def evaluators() -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"a": {"const": 1}}}
    steps = [{"tool": "other", "args": {"q": "x"}}]
    return [
        {"type": "contains", "value": "nothing"},
        {"type": "equals", "value": "nothing"},
        {"type": "regex", "value": "nothing"},
        {"type": "starts_with", "value": "nothing"},
        {"type": "similarity", "value": "nothing"},
        {"type": "is_json"},
        {"type": "json_schema", "value": schema},
        {"type": "tool_trajectory", "mode": "exact", "expected": steps},
        {"type": "python:agent:fails"},
    ]


EVALUATORS = {"answers": evaluators(), "large": [*evaluators()[4:5], *evaluators()[6:7]]}


def check(home: Project, *texts: str) -> None:
    own = {"agent.py", "fails.py", "assay.yaml", "one.eval.yaml", "broken.json"}
    files = [f for f in home.root.rglob("*") if f.is_file() and f.name not in own]
    assert any(file.name == "assay.db" for file in files)
    found = {f.name: leaks(f.read_bytes().decode("latin-1")) for f in files if f.suffix != ".pyc"}
    found |= {text[:40]: leaks(text) for text in texts}
    assert not {name: parts for name, parts in found.items() if parts}


def run(home: Project, cases: list[dict[str, Any]], target: str, code: int = 3) -> str:
    home.write("one.eval.yaml", {"cases": cases})
    outputs = [word for suffix in REPORTS for word in ("-o", f"report.{suffix}")]
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(home.root / "summary.md")}
    done = home.run(
        "run", ".", "--target", target, *outputs, env={"KEY": KNOWN, **github}, code=code
    )
    check(home, done.stdout, done.stderr)
    for words in (["runs", "show", "latest"], ["export", "latest", "--format", "observations"]):
        check(home, home.run(*words, env={"KEY": KNOWN}).stdout)
    return done.stdout


def test_no_cut_of_what_an_agent_says_leaves_part_of_a_secret(home: Project) -> None:
    write_project(home)
    cases = [
        {"id": f"{kind}-{n}", "input": "x", "tags": [kind], "metadata": {"offset": n}}
        | {"evaluators": EVALUATORS.get(kind, evaluators()[:1])}
        for kind in ("answers", "large", "unknown", "raises", "broken")
        for n in (OFFSETS if kind in ("answers", "unknown") else OFFSETS[::3])
    ]
    cases += [
        {"id": f"judged-{n}", "input": f"offset={n};", "metadata": {"offset": 0}}
        | {"evaluators": [{"type": "llm_judge"}]}
        for n in range(440, 505, 5)
    ]
    shown = run(home, cases, "python:agent:answer", code=1)
    assert "[redacted]" in shown
    notes = (home.root / "report.json").read_text()
    for note in ("no content that can be read", "of the unknown type"):
        assert note in notes


JUDGE_STDOUT = range(940, 1005, 4)
#: A message has the last 300 characters of stderr, the details of a code judge the last 4,096, and
#: the last 65,536 bytes of it are read.
STDERR = (*range(200, 305, 7), *range(4000, 4100, 7), 65_460, 65_480, 65_500)


@pytest.mark.parametrize("where", ["start", "end"])
def test_no_cut_of_what_a_program_prints_leaves_part_of_a_secret(home: Project, where: str) -> None:
    write_project(home)
    judge = [sys.executable, "-S", str(home.root / "fails.py"), where]
    cases = [
        {"id": f"{n}", "input": str(n)}
        | {"evaluators": [{"type": "code_judge", "script": [*judge, str(n)]}]}
        for n in (JUDGE_STDOUT if where == "start" else STDERR)
    ]
    run(home, cases, "echo")
    if where == "end":
        run(home, cases, "program")


def test_a_variable_that_only_a_code_judge_sees_is_redacted_in_what_it_prints(
    home: Project,
) -> None:
    write_project(home)
    code = "import os, sys; print(os.environ['OWN']); sys.exit('.' * 280 + os.environ['OWN'])"
    judge = {"type": "code_judge", "script": [sys.executable, "-c", code], "env": ["OWN"]}
    home.write("one.eval.yaml", {"cases": [{"id": "a", "input": "x", "evaluators": [judge]}]})
    done = home.run("run", ".", "--target", "echo", code=3, env={"OWN": KNOWN})
    assert "its stderr ends with: ." in " ".join(done.stdout.split())
    check(home, done.stdout, done.stderr)


def test_no_message_on_stderr_has_part_of_a_secret(home: Project) -> None:
    write_project(home)
    cases = [
        {"id": f"{n}", "input": "x", "expected_output": "x", "threshold": "." * n + KNOWN + "..."}
        for n in range(0, 60, 2)
    ]
    home.write("one.eval.yaml", {"cases": cases})
    for command in (["run", ".", "--target", "echo"], ["validate", "."]):
        done = home.run(*command, code=2, env={"KEY": KNOWN})
        assert not leaks(done.stdout + done.stderr)
        assert "[redacted]" in done.stdout + done.stderr


GATED = """
import os
def answer(case):
    return "x" if not os.path.exists("worse") else "y"
"""


def test_no_sink_of_the_gate_has_part_of_a_secret(home: Project) -> None:
    texts = {
        f"c{n}": "".join("." * n + secret + "." * 600 for secret in (KNOWN, BY_PATTERN))
        for n in OFFSETS
        if n < 505
    }
    text = texts["c60"]
    write_project(home)
    home.write("gated.py", GATED)
    target = {"name": "t", "provider": "command", "command": ["true"], "env": ["KEY"]}
    accepted = [{"case": name, "reason": reason} for name, reason in texts.items()]
    accepted += [{"case": f"gone {reason}", "reason": reason} for reason in texts.values()]
    home.write("assay.yaml", {"targets": [target], "accepted": accepted[1:]})
    expect = {"responseContains": ["x"]}
    cases = [
        {"id": name, "input": "x", "description": reason, "expect": expect}
        for name, reason in texts.items()
    ]
    home.write("one.eval.yaml", {"cases": cases})
    shown: list[str] = []

    def call(*words: str) -> None:
        done = ended(home.start(*words, env={"KEY": KNOWN}))
        shown.extend((done.stdout, done.stderr))

    run = ("run", ".", "--target", "python:gated:answer")
    call(*run)
    call("baseline", "set", "main")
    home.write("worse", "")
    outputs = [word for suffix in REPORTS for word in ("-o", f"report.{suffix}")]
    call(*run, "--baseline", "main", *outputs)
    for words in (["baseline", "set", "main"], ["baseline", "update", "main"]):
        call(*words)
    for flag in ([], ["--json"]):
        call("compare", "main", "latest", *flag)
        call("trend", *flag)
    home.write("broken.json", f'{{"runId": "{text}", "suites": ["{text}"]}}')
    call("runs", "merge", "broken.json", text, f"{text}.json")
    (home.root / "broken.json").unlink()
    check(home, *shown)
    assert "[redacted]" in "".join(shown)
