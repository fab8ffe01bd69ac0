"""Files that a careless or malicious author hands in: a clear error with a place, never a crash."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import assay
import preloaded_command
from assay.problems import SLUGS
from assay.wire.text_files import read_text
from timeouts import WAIT_SECONDS

if TYPE_CHECKING:
    from unit.conftest import Project

CASE = "id: a\ninput: Hello\nexpected_output: Hi\n"  # a root mapping that is a case
LINE = '{"id": "a", "input": "Hello", "expected_output": "Hi"}'
HEADER = "id,input,expected_output\n"
GOLDEN: dict[str, Any] = {
    "id": "gs-t-001",
    "description": "d",
    "input": {"message": "m"},
    "expect": {"toolsCalled": ["t"], "noToolErrors": True, "responseNonEmpty": True},
}
MEGABYTE = 1_000_000


def golden(**more: Any) -> str:
    return json.dumps([{**GOLDEN, **more}])


def command(
    *arguments: str,
    cwd: Path,
    memory: int = 0,
    encoding: str = "",
) -> tuple[int, str]:
    """Exit code and output of the real command, in a process with `memory` bytes."""
    if not encoding:
        result = preloaded_command.assay(*arguments, cwd=cwd, memory=memory)
        return result.returncode, untroubled(result.stdout + result.stderr)
    start = "from assay.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, *arguments],
        cwd=cwd,
        timeout=WAIT_SECONDS,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
    )
    return done.returncode, untroubled((done.stdout + done.stderr).decode("utf-8", "replace"))


def untroubled(output: str) -> str:
    assert "Traceback" not in output, output[-3000:]
    return output


def refused_by_command(cwd: Path, *paths: str, **options: Any) -> str:
    """What `assay validate` prints about paths that it refuses."""
    code, output = command("validate", *paths, cwd=cwd, **options)
    assert code == 2, output[-3000:]
    assert len(output) < 100_000
    return output


# Every text that must be refused, in every format

DEEP = 100_000
BOMB = "x-bomb:\n- &a0 [x, x]\n" + "".join(
    f"- &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)

#: file name, content, and the place of a problem with it
REFUSED: dict[str, tuple[str, Callable[[], str | bytes], str]] = {
    "alias bomb": ("bomb.eval.yaml", lambda: BOMB + CASE, "8:18 yaml-alias"),
    "cyclic alias": (
        "cycle.eval.yaml",
        lambda: CASE + "metadata: &m\n  x: [*m]\n",
        "5:7 yaml-alias",
    ),
    "cyclic merge": (
        "merge.eval.yaml",
        lambda: CASE + "metadata: &m {<<: *m}\n",
        "4:19 yaml-alias",
    ),
    "unknown alias": ("alias.eval.yaml", lambda: CASE + "metadata: *m\n", "4:11 yaml-alias"),
    "deep block list": ("block.eval.yaml", lambda: "- " * DEEP + "x\n", "1:201 too-deep"),
    "deep flow list": ("flow.eval.yaml", lambda: "[" * DEEP + "]" * DEEP, "1:101 too-deep"),
    "deep flow map": ("map.eval.yaml", lambda: "{a: " * DEEP + "}" * DEEP, "1:401 too-deep"),
    "deep open flow": ("open.eval.yaml", lambda: "[{a: " * DEEP, "1:251 too-deep"),
    "deep metadata": (
        "meta.eval.yaml",
        lambda: CASE + "metadata: " + "{a: " * DEEP + "}" * DEEP,
        "4:407 too-deep",
    ),
    "deep JSON": ("deep.golden.json", lambda: "[" * DEEP + "]" * DEEP, "1:101 too-deep"),
    "deep JSON map": (
        "map.golden.json",
        lambda: '{"a":' * DEEP + "1" + "}" * DEEP,
        "1:501 too-deep",
    ),
    "deep JSONL": (
        "deep.eval.jsonl",
        lambda: f"{LINE}\n" + '{"id": ' + "[" * DEEP + "]" * DEEP + "}\n",
        "2:107 too-deep",
    ),
    "NUL in YAML": ("nul.eval.yaml", lambda: CASE + "description: é\0\n", "4:15 bad-character"),
    "NUL in JSON": ("nul.golden.json", lambda: '[{"id":\n "a\0"}]', "2:4 bad-character"),
    "NUL in JSONL": ("nul.eval.jsonl", lambda: f"{LINE}\n{{\0}}\n", "2:2 bad-character"),
    "NUL in CSV": ("nul.eval.csv", lambda: HEADER + "a,b\0,c\n", "2:4 bad-character"),
    "bad UTF-8 in YAML": (
        "latin.eval.yaml",
        lambda: CASE.encode() + b"# caf\xe9\n",
        "4:6 encoding",
    ),
    "bad UTF-8 in JSON": ("latin.golden.json", lambda: b'[\n "\xc3\xa9\xff"]', "2:4 encoding"),
    "bad UTF-8 in JSONL": ("latin.eval.jsonl", lambda: b'\n{"\x80": 1}\n', "2:3 encoding"),
    "bad UTF-8 in CSV": ("latin.eval.csv", lambda: HEADER.encode() + b"a,\xe9,c\n", "2:3 encoding"),
    "overlong UTF-8": ("long.eval.yaml", lambda: CASE.encode() + b"# \xc0\xaf", "4:3 encoding"),
    "surrogate in UTF-8": (
        "sur.eval.yaml",
        lambda: CASE.encode() + b"# \xed\xa0\x80",
        "4:3 encoding",
    ),
    "cut UTF-8": ("cut.eval.yaml", lambda: CASE.encode() + b"# \xf0\x9f\x98", "4:3 encoding"),
    "UTF-16 YAML": ("utf16.eval.yaml", lambda: CASE.encode("utf-16"), "1:1 encoding"),
    "UTF-16-BE YAML": (
        "utf16be.eval.yaml",
        lambda: b"\xfe\xff" + CASE.encode("utf-16-be"),
        "1:1 encoding",
    ),
    "UTF-16 YAML without mark": (
        "plain16.eval.yaml",
        lambda: CASE.encode("utf-16-le"),
        "1:2 bad-character",
    ),
    "UTF-16-BE YAML without mark": (
        "plain16be.eval.yaml",
        lambda: CASE.encode("utf-16-be"),
        "1:1 bad-character",
    ),
    "UTF-32 YAML": ("utf32.eval.yaml", lambda: CASE.encode("utf-32"), "1:1 encoding"),
    "UTF-16 JSON": ("utf16.golden.json", lambda: golden().encode("utf-16"), "1:1 encoding"),
    "UTF-16 JSON without mark": (
        "plain16.golden.json",
        lambda: golden().encode("utf-16-le"),
        "1:2 bad-character",
    ),
    "UTF-16 JSONL": ("utf16.eval.jsonl", lambda: LINE.encode("utf-16"), "1:1 encoding"),
    "UTF-16 JSONL without mark": (
        "plain16.eval.jsonl",
        lambda: LINE.encode("utf-16-le"),
        "1:2 bad-character",
    ),
    "UTF-16 CSV": ("utf16.eval.csv", lambda: HEADER.encode("utf-16"), "1:1 encoding"),
    "tab indentation": ("tab.eval.yaml", lambda: CASE + "metadata:\n\tx: 1\n", "5:1 yaml-syntax"),
    "duplicate YAML key": ("twice.eval.yaml", lambda: CASE + "id: b\n", "4:1 duplicate-key"),
    "duplicate JSON key": (
        "twice.golden.json",
        lambda: golden().replace('"id"', '"id": "gs-t-002",\n "id"'),
        "2:2 duplicate-key",
    ),
    "duplicate JSON cases": (
        "cases.golden.json",
        lambda: '{"cases": [],\n "cases": [{"id": 1}, 2]}',
        "2:2 duplicate-key",
    ),
    "duplicate JSONL key": (
        "twice.eval.jsonl",
        lambda: LINE.replace('"id"', '"input": [], "input": [{"role": "x"}], "id"'),
        "1:15 duplicate-key",
    ),
    "several documents": ("docs.eval.yaml", lambda: f"{CASE}---\n{CASE}", "4:1 multiple-documents"),
    "YAML tag": ("tag.eval.yaml", lambda: CASE + "skip: !!str x\n", "4:7 yaml-tag"),
    "YAML object tag": (
        "object.eval.yaml",
        lambda: CASE + "skip: !!python/object/apply:os.system [touch pwned]\n",
        "4:7 yaml-tag",
    ),
    "lone surrogate in JSON": (
        "half.golden.json",
        lambda: golden(description="\ud83d"),
        "1:36 bad-character",
    ),
    "lone surrogate in JSONL": (
        "half.eval.jsonl",
        lambda: LINE.replace("Hello", "\\udE00"),
        "1:22 bad-character",
    ),
    "surrogate in YAML": ("half.eval.yaml", lambda: CASE + 'skip: "\\ud83d"\n', "4:10 yaml-syntax"),
    "NaN in YAML": ("nan.eval.yaml", lambda: CASE + "threshold: .nan\n", "4:12 bad-number"),
    "NaN in JSON": (
        "nan.golden.json",
        lambda: golden(metadata={"x": float("nan")}),
        "1:168 bad-number",
    ),
    "Infinity in JSONL": (
        "inf.eval.jsonl",
        lambda: LINE.replace("}", ', "threshold": -Infinity}'),
        "1:69 bad-number",
    ),
    "infinity in YAML": ("inf.eval.yaml", lambda: CASE + "threshold: -.inf\n", "4:12 bad-number"),
    "10,000 digits in YAML": (
        "digits.eval.yaml",
        lambda: CASE + f"repeat: {'9' * 10_000}\n",
        "4:9 bad-number",
    ),
    "10,000 digits in JSON": (
        "digits.golden.json",
        lambda: golden(maxTurns=0).replace('"maxTurns": 0', f'"maxTurns": {"9" * 10_000}'),
        "1:162 bad-number",
    ),
    "10,000 digits in JSONL": (
        "digits.eval.jsonl",
        lambda: LINE.replace("}", f', "repeat": {"9" * 10_000}}}'),
        "1:66 bad-number",
    ),
    "NUL escape in a YAML key": (
        "key.eval.yaml",
        lambda: CASE + 'metadata: {"a\\0": 1}\n',
        "4:12 bad-character",
    ),
    "byte-order mark inside a YAML key": (
        "mark.eval.yaml",
        lambda: CASE + "\ufeffskip: x\n",
        "4:2 yaml-syntax",
    ),
    "byte-order mark inside JSON": ("mark.golden.json", lambda: "[\ufeff]", "1:2 json-syntax"),
    "byte-order mark on a later JSONL line": (
        "mark.eval.jsonl",
        lambda: f"{LINE}\n\ufeff{LINE}\n".replace('"a"', '"b"', 1),
        "2:1 json-syntax",
    ),
    "form feed in YAML": ("feed.eval.yaml", lambda: CASE + "\x0c\nskip: x\n", "4:1 bad-character"),
    "escape sequence in YAML": (
        "esc.eval.yaml",
        lambda: CASE + "skip: \x1b[2J\n",
        "4:7 bad-character",
    ),
    "path outside the root": (
        "outside.eval.yaml",
        lambda: (
            "id: a\ninput: [{role: user, content: [{type: file, value: ../../x}]}]\n"
            "expected_output: y\n"
        ),
        "2:52 outside-root",
    ),
    "folder as content": (
        "folder.eval.yaml",
        lambda: (
            "id: a\ninput: [{role: user, content: [{type: file, value: .}]}]\nexpected_output: y\n"
        ),
        "2:52 file-not-found",
    ),
    "NUL in a content path": (
        "nulpath.eval.yaml",
        lambda: (
            'id: a\ninput: [{role: user, content: [{type: file, value: "a\\0"}]}]\n'
            "expected_output: y\n"
        ),
        "2:52 bad-character",
    ),
    "endless content path": (
        "path.eval.yaml",
        lambda: (
            f"id: a\ninput: [{{role: user, content: [{{type: file, value: {'a/' * 9000}}}]}}]\n"
            "expected_output: y\n"
        ),
        "2:52 file-not-found",
    ),
    "id of two lines in YAML": (
        "lines.eval.yaml",
        lambda: CASE.replace("a", '"a\\nb"', 1),
        "1:5 wrong-value",
    ),
    "id of two lines in JSON": (
        "lines.golden.json",
        lambda: golden(id="gs-t\n-001"),
        "1:9 bad-id",
    ),
    "id of two lines in the rubric tier": (
        "lines.rubric.json",
        lambda: json.dumps(
            [
                {
                    "id": "a\nb",
                    "description": "d",
                    "input": {"message": "m"},
                    "rubric": [{"dimension": "x", "maxScore": 1, "criteria": "c"}],
                }
            ]
        ),
        "1:9 wrong-value",
    ),
    "dimension given twice": (
        "dimension.rubric.json",
        lambda: json.dumps(
            [
                {
                    "id": "a",
                    "description": "d",
                    "input": {"message": "m"},
                    "rubric": [{"dimension": "x", "maxScore": 1, "criteria": "c"}] * 2,
                }
            ]
        ),
        "1:138 wrong-value",
    ),
    "regex that does not compile": (
        "regex.eval.yaml",
        lambda: CASE + "evaluators: [{type: regex, value: '('}]\n",
        "4:35 bad-regex",
    ),
    "regex of 100,000 groups": (
        "groups.eval.yaml",
        lambda: CASE + f"evaluators: [{{type: regex, value: '{'(' * DEEP}'}}]\n",
        "4:35 bad-regex",
    ),
    "keys of Python": (
        "dunder.eval.yaml",
        lambda: CASE + "__class__: x\n__init__: y\nmodel_config: {}\nself: z\n",
        "4:1 unknown-key",
    ),
    "CSV with an open quote": (
        "quote.eval.csv",
        lambda: HEADER + 'a,"b,c\nd,e,f\n',
        "2:1 csv-syntax",
    ),
    "CSV with quotes inside cells": (
        "inner.eval.csv",
        lambda: 'expected_output,input,id\na"b,c"d,a\nx,y,"z\nz"\na"b,c"d,a\n',
        "5:9 duplicate-id",
    ),
    "CSV header with quotes inside": (
        "header.eval.csv",
        lambda: 'in"put,out"put,id\n1,2,3\n',
        "1:8 unknown-key",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_place(project: Project, name: str) -> None:
    file, content, place = REFUSED[name]
    problems = project.problems(content(), file)
    assert place in [project.place(problem) for problem in problems]
    for problem in problems:
        assert problem.file == file
        assert problem.code in SLUGS
        assert problem.line >= 1
        assert problem.column >= 1
        assert 0 < len(problem.message) < 1000
        assert len(problem.hint) < 1000


@pytest.mark.parametrize("verb", ["validate", "lint"])
def test_refused_by_the_command_all_at_once(tmp_path: Path, verb: str) -> None:
    for file, content, _ in REFUSED.values():
        raw = content()
        (tmp_path / file).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    code, output = command(verb, ".", cwd=tmp_path)
    assert code == 2
    lines = output.splitlines()
    for file, _, place in REFUSED.values():
        position, slug = place.split()
        start = f"{file}:{position}: error[{slug}]: "
        assert any(line.startswith(start) for line in lines), start
    assert not (tmp_path / "pwned").exists()


def test_problems_as_json(tmp_path: Path) -> None:
    for file, content, _ in REFUSED.values():
        raw = content()
        (tmp_path / file).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    done = preloaded_command.assay("validate", ".", "--json", cwd=tmp_path)
    assert done.returncode == 2
    problems = json.loads(done.stdout)
    assert {problem["file"] for problem in problems} == {file for file, _, _ in REFUSED.values()}


@pytest.mark.parametrize(
    "name",
    ["UTF-16 YAML without mark", "UTF-16-BE YAML without mark", "UTF-16 JSON without mark"],
)
def test_utf_16_without_its_mark_is_guessed(project: Project, name: str) -> None:
    file, content, _ = REFUSED[name]
    assert "UTF-16" in project.problems(content(), file)[0].hint


# What must load

EMOJI = "👩‍👩‍👧 é 😀 \u202e \u200b"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.eval.yaml", f"cases:\n- id: a\n  input: {EMOJI}\n  expected_output: Hi\n"),
        ("a.eval.jsonl", f'{{"id": "a", "input": "{EMOJI}", "expected_output": "Hi"}}\n'),
        ("a.eval.csv", f"id,input,expected_output\na,{EMOJI},Hi\n"),
        (
            "a.golden.json",
            json.dumps([{**GOLDEN, "input": {"message": EMOJI}}], indent=2, ensure_ascii=False),
        ),
    ],
)
def test_marks_line_ends_and_emoji_load(
    project: Project, file: str, text: str, newline: str, mark: str
) -> None:
    (case,) = project.suite((mark + text.replace("\n", newline)).encode(), file)
    assert case.question == EMOJI


@pytest.mark.parametrize("file", ["a.eval.jsonl", "a.golden.json"])
def test_surrogate_pairs_load(project: Project, file: str) -> None:
    data = {"id": "a", "input": "😀𝄞", "expected_output": "Hi"}
    text = json.dumps(data) if file == "a.eval.jsonl" else golden(input={"message": "😀𝄞"})
    assert "\\ud83d\\ude00" in text
    assert project.case(text, file).question == "😀𝄞"


def test_merge_keys_load(project: Project) -> None:
    suite = project.suite("""
        x-base: &base {input: Hello, tags: [x]}
        x-more: &more {<<: *base, expected_output: Hi, tags: [y]}
        cases:
          - {<<: *more, id: a}
          - id: b
            <<: [{tags: [z]}, *more]
    """)
    assert [(case.id, case.question, case.tags) for case in suite] == [
        ("a", "Hello", ("y",)),
        ("b", "Hello", ("z",)),
    ]


def test_a_tool_input_that_looks_like_a_condition_is_only_an_input(project: Project) -> None:
    """`type` is a common name of a parameter; in expected messages it is data."""
    case = project.case("""
        id: a
        input: Hello
        expected_output:
          - role: assistant
            tool_calls:
              - {tool: find, input: {type: dog}}
              - {tool: find, input: {regex: "("}}
              - {tool: find, input: {contains: x, filter: {gte: many}}}
    """)
    assert next(call.input for call in case.expected_tool_calls) == {"type": "dog"}


def test_composites_90_levels_deep_are_read_or_refused(project: Project) -> None:
    for levels in (40, 90):
        text = "{type: composite, evaluators: [" * levels + "{type: is_json}" + "]}" * levels
        text = f"id: a\ninput: x\nevaluators: [{text}]\n"
        if levels == 40:
            assert project.case(text).evaluators[0].type == "composite"
        else:
            assert project.refusals(text) == ["3:1533 too-deep"]


def test_a_fault_40_composites_deep_has_its_place(tmp_path: Path) -> None:
    text = "{type: composite, evaluators: [" * 40 + "{type: is_jsn}" + "]}" * 40
    (tmp_path / "a.yaml").write_text(f"id: a\ninput: x\nevaluators: [{text}]\n")
    output = refused_by_command(tmp_path, "a.yaml")  # and not after 2 ** 40 attempts
    assert f"a.yaml:3:{14 + 31 * 40 + 7}: error[unknown-evaluator]" in output
    assert "did you mean 'is_json'?" in output


def test_a_fault_deep_in_composites_is_found_after_one_that_is_right(tmp_path: Path) -> None:
    """The shorter way of a type that is known must not try each level twice either."""
    nested = "{type: composite, evaluators: [" * 40 + "{type: is_jsn}" + "]}" * 40
    right = "{type: composite, evaluators: [{type: is_json}]}"
    cases = [
        f"- {{id: c{i}, input: x, evaluators: [{e}]}}\n" for i, e in enumerate((right, nested))
    ]
    (tmp_path / "a.eval.yaml").write_text("".join(cases))
    output = refused_by_command(tmp_path, "a.eval.yaml")
    assert "error[unknown-evaluator]" in output


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(?=(a+)+$)b", "(.*)*" * 20, "(?:a{100}){100}", "[[a]", "(?i)\\pL"]
)
def test_regexes_that_blow_up_elsewhere_load(project: Project, pattern: str) -> None:
    text = json.dumps({"id": "a", "input": "x", "expect": {"responseMatches": [pattern]}})
    assert project.case(text, "a.jsonl").id == "a"


def test_deep_nesting_by_aliases_does_not_crash(project: Project) -> None:
    deep = "x-a:\n- &a0 [x]\n" + "".join(f"- &a{i} [*a{i - 1}]\n" for i in range(1, 1200))
    for part in (
        "evaluators: [{type: tool_trajectory, expected: [{tool: t, args: *a1199}]}]\n",
        "expect: {toolParams: [{tool: t, paramName: p, assertion: equals, value: *a1199}]}\n",
        "expected_output: {x: *a1199}\n",
        "metadata: {x: *a1199}\nexpected_output: y\n",
    ):
        problems = project.problems(f"{deep}id: a\ninput: x\n{part}")
        assert {problem.code for problem in problems} <= {"too-deep", "yaml-alias"}


# Messages stay short whatever the author wrote

LONG = "k" * MEGABYTE


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.yaml", f"id: a\ninput: x\n? {LONG}\n: 1\n"),
        ("a.jsonl", json.dumps({"id": "a", "input": "x", LONG: 1})),
        ("a.golden.json", json.dumps([{LONG: 1}])),
        ("a.golden.json", golden(id=LONG)),
        ("a.golden.json", f'[{{"{LONG}": 1, "{LONG}": 2}}]'),
        ("a.yaml", f"id: a\ninput: x\nmetadata:\n  ? {LONG}\n  : 1\n  ? {LONG}\n  : 2\n"),
        ("a.yaml", f"- &x\n  id: {LONG}\n  input: x\n  expected_output: y\n- *x\n"),
        ("a.jsonl", (json.dumps({"id": LONG, "input": "x", "expected_output": "y"}) + "\n") * 2),
        ("a.csv", f"{HEADER}{LONG},x,y\n{LONG},x,y\n"),
        ("a.csv", f"id,input,{LONG}\na,b,c\n"),
        ("a.yaml", f"id: {LONG}\ninput: x\n"),
        ("a.yaml", f'id: "{LONG}\\n"\ninput: x\n'),
        ("a.yaml", f"id: a\ninput: x\nevaluators: [{{type: {LONG}}}]\n"),
        ("a.yaml", f"id: a\ninput: x\nevaluators: [{{type: 'python:{LONG}'}}]\n"),
        ("a.yaml", f"id: a\ninput: x\nevaluators: [{{type: regex, value: '({LONG}'}}]\n"),
        ("a.yaml", f"id: a\ninput: x\nevaluators: [{{type: llm_judge, prompt: {LONG}.md}}]\n"),
        ("a.yaml", f"id: a\ninput: x\nexpect: {{response_contains: ['{{{{{LONG}:x}}}}']}}\n"),
        ("a.yaml", f"id: a\ninput: x\nexpect: {{response_contains: ['{{{{seed:{LONG}[}}}}']}}\n"),
        ("a.yaml", f"id: a\ninput: [{{role: {LONG}, content: x}}]\n"),
        ("a.yaml", f"id: a\ninput: [{{role: user, content: [{{type: file, value: {LONG}}}]}}]\n"),
        ("a.yaml", f"id: a\ninput: x\nrubrics: [{{id: {LONG}, outcome: x}}, {{id: {LONG}}}]\n"),
        ("a.yaml", f"id: a\ninput: x\nskip: !{LONG} x\n"),
        ("a.yaml", f"id: a\ninput: x\nskip: *{LONG}\n"),
        (
            "a.regression.json",
            json.dumps([{**GOLDEN, "id": "rg-t-001", "createdAt": LONG, "bugRef": "x"}]),
        ),
    ],
)
def test_messages_stay_short(project: Project, file: str, text: str) -> None:
    problems = project.problems(text, file)
    for problem in problems:
        assert len(str(problem)) < 2000, f"{problem.code}: {len(str(problem)):,} characters"


# Sizes: a child with little memory and a time limit

GIGABYTE = 1024**3


def full(*values: str) -> Any:
    return pytest.param(*values, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("file", "before", "filler", "after", "place"),
    [
        ("a.yaml", "id: a\ninput: ", "x", "\nexpected_output: y\n", "2:8 too-large"),
        ("a.yaml", "id: a\nrepeat: ", "9", "\n", "2:9 bad-number"),
        ("a.golden.json", '[{"id": "', "x", '"}]', "1:9 too-large"),
        ("a.jsonl", '{"id": "', "x", '"}\n', "1:1 too-large"),
        ("a.csv", f"{HEADER}a,", "x", ",y\n", "2:3 too-large"),
        full("a.yaml", 'id: a\ninput: "', "\\n", '"\nexpected_output: y\n', "2:8 too-large"),
        full("a.yaml", "id: a\ninput: |\n", "  x\n", "expected_output: y\n", "2:8 too-large"),
        full("a.yaml", "id: a\ninput: x\nmetadata:\n  ? ", "x", "\n  : 1\n", "4:5 too-large"),
        full("a.golden.json", '[{"id": "', "\\n", '"}]', "1:9 too-large"),
        full("a.golden.json", '[{"', "x", '": 1}]', "1:3 too-large"),
        full("a.golden.json", '[{"id": ', "9", "}]", "1:9 bad-number"),
        full("a.csv", f'{HEADER}a,"', "x\n", '",y\n', "2:3 too-large"),
    ],
)
def test_50_megabytes_in_one_scalar(
    tmp_path: Path, file: str, before: str, filler: str, after: str, place: str
) -> None:
    with open(tmp_path / file, "w", encoding="utf-8") as stream:
        stream.write(before)
        for _ in range(50):
            stream.write(filler * (MEGABYTE // len(filler)))
        stream.write(after)
    position, slug = place.split()
    output = refused_by_command(tmp_path, file, memory=GIGABYTE)
    assert f"{file}:{position}: error[{slug}]: " in output


def test_40_megabytes_of_escapes_on_a_line(tmp_path: Path) -> None:
    line = '{"id": "a", "input": "' + "\\n" * (19 * MEGABYTE) + '"}\n'
    (tmp_path / "a.jsonl").write_text(line)
    output = refused_by_command(tmp_path, "a.jsonl", memory=GIGABYTE)
    assert "a.jsonl:1:22: error[too-large]: " in output


def test_a_file_past_the_limit_is_not_read(tmp_path: Path) -> None:
    for file in ("a.yaml", "a.golden.json", "a.csv"):
        with open(tmp_path / file, "wb") as stream:
            stream.truncate(300 * 1024**2)
    output = refused_by_command(tmp_path, "a.yaml", "a.golden.json", "a.csv", memory=GIGABYTE)
    assert output.count("error[too-large]") == 3


def test_a_small_file_takes_little_memory(project: Project) -> None:
    tracemalloc.start()
    project.suite(CASE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * MEGABYTE


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs such a file")
def test_a_file_without_a_size_is_read() -> None:
    assert os.stat("/proc/self/status").st_size == 0
    assert read_text(Path("/proc/self/status"), "status").startswith("Name:")


def test_peak_memory_of_a_large_text_is_a_few_times_its_size(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"id: a\ninput: {'x' * (50 * MEGABYTE)}\n")
    refused_by_command(tmp_path, "a.yaml")
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert children.ru_maxrss < 4 * 1024**2  # kilobytes, of the largest child of this process


SEEDS = [f"{{{{seed:x}}}} {number}" for number in range(3000)]
LONELY = [[f"{number}"] for number in range(3000)]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param(
            "cases.yaml",
            "".join(f"- {{id: a{i}, input: x, outcome: y, bad: 1}}\n" for i in range(6000)),
            id="6,000 cases with an unknown key",
        ),
        pytest.param(
            "cases.golden.json",
            json.dumps([{**GOLDEN, "id": f"gs-t-{i:04}", "bad": 1} for i in range(6000)]),
            id="6,000 tier cases with an unknown key",
        ),
        pytest.param(
            "keys.yaml",
            "id: a\ninput: x\noutcome: y\n" + "".join(f"k{i}: 1\n" for i in range(20_000)),
            id="20,000 unknown keys",
        ),
        pytest.param(
            "twice.yaml",
            "id: a\ninput: x\noutcome: y\nmetadata:\n"
            + "".join(f"  k{i}: 1\n" for i in range(20_000)) * 2,
            id="20,000 keys twice",
        ),
        pytest.param(
            "twice.golden.json",
            "[{" + ",".join(f'"k{i % 15_000}": 1' for i in range(30_000)) + "}]",
            id="15,000 JSON keys twice",
        ),
        pytest.param(
            "columns.csv",
            ",".join(f"k{i}" for i in range(3000)) + "\n",
            id="3,000 unknown columns",
        ),
        pytest.param(
            "quotes.csv",
            'input,expected_output,id\nx,y,a\nx"' + '"' * 60 + "x,y,a\n",
            id="a cell full of quotes",
        ),
        pytest.param(
            "ids.yaml",
            "- {id: a, input: x, outcome: y}\n" * 10_000,
            id="10,000 equal ids",
        ),
        pytest.param(
            "tags.yaml",
            "".join(f"%TAG !t{i}! tag:x,2000:\n" for i in range(10_000)) + "---\na: 1\n",
            id="10,000 tag directives",
        ),
        pytest.param(
            "named.yaml",
            "id: a\ninput: x\nevaluators:\n" + "- {type: is_json}\n" * 5000,
            id="5,000 evaluators without a name",
        ),
        pytest.param(
            "seeds.jsonl",
            json.dumps({"id": "a", "input": "x", "expect": {"responseContains": SEEDS}}),
            id="3,000 seed tokens on a line",
        ),
        pytest.param(
            "synonyms.jsonl",
            json.dumps({"id": "a", "input": "x", "expect": {"responseContainsAny": LONELY}}),
            id="3,000 weak synonym groups on a line",
        ),
        pytest.param(
            "regex.yaml",
            "id: a\ninput: x\nevaluators: [{type: regex, value: '"
            + "(?:(?:(?:a{1000}){1000}){1000}){1000}(?=b)'}]\n",
            id="a regex of a trillion letters",
        ),
        pytest.param(
            "tokens.yaml",
            "id: a\ninput: x\nbad: 1\nexpect: {response_contains: ['" + "{{a:" * 50_000 + "']}\n",
            id="50,000 open tokens",
        ),
    ],
)
def test_the_time_grows_with_the_file_and_not_faster(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    code, _ = command("lint", file, cwd=tmp_path, memory=GIGABYTE)
    assert code in (0, 2)


# The file system


def test_a_symbolic_link_to_itself(project: Project) -> None:
    for file in ("a.eval.yaml", "a.eval.jsonl", "a.eval.csv", "a.golden.json"):
        (project.root / file).symlink_to(file)
        with pytest.raises(assay.EvalFileErrors) as refused:
            assay.load(file)
        (problem,) = refused.value.problems
        assert (problem.file, problem.code) == (file, "symlink-loop")


def test_a_symbolic_link_to_itself_in_a_folder(project: Project) -> None:
    project.write("good.eval.yaml", CASE)
    (project.root / "a.eval.yaml").symlink_to("b.eval.yaml")
    (project.root / "b.eval.yaml").symlink_to("a.eval.yaml")
    loaded = assay.validate(".")
    assert [(p.file, p.code) for p in loaded.problems] == [
        ("a.eval.yaml", "symlink-loop"),
        ("b.eval.yaml", "symlink-loop"),
    ]
    assert [suite.file for suite in loaded.suites] == ["good.eval.yaml"]


def test_a_symbolic_link_that_leads_nowhere(project: Project) -> None:
    (project.root / "a.eval.yaml").symlink_to("gone.yaml")
    for path in (".", "a.eval.yaml"):
        with pytest.raises(assay.EvalFileErrors) as refused:
            assay.load(path)
        assert [(p.file, p.code) for p in refused.value.problems] == [("a.eval.yaml", "not-found")]


@pytest.mark.parametrize("target", [".", "..", "../..", "../../evals", "../deep"])
def test_a_folder_that_links_to_itself(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "project" / "evals" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.eval.yaml").write_text(CASE)
    (folder / "loop").symlink_to(target)
    output = refused_by_command(tmp_path, "project")
    assert "project/evals/deep/loop: error[symlink-loop]" in output
    assert "1 suite with 1 case loaded; 1 error" in output


def test_folders_that_link_to_each_other(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.eval.yaml").write_text(CASE)
        (tmp_path / name / other).symlink_to(f"../{other}")
    output = refused_by_command(tmp_path, ".")
    assert "symlink-loop" in output
    assert "2 suites with 2 cases loaded" in output


def test_folders_that_are_reached_in_a_million_ways(tmp_path: Path) -> None:
    """No link leads back, yet each folder doubles the number of ways to the next."""
    (tmp_path / "d0").mkdir()
    (tmp_path / "d0" / "a.eval.yaml").write_text(CASE)
    for level in range(1, 21):
        folder = tmp_path / f"d{level}"
        folder.mkdir()
        for name in ("left", "right"):
            (folder / name).symlink_to(f"../d{level - 1}")
    code, output = command("validate", "d20", cwd=tmp_path)
    assert code == 0, output
    assert "1 suite with 1 case loaded" in output


def test_a_path_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.eval.yaml")
    os.mkfifo(tmp_path / "pipe.jsonl")
    os.mkfifo(tmp_path / "pipe.golden.json")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tmp_path)  # the path of a socket must be short
        try:
            server.bind("socket.eval.csv")
        finally:
            os.chdir(here)
        output = refused_by_command(tmp_path, ".")
    for name, kind in (
        ("pipe.eval.yaml", "a named pipe"),
        ("pipe.jsonl", "a named pipe"),
        ("pipe.golden.json", "a named pipe"),
        ("socket.eval.csv", "a socket"),
    ):
        assert f"{name}: error[not-a-file]: this is {kind}, not a regular file" in output


@pytest.mark.parametrize("name", ["p.yaml", "p.eval.jsonl", "p.csv", "p.rubric.json"])
def test_a_pipe_named_directly_does_not_block(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert f"{name}: error[not-a-file]" in refused_by_command(tmp_path, name)


def test_pipes_next_to_a_file_do_not_block(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    os.mkfifo(tmp_path / "a.yaml")  # where the sidecar would be
    case = {**GOLDEN, "id": "rg-t-001", "difficulty": "regression", "createdAt": "2026-01-15"}
    (tmp_path / "t.regression.json").write_text(json.dumps([{**case, "bugRef": "#1"}]))
    os.mkfifo(tmp_path / "t.regression.lock.json")
    output = refused_by_command(tmp_path, "a.jsonl", "t.regression.json")
    assert "t.regression.lock.json: error[not-a-file]" in output


def test_a_lock_that_is_a_broken_link_is_not_a_missing_lock(project: Project) -> None:
    case = {**GOLDEN, "id": "rg-t-001", "difficulty": "regression", "createdAt": "2026-01-15"}
    (project.root / "t.regression.lock.json").symlink_to("gone.json")
    problems = project.problems(json.dumps([{**case, "bugRef": "#1"}]), "t.regression.json")
    assert [(p.file, p.code) for p in problems] == [("t.regression.lock.json", "not-found")]


@pytest.mark.parametrize("name", ["a" * 300 + ".yaml", "a/" * 3000 + "b.yaml"])
def test_a_path_that_is_too_long(project: Project, name: str) -> None:
    with pytest.raises(assay.EvalFileErrors) as refused:
        assay.load(name)
    assert [problem.code for problem in refused.value.problems] == ["not-found"]


@pytest.mark.parametrize("name", ["a\0b.yaml", "a\nb.yaml", "\udce9.yaml", " ", "~/a.yaml"])
def test_a_path_of_odd_characters(project: Project, name: str) -> None:
    with pytest.raises(assay.EvalFileErrors) as refused:
        assay.load(name)
    assert [problem.code for problem in refused.value.problems] == ["not-found"]


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
@pytest.mark.parametrize("option", ["--json", "--strict"])
def test_a_file_name_that_is_not_utf_8(tmp_path: Path, encoding: str, option: str) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.eval.yaml", "w") as stream:
        stream.write("cases: []\n")
    output = refused_by_command(tmp_path, ".", option, encoding=encoding)
    assert "is not UTF-8" in output


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x85", "\u2028", "\u202e", "\x0c", "\t"])
def test_an_id_cannot_forge_output(project: Project, character: str) -> None:
    """Escape sequences and turned text are refused in an id, or shown as such."""
    lines = [
        json.dumps({"id": f"{name}{character}x", "input": "Hi", "outcome": "y", "metadata": {}})
        for name in "ab"
    ]
    project.write("a.jsonl", "\n".join(lines))
    problems = assay.lint("a.jsonl").problems
    assert len(problems) >= 1  # the same prompt twice, or the ids
    for problem in problems:
        assert character not in str(problem)


def test_odd_text_in_messages_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / "a.eval.jsonl").write_text('{"id": "a", "input": "x", "\\udce9 😀 é": 1}\n')
    output = refused_by_command(tmp_path, ".", encoding="ascii:strict")
    assert "a.eval.jsonl:1:27: error[unknown-key]" in output


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("pyproject.toml", b"tool = 5\n"),
        ("pyproject.toml", b"[tool]\nassay = 5\n"),
        ("pyproject.toml", b"x = " + b"[" * 5000),
        ("pyproject.toml", b"[tool.assay]\nseed_manifest = 2026-01-01\n"),
        ("pyproject.toml", b"# caf\xe9\n[tool.assay]\n"),
        ("assay.yaml", b"a: &a [*a]\n"),
        ("assay.yaml", b"[" * 100_000),
        ("assay.yaml", b"\0"),
        ("assay.yaml", b'seed_manifest: "a\\0"\n'),
        ("assay.yaml", b"seed_manifest: ../x\n"),
        ("evals/seed-manifest.json", b"[" * 100_000),
        ("evals/seed-manifest.json", b'{"x": NaN}'),
    ],
)
def test_a_configuration_that_is_broken(tmp_path: Path, file: str, content: bytes) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / file).write_bytes(content)
    expect = {"responseContains": ["{{seed:x}}"], "responseNonEmpty": True}
    (tmp_path / "a.eval.jsonl").write_text(
        json.dumps({"id": "a", "input": "x", "expect": expect}) + "\n"
    )
    code, output = command("validate", ".", cwd=tmp_path)
    assert code == 2 or (file, content) == ("pyproject.toml", b"tool = 5\n")
    assert file in output or code == 0


@pytest.mark.parametrize("change", ["emptied", "deleted", "broken", "replaced by a pipe"])
def test_a_large_file_that_changes_after_it_was_checked(
    project: Project, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr("assay.loaders.jsonl.HELD_BYTES", 0)
    suite = project.suite(f"{LINE}\n{LINE.replace('a', 'b', 1)}\n", "a.jsonl")
    file = project.root / "a.jsonl"
    if change == "emptied":
        file.write_text("")
    elif change == "broken":
        file.write_text("{" * 200)
    else:
        file.unlink()
        if change != "deleted":
            os.mkfifo(file)
    for index in (0, 1, -1):
        with pytest.raises(assay.EvalFileErrors):
            suite.cases[index]
    with pytest.raises(assay.EvalFileErrors):
        list(suite)


# Permissions: root may read everything, so the child becomes nobody

NOBODY = 65534
END = "end of a command"
AS_NOBODY = f"""
import json, os, sys, tempfile
END = {END!r}
from pathlib import Path
import assay.cli.validate
from assay.registry import evaluators
with tempfile.TemporaryDirectory() as folder:  # imports everything while that is allowed
    for name in ("a.eval.yaml", "a.eval.jsonl", "a.eval.csv", "a.golden.json"):
        Path(folder, name).write_text("[")
    assay.validate(folder)
    evaluators.usable()
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
from assay.cli.main import main
for paths in json.loads(sys.argv[1]):
    if not os.fork():
        sys.argv[1:] = ["validate", *paths]
        main()
    print(json.dumps(os.waitstatus_to_exitcode(os.wait()[1])), flush=True)
    print(END, file=sys.stderr, flush=True)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="assay-hostile-"))
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def as_unprivileged_user(cwd: Path, *commands: Sequence[str]) -> list[str]:
    """What `assay validate` prints for each list of paths; all are refused."""
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, json.dumps(commands)],
        cwd=cwd,
        timeout=WAIT_SECONDS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    outputs = done.stdout.split(f"{END}\n")[:-1]
    assert [output.splitlines()[-1] for output in outputs] == ["2"] * len(commands), done.stdout
    return [untroubled(output) for output in outputs]


def test_files_that_may_not_be_read(open_folder: Path) -> None:
    for name in ("a.eval.yaml", "b.eval.jsonl", "c.eval.csv", "d.golden.json"):
        (open_folder / name).write_text(CASE)
        (open_folder / name).chmod(0)
    (open_folder / "good.eval.yaml").write_text(CASE)
    (output,) = as_unprivileged_user(open_folder, ["."])
    for name in ("a.eval.yaml", "b.eval.jsonl", "c.eval.csv", "d.golden.json"):
        assert f"{name}: error[unreadable]: Permission denied" in output
    assert "1 suite with 1 case loaded; 4 errors" in output


def test_folders_that_may_not_be_listed_or_entered(open_folder: Path) -> None:
    paths = []
    for mode in (0o000, 0o444, 0o111):
        closed = open_folder / f"{mode:o}" / "closed"
        closed.mkdir(parents=True)
        (closed / "a.eval.yaml").write_text("cases: []\n")
        closed.chmod(mode)
        paths += [f"{mode:o}", f"{mode:o}/closed", f"{mode:o}/closed/a.eval.yaml"]
    for path, output in zip(paths, as_unprivileged_user(open_folder, *zip(paths)), strict=True):
        if path == "111/closed/a.eval.yaml":  # it may be entered, and the name is known
            assert "111/closed/a.eval.yaml:1:8: error[no-cases]" in output
        else:
            assert "error[unreadable]: Permission denied" in output, path


def test_unreadable_parts_next_to_a_file(open_folder: Path) -> None:
    (open_folder / "a.jsonl").write_text(LINE)
    (open_folder / "a.yaml").write_text("description: x\n")
    (open_folder / "a.yaml").chmod(0)
    case = {**GOLDEN, "id": "rg-t-001", "difficulty": "regression", "createdAt": "2026-01-15"}
    (open_folder / "t.regression.json").write_text(json.dumps([{**case, "bugRef": "#1"}]))
    (open_folder / "t.regression.lock.json").write_text('{"cases": {}}')
    (open_folder / "t.regression.lock.json").chmod(0)
    (output,) = as_unprivileged_user(open_folder, ["a.jsonl", "t.regression.json"])
    assert "a.yaml: error[unreadable]: Permission denied" in output
    assert "t.regression.lock.json: error[unreadable]: Permission denied" in output


def test_content_that_may_not_be_reached(open_folder: Path) -> None:
    (open_folder / "closed").mkdir()
    (open_folder / "closed" / "x.txt").write_text("x")
    (open_folder / "closed").chmod(0)
    (open_folder / "a.eval.yaml").write_text(
        "id: a\ninput: [{role: user, content: [{type: file, value: closed/x.txt}]}]\noutcome: x\n"
    )
    (output,) = as_unprivileged_user(open_folder, ["a.eval.yaml"])
    assert re.search(r"a\.eval\.yaml:2:\d+: error\[file-not-found\]", output)
