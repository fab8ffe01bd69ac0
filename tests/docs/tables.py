"""Tables of keys: where each shape has its own, what it must say, and how it is written.

The tables of evaluators are generated: keys, types, defaults and aliases come from the
definitions, what a key means is written in the page and kept. Options of runs say themselves
what they mean. The tables of commands and of evaluator types are generated too: what a row means is
its help text or docstring, until the page says more. `make docs` writes the tables anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest_options
from pages import Page, code_words
from pydantic_core import PydanticUndefined

from assay.cli.app import app
from assay.cli.run import command as run_command
from assay.evaluators import composite, field_accuracy, tool_trajectory
from assay.evaluators.python import FunctionSpec
from assay.model import (
    expect,
    options,
    parameters,
    predicates,
    rubric,
    source,
    stubs,
    suite,
    target,
    tiers,
    tool,
)
from assay.model.accepted import AcceptedLoss
from assay.model.evaluator import EvaluatorSpec, NegatableSpec
from assay.model.options import RequestOptions, RunOptions
from assay.model.preference import PreferenceSettings
from assay.registry import evaluators, targets
from assay.service.schema import schema
from assay.settings import Config, JudgeEntry, TargetEntry
from assay.targets.chat import ChatTarget
from assay.targets.reply_paths import ReplyPaths
from assay.targets.scripted import ScriptedCall, ScriptedReply, ScriptedUsage
from assay.targets.tools import ToolDefinition
from assay.wire.rules import Ruled
from assay.wire.shape import Shape

ROOT = Path(__file__).resolve().parents[2]
CONFIG, EVAL_FILES, EVALUATORS = "docs/config.md", "docs/eval-files.md", "docs/evaluators.md"
RUNS, CLI = "docs/runs.md", "docs/cli.md"


def page_of(evaluator: str) -> str:
    return f"docs/evaluators/{evaluator}.md"


#: The shapes of evaluators and of options, with the page and the heading of their generated tables.
GENERATED: dict[type[Shape], tuple[str, str]] = {
    RunOptions: (RUNS, "Options"),
    EvaluatorSpec: (EVALUATORS, "Common keys"),
    composite.Aggregator: (page_of("composite"), "Aggregator"),
    field_accuracy.FieldRule: (page_of("field_accuracy"), "Fields"),
    tool_trajectory.Step: (page_of("tool_trajectory"), "Steps"),
    tool_trajectory.Call: (page_of("tool_trajectory"), "Calls"),
    predicates.Predicate: (page_of("tool_trajectory"), "Conditions"),
    **{evaluators.get(name): (page_of(name), "Keys") for name in evaluators},
}
#: Every wire shape, with the page and the heading of its table.
TABLES: dict[type[Shape], tuple[str, str]] = {
    Config: (CONFIG, "Keys"),
    TargetEntry: (CONFIG, "Targets"),
    options.RunOptions: (CONFIG, "Defaults"),
    target.RateLimits: (CONFIG, "Limits"),
    AcceptedLoss: (CONFIG, "Accepted losses"),
    PreferenceSettings: (CONFIG, "Preference"),
    target.Price: (CONFIG, "Prices"),
    source.Source: (CONFIG, "Sources"),
    tool.ToolEntry: (CONFIG, "Registry of tools"),
    ToolDefinition: (CONFIG, "Tools"),
    ReplyPaths: (CONFIG, "Reply paths"),
    **{targets.get(name): (CONFIG, name) for name in targets},
    suite.SuiteFile: (EVAL_FILES, "Suite keys"),
    suite.SuiteExecution: (EVAL_FILES, "Suite execution"),
    suite.CaseFile: (EVAL_FILES, "Case keys"),
    suite.CaseExecution: (EVAL_FILES, "Case execution"),
    stubs.StubEntry: (EVAL_FILES, "Stubs"),
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
    **GENERATED,
}
#: Shapes without a table of their own, and those that have their keys.
COVERED: dict[type[Shape], tuple[type[Shape], ...]] = {
    expect.ExpectBase: (expect.Expect,),
    expect.GoldenExpect: (expect.Expect,),
    suite.OneCaseFile: (suite.CaseFile, suite.SuiteFile),
    parameters.Parameters: (suite.CaseFile,),
    NegatableSpec: (evaluators.get("contains"),),
    Ruled: (expect.Expect,),
    JudgeEntry: (TargetEntry,),
    target.TargetSpec: (TargetEntry, target.RateLimits),
    ChatTarget: (targets.get("openai"),),
    FunctionSpec: (),
    RequestOptions: (RunOptions,),
}
#: Shapes with the keys of a replay line, which docs/observations.md has.
REPLAYED = (ScriptedReply, ScriptedCall, ScriptedUsage)


def shapes(base: type[Shape] = Shape) -> Iterator[type[Shape]]:
    """Every wire shape of Assay; what functions of a project are made into is not ours."""
    for child in base.__subclasses__():
        if child.__module__.startswith("assay.") and base is not FunctionSpec:
            yield child
            yield from shapes(child)


def own_fields(shape: type[Shape]) -> list[str]:
    """The keys that a shape's table lists: those of a documented base stand in its own table."""
    fields = dict.fromkeys(shape.model_fields)
    inherited: Iterable[str] = ()
    if issubclass(shape, EvaluatorSpec) and shape is not EvaluatorSpec:
        inherited = EvaluatorSpec.model_fields
    if issubclass(shape, tiers.TierCase) and shape is not tiers.TierCase:
        inherited = tiers.TierCase.model_fields
    if issubclass(shape, target.TargetSpec) and shape is not target.TargetSpec:
        inherited = ("name", *target.RateLimits.model_fields)
    own = [name for name in fields if name not in inherited]
    return sorted(own, key=lambda name: name == "negate")  # which follows what it inverts


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
    return {
        name: (default_of(shape, name), set(shape.key_names.names(name)))
        for name in own_fields(shape)
    }


# Types in words, from the JSON Schema that editors use

_PLAIN = {"string": "text", "boolean": "true or false", "object": "mapping", "null": ""}
#: What a reference is called, and where it is described.
_PARTS = {
    "Aggregator": "[aggregator](#aggregator)",
    "Call": "[calls](#calls)",
    "Dimension": "[dimensions](../eval-files.md#dimensions)",
    "Evaluator": "[evaluators](../evaluators.md)",
    "FieldRule": "[fields](#fields)",
    "NameOfVars": "",  # the section on parameters says where names may stand
    "Predicate": "any JSON value",
    "Rubric": "[rubric items](../eval-files.md#rubric-items)",
    "Step": "[steps](#steps)",
}


def type_in_words(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _PARTS[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return " or ".join(filter(None, map(type_in_words, schema["anyOf"])))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "")
    if kind == "array":
        return f"list of {type_in_words(schema['items'])}"
    if kind in ("number", "integer"):
        return ("whole number" if kind == "integer" else "number") + _limits(schema)
    if isinstance(values := schema.get("additionalProperties"), dict):
        return f"mapping of text to {type_in_words(values)}"
    return _PLAIN.get(kind, "any JSON value")


def _limits(schema: dict[str, Any]) -> str:
    if "maximum" in schema:
        return f", {schema['minimum']:g} to {schema['maximum']:g}"
    if "exclusiveMinimum" in schema:
        return f", > {schema['exclusiveMinimum']:g}"
    return f", >= {schema['minimum']:g}" if "minimum" in schema else ""


# Writing


@cache
def _shapes_of_files() -> dict[str, Any]:
    return dict(schema("eval")["$defs"])


def _properties(shape: type[Shape]) -> dict[str, Any]:
    if shape in (EvaluatorSpec, RunOptions):  # neither is a part of eval files as it is
        properties: dict[str, Any] = shape.model_json_schema()["properties"]
        return properties
    body = _shapes_of_files()[shape.__name__]
    return dict(body.get("then", body)["properties"])


def table(shape: type[Shape], meanings: dict[str, str]) -> list[str]:
    """The lines of a shape's table."""
    properties = _properties(shape)
    keys = real_keys(shape)
    aliased = any(aliases for _, aliases in keys.values())
    columns = ["Key", "Type", "Default", *(["Aliases"] if aliased else []), "Meaning"]
    lines = [_row(columns), "|" + "---|" * len(columns)]
    for key, (default, _) in keys.items():
        aliases = ", ".join(f"`{name}`" for name in shape.key_names.names(key))
        cells = [f"`{key}`", type_in_words(properties[key]), default]
        lines.append(_row([*cells, *([aliases] if aliased else []), meanings.get(key, "")]))
    return lines


def options_table() -> list[str]:
    """The lines of the table of run options: what each is called in files and on the command."""
    properties = _properties(RunOptions)
    flags = {p.name: [*p.opts, *p.secondary_opts] for p in run_command.params}
    columns = ["Key", "Option", "Type", "Default", "Aliases", "Meaning"]
    lines = [_row(columns), "|" + "---|" * len(columns)]
    for key, (default, _) in real_keys(RunOptions).items():
        option, aliases = (
            ", ".join(f"`{name}`" for name in names)
            for names in (flags[key], RunOptions.key_names.names(key))
        )
        kind, meaning = type_in_words(properties[key]), RunOptions.model_fields[key].description
        lines.append(_row([f"`{key}`", option, kind, default, aliases, meaning or ""]))
    return lines


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group, with what a user types."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


COMMANDS = dict(commands(app, "assay"))


def spellings(parameter: click.Parameter, command: click.Command) -> list[str]:
    if isinstance(parameter, click.Option):
        return [*parameter.opts, *parameter.secondary_opts]
    return [parameter.make_metavar(click.Context(command)).replace("[FOLDER]", "FOLDER")]


def command_table(page: Page, path: str) -> list[str]:
    """The lines of the table of a command's options."""
    known = {row["Option"]: row["Meaning"] for row in page.table(path)}
    lines = [_row(["Option", "Meaning"]), "|---|---|"]
    for parameter in COMMANDS[path].params:
        words = spellings(parameter, COMMANDS[path])
        option = ", ".join(f"`{word}`" for word in words).replace("|", "\\|")
        lines.append(_row([option, known.get(option) or _help(parameter)]))
    return lines


def _help(parameter: click.Parameter) -> str:
    """The help text of an option as a cell of a table."""
    text = getattr(parameter, "help", None) or ""
    text = f"{text[:1].lower()}{text[1:]}".removesuffix(".")
    return f"{text}; can be repeated" if getattr(parameter, "multiple", False) else text


def types_table(page: Page) -> list[str]:
    """The lines of the table of evaluator types, new ones last."""
    rows = {row["Type"]: row["The answer"] for row in page.table("Types")}
    for name in evaluators:
        summary = (evaluators.get(name).__doc__ or "").split("\n")[0].removesuffix(".")
        link = f"[`{name}`](evaluators/{name}.md)"
        rows.setdefault(link, summary.removeprefix("The answer "))
    return [_row(["Type", "The answer"]), "|---|---|", *map(_row, rows.items())]


def _row(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def rewritten(page: Page) -> str:
    """The text of a page with its generated tables written anew."""
    lines = page.text.splitlines()
    for shape, (name, title) in GENERATED.items():
        if name == page.name and own_fields(shape) and shape is not evaluators.get("expect"):
            start, end = _extent(lines, title)
            if shape is RunOptions:
                lines[start:end] = options_table()
                continue
            meanings = {code_words(r["Key"])[0]: r["Meaning"] for r in page.table(title)}
            lines[start:end] = table(shape, meanings)
    for path in COMMANDS if page.name == CLI else ():
        if not isinstance(COMMANDS[path], click.Group):
            start, end = _extent(lines, path)
            lines[start:end] = command_table(page, path)
    if page.name == EVALUATORS:
        start, end = _extent(lines, "Types")
        lines[start:end] = types_table(page)
    return "\n".join(lines) + "\n"


def _extent(lines: list[str], title: str) -> tuple[int, int]:
    """Where the first table under a heading begins and ends."""
    heading = next(i for i, line in enumerate(lines) if re.fullmatch(rf"#+ {title}", line))
    start = next(i for i in range(heading, len(lines)) if lines[i].startswith("|"))
    rest = (i for i in range(start, len(lines)) if not lines[i].startswith("|"))
    return start, next(rest, len(lines))


#: The pages that have generated tables.
PAGES_WITH_TABLES = sorted({CLI, *(name for name, _ in GENERATED.values())})


def main() -> None:
    for name in PAGES_WITH_TABLES:
        page = Page.read(ROOT / name, ROOT)
        text = rewritten(page)
        if text != page.text:
            (ROOT / name).write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {name}\n")
    options = pytest_options.FILE.read_text(encoding="utf-8")
    if (text := pytest_options.rewritten(options)) != options:
        pytest_options.FILE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {pytest_options.FILE.name}\n")


if __name__ == "__main__":
    main()
