"""Documented or it fails: pages are complete, links lead somewhere, examples work."""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator
from pages import Page, Story, code_words, fits, whole
from pydantic_core import PydanticUndefined

import assay
from assay import service
from assay.cli.app import app
from assay.documents import document
from assay.documents import yaml as yaml_documents
from assay.errors import MAX_PROBLEMS, SLUGS, AssayError
from assay.evaluators import composite, field_accuracy, tool_trajectory
from assay.evaluators.python import FunctionSpec
from assay.loaders import csv, jsonl
from assay.model import expect, message, rubric, suite, target, tiers
from assay.model.evaluator import EvaluatorSpec, NegatableSpec
from assay.model.rules import Ruled
from assay.model.shape import Shape
from assay.registry import evaluators, targets
from assay.schema import schema
from assay.settings import Config, JudgeEntry, TargetEntry
from assay.targets.chat import ChatTarget
from assay.targets.reply_paths import ReplyPaths
from assay.targets.scripted import ScriptedCall, ScriptedReply, ScriptedUsage

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "changes").glob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
    ]
)
PAGES = {page.name: page for page in (Page.read(file, ROOT) for file in FILES)}
CLI, ERRORS = PAGES["docs/cli.md"], PAGES["docs/errors.md"]
EVAL_FILES, EVALUATORS = PAGES["docs/eval-files.md"], PAGES["docs/evaluators.md"]
CONFIG, PYTHON = PAGES["docs/config.md"], PAGES["docs/python.md"]

every_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


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


@every_page
def test_links_resolve(page: Page) -> None:
    assert broken_links(page, PAGES) == []


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
    assert pages - index == {"index.md"}


def test_decisions_have_unique_numbers_and_three_parts() -> None:
    decisions = {n: p for n, p in PAGES.items() if n.startswith("docs/adr/")}
    numbers = [int(Path(name).name[:4]) for name in decisions]
    assert numbers == list(range(1, len(decisions) + 1))
    for name, page in decisions.items():
        assert re.fullmatch(r"docs/adr/\d{4}-[a-z0-9-]+\.md", name)
        titles = [h.title for h in page.headings]
        assert titles[0].startswith(f"{Path(name).name[:4]}: ")
        assert titles[1:] == ["Context", "Decision", "Rejected"]


def test_change_fragments_are_one_sentence_under_a_number_of_their_own() -> None:
    files = [f for f in (ROOT / "changes").iterdir() if f.name != "README.md"]
    numbers = [f.name[:4] for f in files]
    assert len(numbers) == len(set(numbers))
    for file in files:
        assert re.fullmatch(r"\d{4}\.(added|changed|fixed|removed)\.md", file.name), file.name
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") == 1, file.name
        assert text.endswith(".\n"), file.name


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
        assert {"file", "reports", "lint"} >= options, f"{page.name}:{block.line}: {options}"
        if block.language in ("json", "jsonl", "csv"):
            assert block.words[1:], f"{page.name}:{block.line}: the block is not tried"
        if block.language == "yaml" and not block.words[1:]:
            assert all(row.startswith("#") for row in block.text.splitlines()), block.line


def test_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    code, output = Story(tmp_path).shell(f"sh '{ROOT}/examples/weather/demo.sh'")
    assert code == 0, output
    shown = [b.text for b in PAGES["README.md"].blocks if "demo" in b.words]
    assert len(shown) == 1
    assert fits(shown[0], output) == ""
    for key_line in ("exit code 2", "7 suites with 23 cases loaded; 0 errors, 0 warnings"):
        assert key_line in shown[0].splitlines()


def test_the_example_is_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "examples/weather")
    loaded = service.lint("evals")
    assert list(map(str, loaded.problems)) == []
    assert {s.tier for s in loaded.suites} == {*tiers.TIERS, "suite"}
    slips = service.validate("broken").errors
    assert len({p.code for p in slips}) >= 8


def refused(name: str, data: Any) -> list[str]:
    """What an editor with the schema would mark."""
    validator = Draft202012Validator(schema(name))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)]


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


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


COMMANDS = dict(commands(app, "assay"))


def spellings(parameter: click.Parameter, command: click.Command) -> set[str]:
    if isinstance(parameter, click.Option):
        return {*parameter.opts, *parameter.secondary_opts}
    return {parameter.make_metavar(click.Context(command)).replace("[FOLDER]", "FOLDER")}


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
    context = click.Context(app, help_option_names=["-h", "--help"])
    wanted = {s for p in app.get_params(context) for s in spellings(p, app)}
    assert documented_options(CLI, "assay") == wanted


def test_exit_codes_are_documented() -> None:
    codes = {int(code_words(row["Code"])[0]) for row in CLI.table("Exit codes")}
    assert codes == {0} | {error.exit_code for error in errors()}


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


#: Every wire shape, with the page and the heading of its table.
TABLES: dict[type[Shape], tuple[Page, str]] = {
    Config: (CONFIG, "Keys"),
    TargetEntry: (CONFIG, "Targets"),
    target.Price: (CONFIG, "Prices"),
    ReplyPaths: (CONFIG, "Reply paths"),
    **{targets.get(name): (CONFIG, name) for name in targets},
    suite.SuiteFile: (EVAL_FILES, "Suite keys"),
    suite.SuiteExecution: (EVAL_FILES, "Suite execution"),
    suite.CaseFile: (EVAL_FILES, "Case keys"),
    suite.CaseExecution: (EVAL_FILES, "Case execution"),
    rubric.Rubric: (EVAL_FILES, "Rubric items"),
    rubric.ScoreRange: (EVAL_FILES, "Score ranges"),
    rubric.Dimension: (EVAL_FILES, "Dimensions"),
    expect.Expect: (EVAL_FILES, "Expect"),
    expect.ToolParam: (EVAL_FILES, "Tool parameters"),
    tiers.TierFile: (EVAL_FILES, "Tier files"),
    tiers.TierMetadata: (EVAL_FILES, "Tier metadata"),
    tiers.TierInput: (EVAL_FILES, "Tier input"),
    tiers.TierCase: (EVAL_FILES, "Keys of every tier"),
    tiers.GoldenEvalCase: (EVAL_FILES, "Golden cases"),
    tiers.LabeledEvalCase: (EVAL_FILES, "Labeled cases"),
    tiers.RegressionEvalCase: (EVAL_FILES, "Regression cases"),
    tiers.RubricEvalCase: (EVAL_FILES, "Rubric cases"),
    EvaluatorSpec: (EVALUATORS, "Common keys"),
    composite.Aggregator: (EVALUATORS, "Aggregator"),
    field_accuracy.FieldRule: (EVALUATORS, "Fields"),
    tool_trajectory.Step: (EVALUATORS, "Steps"),
    tool_trajectory.Call: (EVALUATORS, "Calls"),
    tool_trajectory.Predicate: (EVALUATORS, "Conditions"),
    **{evaluators.get(name): (EVALUATORS, name) for name in evaluators},
}
#: Shapes without a table of their own, and those that have their keys.
COVERED: dict[type[Shape], tuple[type[Shape], ...]] = {
    expect.ExpectBase: (expect.Expect,),
    expect.GoldenExpect: (expect.Expect,),
    suite.OneCaseFile: (suite.CaseFile, suite.SuiteFile),
    NegatableSpec: (evaluators.get("contains"),),
    Ruled: (expect.Expect,),
    JudgeEntry: (TargetEntry,),
    target.TargetSpec: (TargetEntry,),
    ChatTarget: (targets.get("openai"),),
    FunctionSpec: (),
}


#: Shapes with the keys of a replay line, which docs/observations.md has.
REPLAYED = (ScriptedReply, ScriptedCall, ScriptedUsage)


def shapes(base: type[Shape] = Shape) -> Iterator[type[Shape]]:
    for child in base.__subclasses__():
        if child.__module__.startswith("assay."):
            yield child
            yield from shapes(child)


def own_fields(shape: type[Shape]) -> set[str]:
    """The keys that a shape's table lists: those of a documented base stand in its own table."""
    fields = set(shape.model_fields)
    if issubclass(shape, EvaluatorSpec) and shape is not EvaluatorSpec:
        fields -= set(EvaluatorSpec.model_fields)
    if issubclass(shape, tiers.TierCase) and shape is not tiers.TierCase:
        fields -= set(tiers.TierCase.model_fields)
    if issubclass(shape, target.TargetSpec) and shape is not target.TargetSpec:
        fields -= {"name"}
    return fields


def default_of(shape: type[Shape], name: str) -> str:
    """How a table writes a default."""
    info = shape.model_fields[name]
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True)
    assert value is not PydanticUndefined
    if value is None or value in ("", (), [], {}) or isinstance(value, Shape):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, (int, float)) else f"`{value}`"


def documented_keys(page: Page, title: str) -> dict[str, tuple[str, set[str]]]:
    """Key -> its default and its aliases, as the table has them."""
    return {
        code_words(row["Key"])[0]: (row["Default"], set(code_words(row.get("Aliases", ""))))
        for row in page.table(title)
    }


def real_keys(shape: type[Shape]) -> dict[str, tuple[str, set[str]]]:
    aliases = shape.spelling.aliases
    return {
        name: (default_of(shape, name), {a for a, c in aliases.items() if c == name})
        for name in own_fields(shape)
    }


@pytest.mark.parametrize("shape", TABLES, ids=lambda shape: shape.__name__)
def test_table_of_a_shape_is_complete(shape: type[Shape]) -> None:
    page, title = TABLES[shape]
    if shape is evaluators.get("expect"):  # its keys are those of the block
        assert own_fields(shape) == set(expect.Expect.model_fields)
        assert "(eval-files.md#expect)" in " ".join(page.section(title))
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
        assert own_fields(shape) <= set().union(*map(own_fields, others))


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
    fields = {f.name: f for f in dataclasses.fields(record)}
    for key, (default, _) in found.items():
        required = fields[key].default is dataclasses.MISSING
        assert default == ("required" if required else "none"), key


def test_every_evaluator_has_a_heading_and_no_other_has() -> None:
    parts = {title for page, title in TABLES.values() if page is EVALUATORS} - set(evaluators)
    titles = {h.title for h in EVALUATORS.headings if h.level == 3}
    assert titles - parts == set(evaluators)


def test_csv_columns_are_documented() -> None:
    columns = {code_words(row["Column"])[0] for row in EVAL_FILES.table("CSV suites")}
    assert columns == {*csv.COLUMNS, "metadata.*", "x-*"}


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
        "one line of a JSONL file": mib(jsonl.MAX_LINE),
        "values that all aliases of a YAML file stand for": f"{yaml_documents.MAX_ALIASED:,}",
        "a JSONL file that is held in memory": mib(jsonl.HELD_BYTES),
        "whole numbers": "64 bits",
        "errors that are told about one file": f"{MAX_PROBLEMS:,}, and as many warnings",
    }


# Python and architecture


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
    ],
)
def test_fields_of_a_record_are_documented(record: Any, title: str) -> None:
    names = [code_words(row["Field"])[0] for row in PYTHON.table(title)]
    assert sorted(names) == sorted(f.name for f in dataclasses.fields(record))


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
    table = PAGES["docs/architecture.md"].table("Layers")
    told = [code_words(row["Packages"]) for row in table]
    assert told == [[room or "assay" for room in rooms] for rooms in held]


def test_every_module_is_on_the_tour() -> None:
    text = PAGES["docs/architecture.md"].text
    source = ROOT / "src/assay"
    for file in source.rglob("*.py"):
        name = file.relative_to(source).as_posix()
        if file.name == "__init__.py" or file.parent.name in ("cli", "evaluators"):
            continue
        assert f"`{name}`" in text or f"`{file.name}`" in text, name


# These checks can fail


def page_of(text: str) -> Page:
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
    faults = Story(tmp_path).faults(page_of(text))
    assert len(faults) == 1


def test_a_broken_link_is_noticed() -> None:
    page = page_of(
        "[a](nowhere.md) [b](cli.md#nothing) [c](#here) [d](cli.md#exit-codes)\n\n# Here"
    )
    assert len(broken_links(page, {**PAGES, page.name: page})) == 2
    page = page_of("[c](#there)\n\n# Here\n\n```text\n# There\n```\n")
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
