"""Fuzzing all loaders: any file either loads or raises EvalFileErrors."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

import assay
from assay.problems import SLUGS
from unit.sample_eval_files import SUITE, TIERS

LOCK: dict[str, Any] = {"version": 1, "cases": {"rg-t-001": "0" * 64, "rg-t-003": "1" * 64}}
CSV = (
    "id,input,expected_output,outcome,tags,metadata.owner,x-own,skip\n"
    'a,Hello,Hi,Is kind,"x,y",me,1,\n'
    'b,"two\nlines, ""quoted""",Hi,,;,,,why\n'
)


def as_yaml(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def as_lines(data: Any) -> str:
    """A suite's cases as JSONL."""
    cases = data.get("cases") if isinstance(data, dict) else data
    rows = cases if isinstance(cases, list) else [data]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


#: file name -> its valid data and how that is written
FORMATS: dict[str, tuple[Any, Callable[[Any], str]]] = {
    "fuzz.eval.yaml": (SUITE, as_yaml),
    "list.eval.yml": (SUITE["cases"], as_yaml),
    "case.eval.yaml": (SUITE["cases"][3], as_yaml),
    "flow.eval.yaml": (SUITE, json.dumps),
    "lines.eval.jsonl": (SUITE, as_lines),
    "t.golden.json": (TIERS["golden"], json.dumps),
    "t.labeled.json": (TIERS["labeled"], json.dumps),
    "t.regression.json": (TIERS["regression"], json.dumps),
    "t.rubric.json": (TIERS["rubric"], json.dumps),
}
NAMES = [*FORMATS, "fuzz.eval.csv"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def attempt(file: Path, content: str | bytes) -> list[assay.Problem]:
    """Load the file; all it may do is load, or raise EvalFileErrors with sound problems."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    file.write_bytes(data)
    try:
        suites = assay.load(file)
    except assay.EvalFileErrors as error:
        problems = list(error.problems)
        text = str(error)
    else:
        problems = [warning for suite in suites for warning in suite.warnings]
        assert all(warning.severity == "warning" for warning in problems)
        for case in (case for suite in suites for case in suite):
            sound_case(case, file)
        problems += assay.lint(file).problems
        text = ""
    assert bool(text) == any(problem.severity == "error" for problem in problems)
    for problem in problems:
        sound(problem, file, len(data))
    return problems


def sound(problem: assay.Problem, file: Path, size: int) -> None:
    assert Path(problem.file).parent in (file.parent, file.parent / "evals")
    assert problem.code in SLUGS
    assert problem.message.strip()
    assert problem.line >= 0
    assert problem.column >= 0
    if Path(problem.file) == file:
        assert problem.line >= 1
        assert problem.line + problem.column <= size + 2
    json.dumps(problem.to_dict(), ensure_ascii=False).encode()


def sound_case(case: assay.EvalCase, file: Path) -> None:
    """Every part of a case that loaded can be asked for."""
    assert case.id
    assert isinstance(case.question, str)
    assert case.evaluators or case.skip
    paths = ["", "id", "input_messages.0.content", "evaluators", "metadata.x.0", "expect.x"]
    paths += [f"evaluators.{index}.type" for index in range(len(case.evaluators))]
    for path in paths:
        origin = case.origin_of(path)
        assert Path(origin.file).parent == file.parent  # the file, or its sidecar
        assert origin.line >= 1
        assert origin.column >= 1


# The valid files are valid


@pytest.mark.parametrize("name", FORMATS)
def test_the_seeds_of_the_fuzz_load(folder: Path, name: str) -> None:
    data, write = FORMATS[name]
    problems = attempt(folder / name, write(data))
    assert [problem for problem in problems if problem.severity == "error"] == []


def test_the_seed_of_the_csv_fuzz_loads(folder: Path) -> None:
    assert attempt(folder / "fuzz.eval.csv", CSV) == []


# Bytes and text


@given(st.sampled_from(NAMES), st.binary(max_size=200))
@example("fuzz.eval.yaml", b"\xff\xfe\x00\x00")
@example("lines.eval.jsonl", b"\xff\xfe\n\n")
@example("fuzz.eval.csv", b'"\r\n"\x00')
@example("t.golden.json", b"\xef\xbb\xbf")
def test_any_bytes(folder: Path, name: str, content: bytes) -> None:
    attempt(folder / name, content)


@given(st.sampled_from(NAMES), st.text(max_size=200))
@example("fuzz.eval.yaml", "\ufeff\ufeff")
@example("fuzz.eval.csv", "input\ninput")
def test_any_text(folder: Path, name: str, content: str) -> None:
    attempt(folder / name, content)


YAML_WORDS = (
    *("cases", "id", "input", "expected_output", "evaluators", "type", "expect", "rubrics"),
    *(": ", ":\n", "\n", "\n  ", "\n    ", "- ", "\n- ", ", ", "[", "]", "{", "}", "'", '"'),
    *("&a ", "*a", "&b ", "*b", "<<", "!!str ", "!x ", "|", ">-", "#", "---\n", "...\n", "%YAML "),
    *("\t", "? ", "~", "null", "true", "0x1", "1e9", ".nan", "012", "\\", "\\u0000", "\u2028"),
    *("contains", "composite", "regex", "é", "😀", "\x85", "\ufeff", "{{seed:a}}", "@", "`"),
)


@given(st.sampled_from(["fuzz.eval.yaml"]), st.lists(st.sampled_from(YAML_WORDS), max_size=60))
def test_any_words_of_yaml(folder: Path, name: str, words: list[str]) -> None:
    attempt(folder / name, "".join(words))


CSV_WORDS = (
    *("id", "input", "expected_output", "tags", "metadata.a", "x-b", "outcome", "skip"),
    *(
        ",",
        ",",
        "\n",
        "\r\n",
        "\r",
        '"',
        '""',
        '"a',
        'b"',
        " ",
        ";",
        "é",
        "😀",
        "\x85",
        "\x0c",
        "a",
    ),
)


@given(st.booleans(), st.lists(st.sampled_from(CSV_WORDS), max_size=40))
@example(True, ["a", ",", '"a', ",", "a", '"a', "\n", "a", ",", 'b"', ",", "x-b", "\n"])
def test_any_words_of_csv(folder: Path, header: bool, words: list[str]) -> None:
    start = "id,input,expected_output\n" if header else ""
    attempt(folder / "fuzz.eval.csv", start + "".join(words))


# Structures of known keys


def keys_of(data: Any) -> set[str]:
    """All keys in the seeds: a vocabulary to be wrong with."""
    if isinstance(data, dict):
        return set(data).union(*map(keys_of, data.values()))
    return set().union(*map(keys_of, data)) if isinstance(data, list) else set()


def words_of(data: Any) -> set[str]:
    if isinstance(data, dict):
        return set().union(*map(words_of, data.values()))
    if isinstance(data, list):
        return set().union(*map(words_of, data))
    return {data} if isinstance(data, str) else set()


EVERYTHING = [SUITE, TIERS, LOCK]
KEYS = st.sampled_from(sorted(keys_of(EVERYTHING))) | st.text(max_size=3)
WORDS = st.sampled_from(sorted(words_of(EVERYTHING))) | st.text(max_size=3)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -1e308, 2**63, -(2**63), 1e-320, float("inf"), float("nan")])
    | WORDS
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(list(FORMATS)), TREES)
@example("fuzz.eval.yaml", {"tests": [], "evalcases": [{"id": "a"}]})
@example("t.rubric.json", [{"id": "a", "rubric": [{"dimension": "d"}] * 2}])
def test_any_structure(folder: Path, name: str, tree: Any) -> None:
    attempt(folder / name, FORMATS[name][1](tree))


@given(st.sampled_from(list(FORMATS)), st.lists(st.dictionaries(KEYS, TREES, max_size=6)))
def test_any_list_of_cases(folder: Path, name: str, cases: list[Any]) -> None:
    attempt(folder / name, FORMATS[name][1](cases))


# Valid files, changed


def places_of(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every part."""
    found = [path]
    if isinstance(data, (dict, list)):
        for step, value in data.items() if isinstance(data, dict) else enumerate(data):
            found += places_of(value, (*path, step))
    return found


@st.composite
def changed(draw: st.DrawFn, data: Any) -> Any:
    """Valid data with one to three of its parts replaced, removed, renamed or doubled."""
    data = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places_of(data)))
        if not path:
            continue
        parent = data
        for step in path[:-1]:
            parent = parent[step]
        last = path[-1]
        action = draw(st.sampled_from(["replace", "remove", "rename", "double", "move", "wrap"]))
        if action == "replace":
            parent[last] = draw(TREES)
        elif action == "remove":
            del parent[last]
        elif action == "wrap":
            parent[last] = [parent[last]]
        elif action == "rename" and isinstance(parent, dict):
            parent[draw(KEYS)] = parent.pop(last)
        elif action == "double" and isinstance(parent, list):
            parent.insert(last, copy.deepcopy(parent[last]))
        elif action == "move":
            other = draw(st.sampled_from(places_of(data)))
            value = data
            for step in other:
                value = value[step]
            parent[last] = copy.deepcopy(value)
    return data


@given(st.data())
def test_changed_data(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(FORMATS)))
    valid, write = FORMATS[name]
    attempt(folder / name, write(data.draw(changed(valid))))


@given(st.data())
def test_changed_text(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    text = CSV if name == "fuzz.eval.csv" else FORMATS[name][1](FORMATS[name][0])
    attempt(folder / name, data.draw(cut(text)))


SCRAPS = st.binary(max_size=4) | st.sampled_from(
    [
        *(b"\n", b"\t", b'"', b"'", b"{", b"[", b"]", b"}", b",", b": ", b"- ", b"&a ", b"*a"),
        *(b"\0", b"\\", b"\xff", b"NaN", b"1e999", b'"a": 1, "a": 2, ', b"\xe2\x80\xa8", b"\r"),
    ]
)


@st.composite
def cut(draw: st.DrawFn, text: str) -> bytes:
    """A valid text with a few slices removed, doubled, or replaced by something."""
    raw = text.encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(len(raw) - 1, 0)))
        end = start + draw(st.integers(0, 30))
        middle = draw(st.sampled_from([b"", raw[start:end] * 2]) | SCRAPS)
        raw = raw[:start] + middle + raw[end:]
    return raw


@given(st.data())
def test_changed_sidecar(folder: Path, data: st.DataObject) -> None:
    suite = {key: value for key, value in SUITE.items() if key != "cases"}
    sidecar = data.draw(changed(suite).map(as_yaml) | cut(as_yaml(suite)) | TREES.map(as_yaml))
    here = folder / "sidecar"
    here.mkdir(exist_ok=True)
    raw = sidecar if isinstance(sidecar, bytes) else sidecar.encode("utf-8", "surrogatepass")
    (here / "fuzz.eval.yaml").write_bytes(raw)
    attempt(here / "fuzz.eval.jsonl", as_lines(SUITE))


@given(st.data())
def test_changed_lock_and_archive(folder: Path, data: st.DataObject) -> None:
    text = json.dumps(LOCK)
    lock = data.draw(changed(LOCK).map(json.dumps) | cut(text) | TREES.map(json.dumps))
    here = folder / "lock"
    here.mkdir(exist_ok=True)
    other = data.draw(st.sampled_from(["t.regression.lock.json", "t.regression.archive.json"]))
    for name in ("t.regression.lock.json", "t.regression.archive.json"):
        (here / name).unlink(missing_ok=True)
    (here / other).write_bytes(lock if isinstance(lock, bytes) else lock.encode())
    attempt(here / "t.regression.json", json.dumps(TIERS["regression"]))


@given(st.data())
def test_changed_seed_manifest(folder: Path, data: st.DataObject) -> None:
    manifest = {"a": {"b": ["x", None, 1.5, {}]}, "holdings": [{"symbol": ""}]}
    text = data.draw(changed(manifest).map(json.dumps) | cut(json.dumps(manifest)))
    here = folder / "seeds"
    (here / "evals").mkdir(parents=True, exist_ok=True)
    raw = text if isinstance(text, bytes) else text.encode()
    (here / "evals" / "seed-manifest.json").write_bytes(raw)
    (here / "assay.yaml").write_text("{}\n")
    attempt(here / "t.labeled.json", json.dumps(TIERS["labeled"]))


# Names, patterns and tokens inside otherwise valid files


@given(st.text(st.sampled_from("ab01.*+?()[]{}|^$\\<>=!:&~#-,P \n"), max_size=20))
@example("[[a]")
@example("(?=[[a]])")
@example("[a--b](?=x)")
@example("(?P<a>x)(?P<a>y)(?=z)")
@example("(?<=a+)(?P>x)")
@example("\\p{(?=x)")
@example("(?:a{1000}){1000}(?=b)")
def test_any_regex(folder: Path, pattern: str) -> None:
    case = {"id": "a", "input": "x", "expect": {"responseMatches": [pattern]}}
    attempt(folder / "regex.eval.jsonl", json.dumps(case) + "\n")


@given(st.text(st.sampled_from("{}seedsnapshot:.[]019-_ ax\n"), max_size=30))
@example("{{seed:a}}{{seed:b.c[0]}}")
@example("{{seed:}}")
@example("{{ sed : x }}")
@example("{{seed:a[99999999999]}}")
def test_any_token(folder: Path, text: str) -> None:
    case = {"id": "a", "input": "x", "expect": {"responseContains": [f"x{text}"]}}
    attempt(folder / "token.eval.jsonl", json.dumps(case) + "\n")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
@example("a\0b")
@example("../" * 50)
@example("/")
@example("\ud7ff")
def test_any_path(folder: Path, path: str) -> None:
    content = [{"role": "user", "content": [{"type": "file", "value": path}]}]
    case = {"id": "a", "input": content, "expected_output": "x"}
    attempt(folder / "path.eval.jsonl", json.dumps(case) + "\n")


@given(st.text(max_size=30))
def test_any_evaluator_type(folder: Path, kind: str) -> None:
    for name in (kind, f"not_{kind}", f"python:{kind}", f"not-{kind}"):
        case = {"id": "a", "input": "x", "evaluators": [{"type": name, "value": "x"}]}
        attempt(folder / "type.eval.jsonl", json.dumps(case) + "\n")
