"""The architecture page: its tour is the way that a case really takes, and all it names exists."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from pages import Page, code_words
from tables import ROOT

SOURCE = ROOT / "src/assay"
PAGE = Page.read(ROOT / "docs/architecture.md", ROOT)
HOPS = [
    (code_words(row["File"])[0], code_words(row["Function"])[0])
    for heading in PAGE.headings
    if heading.level == 3
    for row in PAGE.table(heading.title)
]
#: What the page has in backticks that is neither a path nor a name in the source.
OTHER_WORDS = {"contains", "mine", "import assay", "__init__", "assay"}


@cache
def names_in(file: Path) -> set[str]:
    """The functions and classes of a module; methods as `Class.method`."""
    found = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            found.update(
                f"{node.name}.{getattr(inner, 'name', '')}" for inner in ast.iter_child_nodes(node)
            )
    return found


@cache
def packages() -> set[str]:
    folders = (init.parent.relative_to(SOURCE) for init in SOURCE.rglob("__init__.py"))
    return {".".join(folder.parts) for folder in folders} - {""}


def unknown_words(page: Page) -> list[str]:
    """The words in backticks that stand for nothing in the source."""
    names = {name for file in SOURCE.rglob("*.py") for name in names_in(file)} | packages()
    names |= {file.stem for file in SOURCE.glob("*.py")}
    text = "\n".join(line for _, line in page.prose)
    return [
        word
        for word in code_words(text)
        if word not in names | OTHER_WORDS
        and not (SOURCE / word).exists()
        and not (ROOT / word).exists()
        and not re.match(r"assay |-|\.assay/|evals/|assay\.yaml", word)
    ]


def test_every_file_and_name_on_the_page_exists() -> None:
    assert unknown_words(PAGE) == []
    page = Page("docs/made-up.md", "`cli/walk.py` has `strolling`, and `execute` is in `service`.")
    assert unknown_words(page) == ["cli/walk.py", "strolling"]


def test_every_file_and_test_of_the_how_tos_exists() -> None:
    page = Page.read(ROOT / "CONTRIBUTING.md", ROOT)
    tests = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    words = {word for _, line in page.prose for word in code_words(line)}
    files = {word for word in words if "/" in word and "NAME" not in word}
    assert [f for f in sorted(files) if not (ROOT / f).exists() and not (SOURCE / f).exists()] == []
    assert [w for w in words if w.startswith("test_") and f"def {w}(" not in tests] == []


def test_records_are_defined_in_the_file_beside_them() -> None:
    for row in PAGE.table("The records of a case"):
        file = SOURCE / code_words(row["File"])[0]
        assert set(code_words(row["Record"])) <= names_in(file), file


def test_every_package_is_listed() -> None:
    assert {code_words(row["Package"])[0] for row in PAGE.table("Where to find what")} == packages()


def test_layers_are_those_that_the_architecture_tests_hold() -> None:
    source = (ROOT / "tests/architecture/test_layers.py").read_text(encoding="utf-8")
    held = next(
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "LAYERS"
        and node.value is not None
    )
    table = PAGE.table("Layers")
    told = [code_words(row["Packages"]) for row in table]
    assert told == [[package or "assay" for package in packages] for packages in held]


#: Runs the command, and prints every call of a function of ours.
TRACED = """
import json, os, sys, threading
import assay
source = os.path.dirname(assay.__file__) + os.sep
calls = []

def note(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(source):
        calls.append((code.co_filename[len(source):], code.co_qualname))

from assay.cli.main import main
threading.setprofile(note)
sys.setprofile(note)
try:
    main()
finally:
    sys.setprofile(None)
    print(json.dumps(calls))
"""


def assay_output(*arguments: str, folder: Path, code: str = "") -> str:
    start = ["-c", code] if code else ["-m", "assay"]
    command = [sys.executable, *start, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_case_takes_the_hops_of_the_tour_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/greeting.eval.yaml").write_text(
        "cases: [{id: hello, input: Hello, evaluators: [{type: contains, value: Hello}]}]\n"
    )
    (tmp_path / "agent.py").write_text("def answer(question): return question\n")
    (tmp_path / "assay.yaml").write_text(
        "targets: [{name: mine, provider: python, callable: 'agent:answer'}]\n"
    )
    run = ("run", "evals/", "--target", "mine")
    assay_output(*run, folder=tmp_path)
    assay_output("baseline", "set", "main", "latest", folder=tmp_path)
    output = assay_output(*run, "--baseline", "main", folder=tmp_path, code=TRACED)
    calls = iter(json.loads(output.splitlines()[-1]))
    for file, function in HOPS:  # a check is a function that another one made
        made = f"{function}.<locals>."
        reached = any(
            where == file and (name == function or name.startswith(made)) for where, name in calls
        )
        assert reached, f"{file}: {function} is not called after the hops before it"
