"""Markdown pages as data: headings, links, tables, and code blocks that can be tried out.

The words after a block's language say how it is tried:

    yaml eval            loads as a suite without any problem; also jsonl, csv
    yaml evaluators      the same for a list of evaluators, `yaml expect` for an expect block
    json golden          loads as a tier file; also labeled, regression, rubric
    yaml config          is a valid assay.yaml; `toml config` a valid pyproject.toml
    ... reports=SLUG     loading it reports this slug and no other; `lint=SLUG` for `assay lint`
    text file=PATH       is written to PATH; any language
    console              every `$ command` runs; the output shown is the output, where a line
                         `...` stands for lines left out; `$ echo $?` shows the exit code,
                         which is otherwise 0
    text report=NAME     is what this reporter writes; `...` as above; any language
    python run           runs; a `text output` block after it shows what it prints

The blocks of a page are tried in order, in one folder of their own.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from click.testing import CliRunner

import preloaded_command
from assay.cli.app import app
from assay.errors import ConfigError
from assay.service import eval_files
from assay.settings import Settings

TIERS = ("golden", "labeled", "regression", "rubric")
EXAMPLES = ("eval", "evaluators", "expect", *TIERS)

_FENCE = re.compile(r"^(`{3,})(.*)$")
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_SHELL_SIGN = re.compile(r"[|<>;&$`*]")
_INLINE_CODE = re.compile(r"(`+)(.+?)\1")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is the line of its opening fence."""

    line: int
    words: tuple[str, ...]
    text: str
    section: str

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def kind(self) -> str:
        """What kind of eval file the block is an example of, if it is one."""
        return next((word for word in self.words[1:] if word in EXAMPLES), "")

    def option(self, name: str) -> str:
        """The value of `name=value` among the words."""
        found = (w.partition("=")[2] for w in self.words if w.startswith(f"{name}="))
        return next(found, "")


@dataclass(frozen=True)
class Heading:
    line: int
    level: int
    title: str


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    name: str
    text: str

    @classmethod
    def read(cls, file: Path, root: Path) -> Page:
        return cls(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))

    @cached_property
    def _parsed(self) -> tuple[list[tuple[int, str]], list[Block], list[Heading]]:
        prose: list[tuple[int, str]] = []
        blocks: list[Block] = []
        headings: list[Heading] = []
        lines = iter(enumerate(self.text.splitlines(), 1))
        for number, line in lines:
            if fence := _FENCE.match(line):
                body = []
                for _, inner in lines:
                    if inner.rstrip() == fence[1]:
                        break
                    body.append(inner)
                else:
                    raise AssertionError(f"{self.name}:{number}: the block is not closed")
                section = headings[-1].title if headings else ""
                text = "".join(f"{row}\n" for row in body)
                blocks.append(Block(number, tuple(fence[2].split()), text, section))
                continue
            if heading := _HEADING.match(line):
                headings.append(Heading(number, len(heading[1]), heading[2]))
            prose.append((number, line))
        return prose, blocks, headings

    @property
    def prose(self) -> list[tuple[int, str]]:
        """Numbered lines outside code blocks."""
        return self._parsed[0]

    @property
    def blocks(self) -> list[Block]:
        return self._parsed[1]

    @property
    def headings(self) -> list[Heading]:
        return self._parsed[2]

    @cached_property
    def anchors(self) -> set[str]:
        """What a `#link` can name, by GitHub's rule."""
        seen: dict[str, int] = {}
        result = set()
        for heading in self.headings:
            plain = re.sub(r"[^\w\- ]", "", heading.title.lower()).replace(" ", "-")
            count = seen.get(plain, 0)
            seen[plain] = count + 1
            result.add(f"{plain}-{count}" if count else plain)
        return result

    @property
    def links(self) -> Iterator[tuple[int, str]]:
        for number, line in self.prose:
            for match in _LINK.finditer(_INLINE_CODE.sub("", line)):
                yield number, match[1]

    def section(self, title: str) -> list[str]:
        """The prose lines under a heading, up to the next heading of any level."""
        starts = [h for h in self.headings if h.title == title]
        if len(starts) != 1:
            raise AssertionError(f"{self.name}: {len(starts)} headings are called {title!r}")
        ends = [h.line for h in self.headings if h.line > starts[0].line]
        end = min(ends, default=sys.maxsize)
        return [line for number, line in self.prose if starts[0].line < number < end]

    def table(self, title: str) -> list[dict[str, str]]:
        """The rows of the first table under a heading, by column."""
        rows: list[list[str]] = []
        for line in self.section(title):
            if line.startswith("|"):
                rows.append([c.strip() for c in re.split(r"(?<!\\)\|", line.strip()[1:-1])])
            elif rows:
                break
        if not rows:
            raise AssertionError(f"{self.name}: no table under {title!r}")
        return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def code_words(cell: str) -> list[str]:
    """What stands in backticks."""
    return [match[2] for match in _INLINE_CODE.finditer(cell)]


def fits(shown: str, real: str) -> str:
    """Why `shown` is not `real` with some lines left out at `...`; empty when it is."""
    wanted = [line.rstrip() for line in shown.strip("\n").splitlines()]
    found = [line.rstrip() for line in real.strip("\n").splitlines()]
    at, loose = 0, False
    for line in wanted:
        if line.strip() == "...":
            loose = True
        elif loose and line in found[at:]:
            at, loose = found.index(line, at) + 1, False
        elif not loose and at < len(found) and found[at] == line:
            at += 1
        else:
            return f"shown {line!r}, which is not what comes; the output is:\n{real}"
    return "" if loose or at == len(found) else f"not shown: {found[at]!r}"


class Story:
    """The blocks of one page, tried in order in one folder, which is the working directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = self.here = folder
        self.names: dict[str, object] = {}
        self.printed = ""

    def faults(self, page: Page) -> list[str]:
        """Every block that is not as it should be, with its line."""
        tried = ((block.line, self.attempt(block)) for block in page.blocks)
        return [f"{page.name}:{line}: {fault}" for line, fault in tried if fault]

    def attempt(self, block: Block) -> str:
        """What is wrong with a block; empty when nothing is."""
        marks = block.words[1:]
        if name := block.option("file"):
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
            return ""
        if block.language == "console":
            return self._console(block.text)
        if block.kind:
            return self._example(block, block.kind)
        if "config" in marks:
            return self._config(block)
        if "run" in marks:
            return self._python(block.text)
        if "output" in marks:
            return fits(block.text, self.printed)
        return ""

    def _example(self, block: Block, kind: str) -> str:
        name = f"get_weather.{kind}.json" if kind in TIERS else f"example.eval.{block.language}"
        file = self.folder / name
        file.write_text(whole(block.text, kind), encoding="utf-8")
        lint = block.option("lint")
        loaded = eval_files.lint(file) if lint else eval_files.validate(file)
        file.unlink()
        wanted = {slug for slug in (lint or block.option("reports")).split(",") if slug}
        ignored = {"unlocked-regression"} - wanted  # no example has a lock file
        found = {p.code for p in loaded.problems} - ignored
        if found != wanted:
            reports = "\n".join(map(str, loaded.problems))
            return f"reports {sorted(found)} instead of {sorted(wanted)}\n{reports}"
        return ""

    def _config(self, block: Block) -> str:
        file = self.folder / ("assay.yaml" if block.language == "yaml" else "pyproject.toml")
        before = file.read_text(encoding="utf-8") if file.exists() else None
        file.write_text(block.text, encoding="utf-8")
        try:
            Settings.find(self.folder)
            fault = ""
        except ConfigError as error:
            fault = str(error)
        finally:
            file.unlink()
            if before is not None:
                file.write_text(before, encoding="utf-8")
        if block.option("reports"):
            return "" if f"[{block.option('reports')}]" in fault else f"reports {fault!r}"
        return fault

    def _console(self, text: str) -> str:
        code = 0
        for command, shown in _commands(text):
            if command == "echo $?":
                if shown.strip() != str(code):
                    return f"the exit code is {code}, shown is {shown.strip()}"
                code = 0
                continue
            if code:
                return f"the exit code before `{command}` is {code}, and not shown"
            if command.startswith("cd "):
                self.here = (self.here / command[3:]).resolve()
                continue
            code, output = self.shell(command)
            if shown and (fault := fits(shown, output)):
                return f"`{command}`: {fault}"
        return f"the exit code of the last command is {code}, and not shown" if code else ""

    def shell(self, command: str) -> tuple[int, str]:
        """Exit code and output of a command."""
        plain = command.startswith("assay ") and not _SHELL_SIGN.search(command)
        # A run imports the agent of the page, which must not be there for the next one.
        if plain and command.startswith("assay run "):
            done = preloaded_command.assay(*shlex.split(command)[1:], cwd=self.here, together=True)
            return done.returncode, done.stdout
        if plain:
            return self._assay(shlex.split(command)[1:])  # the same without a new process
        done = preloaded_command.shell(command, self.here)
        return done.returncode, done.stdout

    def _assay(self, arguments: list[str]) -> tuple[int, str]:
        with contextlib.chdir(self.here):
            result = CliRunner().invoke(app, arguments, prog_name="assay")
        crash = result.exception
        if crash is None or isinstance(crash, SystemExit):
            return result.exit_code, result.output
        trace = "".join(traceback.format_exception(crash))
        return result.exit_code, result.output + trace

    def _python(self, text: str) -> str:
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(text, "<block>", "exec"), self.names)
        except Exception:  # whatever an example raises is a fault of the page
            return traceback.format_exc()
        self.printed = out.getvalue()
        return ""


def whole(text: str, kind: str) -> str:
    """A fragment as a whole file; it keeps its lines in one piece."""
    if kind == "evaluators":
        head = "id: a\ninput: Hello\nexpected_output: {a: 1}\nevaluators:\n"
        # The last entry reads the expected output, which others may need.
        return f"{head}{text.rstrip()}\n- {{name: expected, type: equals}}\n"
    if kind == "expect":
        return f"id: a\ninput: Hello\nexpect:\n{textwrap.indent(text, '  ')}"
    return text


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the output shown for it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command[:-1]}{more.removeprefix('>').lstrip()}"
        yield command, shown
