"""Documented or it fails: pages are complete, links lead somewhere, examples work."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import pytest_options
from jsonschema import Draft202012Validator
from pages import Page, Story, code_words, fits, whole
from tables import (
    COMMANDS,
    COVERED,
    GENERATED,
    PAGES_WITH_TABLES,
    REPLAYED,
    ROOT,
    TABLES,
    documented_keys,
    own_fields,
    page_of,
    real_keys,
    rewritten,
    shapes,
    spellings,
)

import assay
from assay.cli.app import app
from assay.comparison.decision import decide
from assay.errors import AssayError
from assay.evaluators.python import CONTEXT
from assay.loaders import csv, jsonl
from assay.model import expect, message, suite, tiers
from assay.model.comparison import SignificanceTest
from assay.model.run_result import PRECEDENCE
from assay.model.tokens import VARIABLES
from assay.problems import MAX_PROBLEMS, SLUGS
from assay.registry import evaluators
from assay.service import eval_files
from assay.service.schema import schema
from assay.settings import OVERRIDES
from assay.stats.paired import Pairs
from assay.wire import document
from assay.wire import yaml as yaml_documents
from assay.wire.shape import Shape

FILES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "changes").glob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
    ]
)
PAGES = {page.name: page for page in (Page.read(file, ROOT) for file in FILES)}
CLI, ERRORS = PAGES["docs/cli.md"], PAGES["docs/errors.md"]
EVAL_FILES, EVALUATORS = PAGES["docs/eval-files.md"], PAGES["docs/evaluators.md"]
PYTHON = PAGES["docs/python.md"]
BUILT_IN = sorted(evaluators)

every_page = pytest.mark.parametrize(
    "page", [pytest.param(page, id=name) for name, page in PAGES.items() if page.blocks]
)


# Links and numbers


def broken_links(page: Page, pages: dict[str, Page], root: Path = ROOT) -> list[str]:
    """Links to files that are not there, and to anchors that their page does not have."""
    broken = []
    for line, link in page.links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        file = (root / page.name).parent / path if path else root / page.name
        name = file.resolve().relative_to(root).as_posix()
        if name not in pages and not file.exists():
            broken.append(f"{page.name}:{line}: {link}: no such file")
        elif anchor and (name not in pages or anchor not in pages[name].anchors):
            broken.append(f"{page.name}:{line}: {link}: no such heading")
    return broken


def test_links_resolve() -> None:
    assert [link for page in PAGES.values() for link in broken_links(page, PAGES)] == []


def test_every_page_is_reached_from_the_index() -> None:
    todo, reached = ["README.md"], {"README.md"}
    while todo:
        page = PAGES[todo.pop()]
        for _, link in page.links:
            target = (ROOT / page.name).parent / link.partition("#")[0]
            name = target.resolve().relative_to(ROOT).as_posix() if ":" not in link else ""
            if name in PAGES and name not in reached:
                reached.add(name)
                todo.append(name)
    fragments = {name for name in PAGES if re.match(r"changes/\d", name)}
    assert set(PAGES) - reached - fragments - {"docs/index.md"} == set()
    index = {link.partition("#")[0] for _, link in PAGES["docs/index.md"].links}
    pages = {name.removeprefix("docs/") for name in PAGES if name.startswith("docs/")}
    listed_elsewhere = {name for name in pages if name.startswith("evaluators/")}
    assert pages - index - listed_elsewhere == {"index.md"}


def test_the_words_of_a_run_have_their_meaning() -> None:
    words = re.findall(r"^## (.+)$", PAGES["docs/concepts.md"].text, re.MULTILINE)
    wanted = {"Suite", "Case", "Target", "Judge", "Trial", "Observation", "Evaluator", "Outcome"}
    wanted |= {"Evaluation score", "Run", "Baseline", "Comparison", "Decision", "Coverage"}
    assert wanted <= set(words)
    assert len(words) == len(set(words))


def test_decisions_have_unique_numbers_and_three_parts() -> None:
    decisions = {n: p for n, p in PAGES.items() if n.startswith("docs/adr/")}
    numbers = [int(Path(name).name[:4]) for name in decisions]
    assert numbers == sorted(set(numbers))
    for name, page in decisions.items():
        assert re.fullmatch(r"docs/adr/\d{4}-[a-z0-9-]+\.md", name)
        titles = [h.title for h in page.headings]
        assert titles[0].startswith(f"{Path(name).name[:4]}: ")
        assert titles[1:] == ["Context", "Decision", "Rejected"]


def wrong_fragments(folder: Path) -> list[str]:
    """Names of change fragments with a wrong name, a second sentence, or a number used twice."""
    files = sorted(file for file in folder.iterdir() if file.name != "README.md")
    name = re.compile(r"(\d{4})\.(added|changed|fixed|removed)\.md")
    numbers = [match[1] for file in files if (match := name.fullmatch(file.name))]

    def right(file: Path) -> bool:
        match = name.fullmatch(file.name)
        if match is None or numbers.count(match[1]) > 1:
            return False
        return re.fullmatch(r".+\.\n", file.read_text(encoding="utf-8")) is not None

    return [file.name for file in files if not right(file)]


def test_change_fragments_are_one_line_with_a_unique_number() -> None:
    assert wrong_fragments(ROOT / "changes") == []


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ({"0001.added.md": "One.\n", "README.md": "x"}, []),
        (
            {"0001.added.md": "One.\n", "0001.fixed.md": "Two.\n"},
            ["0001.added.md", "0001.fixed.md"],
        ),
        ({"0001.new.md": "One.\n"}, ["0001.new.md"]),
        ({"1.added.md": "One.\n"}, ["1.added.md"]),
        ({"0001.added.md": "One.\nTwo.\n"}, ["0001.added.md"]),
        ({"0001.added.md": "No full stop\n"}, ["0001.added.md"]),
    ],
)
def test_a_wrong_change_fragment_is_noticed(
    files: dict[str, str], wrong: list[str], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert wrong_fragments(tmp_path) == wrong


# Blocks


@every_page
def test_blocks_work(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    faults = Story(folder).faults(page)
    assert not faults, "\n".join(faults)


@every_page
def test_blocks_are_tried_or_are_plain(page: Page) -> None:
    """An eval file that is shown is tried; a misspelt mark would leave it untried."""
    known = {"eval", "evaluators", "expect", *tiers.TIERS, "config", "run", "output", "demo"}
    for block in page.blocks:
        words = [w for w in block.words[1:] if "=" not in w]
        options = {w.partition("=")[0] for w in block.words[1:] if "=" in w}
        assert known.issuperset(words), f"{page.name}:{block.line}: {words}"
        assert {"file", "reports", "lint", "report"} >= options, (
            f"{page.name}:{block.line}: {options}"
        )
        if block.language in ("json", "jsonl", "csv"):
            assert block.words[1:], f"{page.name}:{block.line}: the block is not tried"
        if block.language == "yaml" and not block.words[1:]:
            assert all(row.startswith("#") for row in block.text.splitlines()), block.line


def test_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    demo = f"TMPDIR='{tmp_path}' sh '{ROOT}/examples/weather/demo.sh'"  # it keeps what it made
    code, output = Story(tmp_path).shell(demo)
    assert code == 0, output
    shown = [b.text for b in PAGES["README.md"].blocks if "demo" in b.words]
    assert len(shown) == 1
    assert fits(shown[0], output) == ""
    lines = [line.strip() for line in shown[0].splitlines()]
    for key_line in ("FAILED (exit code 1)", '- get_alerts(city="Oslo")', "new passes (1):"):
        assert key_line in lines


def test_the_demo_leaves_nothing_behind_and_notices_when_nothing_regresses(tmp_path: Path) -> None:
    example = shutil.copytree(ROOT / "examples/weather", tmp_path / "weather")
    before = sorted(example.rglob("*"))
    agent = example / "agent.py"
    mended = agent.read_text("utf-8").replace('talk.asks("warning")', "False")
    agent.write_text(mended, "utf-8")
    code, output = Story(tmp_path).shell("sh weather/demo.sh")
    assert code == 1
    assert output.endswith("the demo failed: expected exit code 1\n")
    assert sorted(example.rglob("*")) == before


def test_the_example_is_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "examples/weather")
    loaded = eval_files.lint("evals")
    assert list(map(str, loaded.problems)) == []
    assert {s.tier for s in loaded.suites} == {*tiers.TIERS, "suite"}
    malformed = eval_files.validate("broken").errors
    assert len({p.code for p in malformed}) >= 8


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def refused(name: str, data: Any) -> list[str]:
    """What an editor with the schema would mark."""
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(data)]


@every_page
def test_schemas_accept_what_loads(page: Page) -> None:
    for block in page.blocks:
        if block.kind and block.language != "csv" and not block.option("reports"):
            name = block.kind if block.kind in tiers.TIERS else "eval"
            for text in block.text.splitlines() if block.language == "jsonl" else [block.text]:
                data = yaml_documents.parse(whole(text, block.kind), page.name).data
                assert refused(name, data) == [], f"{page.name}:{block.line}"


@pytest.mark.parametrize("name", ["eval", *tiers.TIERS])
def test_schemas_accept_the_example(name: str) -> None:
    files = list((ROOT / "examples/weather/evals").glob(f"*.{name}.[jy]*"))
    assert len(files) == 1
    data = yaml_documents.parse(files[0].read_text(encoding="utf-8"), name).data
    assert refused(name, data) == []


# Commands


def documented_options(page: Page, title: str) -> set[str]:
    rows = page.table(title)
    return {word.replace("\\|", "|") for row in rows for word in code_words(row["Option"])}


@pytest.mark.parametrize("path", COMMANDS)
def test_command_is_documented_with_its_options(path: str) -> None:
    command = COMMANDS[path]
    if isinstance(command, click.Group):
        assert CLI.section(path)
        return
    wanted = {s for p in command.params for s in spellings(p, command)}
    assert documented_options(CLI, path) == wanted


def test_no_command_is_documented_that_does_not_exist() -> None:
    titles = {h.title for h in CLI.headings if h.title.startswith("assay ")}
    assert titles == set(COMMANDS)
    context = click.Context(app, **app.context_settings)
    wanted = {s for p in app.get_params(context) for s in spellings(p, app)}
    assert documented_options(CLI, "assay") == wanted


def test_exit_codes_are_documented() -> None:
    codes = {int(code_words(row["Code"])[0]) for row in CLI.table("Exit codes")}
    assert codes == {0, *PRECEDENCE} | {error.exit_code for error in errors()}


# Errors


def errors(base: type[AssayError] = AssayError) -> Iterator[type[AssayError]]:
    yield base
    for child in base.__subclasses__():
        if child.__module__.startswith("assay."):
            yield from errors(child)


def test_every_slug_has_a_heading_and_no_other_has() -> None:
    titles = [h.title for h in ERRORS.headings if h.level == 3]
    assert sorted(titles) == sorted({*SLUGS, *(error.slug for error in errors())})


#: Slugs that need a machine in a state which a test does not bring about.
NOT_SHOWN = {"unreadable", "plugin-failed"}


@pytest.mark.parametrize("slug", sorted(set(SLUGS) - NOT_SHOWN))
def test_every_slug_has_an_example_that_causes_it(slug: str) -> None:
    causes = [
        block
        for block in ERRORS.blocks
        if block.section == slug
        and (
            slug in (block.option("reports"), block.option("lint"))
            or (block.language == "console" and f"[{slug}]" in block.text)
            or ("output" in block.words and f"'{slug}'" in block.text)
        )
    ]
    assert causes


# Keys of files


@pytest.mark.parametrize("shape", TABLES, ids=lambda shape: shape.__name__)
def test_table_of_a_shape_is_complete(shape: type[Shape]) -> None:
    name, title = TABLES[shape]
    page = PAGES[name]
    if shape is evaluators.get("expect"):  # its keys are those of the block
        assert set(own_fields(shape)) == set(expect.Expect.model_fields)
        assert "(../eval-files.md#expect)" in " ".join(page.section(title))
    elif own_fields(shape):
        assert documented_keys(page, title) == real_keys(shape)
    else:
        assert page.section(title)


def test_every_shape_has_a_table() -> None:
    missing = {
        shape.__name__
        for shape in shapes()
        if shape not in TABLES | COVERED.keys()
        and shape not in REPLAYED
        and not shape.__name__.startswith("_")
    }
    assert missing == set()
    for shape, others in COVERED.items():
        assert set(own_fields(shape)) <= set().union(*map(own_fields, others))


@pytest.mark.parametrize("name", PAGES_WITH_TABLES)
def test_generated_tables_are_fresh(name: str) -> None:
    assert rewritten(PAGES[name]) == PAGES[name].text, "write the tables anew with make docs"
    titles = [title for shape, (page, title) in GENERATED.items() if page == name]
    for title in titles:
        if name not in (page_of("expect"), page_of("python")):
            assert all(row["Meaning"] for row in PAGES[name].table(title)), title


def test_options_of_the_pytest_plugin_are_fresh() -> None:
    text = pytest_options.FILE.read_text(encoding="utf-8")
    assert pytest_options.rewritten(text) == text, "write the table anew with make docs"


def test_golden_keys() -> None:
    required = {n for n, info in expect.GoldenExpect.model_fields.items() if info.is_required()}
    told = " ".join(EVAL_FILES.section("Golden cases"))
    sentence = re.search(r"In a golden case (.*?) are required", told)
    assert sentence
    assert set(code_words(sentence[1])) == required
    assert set(expect.Expect.model_fields) - set(expect.GoldenExpect.model_fields) == {
        "toolsAcceptable"
    }


@pytest.mark.parametrize(
    ("record", "title"),
    [
        (message.Message, "Messages"),
        (message.ToolCall, "Tool calls"),
        (message.ContentPart, "Content parts"),
    ],
)
def test_table_of_a_record_is_complete(record: Any, title: str) -> None:
    found = documented_keys(EVAL_FILES, title)
    assert set(found) == set(record.keys)
    parameters = inspect.signature(record).parameters
    for key, (default, _) in found.items():
        required = parameters[key].default is inspect.Parameter.empty
        assert default == ("required" if required else "none"), key


# Evaluators


def test_every_evaluator_has_a_page_and_no_other_has() -> None:
    pages = {name for name in PAGES if name.startswith("docs/evaluators/")}
    assert pages == {page_of(name) for name in BUILT_IN}
    rows = [row["Type"] for row in EVALUATORS.table("Types")]
    assert sorted(rows) == sorted(f"[`{name}`](evaluators/{name}.md)" for name in BUILT_IN)


@pytest.mark.parametrize("name", BUILT_IN)
def test_page_of_an_evaluator_shows_a_failing_result_of_an_example(name: str) -> None:
    page = PAGES[page_of(name)]
    titles = [h.title for h in page.headings if h.level <= 2]
    assert titles == [name, "Keys", "Example", "A failing result"]
    example = "".join(b.text for b in page.blocks if b.section == "Example" and b.kind == "eval")
    assert re.search(rf"type: {name}\b", example)
    shown = "".join(b.text for b in page.blocks if b.section == "A failing result")
    assert re.search(r"^passed [01]", shown, re.MULTILINE)
    assert re.search(r"^failed [01]", shown, re.MULTILINE)
    assert re.search(r'"misses": \[\n +"', shown)


def test_parameters_of_functions_are_documented() -> None:
    told = [code_words(row["Parameter"])[0] for row in EVALUATORS.table("Functions")]
    assert told == list(CONTEXT)


def test_variables_of_prompts_are_documented() -> None:
    rows = PAGES[page_of("llm_judge")].table("Variables")
    assert [code_words(row["Variable"])[0] for row in rows] == [f"{{{{{v}}}}}" for v in VARIABLES]


# Other tables


def test_variables_of_the_environment_are_documented() -> None:
    rows = PAGES["docs/config.md"].table("Environment")
    told = {code_words(row["Key"])[0]: code_words(row["Variable"])[0] for row in rows}
    assert told == OVERRIDES


def test_csv_columns_are_documented() -> None:
    columns = {code_words(row["Column"])[0] for row in EVAL_FILES.table("CSV suites")}
    assert columns == {*csv.COLUMNS, "metadata.*", "vars.*", "x-*"}


def test_file_formats_are_documented() -> None:
    from assay.registry import loaders

    told = {w for row in EVAL_FILES.table("Eval files") for w in code_words(row["File"])}
    assert {re.sub(r"^(\*|<tool>)\.", "", name) for name in told} == set(loaders)


def test_limits_are_documented() -> None:
    def mib(size: int) -> str:
        return f"{size // 1024**2} MiB"

    limits = {row["What"]: row["Limit"] for row in EVAL_FILES.table("Limits")}
    assert limits == {
        "nesting of a document": f"{document.MAX_DEPTH} levels",
        "one text": mib(document.MAX_SCALAR),
        "one file, JSONL excepted": mib(document.MAX_FILE_BYTES),
        "one line of a JSONL file": mib(document.MAX_LINE),
        "values after all aliases of a YAML file are expanded": f"{yaml_documents.MAX_ALIASED:,}",
        "a JSONL file that is kept in memory": mib(jsonl.HELD_BYTES),
        "whole numbers": "64 bits",
        "reported errors per file": f"{MAX_PROBLEMS:,}, and as many warnings",
    }


# Python


def test_public_names_are_documented() -> None:
    assert [code_words(row["Name"])[0] for row in PYTHON.table("Names")] == assay.__all__


@pytest.mark.parametrize(
    ("record", "title"),
    [
        (assay.Suite, "Suite"),
        (assay.EvalCase, "EvalCase"),
        (assay.Message, "Message"),
        (assay.ToolCall, "ToolCall"),
        (assay.Problem, "Errors"),
        (assay.Context, "Context"),
        (assay.EvaluationScore, "EvaluationScore"),
        (assay.EvalCaseResult, "EvalCaseResult"),
        (assay.Comparison, "Comparison"),
        (assay.EvalSuiteResult, "EvalSuiteResult"),
        (assay.Run, "Run"),
    ],
)
def test_fields_of_a_record_are_documented(record: Any, title: str) -> None:
    names = [code_words(row["Field"])[0] for row in PYTHON.table(title)]
    assert sorted(names) == sorted(record.__struct_fields__)


def test_the_numbers_of_a_comparison_are_documented() -> None:
    found = decide(Pairs(8, 1, 1, 0), margin=0.02)
    assert found.difference is not None
    said = {row["Field"]: code_words(row["Meaning"]) for row in PYTHON.table("Comparison")}
    assert said["`test`"] == list(SignificanceTest.__struct_fields__)[:3]
    assert said["`difference`"] == list(found.difference.to_dict())


# These checks can fail


def made_up(text: str) -> Page:
    return Page("docs/made-up.md", text)


@pytest.mark.parametrize(
    "text",
    [
        "```yaml eval\ncases: 3\n```",
        "```yaml eval\n- {id: a, input: b, expected_output: c, note: d}\n```",
        "```yaml eval reports=unknown-key\n- {id: a, input: b, expected_output: c}\n```",
        "```yaml eval lint=echoed-prompt\n- {id: a, input: b, expected_output: c}\n```",
        "```yaml evaluators\n- type: containz\n```",
        "```yaml expect\ntool_called: [a]\n```",
        "```json golden\n[]\n```",
        "```jsonl eval\n{}\n```",
        "```csv eval\nid,input\na,b\n```",
        "```yaml config\nroot: here\n```",
        "```yaml config reports=unknown-key\nallow_outside_root: true\n```",
        "```console\n$ assay validate nowhere\n```",
        "```console\n$ assay --version\n$ echo $?\n2\n```",
        "```console\n$ assay --version\nassay of another age\n```",
        "```console\n$ assay validate nowhere\n$ assay --version\n```",
        "```python run\n1 / 0\n```",
        "```python run\nprint(1)\n```\n```text output\n2\n```",
    ],
)
def test_a_wrong_block_is_noticed(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    faults = Story(tmp_path).faults(made_up(text))
    assert len(faults) == 1


def test_a_broken_link_is_noticed() -> None:
    page = made_up(
        "[a](nowhere.md) [b](cli.md#nothing) [c](#here) [d](cli.md#exit-codes)\n\n# Here"
    )
    assert len(broken_links(page, {**PAGES, page.name: page})) == 2
    page = made_up("[c](#there)\n\n# Here\n\n```text\n# There\n```\n")
    assert len(broken_links(page, {**PAGES, page.name: page})) == 1


@pytest.mark.parametrize(
    ("shown", "real", "right"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n...\nc\n", "a\nb\nc\n", True),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nb\nc\n", True),
        ("a\nc\n", "a\nb\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\nb\nc\n", False),
        ("c\n...\na\n", "a\nb\nc\n", False),
    ],
)
def test_output_is_compared_line_by_line(shown: str, real: str, right: bool) -> None:
    assert (fits(shown, real) == "") is right


def test_a_wrong_table_is_noticed() -> None:
    title = TABLES[suite.CaseFile][1]
    for old, new in (
        ("| `cluster` |", "| `clusters` |"),
        ("| `critical` | true or false | `false` |", "| `critical` | true or false | none |"),
        ("| `outcome`, `criteria` |", "| `outcome` |"),
    ):
        assert old in EVAL_FILES.text
        page = Page(EVAL_FILES.name, EVAL_FILES.text.replace(old, new, 1))
        assert documented_keys(page, title) != real_keys(suite.CaseFile)


def test_a_stale_table_is_written_anew_and_keeps_what_keys_mean() -> None:
    fresh = PAGES[page_of("tool_trajectory")]
    for old, new in (
        ("| `mode` |", "| `mod` |"),
        ("to whole number, >= 0 |", "to number |"),
        ("| `superset` | |", "| none | |"),
        ("| `input` |", "| |"),
    ):
        assert old in fresh.text
        stale = Page(fresh.name, fresh.text.replace(old, new, 1))
        assert rewritten(stale) != stale.text
    forms = re.compile(r"^(\| `args` \|) [^|]+ \| [^|]+ \|", re.MULTILINE)
    stale = Page(fresh.name, forms.sub(r"\1 text | `x` |", fresh.text))
    assert stale.text != fresh.text
    assert rewritten(stale) == fresh.text


def test_an_undocumented_option_is_noticed() -> None:
    page = Page(CLI.name, CLI.text.replace("| `--strict` |", "| `--stern` |"))
    command = COMMANDS["assay validate"]
    wanted = {s for p in command.params for s in spellings(p, command)}
    assert documented_options(page, "assay validate") != wanted


def test_python_of_the_shell_is_this_one() -> None:
    """Console blocks and the demo run the Assay that is under test."""
    code, output = Story(ROOT).shell("python -c 'import assay; print(assay.__file__)'")
    assert (code, output.strip()) == (0, assay.__file__)
    assert Path(sys.executable).parent.joinpath("assay").exists()
